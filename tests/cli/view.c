/* SPDX-License-Identifier: BSD-3-Clause */
/* view: rates and reasons from two snapshots of a gateway, and their text, which must be safe
 * for a terminal. */
#include "test.h"
#include "cli/view/table.h"
#include "cli/view/view.h"
#include <weir/hist.h>
#include <errno.h>

static json_t *tenant(const char *path, bool leaf, json_int_t served, double above, json_t *buckets)
{
	return json_pack("{s:s, s:b, s:f, s:f, s:I, s:I, s:i, s:f, s:i, s:i, s:I, s:s, "
			 "s:{s:f, s:f}, s:{s:f, s:o}, s:[{s:s, s:f}]}",
		"path", path, "leaf", leaf, "weight", 1.0, "share", 0.1, "served", served, "bytes",
		served * 4096, "queued", 3, "oldest_wait_s", 12.345, "in_flight", 1, "clients", 1,
		"errors", (json_int_t)0, "held_by", "prod", "wait_s", "above", above, "window", 0.5,
		"latency", "max_s", 1.0, "buckets", buckets, "at", "resource", "disk", "due", 0.5);
}

static json_t *snapshot(double now, json_t *a, json_t *b, json_int_t served, double full)
{
	return json_pack("{s:f, s:f, s:[o, o], s:[{s:s, s:s, s:s, s:b, s:I, s:f, s:f, s:i, s:i, "
			 "s:{s:n, s:f, s:b}}]}",
		"now_s", now, "uptime_s", now - 100, "tenants", a, b, "resources", "name", "disk",
		"back", "memory:1G", "state", "up", "up", 1, "served", served, "full_s", full,
		"window", 8.0, "queued", 1, "in_flight", 2, "capacity", "iops", "bytes", 1e6,
		"stated", 0);
}

/* Return a histogram bucket for `us` microseconds with the count n. */
static json_t *bucket(unsigned us, int n)
{
	struct weir_hist h;
	int at = 0;

	weir_hist_clear(&h);
	weir_hist_record(&h, us * 1000);
	while (!h.bucket[at])
		at++;
	return json_pack("[i, i]", at, n);
}

static char *text;

static void lines(void (*write)(const struct view *, FILE *), const struct view *v)
{
	size_t len;
	FILE *f;

	free(text);
	f = open_memstream(&text, &len);
	write(v, f);
	fclose(f);
}

static void has(const char *want)
{
	if (!strstr(text, want))
		FAIL("\"%s\" does not have \"%s\"", text, want);
}

static void differences(void)
{
	json_t *one = snapshot(200, tenant("a", true, 1000, 1.0, bucket(100, 1000)),
		tenant("b", true, 500, 0, json_array()), 1500, 10);
	json_t *two = snapshot(202, tenant("a", true, 3000, 2.5, bucket(100, 1000)),
		tenant("b", true, 1500, 0, json_array()), 4500, 11);
	json_t *latency =
		json_object_get(json_array_get(json_object_get(two, "tenants"), 0), "latency");
	json_t *more = bucket(5000, 2000), *resource;
	struct view v;

	json_array_extend(json_object_get(latency, "buckets"), more);
	json_decref(more);
	CHECK_INT(view_make(one, two, &v), 0);
	CHECK_NEAR(v.span, 2, 1e-9);
	CHECK_INT(v.n_tenants, 2);
	CHECK_NEAR(v.tenants[0].iops, 1000, 1e-9);
	CHECK_NEAR(v.tenants[0].bytes, 4096e3, 1e-9);
	CHECK_NEAR(v.tenants[0].got, 2.0 / 3, 1e-9);
	CHECK_NEAR(v.tenants[0].p50, 5e-3, 0.01); /* the requests of 100 µs were counted before */
	CHECK_NEAR(v.tenants[0].p99, 5e-3, 0.01);
	CHECK(isnan(v.tenants[1].p50));
	CHECK_NEAR(v.tenants[0].wait[VIEW_ABOVE], 0.75, 1e-9);
	CHECK_NEAR(v.resources[0].iops, 1500, 1e-9);
	CHECK_NEAR(v.resources[0].full, 0.5, 1e-9);
	CHECK(isnan(v.resources[0].capacity[0]));

	lines(view_write_tenants, &v);
	has("\1TENANT");
	has("a       1.00k   3.91  5.01ms  5.01ms  67%  50%       3   12.3s       1       0  max "
	    "of "
	    "prod 100%");
	lines(view_write_resources, &v);
	has("50%  1.50k");
	has("(learned)");
	has("  up\n");
	view_free(&v);
	resource = json_array_get(json_object_get(two, "resources"), 0);
	json_object_set_new(resource, "bypassed", json_true());
	json_object_set_new(resource, "bypassed_s", json_real(90));
	CHECK_INT(view_make(one, two, &v), 0);
	lines(view_write_resources, &v);
	has("  up, BYPASSED for 90s\n");
	has("disk           8  ");
	view_free(&v);
	json_object_set_new(resource, "window_bytes", json_integer(524288));
	CHECK_INT(view_make(one, two, &v), 0);
	lines(view_write_resources, &v);
	has("disk      8, 512 KiB  ");
	view_free(&v);

	/* Rates since the start, without an earlier snapshot. */
	CHECK_INT(view_make(NULL, two, &v), 0);
	CHECK_NEAR(v.span, 102, 1e-9);
	CHECK_NEAR(v.tenants[0].iops, 3000 / 102.0, 1e-9);
	lines(view_write_tenants, &v);
	has("max of prod 83%, window 17%");
	view_free(&v);
	json_decref(one);
	json_decref(two);
}

/* Two tenants with equal weights: `a` was served so often while `b` had 3,000, and of each hundred requests of `a` so many waited. */
static void with_waits(int of_a, json_int_t served)
{
	json_t *now = snapshot(200, tenant("a", true, served, 1.0, json_array()),
		tenant("b", true, 3000, 1.0, json_array()), 3000 + served, 10);
	json_t *a = json_array_get(json_object_get(now, "tenants"), 0);
	struct view v;

	json_object_set_new(a, "dispatched", json_integer(served));
	json_object_set_new(a, "waited", json_integer(served * of_a / 100));
	CHECK_INT(view_make(NULL, now, &v), 0);
	lines(view_write_unweighed, &v);
	view_free(&v);
	json_decref(now);
}

/* A tenant that gets less than is due although few of its requests wait: its weight does not act. */
static void weights_without_waits(void)
{
	with_waits(2, 1000);
	has("disk: weights do not act for a: 2.0% of its requests wait, more do with a smaller "
	    "depth or more outstanding");
	with_waits(60, 1000); /* its requests wait for something else, such as its max */
	CHECK(!*text);
	with_waits(2, 100); /* it asks for little */
	CHECK(!*text);
	with_waits(2, 2900); /* it gets what is due */
	CHECK(!*text);
}

/* With a filter, a tenant's part is still of everything that its resource served, and only idle tenants are counted as
 * left out. A tenant without a client is due nothing. */
static void some_of_many(void)
{
	json_t *one = snapshot(200, tenant("a", true, 0, 0, json_array()),
		tenant("b", true, 0, 0, json_array()), 0, 0);
	json_t *two = snapshot(201, tenant("a", true, 300, 0, json_array()),
		tenant("b", true, 100, 0, json_array()), 1600, 0);
	struct view v;

	json_object_set_new(two, "tenants_all", json_integer(9));
	json_object_set_new(two, "left_out", json_integer(0));
	CHECK_INT(view_make(one, two, &v), 0);
	CHECK_NEAR(v.tenants[0].got, 300 / 1600.0, 1e-9);
	CHECK_NEAR(v.tenants[0].due, 0.5, 1e-9);
	lines(view_write_idle, &v);
	CHECK_STR(text, "");
	view_free(&v);
	json_object_del(json_array_get(json_object_get(two, "tenants"), 0), "at");
	json_object_set_new(two, "left_out",
		json_integer(7)); /* without a filter, all tenants left out are idle */
	CHECK_INT(view_make(one, two, &v), 0);
	CHECK(isnan(v.tenants[0].due));
	lines(view_write_idle, &v);
	has("7 idle tenants are not shown (--all)");
	view_free(&v);
	json_decref(one);
	json_decref(two);
}

/* One snapshot has many more tenants than the other, as after a filter was removed. */
static void many(void)
{
	enum { N = 50000 };
	json_t *looks[2];
	struct view v;

	for (int i = 0; i < 2; i++) {
		json_t *list = json_array();

		for (int k = 0; k < (i ? N : N / 10); k++) {
			json_t *t = json_pack("{s:o, s:b, s:i}", "path",
				json_sprintf("t%d", i ? k : 10 * k), "leaf", 1, "served",
				i ? 7 : 4);
			json_array_append_new(list, t);
		}
		looks[i] = json_pack(
			"{s:f, s:o, s:[]}", "now_s", 100.0 + i, "tenants", list, "resources");
	}
	CHECK_INT(view_make(looks[0], looks[1], &v), 0);
	for (int k = 0; k < N; k++)
		CHECK_NEAR(v.tenants[k].iops, k % 10 ? 7 : 3, 1e-9);
	view_free(&v);
	json_decref(looks[0]);
	json_decref(looks[1]);
}

/* The gateway restarted: use the new counters as they are. */
static void begun_again(void)
{
	json_t *one = snapshot(200, tenant("a", true, 1000, 9, bucket(100, 1000)),
		tenant("gone", true, 1, 0, json_array()), 1500, 90);
	json_t *two = snapshot(201, tenant("new", true, 40, 0, json_array()),
		tenant("a", true, 10, 0.5, bucket(200, 10)), 50, 0.25);
	struct view v;

	CHECK_INT(view_make(one, two, &v), 0);
	CHECK_NEAR(v.tenants[0].iops, 40, 1e-9);
	CHECK_NEAR(v.tenants[1].iops, 10, 1e-9);
	CHECK_NEAR(v.tenants[1].p50, 200e-6, 0.01);
	CHECK_NEAR(v.tenants[1].wait[VIEW_ABOVE], 0.5, 1e-9);
	CHECK_NEAR(v.resources[0].full, 0.25, 1e-9);
	view_free(&v);
	/* Two snapshots of the same moment give a rate of zero, not infinity. */
	CHECK_INT(view_make(two, two, &v), 0);
	CHECK_NEAR(v.tenants[0].iops, 0, 0);
	view_free(&v);
	json_decref(one);
	json_decref(two);
}

static void order(void)
{
	json_t *j = snapshot(200, tenant("a", true, 1, 0, json_array()),
		tenant("b", true, 2, 0, bucket(100, 2)), 0, 0);
	struct view v;

	CHECK_INT(view_make(NULL, j, &v), 0);
	view_sort(&v, VIEW_BY_POLICY);
	CHECK_STR(v.tenants[0].path, "a");
	view_sort(&v, VIEW_BY_QUEUE); /* equal values: the order stays */
	CHECK_STR(v.tenants[0].path, "a");
	view_sort(&v, VIEW_BY_IOPS);
	CHECK_STR(v.tenants[0].path, "b");
	view_sort(&v, VIEW_BY_P99); /* an unknown value sorts last */
	CHECK_STR(v.tenants[0].path, "b");
	view_free(&v);
	json_decref(j);
}

static void nonsense(void)
{
	json_t *j = json_pack("{s:s}", "tenants", "many"), *empty = json_object();
	struct view v;

	CHECK_INT(view_make(NULL, j, &v), -EPROTO);
	CHECK_INT(view_make(NULL, empty, &v), -EPROTO);
	json_decref(j);
	j = json_pack(
		"{s:[n, i, {}], s:[s], s:f}", "tenants", 5, "resources", "x", "uptime_s", 1.0);
	CHECK_INT(view_make(NULL, j, &v), 0); /* malformed rows must not crash */
	lines(view_write_tenants, &v);
	lines(view_write_resources, &v);
	view_free(&v);
	json_decref(empty);
	json_decref(j);
}

/* Clients choose export names: no escape sequence in them may reach the terminal. */
static void clean(void)
{
	json_t *j = json_pack("{s:[{s:s, s:s, s:f, s:I, s:I}]}", "clients", "name",
		"\033[2J\1\n\xc2\x9b", "export", "é", "connected_s", 1.0, "requests", (json_int_t)5,
		"bytes", (json_int_t)4096);
	size_t len;
	FILE *f;

	CHECK(j);
	free(text);
	f = open_memstream(&text, &len);
	view_write_clients(j, f);
	fclose(f);
	has("?[2J????  é");
	CHECK_INT(strcspn(text, "\033"), strlen(text));
	CHECK(!strchr(text + 1, '\1'));
	json_decref(j);
}

static void cut(void)
{
	CHECK_INT(table_cut("abc", 10), 3);
	CHECK_INT(table_cut("abc\ndef", 10), 3);
	CHECK_INT(table_cut("abc", 2), 2);
	CHECK_INT(table_cut("éèc", 2), 4);
	CHECK_INT(table_cut("", 0), 0);
	CHECK_INT(table_cut("a", 0), 0);
}

/* ---- AdapTBF */

static void show(void (*write)(const json_t *, FILE *), const json_t *j)
{
	size_t len;
	FILE *f;

	free(text);
	f = open_memstream(&text, &len);
	write(j, f);
	fclose(f);
}

static json_t *job(const char *tenant, int record)
{
	return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "tenant",
		tenant, "tokens", 70, "initial", 50, "demand", 100, "record", record, "lent", 5,
		"borrowed", 6, "repaid", 7, "regained", 8, "written_off", 13, "forgiven", 14);
}

static void jobs_of_adaptbf(void)
{
	json_t *none = json_pack("{s:[{s:s, s:n}]}", "resources", "name", "d", "adaptbf");
	json_t *one = json_pack("{s:[{s:s, s:n}, {s:s, s:{s:[o]}}]}", "resources", "name", "d",
		"adaptbf", "name", "ost", "adaptbf", "jobs", job("prod/db\033", -12));

	show(view_write_facts, none);
	CHECK_STR(text, "");
	show(view_write_facts, one);
	has("ost");
	has("prod/db?");
	has("WRITTEN OFF  FORGIVEN");
	has(" 70         50     100     -12     5         6       7         8           13        "
	    "14");
	json_decref(none);
	json_decref(one);
}

static void the_ledger(void)
{
	json_t *list = json_array(), *paid = json_array(), *j;

	for (int i = 0; i < 25; i++)
		json_array_append_new(
			paid, json_pack("{s:s, s:s, s:i, s:i, s:f, s:f}", "lender", "a", "borrower",
				      "b", "amount", 0, "lent", 100 + i, "since_ago_s", 90.0,
				      "last_ago_s", 0.0));
	json_array_append_new(list,
		json_pack("{s:s, s:b, s:b, s:s, s:f, s:f, s:i, s:i, s:i, s:i, s:[o], s:[{s:s, s:n, "
			  "s:i, s:i, s:i, s:f, s:f}, {s:s, s:s, s:i, s:i, s:i, s:f, s:f}], s:o}",
			"resource", "ost", "on", 1, "learns", 1, "tokens", "hold", "rate", 1000.4,
			"period_s", 0.1, "active", 1, "known", 2, "written_off", 9, "aged", 17,
			"jobs", job("a", 12), "loans", "lender", "a", "borrower", "amount", 12,
			"lent", 33, "written_off", 4, "since_ago_s", 7200.0, "last_ago_s", 1.26,
			"lender", "a", "borrower", "c", "amount", 20, "lent", 25, "written_off", 5,
			"since_ago_s", 60.0, "last_ago_s", 60.0, "repaid", paid));
	j = json_pack("{s:b, s:o}", "kept", 0, "resources", list);
	show(view_write_ledger, j);
	has("ost: 1k iops (learned), tokens hold, every 100ms; 1 of 2 jobs active; 17 tokens "
	    "written off by age, 9 of tenants that left");
	has("(left)      12    33            4  2h     1.3s");
	has("a       c           20    25            5  60s    -"); /* nothing was paid back */
	has("a       b            0   100            0  90s    now");
	has("and 5 earlier ones");
	has("not kept across a restart");
	json_decref(j);
	j = json_pack("{s:b, s:[]}", "kept", 1, "resources");
	show(view_write_ledger, j);
	has("no resource has been under AdapTBF");
	json_decref(j);
}

static void the_controller(void)
{
	json_t *far =
		json_pack("{s:s, s:b, s:n, s:n, s:n, s:n, s:i, s:i}", "name", "s2", "connected", 0,
			"address", "state", "heard_s", "capacity", "reports", 0, "grants", 0);
	json_t *near = json_pack("{s:s, s:b, s:s, s:s, s:f, s:i, s:i, s:i}", "name", "s1",
		"connected", 1, "address", "10.0.0.1:7", "state", "leased", "heard_s", 0.25,
		"capacity", 250, "reports", 12, "grants", 9);
	json_t *j = json_pack("{s:s, s:f, s:s, s:s, s:i, s:i, s:f, s:f, s:b, s:[o, o], s:[{s:s, "
			      "s:i, s:n}], s:{s:i, s:i, s:[s]}}",
		"weir", "1.2", "uptime_s", 5.0, "controller", "c1", "state", "granting",
		"generation", 2, "period", 7, "period_s", 1.0, "interval_s", 0.2, "overdrawn", 1,
		"servers", near, far, "buckets", "tenant", "a\033", "reservation", 300, "limit",
		"reservations", "asked", 300, "placed", 250, "why", "s1 is full\033");

	CHECK(view_is_control(j));
	show(view_write_control, j);
	has("weir 1.2, up 5 s; controller c1: granting, generation 2; period 7 of 1 s, a round "
	    "every 0.2 s");
	has("s1      up    leased  0.2s ago       250       12       9  10.0.0.1:7");
	has("s2      away  -          never         -        0       0  -");
	has("a?      300    -");
	has("Reserved and wanted: 300 tokens a period; placed: 250");
	has("s1 is full?");
	has("policies differ");
	json_object_set_new(j, "overdrawn", json_false());
	json_array_clear(json_object_get(json_object_get(j, "reservations"), "why"));
	show(view_write_control, j);
	CHECK(!strstr(text, "policies differ") && !strstr(text, "NOT MET"));
	json_decref(j);
	j = json_pack("{s:[]}", "controllers");
	CHECK(!view_is_control(j)); /* a gateway's answer */
	json_decref(j);
}

static json_t *slo(double percentile, json_int_t good, json_int_t total, json_t *minute)
{
	return json_pack("{s:f, s:f, s:I, s:I, s:o, s:{s:n, s:n}}", "percentile", percentile,
		"latency_s", 0.01, "good", good, "total", total, "minute", minute, "hour",
		"value_s", "met");
}

static void slos(void)
{
	json_t *none = json_pack("{s:[{s:s, s:n}]}", "tenants", "path", "a", "slo");
	json_t *some = json_pack("{s:[{s:s, s:o}, {s:s, s:n}, {s:s, s:o}]}", "tenants", "path",
		"prod/db\033", "slo",
		slo(99.9, 199999, 200000, json_pack("{s:f, s:b}", "value_s", 0.00456, "met", 1)),
		"path", "x", "slo", "path", "b", "slo",
		slo(50, 1, 3, json_pack("{s:f, s:b}", "value_s", 0.5, "met", 0)));

	show(view_write_slo, none);
	CHECK_STR(text, "");
	show(view_write_slo, some);
	has("prod/db?  p99.9 < 10ms       4.56ms  met             -  -  99.999%");
	has("b         p50 < 10ms          500ms  MISSED          -  -    33.3%");
	CHECK(!strstr(text, "\nx"));
	json_decref(none);
	json_decref(some);
}

int main(void)
{
	RUN(slos);
	RUN(differences);
	RUN(weights_without_waits);
	RUN(some_of_many);
	RUN(many);
	RUN(begun_again);
	RUN(order);
	RUN(nonsense);
	RUN(clean);
	RUN(cut);
	RUN(jobs_of_adaptbf);
	RUN(the_ledger);
	RUN(the_controller);
	free(text);
	return 0;
}
