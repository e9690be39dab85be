/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filter: Lustre's token bucket filter: rules in order, a class for each key, deadlines.
 *
 * AdapTBF is built on this filter and compared with it: rules that never change are static control;
 * only the default rule means no control. This is a complete, pure implementation, so that tests
 * can compare the gate with it (tests/control/tbf/tbf.c):
 *
 *   a class is a leaf of the gate with one hold bucket, with the rule's rate and the depth as size.
 *   While the server has room, both let the same requests pass at the same times. Otherwise the
 *   filter orders by deadline, the time at which the class's next token is due, and the gate by
 *   weight: with 2:1 of rate and of weight, 2:1 in the gate, and a little less in the filter.
 *
 * So gateways and simulations use the gate, and static rules become buckets (control/tbf/keys.c).
 *
 * RULES    A new rule is placed first, or just before the named one; the first rule that matches
 *          applies to the request. `default` is last, matches all and cannot be stopped.
 * CLASSES  One for each key, made when its first request arrives. A class has its own bucket, so
 *          each of two keys of one rule has the full rate. A class searches for its rule again at
 *          its next arrival after a rule was started or its own stopped; a rule that changed
 *          refills it.
 * BUCKET   `depth` tokens at most, full when new; a request costs one.
 *
 * Requests are counted, not kept: the caller has a queue for each class, first come first served.
 * Time is an argument and must not fall. One instance belongs to one thread.
 */
#ifndef WEIR_TESTS_CONTROL_TBF_FILTER_H
#define WEIR_TESTS_CONTROL_TBF_FILTER_H

#include "control/tbf/keys.h"
#include <weir/clock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* TBF_DEPTH, 3, is in control/tbf/keys.h. */
#define TBF_DEFAULT 10000 /* requests a second of the rule `default`, Lustre's */
#define TBF_NAME    16    /* bytes of a rule's name, the zero included */

struct tbf;
/* depth 0: TBF_DEPTH; default_rate 0: TBF_DEFAULT, INFINITY: no limit. 0, -EINVAL or -ENOMEM. */
int tbf_new(unsigned depth, double default_rate, struct tbf **ret);
void tbf_free(struct tbf *t);

/* Start a rule. `pattern`: keys in which '*' stands for any text; several are separated by spaces.
 * `before`: place the rule before this one; NULL: first of all. -EEXIST: the name is in use;
 * -ENOENT: no rule `before`; -EINVAL: a name that is not 1 to 15 of [A-Za-z0-9_], a rate that is
 * not > 0, an empty pattern; -ENOMEM. */
int tbf_start(
	struct tbf *t, const char *name, const char *pattern, double rate, const char *before);
int tbf_change(struct tbf *t, const char *name, double rate); /* -ENOENT, -EINVAL */
int tbf_stop(struct tbf *t, const char *name); /* -EPERM for default; 0 if there is no such rule */

/* Return the name of the rule that matches the key, valid until the next tbf_stop, and its rate. */
const char *tbf_match(const struct tbf *t, const char *key, double *ret_rate);
unsigned tbf_depth(const struct tbf *t);

/* Record that a request of the key arrives. Return its class, a small dense number, or -ENOMEM. */
int64_t tbf_submit(struct tbf *t, weir_time now, const char *key);
/* Find the class whose next request may pass now: the earliest deadline, then the class that was
 * checked first. Return false if there is none. */
bool tbf_next(struct tbf *t, weir_time now, uint32_t *ret_class);
/* Return when to call tbf_next again; `now` if it would find a class; WEIR_NEVER: nothing waits. */
weir_time tbf_wakeup(const struct tbf *t, weir_time now);

#endif
