/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A system that does less than requested: here, reads and writes are short and fdatasync and
 * synchronous writes fail on demand. It replaces functions of the C library, which is why this is a
 * separate test, with threads.
 */
#include "serve/back-rig.h"
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_int sync_error;    /* 0 or a positive errno */
static atomic_int write_error;   /* the same, for every write */
static atomic_uint syncs, plain; /* number of calls */
static atomic_size_t most;       /* most bytes that one read or write moves */
static char name[64], path[] = "back-file-sync-XXXXXX";

int fdatasync(int fd)
{
	int e = atomic_load(&sync_error);

	atomic_fetch_add(&syncs, 1);
	if (!e)
		return 0;
	errno = e;
	return -1;
}

ssize_t pwritev2(int fd, const struct iovec *iov, int n, off_t at, int flags)
{
	int e = atomic_load(&write_error);

	if (!e && flags & RWF_DSYNC)
		e = atomic_load(&sync_error);
	if (!(flags & RWF_DSYNC))
		atomic_fetch_add(&plain, 1);
	if (!e)
		return pwrite(fd, iov->iov_base, iov->iov_len < most ? iov->iov_len : most, at);
	errno = e;
	return -1;
}

ssize_t preadv2(int fd, const struct iovec *iov, int n, off_t at, int flags)
{
	static atomic_uint calls;

	if (atomic_fetch_add(&calls, 1) % 5 == 4) { /* an occasional signal */
		errno = EINTR;
		return -1;
	}
	return pread(fd, iov->iov_base, iov->iov_len < most ? iov->iov_len : most, at);
}

static void fresh(struct rig *r)
{
	atomic_store(&sync_error, 0);
	atomic_store(&write_error, 0);
	atomic_store(&syncs, 0);
	atomic_store(&plain, 0);
	atomic_store(&most, SIZE_MAX);
	rig_open_with(r, name, (struct back_config){.threads = true});
}

static int flush(struct rig *r)
{
	return rig_do(r, BACK_FLUSH, 0, 0, 0, NULL);
}

/* The kernel reports a loss once. After that it would report success. */
static void test_no_flush_succeeds_after_a_failure(void)
{
	struct rig r;

	fresh(&r);
	CHECK_INT(rig_fill(&r, 0, 0, 4096, 1), 0);
	CHECK_INT(flush(&r), 0);
	atomic_store(&sync_error, EIO);
	CHECK_INT(flush(&r), -EIO);
	atomic_store(&sync_error, 0);
	CHECK_INT(flush(&r), -EIO);
	CHECK_INT(rig_do(&r, BACK_ZERO, BACK_FUA, 0, 4096, NULL), -EIO);
	CHECK_INT(rig_fill(&r, BACK_FUA, 0, 4096, 3), -EIO);
	CHECK_INT(atomic_load(&syncs), 2); /* a failed sync is not retried */
	CHECK_INT(flush(&r), -EIO);
	CHECK_INT(rig_fill(&r, 0, 0, 4096, 2), 0); /* other requests still work */
	rig_is(&r, 0, 4096, 2);
	CHECK(r.back->trouble);
	CHECK_INT(r.back->flush_errors, 5);
	rig_close(&r);
	fresh(&r); /* reopened */
	CHECK_INT(flush(&r), 0);
	rig_close(&r);
}

static void test_full_at_the_flush(void)
{
	struct rig r;

	fresh(&r);
	atomic_store(&sync_error, ENOSPC);
	CHECK_INT(flush(&r), -ENOSPC);
	atomic_store(&sync_error, 0);
	CHECK_INT(flush(&r), -EIO);
	rig_close(&r);
}

/* Its sync consumes the error that the next FLUSH would get. */
static void test_a_synchronous_write_that_cannot_sync(void)
{
	struct rig r;

	fresh(&r);
	CHECK_INT(rig_fill(&r, BACK_FUA, 0, 4096, 1), 0);
	CHECK_INT(atomic_load(&plain), 0);
	atomic_store(&sync_error, EIO);
	CHECK_INT(rig_fill(&r, BACK_FUA, 0, 4096, 1), -EIO);
	CHECK_INT(atomic_load(&plain), 1);
	atomic_store(&sync_error, 0);
	CHECK_INT(flush(&r), -EIO);
	rig_close(&r);
}

static void test_a_synchronous_write_that_cannot_write(void)
{
	struct rig r;

	fresh(&r);
	atomic_store(&write_error, ENOSPC);
	CHECK_INT(rig_fill(&r, BACK_FUA, 0, 4096, 1), -ENOSPC);
	CHECK_INT(rig_fill(&r, 0, 0, 4096, 1), -ENOSPC);
	atomic_store(&write_error, EDQUOT);
	CHECK_INT(rig_fill(&r, 0, 0, 4096, 1), -ENOSPC);
	atomic_store(&write_error, ENXIO); /* the device is gone */
	CHECK_INT(rig_fill(&r, 0, 0, 4096, 1), -EIO);
	atomic_store(&write_error, 0);
	CHECK_INT(flush(&r), 0); /* no acknowledged data were lost */
	rig_close(&r);
}

static void test_fua_of_zeroes_is_a_sync(void)
{
	struct rig r;

	fresh(&r);
	CHECK_INT(rig_do(&r, BACK_ZERO, 0, 0, 4096, NULL), 0);
	CHECK_INT(rig_do(&r, BACK_TRIM, 0, 0, 4096, NULL), 0);
	CHECK_INT(atomic_load(&syncs), 0);
	CHECK_INT(rig_do(&r, BACK_ZERO, BACK_FUA, 0, 4096, NULL), 0);
	CHECK_INT(rig_do(&r, BACK_ZERO, BACK_FUA | BACK_NO_HOLE, 0, 4096, NULL), 0);
	CHECK_INT(rig_do(&r, BACK_TRIM, BACK_FUA, 0, 4096, NULL), 0);
	CHECK_INT(atomic_load(&syncs), 3);
	rig_close(&r);
}

static void test_short_ones_go_on(void)
{
	uint8_t data[10000], back[10000];
	struct rig r;

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 256);
	fresh(&r);
	for (size_t n = 999; n < 12000; n += 5000) {
		atomic_store(&most, n);
		CHECK_INT(rig_fill(&r, 0, 0, 20000, 0), 0);
		CHECK_INT(rig_do(&r, BACK_WRITE, BACK_FUA, 5, sizeof(data), data), 0);
		memset(back, 0, sizeof(back));
		CHECK_INT(rig_do(&r, BACK_READ, 0, 5, sizeof(back), back), 0);
		CHECK(memcmp(data, back, sizeof(data)) == 0);
		rig_is(&r, 10005, 5000, 0);
	}
	rig_close(&r);
}

int main(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0 && ftruncate(fd, 1 << 20) == 0);
	close(fd);
	snprintf(name, sizeof(name), "file:%s", path);
	RUN(test_no_flush_succeeds_after_a_failure);
	RUN(test_full_at_the_flush);
	RUN(test_a_synchronous_write_that_cannot_sync);
	RUN(test_a_synchronous_write_that_cannot_write);
	RUN(test_fua_of_zeroes_is_a_sync);
	RUN(test_short_ones_go_on);
	unlink(path);
	return 0;
}
