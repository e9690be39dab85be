/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics: order of put, names, series, and many of them. */
#include "sim/metrics.h"
#include "test.h"
#include <errno.h>

static void test_values(void)
{
	struct metrics *m;
	struct metrics_entry e;
	double v = -1;

	CHECK_INT(metrics_new(&m), 0);
	CHECK_INT(metrics_put(m, "b", "iops", 2), 0);
	CHECK_INT(metrics_putf(m, "ms", 1.5, "tenant.%s.p%d", "h1/vm 1", 99), 0);
	CHECK_INT(metrics_put(m, "b", "ms", 3), 0); /* replaces the value, keeps unit and place */
	CHECK_INT(metrics_get(m, "b", &v), 0);
	CHECK(v == 3);
	CHECK_INT(metrics_get(m, "tenant.h1.vm_1.p99", &v), 0);
	CHECK(v == 1.5);
	CHECK_INT(metrics_get(m, "tenant.h1/vm 1.p99", &v), 0);
	CHECK_INT(metrics_get(m, "none", &v), -ENOENT);
	CHECK(v == 1.5);
	CHECK_INT(metrics_put(m, "", "", 1), -EINVAL);
	CHECK_INT(metrics_count(m), 2);
	e = metrics_at(m, 0);
	CHECK_STR(e.name, "b");
	CHECK_STR(e.unit, "iops");
	CHECK(!e.is_series && e.value == 3);
	CHECK_STR(metrics_at(m, 1).name, "tenant.h1.vm_1.p99");
	CHECK_STR(metrics_near(m, "tenant.h1.vm_2.p99"), "tenant.h1.vm_1.p99");
	CHECK(!metrics_near(m, "something.quite.else"));
	metrics_free(m);
	metrics_free(NULL);
}

static void test_series(void)
{
	struct metrics *m;
	struct metrics_entry e;
	double v;
	int s;

	CHECK_INT(metrics_new(&m), 0);
	CHECK_INT(metrics_put(m, "value", "", 1), 0);
	s = metrics_series(m, "lat", "ms");
	CHECK(s >= 0);
	CHECK_INT(metrics_seriesf(m, "ms", "l%s", "at"), s);
	CHECK_INT(metrics_series(m, "value", "ms"), -EINVAL);
	CHECK_INT(metrics_put(m, "lat", "ms", 1), -EINVAL);
	CHECK_INT(metrics_get(m, "lat", &v), -EINVAL);
	CHECK_INT(metrics_append(m, s, 1, 10), 0);
	CHECK_INT(metrics_append(m, s, 1, 11), 0);
	CHECK_INT(metrics_append(m, s, 0.5, 12), -EINVAL);
	CHECK_INT(metrics_append(m, s + 1, 2, 12), -EINVAL);
	CHECK_INT(metrics_append(m, -1, 2, 12), -EINVAL);
	CHECK_INT(metrics_append(m, 0, 2, 12), -EINVAL); /* a value */
	CHECK(metrics_find(m, "lat", &e));
	CHECK(e.is_series);
	CHECK_INT(e.n, 2);
	CHECK(e.points[1].t == 1 && e.points[1].value == 11);
	CHECK(!metrics_find(m, "lat2", &e));
	metrics_free(m);
}

static void test_many(void)
{
	enum { N = 20000 };
	struct metrics *m;
	char name[300];
	double v;

	CHECK_INT(metrics_new(&m), 0);
	for (int i = 0; i < N; i++) {
		if (i % 2)
			CHECK_INT(metrics_putf(m, "", i, "host.%d.iops", i), 0);
		else
			CHECK_INT(metrics_seriesf(m, "", "host.%d.window", i), i);
	}
	CHECK_INT(metrics_count(m), N);
	for (int i = 1; i < N; i += 2) {
		snprintf(name, sizeof(name), "host.%d.iops", i);
		CHECK_INT(metrics_get(m, name, &v), 0);
		CHECK_INT(v, i);
		CHECK_STR(metrics_at(m, (size_t)i).name, name);
	}
	for (int i = 0; i < 1000; i++)
		CHECK_INT(metrics_append(m, 4, i, 2.0 * i), 0);
	CHECK_INT(metrics_at(m, 4).n, 1000);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	CHECK_INT(metrics_putf(m, "", 1, "%s", name), -ENAMETOOLONG);
	CHECK_INT(metrics_seriesf(m, "", "%s", name), -ENAMETOOLONG);
	metrics_free(m);
}

int main(void)
{
	RUN(test_values);
	RUN(test_series);
	RUN(test_many);
	return 0;
}
