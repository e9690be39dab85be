/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * brokers: what limits services at this machine beyond its own policy: the rack's broker, which runs here, and the fabric's.
 *
 * Each second the usage of services goes to all machines of the rack (talk.h), and both links of the rack are divided by what
 * they said (control/parley/rack.h). A cap holds for PARLEY_RACK, then the service's static max does; also at a
 * machine that has heard no other for so long: it does not know what the rack's links carry. The machine that has the
 * lowest name of those alive leads: it connects to the fabric's broker (weir control), reports the usage of the rack each period,
 * and tells the others the limits that come back, which count as maxes of services in the rack until their time is over. The most
 * constrained of machine, rack and fabric holds.
 *
 *   brokers.c       rounds and caps
 *   leader.c        the leader's connection, and the fabric's limits
 *   brokers-show.c  what is said about them
 *
 * Services are nodes of the tree (tree.h); packets of no service are one. One thread: the loop's.
 */
#pragma once

#include "policy/policy.h"
#include "serve/shape/tree.h"
#include <jansson.h>
#include <stdio.h>

struct brokers;
struct talk;
struct brokers_config {
	struct loop *loop;
	struct talk *talk; /* whose messages go to brokers_usage and brokers_limits */
	const struct weir_policy
		*policy;         /* with a rack; borrowed until brokers_policy gives another */
	const struct tree *tree; /* of it; the same */
	double nic;              /* bytes/s: the rate of all devices */
};
int brokers_new(const struct brokers_config *c, struct brokers **ret, struct weir_err *err);
void brokers_free(struct brokers *b); /* NULL is allowed */
/* Take another policy: limits are those of the next round. -EINVAL with a message: the rack's name, machines or key differ, or
 * this machine's name, which takes a restart; then the old one stays. */
int brokers_policy(struct brokers *b, const struct brokers_config *c, struct weir_err *err);

void brokers_usage(struct brokers *b, size_t machine, const char *name, const uint64_t *words,
	unsigned n, weir_time now);
void brokers_limits(struct brokers *b, const uint64_t *words, unsigned n, weir_time now);
/* Run a round with what services used since the last one, bytes/s by node. */
void brokers_step(struct brokers *b, const double *const usage[SHAPE_DIRS], weir_time now);
/* Get the cap of a service at this machine, bytes/s; INFINITY: none. */
double brokers_cap(const struct brokers *b, size_t node, enum shape_dir dir, weir_time now);
/* Name the limit behind a service's cap, as in "rack r4 down (its share 61.0 of 80 Gbit/s, 10 machines)". */
void brokers_bound(const struct brokers *b, size_t node, enum shape_dir dir, char ret[128]);

json_t *brokers_json(const struct brokers *b);
void brokers_metrics(const struct brokers *b, FILE *to);
