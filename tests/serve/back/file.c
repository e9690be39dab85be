/* SPDX-License-Identifier: BSD-3-Clause */
/* Every test with io_uring, and again with threads. */
#include "base/rng.h"
#include "serve/back-rig.h"
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#define K 1024
#define M (1024 * K)

static bool by_threads;
static char path[] = "back-file-XXXXXX";
static char name[64];

static void make(off_t size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0 && ftruncate(fd, size) == 0);
	close(fd);
}

static void open_rig(struct rig *r)
{
	rig_open_with(r, name, (struct back_config){.threads = by_threads});
}

static void test_reads_back(void)
{
	char text[64];
	struct rig r;

	make(4 * M);
	open_rig(&r);
	CHECK_INT(r.back->info.size, 4 * M);
	CHECK_INT(r.back->info.block_min, 1);
	CHECK(!r.back->info.read_only && !r.back->info.lends && r.back->info.depth > 0);
	r.back->ops->say(r.back, text, sizeof(text));
	if (by_threads)
		CHECK_STR(text, "threads");
	rig_is(&r, 0, 256 * K, 0);
	CHECK_INT(rig_fill(&r, 0, 1000, 9000, 7), 0);
	CHECK_INT(rig_fill(&r, BACK_FUA, 4 * M - 256 * K, 256 * K, 9), 0);
	rig_is(&r, 0, 1000, 0);
	rig_is(&r, 1000, 9000, 7);
	rig_is(&r, 4 * M - 256 * K, 256 * K, 9);
	CHECK_INT(rig_do(&r, BACK_FLUSH, 0, 0, 0, NULL), 0);
	CHECK_INT(rig_do(&r, BACK_CACHE, 0, 0, 4 * M, NULL), 0);
	CHECK_INT(rig_do(&r, (enum back_op)99, 0, 0, 1, NULL), -EINVAL);
	rig_close(&r);
	open_rig(&r); /* still present */
	rig_is(&r, 1000, 9000, 7);
	rig_close(&r);
}

/* Submit one request, and return true if it was done before submit returned. */
static bool at_once(struct rig *r, enum back_op op, int flags, uint64_t offset, void *data)
{
	struct back_io io = {.op = (uint8_t)op,
		.flags = (uint8_t)flags,
		.offset = offset,
		.length = 64 * K,
		.data = data,
		.error = 1};
	bool done;

	r->inside++;
	r->stop = false;
	back_submit(r->back, &io);
	done = r->inside == 0;
	r->stop = true;
	if (!done)
		CHECK_INT(loop_run(r->loop), 0);
	CHECK_INT(io.error, 0);
	return done;
}

/* Cached pages need neither a thread nor a second round. */
static void test_cached(void)
{
	static uint8_t data[64 * K], back[64 * K];
	unsigned reads = 0, writes = 0;
	struct rig r;

	make(1 * M);
	open_rig(&r);
	for (int i = 0; i < 16; i++)
		CHECK_INT(rig_fill(&r, 0, (uint64_t)i * 64 * K, 64 * K, 5), 0);
	for (unsigned i = 0; i < 16; i++) {
		memset(data, (int)i, sizeof(data));
		writes += at_once(&r, BACK_WRITE, 0, i * 64 * K, data);
		reads += at_once(&r, BACK_READ, 0, i * 64 * K, back);
		CHECK(memcmp(data, back, sizeof(data)) == 0);
	}
	/* Not all of them: the machine may be short of memory, or preempt the test. */
	CHECK(reads >= 8);
	CHECK(writes >= 8);
	if (!by_threads) /* waits for the device */
		CHECK(!at_once(&r, BACK_WRITE, BACK_FUA, 0, data));
	rig_close(&r);
}

/* A write with FUA waits for the device. A cached one behind it that overlaps it must not be done first,
 * and neither may the trim behind that; a write elsewhere does not wait. */
static void test_order_of_overlaps(void)
{
	static uint8_t data[4][64 * K];
	struct back_io io[] = {
		{.op = BACK_WRITE, .flags = BACK_FUA, .length = 64 * K, .data = data[0]},
		{.op = BACK_WRITE, .offset = 32 * K, .length = 64 * K, .data = data[1]},
		{.op = BACK_TRIM, .offset = 80 * K, .length = 16 * K},
		{.op = BACK_WRITE, .offset = 84 * K, .length = 4 * K, .data = data[2]},
		{.op = BACK_WRITE, .offset = 512 * K, .length = 4 * K, .data = data[3]},
	};
	struct rig r;

	make(1 * M);
	open_rig(&r);
	for (int i = 0; i < 4; i++)
		memset(data[i], i + 1, sizeof(data[i]));
	for (int i = 0; i < 4; i++)
		io[i].next = &io[i + 1];
	rig_run(&r, io);
	rig_is(&r, 0, 32 * K, 1);
	rig_is(&r, 32 * K, 48 * K, 2);
	rig_is(&r, 80 * K, 4 * K, 0);
	rig_is(&r, 84 * K, 4 * K, 3);
	rig_is(&r, 88 * K, 8 * K, 0);
	rig_is(&r, 512 * K, 4 * K, 4);
	rig_close(&r);
}

/* Random writes, trims and zeroes, all submitted at once, against their order. */
static void test_order_of_many(void)
{
	enum { N = 100, SPAN = 64 * K, LONGEST = 20 * K };
	static uint8_t data[N][LONGEST], must[SPAN], got[SPAN];
	static struct back_io io[N];
	struct rng rng;
	struct rig r;

	rng_init(&rng, 1, "order");
	memset(must, 0, SPAN);
	make(SPAN);
	open_rig(&r);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < N; i++) {
			uint64_t length = 1 + rng_below(&rng, LONGEST);
			uint64_t offset = rng_below(&rng, SPAN - length);
			bool zero = rng_below(&rng, 4) == 0;

			memset(data[i], zero ? 0 : 1 + i % 255, length);
			memcpy(must + offset, data[i], length);
			io[i] = (struct back_io){.op = zero ? BACK_ZERO : BACK_WRITE,
				.flags = rng_below(&rng, 8) ? 0 : BACK_FUA,
				.offset = offset,
				.length = length,
				.data = data[i],
				.error = 1,
				.next = i < N - 1 ? &io[i + 1] : NULL};
		}
		rig_run(&r, io);
		for (int i = 0; i < N; i++)
			CHECK_INT(io[i].error, 0);
		CHECK_INT(rig_do(&r, BACK_READ, 0, 0, SPAN, got), 0);
		CHECK(memcmp(got, must, SPAN) == 0);
	}
	rig_close(&r);
}

/* A batch that exceeds the ring. */
static void test_many(void)
{
	enum { N = 6000 };
	static struct back_io io[N];
	static uint32_t data[N];
	struct rig r;

	make(N * 4);
	open_rig(&r);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < N; i++) {
			if (!round)
				data[i] = i * 2654435761u;
			else
				data[i] = 0;
			io[i] = (struct back_io){.op = round ? BACK_READ : BACK_WRITE,
				.offset = (uint64_t)i * 4,
				.length = 4,
				.data = (uint8_t *)&data[i],
				.error = 1,
				.next = i < N - 1 ? &io[i + 1] : NULL};
		}
		rig_run(&r, io);
		for (uint32_t i = 0; i < N; i++)
			CHECK_INT(io[i].error, 0);
	}
	for (uint32_t i = 0; i < N; i++)
		CHECK_INT(data[i], i * 2654435761u);
	rig_close(&r);
}

static void test_trim_and_zero(void)
{
	static const int ways[] = {
		0, BACK_NO_HOLE, BACK_FAST_ZERO, BACK_FUA, BACK_FUA | BACK_NO_HOLE};
	struct rig r;

	make(1 * M);
	open_rig(&r);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		for (int at = 0; at < 4; at++)
			CHECK_INT(rig_fill(&r, 0, (uint64_t)at * 256 * K, 256 * K, 5), 0);
		CHECK_INT(rig_do(&r, BACK_ZERO, ways[i], 5000, 500000, NULL), 0);
		rig_is(&r, 0, 5000, 5);
		rig_is(&r, 5000, 250000, 0);
		rig_is(&r, 255000, 250000, 0);
		rig_is(&r, 505000, 3000, 5);
	}
	CHECK_INT(rig_do(&r, BACK_TRIM, BACK_FUA, 0, 1 * M, NULL), 0);
	rig_is(&r, 505000, 3000, 0);
	CHECK_INT(rig_do(&r, BACK_TRIM, 0, 0, 0, NULL), 0);
	rig_close(&r);
}

/* /dev/shm supports holes but not ZERO_RANGE: zeroes are written, or refused if they must be
 * fast. */
static void test_zero_by_writing(void)
{
	char where[] = "/dev/shm/weir-back-file-XXXXXX", text[64];
	int fd = mkstemp(where);
	struct stat st;
	struct rig r;

	if (fd < 0) {
		printf("# no /dev/shm\n");
		return;
	}
	CHECK_INT(ftruncate(fd, 2 * M), 0);
	snprintf(text, sizeof(text), "file:%s", where);
	rig_open_with(&r, text, (struct back_config){.threads = by_threads});
	CHECK_INT(rig_fill(&r, 0, 1000 * K, 256 * K, 5), 0);
	CHECK_INT(rig_do(&r, BACK_ZERO, BACK_NO_HOLE | BACK_FAST_ZERO, 100, 1500000, NULL),
		-EOPNOTSUPP);
	rig_is(&r, 1000 * K, 256 * K, 5);
	CHECK_INT(rig_do(&r, BACK_ZERO, BACK_NO_HOLE, 100, 1500000, NULL), 0);
	rig_is(&r, 1000 * K, 256 * K, 0);
	CHECK(fstat(fd, &st) == 0 && st.st_blocks * 512 >= 1500000);
	CHECK_INT(rig_do(&r, BACK_ZERO, BACK_FAST_ZERO, 0, 2 * M, NULL), 0);
	CHECK(fstat(fd, &st) == 0 && st.st_blocks == 0);
	rig_close(&r);
	close(fd);
	unlink(where);
}

static void test_status(void)
{
	struct back_extent e[8];
	struct rig r;

	make(4 * M);
	open_rig(&r);
	CHECK(r.back->info.can_status);
	CHECK_INT(rig_status(&r, 5, 4 * M - 5, e, 8), 1);
	CHECK_INT(e[0].flags, 3);
	CHECK_INT(rig_fill(&r, 0, 1 * M, 64 * K, 5), 0);
	CHECK_INT(rig_status(&r, 4096, 3 * M, e, 8), 3);
	CHECK_INT(e[0].length, 1 * M - 4096);
	CHECK_INT(e[1].length, 64 * K);
	CHECK_INT(e[1].flags, 0);
	CHECK_INT(e[2].flags, 3);
	CHECK_INT(rig_status(&r, 4096, 3 * M, e, 1), 1);
	rig_close(&r);
}

static void test_truncated(void)
{
	uint8_t data[8192];
	struct rig r;

	make(1 * M);
	open_rig(&r);
	CHECK_INT(rig_fill(&r, 0, 0, 64 * K, 5), 0);
	CHECK_INT(truncate(path, 10000), 0);
	CHECK_INT(rig_do(&r, BACK_READ, 0, 65536, 4096, data), -EIO);
	CHECK_INT(rig_do(&r, BACK_READ, 0, 8192, 8192, data), -EIO); /* half of it is missing */
	rig_is(&r, 0, 8192, 5);
	unlink(path); /* unlinked, but still open */
	CHECK_INT(rig_fill(&r, 0, 0, 4096, 6), 0);
	rig_is(&r, 0, 4096, 6);
	rig_close(&r);
}

/* Return the size of this process's mapping of a file; 0: there is none. */
static size_t mapped(const char *file)
{
	FILE *in = fopen("/proc/self/maps", "re");
	unsigned long from, to;
	char line[512];
	size_t n = 0;

	CHECK(in);
	while (fgets(line, sizeof(line), in))
		if (strstr(line, file) && sscanf(line, "%lx-%lx", &from, &to) == 2)
			n += to - from;
	fclose(in);
	return n;
}

/* Where reads cannot be attempted without waiting, as on tmpfs, the mapping follows the size, too. */
static void test_grows(void)
{
	int fd = memfd_create("file-that-grows", MFD_CLOEXEC);
	char memory[64];
	struct rig r;

	CHECK(fd >= 0 && ftruncate(fd, 1 * M) == 0);
	snprintf(memory, sizeof(memory), "file:/proc/self/fd/%d", fd);
	rig_open_with(&r, memory, (struct back_config){.threads = by_threads});
	rig_is(&r, 0, 4096, 0);
	CHECK_INT(mapped("file-that-grows"), 1 * M);
	for (int size = 2 * M; size <= 8 * M; size *= 2) {
		CHECK_INT(ftruncate(fd, size), 0);
		CHECK_INT(r.back->ops->grown(r.back), 0);
		CHECK_INT(r.back->info.size, size);
		CHECK_INT(mapped("file-that-grows"), size);
		CHECK_INT(rig_fill(&r, 0, (uint64_t)size - 4096, 4096, 3), 0);
		rig_is(&r, (uint64_t)size - 4096, 4096, 3);
	}
	rig_close(&r);
	CHECK_INT(mapped("file-that-grows"), 0);
	close(fd);
}

/* A resource limit stands for a full disk: writes beyond it fail, others do not. */
static void test_full(void)
{
	struct rlimit before, limit;
	struct rig r;

	make(1 * M);
	open_rig(&r);
	CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 512 * K;
	signal(SIGXFSZ, SIG_IGN);
	CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
	CHECK_INT(rig_fill(&r, 0, 600 * K, 4096, 1), -ENOSPC);
	CHECK_INT(rig_fill(&r, BACK_FUA, 600 * K, 4096, 1), -ENOSPC);
	CHECK_INT(rig_fill(&r, 0, 0, 4096, 1), 0);
	/* The write failed, not the sync: a FLUSH still succeeds. */
	CHECK_INT(rig_do(&r, BACK_FLUSH, 0, 0, 0, NULL), 0);
	CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
	rig_is(&r, 600 * K, 4096, 0);
	rig_close(&r);
}

static void test_direct(void)
{
	struct weir_err err;
	struct back_config config = {.direct = true, .threads = by_threads};
	struct back *b;
	struct rig r;

	make(1 * M + 100);
	if (back_open(name, &config, &b, &err) == -EINVAL) {
		printf("# %s\n", err.text);
		return;
	}
	back_free(b);
	rig_open_with(&r, name, config);
	CHECK(r.back->info.block_min >= 512);
	CHECK_INT(r.back->info.size, 1 * M);
	CHECK_INT(rig_fill(&r, 0, 64 * K, 128 * K, 4), 0);
	CHECK_INT(rig_fill(&r, BACK_FUA, 0, 4096, 6), 0);
	rig_is(&r, 64 * K, 128 * K, 4);
	rig_is(&r, 0, 4096, 6);
	rig_is(&r, 4096, 4096, 0);
	CHECK_INT(rig_do(&r, BACK_FLUSH, 0, 0, 0, NULL), 0);
	CHECK_INT(rig_fill(&r, 0, 1, 100, 4), -EINVAL);
	CHECK_INT(rig_fill(&r, BACK_FUA, 1, 100, 4), -EINVAL);
	CHECK_INT(rig_do(&r, BACK_FLUSH, 0, 0, 0, NULL), 0);
	rig_close(&r);
}

static void test_read_only(void)
{
	struct rig r;

	make(1 * M);
	rig_open_with(&r, name, (struct back_config){.threads = by_threads, .read_only = true});
	CHECK(r.back->info.read_only);
	rig_is(&r, 0, 4096, 0);
	CHECK(rig_fill(&r, 0, 0, 4096, 1) < 0);
	CHECK(rig_do(&r, BACK_TRIM, 0, 0, 4096, NULL) < 0);
	CHECK_INT(rig_do(&r, BACK_FLUSH, 0, 0, 0, NULL), 0);
	rig_is(&r, 0, 4096, 0);
	rig_close(&r);
}

static void refuses(const char *what, int error, const char *text)
{
	struct back_config config = {.threads = by_threads};
	struct weir_err err = {""};
	struct back *b = NULL;

	CHECK_INT(back_open(what, &config, &b, &err), error);
	CHECK(!b);
	CHECK_STR(err.text, text);
}

static void test_refuses(void)
{
	char wanted[128];

	refuses("file:", -EINVAL, "file:: needs a path, as in 'file:disk.img'");
	refuses("file:not-there", -ENOENT, "file:not-there: No such file or directory");
	refuses("file:.", -EINVAL, "file:.: neither a file nor a block device");
	refuses("file:/dev/null", -EINVAL, "file:/dev/null: neither a file nor a block device");
	refuses("file:x?drect=1", -EINVAL,
		"file:x?drect=1: unknown option 'drect' (did you mean 'direct'?)");
	refuses("file:x?direct=perhaps", -EINVAL,
		"file:x?direct=perhaps: direct: \"perhaps\": must be yes or no");
	make(0);
	snprintf(wanted, sizeof(wanted), "%s: is empty; set a size with 'truncate -s 1G'", name);
	refuses(name, -EINVAL, wanted);
	if (geteuid() != 0) {
		make(1 * M);
		chmod(path, 0400);
		snprintf(wanted, sizeof(wanted), "%s: Permission denied (try read_only=yes)", name);
		refuses(name, -EACCES, wanted);
		chmod(path, 0600);
	}
}

static void test_names_with_question_marks(void)
{
	char odd[64], text[96];
	struct rig r;

	make(1 * M);
	snprintf(odd, sizeof(odd), "%s?b", path);
	CHECK_INT(rename(path, odd), 0);
	snprintf(text, sizeof(text), "file:%s?", odd);
	rig_open_with(&r, text, (struct back_config){.threads = by_threads});
	rig_close(&r);
	snprintf(text, sizeof(text), "file:%s?read_only&threads=%d", odd, by_threads);
	rig_open_with(&r, text, (struct back_config){0});
	CHECK(r.back->info.read_only);
	rig_close(&r);
	unlink(odd);
}

static void all(void)
{
	RUN(test_reads_back);
	RUN(test_cached);
	RUN(test_order_of_overlaps);
	RUN(test_order_of_many);
	RUN(test_many);
	RUN(test_trim_and_zero);
	RUN(test_zero_by_writing);
	RUN(test_status);
	RUN(test_truncated);
	RUN(test_grows);
	RUN(test_full);
	RUN(test_direct);
	RUN(test_read_only);
	RUN(test_refuses);
	RUN(test_names_with_question_marks);
}

/* From here on io_uring_setup fails, as in a container. */
static void forbid_io_uring(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = 4, .filter = code};

	CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_INT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void test_forbidden(void)
{
	char text[64];
	struct rig r;

	forbid_io_uring();
	by_threads = false;
	make(1 * M);
	open_rig(&r);
	r.back->ops->say(r.back, text, sizeof(text));
	CHECK_STR(text, "threads");
	CHECK_INT(rig_fill(&r, 0, 0, 256 * K, 1), 0);
	rig_is(&r, 0, 256 * K, 1);
	rig_close(&r);
}

int main(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	snprintf(name, sizeof(name), "file:%s", path);
	all();
	printf("# by threads\n");
	by_threads = true;
	all();
	RUN(test_forbidden);
	unlink(path);
	return 0;
}
