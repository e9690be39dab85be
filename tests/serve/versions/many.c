/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * many: versions one after the other in the embedded store: its size stays within bounds, and a start is quick.
 *
 * WEIR_VERSIONS of them, 1,000 without it. From 10,000 on times are judged, too: fewer are made beside other tests.
 */
#include "serve/versions/versions.h"
#include "test.h"
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST 100 /* versions that are kept; with many, as by default */
#define SIZE                                                                                       \
	((size_t)24                                                                                \
		<< 20) /* bytes of the database and its log: 1250 texts and records, and free pages */
#define TEXT  4000
#define APPLY (10 * WEIR_MS)
#define START WEIR_SEC

static struct loop *loop;
static bool done;
static int code;

static void put_done(void *arg, int rc, const struct record *r, const struct weir_err *err)
{
	if (rc < 0)
		FAIL("%s", err->text);
	done = true;
	loop_stop(loop);
}

static void read_done(void *arg, int rc, struct versions_text *v, const struct weir_err *err)
{
	code = rc;
	if (rc == 0)
		*(struct versions_text *)arg = *v;
	done = true;
	loop_stop(loop);
}

static void wait(void)
{
	while (!done)
		CHECK_INT(loop_run(loop), 0);
	done = false;
}

static size_t size_of(const char *folder)
{
	static const char *const names[] = {"store.db", "store.db-wal", "store.db-shm"};
	size_t all = 0;

	for (size_t i = 0; i < 3; i++) {
		char path[128];
		struct stat st;

		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		all += stat(path, &st) == 0 ? (size_t)st.st_size : 0;
	}
	return all;
}

static int order(const void *a, const void *b)
{
	weir_time x = *(const weir_time *)a, y = *(const weir_time *)b;

	return x < y ? -1 : x > y;
}

int main(void)
{
	const char *versions = getenv("WEIR_VERSIONS");
	size_t n = versions ? (size_t)atol(versions) : 1000, largest = 0;
	unsigned most = n < 10000 ? MOST : VERSIONS_MOST;
	char folder[] = "/tmp/weir-many-XXXXXX", name[64], *text = malloc(TEXT + 1);
	weir_time *times = calloc(n, sizeof(*times)), begin, start;
	struct versions_text v = {0};
	struct weir_err err;
	struct store *s;

	CHECK_INT(loop_new(&loop), 0);
	CHECK(mkdtemp(folder) != NULL);
	snprintf(name, sizeof(name), "sqlite:%s", folder);
	CHECK_INT(store_open(loop, name, &s, &err), 0);
	memset(text, '#', TEXT);
	text[TEXT] = 0;
	for (size_t i = 0; i < n; i++) {
		struct versions_request q = {
			.text = text, .length = TEXT, .most = most, .name = "p"};

		snprintf(text, 32, "# version %zu", i);
		begin = loop_clock();
		versions_put(s, &q, put_done, NULL);
		wait();
		times[i] = loop_clock() - begin;
		if (size_of(folder) > largest)
			largest = size_of(folder);
	}
	store_close(s);
	loop_stop(loop);
	loop_run(loop);

	begin = loop_clock();
	CHECK_INT(store_open(loop, name, &s, &err), 0);
	versions_read(s, 0, NULL, false, read_done, &v);
	wait();
	start = loop_clock() - begin;
	CHECK_INT(code, 0);
	CHECK_INT(v.record.number, n);
	CHECK(strcmp(v.text, text) == 0);
	versions_text_free(&v);
	versions_read(s, n > 2 * most ? n - 2 * most : 1, NULL, false, read_done, &v);
	wait();
	CHECK_INT(code, n > 2 * most ? -ENOENT : 0);
	versions_text_free(&v);

	qsort(times, n, sizeof(*times), order);
	printf("%zu versions: apply p50 %.2f ms, p99 %.2f ms, largest %.1f MiB, start %.1f ms\n", n,
		(double)times[n / 2] / 1e6, (double)times[n * 99 / 100] / 1e6,
		(double)largest / (1 << 20), (double)start / 1e6);
	CHECK(largest < SIZE);
	if (n >= 10000) {
		CHECK(times[n * 99 / 100] < APPLY);
		CHECK(start < START);
	}
	store_close(s);
	loop_stop(loop);
	loop_run(loop);
	loop_free(loop);
	free(times);
	free(text);
	snprintf(name, sizeof(name), "rm -rf %s", folder);
	CHECK_INT(system(name), 0);
	return 0;
}
