/* SPDX-License-Identifier: BSD-3-Clause */
/* brokers-impl: shared by brokers.c and brokers-show.c. */
#pragma once

#include "control/parley/machine.h"
#include "control/parley/rack.h"
#include "serve/shape/brokers.h"
#include "serve/shape/talk.h"

#define ROUND WEIR_SEC

struct broker_machine {               /* of the rack */
	char name[PEER_NAME_MAX + 1]; /* "": not heard yet */
	bool alive;                   /* as it was last logged */
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
};

extern const char *const brokers_links[SHAPE_DIRS];
/* Get a service's share at a level (enum policy_net_level). */
const struct policy_net_share *brokers_share(
	const struct brokers_config *c, size_t node, int level, int dir);
/* Get the capacity of the rack's link, less what bounds on completion times leave free. */
double brokers_link(const struct brokers_config *c, int dir);
