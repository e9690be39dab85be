/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filter: Lustre's token bucket filter: rules in order, a class for each key, deadlines.
 *
 * What AdapTBF is built on and compared with: with rules that nobody changes it is static control,
 * with no rule but the default it is none. Pure and whole, so that what our gate does in its place
 * can be held against it (tests/control/tbf/tbf.c):
 *
 *   a class is a leaf of the gate with one hold bucket, its rate the rule's, its size the depth.
 *   Where the server has room, both let the same requests pass at the same times. Where it has
 *   not, the filter goes by deadline, the time at which the class's next token is due, and our gate
 *   by weight: with 2:1 of rate and of weight, 2:1 in the gate, and a little less in the filter.
 *
 * So gateways and simulations use the gate, and static rules become buckets (control/tbf/keys.c).
 *
 * RULES    A new one stands first, or just before the one named; the first that matches has the
 *          request. `default` is last, matches all and cannot be stopped.
 * CLASSES  One for each key, made when its first request comes; it has a bucket of its own, so two
 *          keys of one rule have its rate each. A class looks for its rule again at its next
 *          arrival after a rule was started or its own stopped; a rule that changed refills it.
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

/* `pattern`: keys in which '*' stands for any text; several with a space between. `before`: the rule
 * that it stands before; NULL: first of all. -EEXIST: there is one of that name; -ENOENT: none
 * named `before`; -EINVAL: a name that is not 1 to 15 of [A-Za-z0-9_], a rate that is not > 0, an
 * empty pattern; -ENOMEM. */
int tbf_start(
	struct tbf *t, const char *name, const char *pattern, double rate, const char *before);
int tbf_change(struct tbf *t, const char *name, double rate); /* -ENOENT, -EINVAL */
int tbf_stop(struct tbf *t, const char *name); /* -EPERM for default; no such rule is fine */

/* The rule that has the key: its name, which lasts until the next tbf_stop, and its rate. */
const char *tbf_match(const struct tbf *t, const char *key, double *ret_rate);
unsigned tbf_depth(const struct tbf *t);

/* One request of the key arrives: its class, a small dense number, or -ENOMEM. */
int64_t tbf_submit(struct tbf *t, weir_time now, const char *key);
/* The class whose next request may go now, if there is one: the earliest deadline, then who was
 * looked at first. */
bool tbf_next(struct tbf *t, weir_time now, uint32_t *ret_class);
/* When tbf_next is to be asked again; `now` when it would give something; WEIR_NEVER: nothing waits. */
weir_time tbf_wakeup(const struct tbf *t, weir_time now);

#endif
