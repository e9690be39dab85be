/* SPDX-License-Identifier: BSD-3-Clause */
/* A block device: a loop device over a file, if we may create one. Its last user removes it. */
#include "serve/back-rig.h"
#include <fcntl.h>
#include <linux/loop.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define K 1024
#define M (1024 * K)

static char device[64], path[] = "back-block-XXXXXX";

/* A loop device whose last user died may block other users. */
static void stuck(int signal)
{
	static const char why[] = "skipped: the loop devices here are stuck\n";
	ssize_t n = write(STDOUT_FILENO, why, sizeof(why) - 1);

	_exit(n < 0 ? 1 : 77);
}

static int loop_device(int file)
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), fd = -1;
	struct loop_config config = {.fd = (uint32_t)file, .info.lo_flags = LO_FLAGS_AUTOCLEAR};

	if (control < 0)
		SKIP("no loop devices here: %s", strerror(errno));
	for (int i = 0; i < 16 && fd < 0; i++) { /* another process may take the same one first */
		int n = ioctl(control, LOOP_CTL_GET_FREE);

		if (n < 0)
			SKIP("no loop device to be had: %s", strerror(errno));
		snprintf(device, sizeof(device), "/dev/loop%d", n);
		fd = open(device, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			SKIP("%s: %s", device, strerror(errno));
		if (ioctl(fd, LOOP_CONFIGURE, &config) < 0) {
			int e = errno;

			close(fd);
			fd = -1;
			if (e != EBUSY)
				SKIP("%s: %s", device, strerror(e));
		}
	}
	close(control);
	if (fd < 0)
		SKIP("all loop devices are busy");
	return fd;
}

static void all(bool threads, bool direct)
{
	struct back_config config = {.threads = threads, .direct = direct};
	struct back_extent e[4];
	char name[96];
	struct rig r;
	struct stat st;

	snprintf(name, sizeof(name), "file:%s", device);
	rig_open_with(&r, name, config);
	CHECK_INT(r.back->info.size, 8 * M);
	CHECK(r.back->info.block_min >= 512 && r.back->info.block_min <= 4096);
	CHECK(r.back->info.can_trim && !r.back->info.can_status);
	for (int i = 0; i < 32; i++)
		CHECK_INT(
			rig_fill(&r, i == 5 ? BACK_FUA : 0, (uint64_t)i * 256 * K, 256 * K, 9), 0);
	rig_is(&r, 7 * M, 256 * K, 9);
	CHECK_INT(rig_do(&r, BACK_FLUSH, 0, 0, 0, NULL), 0);
	CHECK(stat(path, &st) == 0 && st.st_blocks * 512 >= 7 * M);
	CHECK_INT(rig_do(&r, BACK_ZERO, BACK_NO_HOLE, 0, 1 * M, NULL), 0);
	rig_is(&r, 0, 256 * K, 0);
	CHECK_INT(rig_do(&r, BACK_ZERO, BACK_FUA, 1 * M, 1 * M, NULL), 0);
	rig_is(&r, 1 * M, 256 * K, 0);
	rig_is(&r, 2 * M, 256 * K, 9);
	CHECK_INT(rig_do(&r, BACK_ZERO, BACK_NO_HOLE | BACK_FAST_ZERO, 2 * M, 4096, NULL),
		-EOPNOTSUPP);
	CHECK_INT(rig_do(&r, BACK_TRIM, 0, 4 * M, 4 * M, NULL), 0);
	CHECK_INT(rig_do(&r, BACK_FLUSH, 0, 0, 0, NULL), 0);
	CHECK(stat(path, &st) == 0 && st.st_blocks * 512 <= 5 * M);
	CHECK_INT(rig_status(&r, 0, 8 * M, e, 4), 1); /* no information: all of it is data */
	CHECK_INT(e[0].flags, 0);
	rig_close(&r);
}

int main(void)
{
	int file = mkstemp(path), fd;

	CHECK(file >= 0 && ftruncate(file, 8 * M) == 0);
	signal(SIGALRM, stuck);
	alarm(5);
	fd = loop_device(file);
	alarm(0);
	for (int i = 0; i < 4; i++)
		all(i & 1, i & 2);
	printf("ok block device\n");
	close(fd);
	close(file);
	unlink(path);
	return 0;
}
