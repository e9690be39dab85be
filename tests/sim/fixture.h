/* SPDX-License-Identifier: BSD-3-Clause */
/* fixture: scenarios with one or two maps of the test: refused for a reason, or run. */
#ifndef WEIR_TESTS_SIM_FIXTURE_H
#define WEIR_TESTS_SIM_FIXTURE_H

#include "sim/metrics.h"
#include "sim/sim.h"
#include "test.h"
#include <errno.h>

/* `top` has a %s for each of both maps; one with a single %s takes the first. */
static inline int fixture_parse(const char *top, const char *map, const char *second,
	struct scenario **ret, struct weir_err *err)
{
	char text[3000];
	const char *maps[] = {map, second};
	size_t n = 0, k = 0;

	for (; *top && n + 1 < sizeof(text); top++) {
		if (top[0] == '%' && top[1] == 's' && k < 2) {
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", maps[k++]);
			CHECK(n < sizeof(text));
			top++;
		} else {
			text[n++] = *top;
		}
	}
	CHECK(!*top);
	return scenario_parse(text, n, "test", NULL, 0, ret, err);
}

static inline void fixture_refused(
	const char *top, const char *map, const char *second, const char *why)
{
	struct weir_err err = {""};
	struct scenario *s;

	CHECK_INT(fixture_parse(top, map, second, &s, &err), -EINVAL);
	if (!strstr(err.text, why))
		FAIL("'%s' does not say '%s'", err.text, why);
}

/* The caller frees it with metrics_free(). */
static inline struct metrics *fixture_run(
	const char *top, const char *map, const char *second, uint64_t seed)
{
	struct sim_options options = {.seed = seed, .seed_set = 1};
	struct weir_err err = {""};
	struct scenario *s;
	struct metrics *m;

	if (fixture_parse(top, map, second, &s, &err) || sim_run(s, &options, &m, NULL, &err))
		FAIL("%s", err.text);
	scenario_free(s);
	return m;
}

static inline double fixture_get(const struct metrics *m, const char *name)
{
	double v;

	if (metrics_get(m, name, &v))
		FAIL("no %s", name);
	return v;
}

/* Return the mean of a series over from < t ≤ to. */
static inline double fixture_over(const struct metrics *m, const char *name, double from, double to)
{
	struct metrics_entry e;
	double sum = 0;
	size_t n = 0;

	if (!metrics_find(m, name, &e) || !e.is_series)
		FAIL("no series '%s'", name);
	for (size_t i = 0; i < e.n; i++) {
		if (e.points[i].t > from && e.points[i].t <= to) {
			sum += e.points[i].value;
			n++;
		}
	}
	if (n == 0)
		FAIL("'%s' has no point in %g … %g", name, from, to);
	return sum / (double)n;
}

/* Check that two runs have the same values. */
static inline void fixture_same(const struct metrics *a, const struct metrics *b)
{
	CHECK(metrics_count(a) == metrics_count(b));
	for (size_t i = 0; i < metrics_count(a); i++)
		CHECK(metrics_at(a, i).is_series ||
			metrics_at(a, i).value == metrics_at(b, i).value);
}

#endif
