/* SPDX-License-Identifier: BSD-3-Clause */
/* record: what is written is read; anything else is refused as a whole, and read without a step beyond its end. */
#include "test.h"
#include "base/rng.h"
#include "serve/handover/record.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int pair[2];

static void put_all(struct record_out *o)
{
	size_t a, b;

	a = record_begin(o, "first");
	record_put(o, 7);
	record_put_text(o, "a text");
	record_put_real(o, -0.25);
	record_put_bytes(o, "\1\2\3", 3);
	b = record_begin(o, "inner");
	record_put(o, UINT64_MAX);
	record_end(o, b);
	record_end(o, a);
	a = record_begin(o, "second");
	record_put_fd(o, pair[0]);
	record_put_fd(o, pair[1]);
	record_end(o, a);
}

static int make(void)
{
	struct record_out o = {0};
	int fd;

	put_all(&o);
	CHECK_INT(o.error, 0);
	CHECK_INT(o.fds.n, 2);
	fd = record_memfd(&o);
	CHECK(fd >= 0);
	fd = dup(fd);
	record_out_free(&o);
	return fd;
}

static void whole(void)
{
	struct record_fds fds = {0};
	struct record_map map;
	struct record_in in = {.fds = &fds}, part, inner;
	struct weir_err err;
	struct stat a, b;
	const char *name;
	size_t n;
	int fd = make(), got;

	CHECK_INT(record_fds_add(&fds, dup(pair[1])), 0); /* in another order */
	CHECK_INT(record_fds_add(&fds, dup(pair[0])), 0);
	CHECK_INT(record_open(fd, &map, &in, &err), 0);
	CHECK(record_section(&in, &name, &part));
	CHECK_STR(name, "first");
	CHECK_INT(record_get_most(&part, 7), 7);
	CHECK_STR(record_get_text(&part), "a text");
	CHECK(record_get_real(&part) == -0.25);
	CHECK_INT(memcmp(record_get_bytes(&part, &n), "\1\2\3", 3), 0);
	CHECK_INT(n, 3);
	CHECK(record_section(&part, &name, &inner));
	CHECK(record_get(&inner) == UINT64_MAX);
	CHECK(!inner.bad);
	CHECK_INT(record_get(&inner), 0); /* beyond its end */
	CHECK(inner.bad);
	CHECK(!record_section(&part, &name, &inner));
	CHECK(!part.bad);
	CHECK(record_section(&in, &name, &part));
	for (int i = 0; i < 2; i++) {
		got = record_get_fd(&part);
		CHECK_INT(fstat(got, &a), 0);
		CHECK_INT(fstat(pair[i], &b), 0);
		CHECK(a.st_ino == b.st_ino);
		close(got);
	}
	CHECK(!record_section(&in, &name, &part));
	CHECK(!in.bad);
	record_unmap(&map);
	record_fds_close(&fds);
	close(fd);
}

/* Return a sealed memfd of these bytes. */
static int sealed(const uint8_t *data, size_t n)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK_INT(write(fd, data, n), (ssize_t)n);
	CHECK_INT(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	return fd;
}

static int opens(int fd)
{
	struct record_map map;
	struct record_in in = {0};
	struct weir_err err;
	int rc = record_open(fd, &map, &in, &err);

	if (rc == 0)
		record_unmap(&map);
	close(fd);
	return rc;
}

static void damaged(void)
{
	uint8_t data[4096];
	int fd = make();
	ssize_t n = pread(fd, data, sizeof(data), 0);

	CHECK(n > 100);
	CHECK_INT(opens(sealed(data, (size_t)n)), 0);
	for (size_t cut = 0; cut < (size_t)n; cut++)
		CHECK_INT(opens(sealed(data, cut)), -EBADMSG);
	for (size_t at = 0; at < (size_t)n; at++) {
		int want = at >= 8 && at < 12    ? -EPROTONOSUPPORT
			   : at >= 12 && at < 16 ? -ESTALE
						 : -EBADMSG;

		data[at] ^= 0x40;
		CHECK_INT(opens(sealed(data, (size_t)n)), want);
		data[at] ^= 0x40;
	}
	CHECK_INT(opens(memfd_create("test", MFD_CLOEXEC)), -EBADMSG);
	CHECK_INT(opens(dup(pair[0])), -EBADMSG);
	close(fd);
}

static void taken_once(void)
{
	struct record_map ours, theirs;
	struct record_in in = {0};
	struct weir_err err;
	int fd = make();

	CHECK_INT(record_map(fd, &ours), 0);
	CHECK_INT(record_open(fd, &theirs, &in, &err), 0);
	CHECK(record_mark(&theirs, RECORD_TAKEN));
	CHECK(!record_mark(&ours, RECORD_REVOKED));
	CHECK(!record_mark(&theirs, RECORD_TAKEN));
	record_unmap(&ours);
	record_unmap(&theirs);
	CHECK_INT(opens(fd), -ESTALE);
}

/* Reading garbage ends, and stays inside. */
static void garbage(void)
{
	struct rng rng;

	rng_init(&rng, 1, "record");
	for (int i = 0; i < 20000; i++) {
		size_t n = rng_below(&rng, 60), got;
		uint8_t *data = malloc(n ? n : 1);
		struct record_in in = {.at = data, .end = data + n}, part;
		const char *name;

		for (size_t k = 0; k < n; k++)
			data[k] = (uint8_t)(rng_below(&rng, 3) ? 0 : rng_below(&rng, 30));
		while (record_section(&in, &name, &part)) {
			CHECK(strlen(name) < 60);
			record_get_text(&part);
			record_get_bytes(&part, &got);
			CHECK_INT(record_get_fd(&part), -1);
		}
		free(data);
	}
}

int main(void)
{
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	RUN(whole);
	RUN(damaged);
	RUN(taken_once);
	RUN(garbage);
	return 0;
}
