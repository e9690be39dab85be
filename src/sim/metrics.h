/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics: the results of a run: named numbers, and named series over time.
 *
 * One name space holds both: a name is a value or a series, never both, and is iterated in the
 * order in which it was first put, so that the same run gives the same bytes. Names are paths of
 * letters, digits, `_`, `-` and dots: "tenant.h1.vm1.iops", "gate.array.window". A '/' counts as a
 * dot and any other character as '_', in put and get alike (claims must be able to write the name).
 *
 * NONE    A value of NaN means that there was nothing to measure: the latency of a tenant of which
 *         no IO completed. Tables show a dash, CSV leaves it empty, JSON has null, and a claim that
 *         needs it is unknown.
 * UNITS   A text for every entry: "iops", "ms", "B/s", "requests",
 *         "" for a plain ratio. Times are put in ms unless the unit says otherwise.
 * COST    put, get, append: O(1) (a hash of the name; append by handle does not even hash).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct metrics_point {
	double t; /* seconds of virtual time */
	double value;
};

struct metrics_entry { /* borrowed from the metrics; valid until the next put or append */
	const char *name;
	const char *unit;
	bool is_series;
	double value;                       /* if it is not a series */
	const struct metrics_point *points; /* if it is; in order of t */
	size_t n;
};

struct metrics;
int metrics_new(struct metrics **ret); /* 0 or -ENOMEM */
void metrics_free(struct metrics *m);
/* Return the first error of any call below, or 0: callers may ignore the errors of single calls. */
int metrics_failed(const struct metrics *m);

/* Set a value (a second put replaces it, in the same place of the order). Return 0; -EINVAL if the
 * name is a series or empty; -ENOMEM. */
int metrics_put(struct metrics *m, const char *name, const char *unit, double value);
int metrics_putf(struct metrics *m, const char *unit, double value, const char *name_fmt, ...)
	__attribute__((format(printf, 4, 5))); /* names up to 255 bytes; -ENAMETOOLONG */

/* Return the handle of a series, created if it is new: ≥ 0 and stable; or -EINVAL (a value has that
 * name) or -ENOMEM. */
int metrics_series(struct metrics *m, const char *name, const char *unit);
int metrics_seriesf(struct metrics *m, const char *unit, const char *name_fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Append a point; -EINVAL if t is less than the last point's, or the handle is wrong. */
int metrics_append(struct metrics *m, int series, double t, double value);

/* Return 0, -ENOENT, or -EINVAL if it is a series. */
int metrics_get(const struct metrics *m, const char *name, double *ret);
bool metrics_find(const struct metrics *m, const char *name, struct metrics_entry *ret);

size_t metrics_count(const struct metrics *m);
struct metrics_entry metrics_at(const struct metrics *m, size_t i); /* i < count; in order of put */

/* Return the known name nearest to `name` by edit distance if it is near enough to be a typo, else
 * NULL. O(count): for messages. */
const char *metrics_near(const struct metrics *m, const char *name);
