/* SPDX-License-Identifier: BSD-3-Clause */
/* history: rates add up to the counters, percentiles are of their point's requests, and the file survives. */
#include "test.h"
#include "serve/history/history.h"
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define BEGIN 1790000100.0 /* time of day; a multiple of 300 s */

static char folder[] = "/tmp/weir-history-XXXXXX";

/* The measurements of a gateway with two tenants. */
struct scene {
	struct snapshot s;
	struct snapshot_tenant tenant[2], *tenants[2];
	struct snapshot_resource resource;
	struct weir_hist hist;
};

static void set_scene(struct scene *c)
{
	*c = (struct scene){.tenants = {&c->tenant[0], &c->tenant[1]}};
	c->tenant[0] = (struct snapshot_tenant){.path = "a", .leaf = true};
	c->tenant[1] = (struct snapshot_tenant){.path = "b/c", .leaf = true};
	c->resource = (struct snapshot_resource){.name = "disk", .window = 8, .mins = NAN};
	c->s = (struct snapshot){
		.tenants = c->tenants, .n_tenants = 2, .resources = &c->resource, .n_resources = 1};
	weir_hist_clear(&c->hist);
}

/* Serve n requests of tenant 0, each of a latency. */
static void serve(struct scene *c, unsigned n, uint64_t latency)
{
	for (unsigned i = 0; i < n; i++)
		weir_hist_record(&c->hist, latency);
	c->tenant[0].served += n;
	c->tenant[0].arrivals += n;
	c->tenant[0].bytes += 4096 * (uint64_t)n;
	c->tenant[0].wait_ns[WEIR_WAIT_TURN] += 2e9 * n;
	c->resource.served += n;
}

static void take(struct scene *c, struct history *h, double day)
{
	c->s.now = (weir_time)((day - BEGIN) * 1e9) + 1;
	free(c->tenant[0].total);
	c->tenant[0].total = NULL;
	if (c->hist.count)
		snapshot_hist_add(&c->tenant[0].total, &c->hist);
	CHECK_INT(history_take(h, &c->s, day), 0);
}

static json_t *ask(
	const struct history *h, enum history_kind kind, const char *name, double span, double day)
{
	char *text;
	json_t *j;

	WRITE_TEXT(text, CHECK_INT(history_write(h, kind, name, span, day, to), 0));
	j = json_loads(text, 0, NULL);
	CHECK(j != NULL);
	free(text);
	return j;
}

static size_t column(const json_t *j, const char *name)
{
	const json_t *columns = json_object_get(j, "columns");

	for (size_t i = 0; i < json_array_size(columns); i++)
		if (strcmp(json_string_value(json_array_get(columns, i)), name) == 0)
			return i;
	FAIL("no column %s", name);
}

static const json_t *value(const json_t *j, size_t point, const char *name)
{
	return json_array_get(json_array_get(json_object_get(j, "points"), point), column(j, name));
}

static size_t n_points(const json_t *j)
{
	return json_array_size(json_object_get(j, "points"));
}

static double sum(const json_t *j, const char *name)
{
	double all = 0;

	for (size_t i = 0; i < n_points(j); i++)
		all += json_number_value(value(j, i, name));
	return all * json_number_value(json_object_get(j, "step_s"));
}

/* Rates of each ring add up to the counter, whatever the load does and however late snapshots are. */
static void rates_add_up(void)
{
	static const double spans[] = {1800, 21600, 86400};
	struct history *h;
	struct weir_err err;
	struct scene c;
	double day = BEGIN;
	unsigned all = 0;

	set_scene(&c);
	CHECK_INT(history_new(NULL, &h, &err), 0);
	take(&c, h, day + 0.1);
	for (unsigned i = 1; i <= 360; i++) { /* half an hour */
		unsigned n = i % 7 == 0 ? 1000 : i % 3;

		serve(&c, n, 100000);
		all += n;
		day = BEGIN + 5 * i + 0.1 + (i % 5 == 0 && i < 360 ? 3 : 0); /* late by 3 s */
		if (i % 50 != 1)                                             /* one is missed */
			take(&c, h, day);
	}
	for (size_t k = 0; k < 3; k++) {
		json_t *j = ask(h, HISTORY_TENANT, "a", spans[k], day);

		CHECK_NEAR(sum(j, "served"), all, 0.003);
		CHECK_NEAR(sum(j, "wait_turn"), 2.0 * all, 0.003);
		json_decref(j);
		j = ask(h, HISTORY_RESOURCE, "disk", spans[k], day);

		CHECK_NEAR(sum(j, "served"), all, 0.003);
		CHECK_INT(json_number_value(value(j, 0, "window")), 8);
		CHECK(json_is_null(value(j, 0, "mins")));
		json_decref(j);
	}
	history_free(h);
	free(c.tenant[0].total);
}

static void percentiles_are_of_the_point(void)
{
	struct history *h;
	struct weir_err err;
	struct scene c;
	json_t *j;

	set_scene(&c);
	CHECK_INT(history_new(NULL, &h, &err), 0);
	serve(&c, 100000, 1000000); /* before the history begins */
	take(&c, h, BEGIN + 0.1);
	serve(&c, 100, 5000000);
	take(&c, h, BEGIN + 5.1);
	take(&c, h, BEGIN + 10.1); /* idle */
	serve(&c, 50, 20000000);
	serve(&c, 50, 1000);
	take(&c, h, BEGIN + 15.1);
	j = ask(h, HISTORY_TENANT, "a", 30, BEGIN + 15.2);
	CHECK_INT(n_points(j), 3);
	CHECK_NEAR(json_number_value(value(j, 0, "p50_s")), 0.005, 0.01);
	CHECK_NEAR(json_number_value(value(j, 0, "p99_s")), 0.005, 0.01);
	CHECK_NEAR(json_number_value(value(j, 0, "served")), 20, 0.03);
	CHECK(json_is_null(value(j, 1, "p99_s")));
	CHECK(json_number_value(value(j, 1, "served")) < 0.5); /* since the end of the first */
	CHECK_NEAR(json_number_value(value(j, 2, "p50_s")), 1e-6, 0.01);
	CHECK_NEAR(json_number_value(value(j, 2, "p99_s")), 0.02, 0.01);
	json_decref(j);
	history_free(h);
	free(c.tenant[0].total);
}

/* A tenant whose first request comes later is counted from 0; one that was never active has no series. */
static void tenants_come_later(void)
{
	struct history *h;
	struct weir_err err;
	struct scene c;
	char *text;
	json_t *j;

	set_scene(&c);
	CHECK_INT(history_new(NULL, &h, &err), 0);
	take(&c, h, BEGIN + 0.1);
	take(&c, h, BEGIN + 5.1);
	serve(&c, 500, 1000);
	take(&c, h, BEGIN + 10.1);
	take(&c, h, BEGIN + 15.1);
	j = ask(h, HISTORY_TENANT, "a", 60, BEGIN + 15.2);
	CHECK_NEAR(sum(j, "served"), 500, 1e-3);
	json_decref(j);
	WRITE_TEXT(text,
		CHECK_INT(history_write(h, HISTORY_TENANT, "b/c", 60, BEGIN + 10.2, to), -ENOENT));
	free(text);
	history_free(h);
	free(c.tenant[0].total);
}

static void the_file_survives(void)
{
	struct history *h, *again;
	struct weir_err err;
	struct scene c;
	char path[100];
	struct stat st;
	json_t *j;
	FILE *f;

	set_scene(&c);
	CHECK_INT(history_new(folder, &h, &err), 0);
	CHECK_INT(history_new(folder, &again, &err), -EBUSY);
	take(&c, h, BEGIN + 0.1);
	serve(&c, 500, 1000);
	take(&c, h, BEGIN + 5.1);
	history_free(h);
	free(c.tenant[0].total);

	/* Another gateway, whose counters begin at 0, after a pause without snapshots. */
	set_scene(&c);
	CHECK_INT(history_new(folder, &h, &err), 0);
	take(&c, h, BEGIN + 30.1);
	serve(&c, 100, 1000);
	take(&c, h, BEGIN + 35.1);
	j = ask(h, HISTORY_TENANT, "a", 60, BEGIN + 35.2);
	CHECK_INT(n_points(j), 2);
	CHECK_NEAR(sum(j, "served"), 600, 0.03); /* without the ends of both */
	json_decref(j);
	history_free(h);
	free(c.tenant[0].total);

	/* A name without an end, then a file of another length: begun anew. */
	snprintf(path, sizeof(path), "%s/history", folder);
	CHECK_INT(stat(path, &st), 0);
	CHECK(st.st_blocks * 512 < 1 << 20); /* only the series that are used */
	f = fopen(path, "r+");
	CHECK(f && fseek(f, 32, SEEK_SET) == 0);
	for (int i = 0; i < 300; i++)
		fputc('x', f);
	fclose(f);
	CHECK_INT(history_new(folder, &h, &err), 0);
	set_scene(&c);
	take(&c, h, BEGIN + 40.1);
	history_free(h);
	CHECK_INT(truncate(path, 100), 0);
	CHECK_INT(history_new(folder, &h, &err), 0);
	history_free(h);
	CHECK_INT(unlink(path), 0);
}

/* More tenants than there is room for: those that are active stay, and one that was idle makes room. */
static void room_is_bounded(void)
{
	enum { MANY = HISTORY_SERIES + 500 };
	static struct snapshot_tenant tenant[MANY], *tenants[MANY];
	static char names[MANY][16];
	struct snapshot s = {.tenants = tenants, .n_tenants = MANY};
	struct history *h;
	struct weir_err err;
	json_t *j;

	for (int i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof(names[i]), "t%d", i);
		tenant[i] = (struct snapshot_tenant){.path = names[i], .leaf = true, .arrivals = 1};
		tenants[i] = &tenant[i];
	}
	CHECK_INT(history_new(NULL, &h, &err), 0);
	s.now = 1;
	CHECK_INT(history_take(h, &s, BEGIN + 0.1), MANY - (HISTORY_SERIES - 1));
	for (int k = 1; k <= 120; k++) { /* only the last one sends from now on */
		tenant[MANY - 1].served += 10;
		tenant[MANY - 1].arrivals += 10;
		s.now = k * HISTORY_STEP;
		history_take(h, &s, BEGIN + 5 * k + 0.1);
	}
	j = ask(h, HISTORY_TENANT, names[MANY - 1], 300, BEGIN + 601);
	CHECK_NEAR(sum(j, "served"), 600, 0.02);
	json_decref(j);
	history_free(h);
}

/* A clock that is set back, and one that jumps, cost points but no wrong ones. */
static void clocks_jump(void)
{
	struct history *h;
	struct weir_err err;
	struct scene c;
	json_t *j;

	set_scene(&c);
	CHECK_INT(history_new(NULL, &h, &err), 0);
	take(&c, h, BEGIN + 1000.1);
	serve(&c, 100, 1000);
	take(&c, h, BEGIN + 5.1);
	serve(&c, 100, 1000);
	take(&c, h, BEGIN + 10.1);
	take(&c, h, BEGIN + 200000.1);
	serve(&c, 50, 1000);
	take(&c, h, BEGIN + 200005.1);
	j = ask(h, HISTORY_TENANT, "a", 60, BEGIN + 200005.2);
	CHECK_NEAR(sum(j, "served"), 50, 0.03);
	json_decref(j);
	history_free(h);
	free(c.tenant[0].total);
}

/* A tenant that is removed and back counts from 0: nothing is lost, and what was before is not counted again. */
static void counters_begin_again(void)
{
	static const double spans[] = {1800, 21600, 86400};
	struct history *h;
	struct weir_err err;
	struct scene c;
	json_t *j;

	set_scene(&c);
	CHECK_INT(history_new(NULL, &h, &err), 0);
	take(&c, h, BEGIN + 0.1);
	for (unsigned i = 1; i <= 120; i++) {
		if (i == 40 || i == 80) {
			c.tenant[0].served = c.tenant[0].arrivals = 0;
			c.tenant[0].wait_ns[WEIR_WAIT_TURN] = 0;
			c.resource.served = 0;
			weir_hist_clear(&c.hist);
		}
		serve(&c, i < 40 ? 1000 : 10, 1000000);
		take(&c, h, BEGIN + 5 * i + 0.1);
	}
	for (size_t k = 0; k < 3; k++) {
		j = ask(h, HISTORY_TENANT, "a", spans[k], BEGIN + 600.2);
		CHECK_NEAR(sum(j, "served"), 39 * 1000 + 81 * 10, 0.003);
		CHECK_NEAR(sum(j, "wait_turn"), 2.0 * (39 * 1000 + 81 * 10), 0.003);
		json_decref(j);
	}
	j = ask(h, HISTORY_TENANT, "a", 300, BEGIN + 600.2);
	CHECK_NEAR(json_number_value(value(j, 30, "p99_s")), 0.001, 0.03);
	json_decref(j);
	history_free(h);
	free(c.tenant[0].total);
}

/* The last reply comes after the last point with a request: it is counted, too. */
static void replies_come_late(void)
{
	struct history *h;
	struct weir_err err;
	struct scene c;
	json_t *j;

	set_scene(&c);
	CHECK_INT(history_new(NULL, &h, &err), 0);
	take(&c, h, BEGIN + 0.1);
	c.tenant[0].arrivals = 10;
	c.tenant[0].in_flight = 10;
	take(&c, h, BEGIN + 295.1);
	take(&c, h, BEGIN + 300.1);
	c.tenant[0].in_flight = 0;
	c.tenant[0].served = 10;
	take(&c, h, BEGIN + 305.1);
	take(&c, h, BEGIN + 310.1);
	j = ask(h, HISTORY_TENANT, "a", 60, BEGIN + 310.2);
	CHECK_NEAR(sum(j, "served"), 10, 1e-3);
	json_decref(j);
	history_free(h);
}

/* A file that is cut off, or that the disk does not take, ends nothing: the history goes on in memory. */
static void the_file_fails(void)
{
	struct history *h;
	struct weir_err err;
	struct rlimit was, low;
	struct scene c;
	char path[100];
	json_t *j;

	set_scene(&c);
	snprintf(path, sizeof(path), "%s/history", folder);
	CHECK_INT(history_new(folder, &h, &err), 0);
	take(&c, h, BEGIN + 0.1);
	serve(&c, 500, 1000);
	take(&c, h, BEGIN + 5.1);
	CHECK_INT(history_wrong(h), 0);
	CHECK_INT(truncate(path, 0), 0);
	serve(&c, 500, 1000);
	take(&c, h, BEGIN + 10.1);
	CHECK_INT(getrlimit(RLIMIT_FSIZE, &was), 0);
	low = (struct rlimit){.rlim_cur = 0, .rlim_max = was.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	CHECK_INT(setrlimit(RLIMIT_FSIZE, &low), 0);
	serve(&c, 500, 1000);
	take(&c, h, BEGIN + 15.1);
	CHECK_INT(history_wrong(h), -EFBIG);
	CHECK_INT(setrlimit(RLIMIT_FSIZE, &was), 0);
	take(&c, h, BEGIN + 20.1);
	CHECK_INT(history_wrong(h), 0);
	j = ask(h, HISTORY_TENANT, "a", 60, BEGIN + 20.2);
	CHECK_NEAR(sum(j, "served"), 1500, 0.003);
	json_decref(j);
	history_free(h);
	free(c.tenant[0].total);
	CHECK_INT(unlink(path), 0);
}

/* A path that is no file, or a file with another name, stays as it is. */
static void files_of_others(void)
{
	struct history *h;
	struct weir_err err;
	char path[100], other[100];
	struct stat st;
	FILE *f;

	snprintf(path, sizeof(path), "%s/history", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
	f = fopen(other, "w");
	fputs("precious", f);
	fclose(f);
	CHECK_INT(link(other, path), 0);
	CHECK_INT(history_new(folder, &h, &err), -EINVAL);
	CHECK_INT(stat(other, &st), 0);
	CHECK_INT(st.st_size, 8);
	CHECK_INT(unlink(path), 0);
	CHECK_INT(symlink("other", path), 0);
	CHECK_INT(history_new(folder, &h, &err), -ELOOP);
	CHECK_INT(unlink(path), 0);
	CHECK_INT(mkfifo(path, 0600), 0);
	CHECK_INT(history_new(folder, &h, &err), -EINVAL);
	CHECK_INT(unlink(path), 0);
	CHECK_INT(unlink(other), 0);
}

int main(void)
{
	CHECK(mkdtemp(folder) != NULL);
	RUN(rates_add_up);
	RUN(percentiles_are_of_the_point);
	RUN(tenants_come_later);
	RUN(the_file_survives);
	RUN(room_is_bounded);
	RUN(clocks_jump);
	RUN(counters_begin_again);
	RUN(replies_come_late);
	RUN(the_file_fails);
	RUN(files_of_others);
	CHECK_INT(rmdir(folder), 0);
	return 0;
}
