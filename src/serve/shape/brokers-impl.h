/* SPDX-License-Identifier: BSD-3-Clause */
/* brokers-impl: shared by brokers.c, brokers-show.c and leader.c. */
#pragma once

#include "control/parley/machine.h"
#include "control/parley/rack.h"
#include "serve/lease/lease-link.h"
#include "serve/shape/brokers.h"
#include "serve/shape/talk.h"

#define ROUND         WEIR_SEC
#define BROKERS_FIRST 3                 /* rounds in which it is normal that others are not heard */
#define FABRIC_LEFT   (3600 * WEIR_SEC) /* limits hold for less: FABRIC_STALE of the longest period */

struct broker_machine {               /* of the rack */
	char name[PEER_NAME_MAX + 1]; /* "": not heard yet */
	bool alive;                   /* as it was last logged */
};

struct leader { /* leader.c */
	struct peer_key key;
	uint64_t instance;
	struct lease_conn_stats stats;
	struct lease_message message;
	struct lease_link *link; /* NULL: this machine does not lead */
	double *sum[SHAPE_DIRS]; /* of usage in the rack, bytes/s, by node … */
	unsigned rounds;         /* … of so many rounds */
	weir_time began;         /* … since then */
	uint64_t *limits;        /* words, of the last message; NULL: none came */
	size_t n_limits;
	weir_time until; /* they hold; of those that came to this machine, led or not */
	bool stale;      /* they did, and do no longer */
	uint64_t reports, answers;
};

struct brokers {
	struct brokers_config config;
	struct rack *rack;
	struct broker_machine *machines;
	size_t n_machines, own;
	uint64_t *words;         /* of the last report */
	size_t said;             /* … as many */
	struct parley_cap *caps; /* by direction and node */
	struct loop_timer beat;
	unsigned rounds;
	uint64_t claims; /* reports that were not used */
	bool stale;      /* no other machine is heard */
	bool scaled[SHAPE_DIRS];
	struct leader fabric;
};

extern const char *const brokers_links[SHAPE_DIRS];
/* Get a service's share at a level (enum policy_net_level). */
const struct policy_net_share *brokers_share(
	const struct brokers_config *c, size_t node, int level, int dir);
/* leader.c: nothing happens where the policy has no fabric. */
int leader_open(struct brokers *b, struct weir_err *err);
void leader_close(struct brokers *b);
/* Another policy is in force. */
int leader_policy(struct brokers *b, struct weir_err *err);
/* Each round, before the division: lead, if it is this machine's turn. */
void leader_round(struct brokers *b, weir_time now);
const char *leader_name(const struct brokers *b);
/* Get the capacity of the rack's link, less what bounds on completion times leave free. */
double brokers_link(const struct brokers_config *c, int dir);
