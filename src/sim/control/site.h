/* SPDX-License-Identifier: BSD-3-Clause */
/* site: a simulated gate as the site of a controller (control/controller.h). */
#pragma once

#include "base/rng.h"
#include "control/controller.h"
#include "sim/metrics.h"
#include "sim/world/world.h"

struct sim_site {
	struct site site;
	/* set by the caller, before sim_site_begin */
	struct world *world;
	struct world_gate *gate;
	const struct controller *kind;
	const void *settings; /* borrowed */
	double capacity[2];   /* per second: requests, bytes; 0: not stated */
	struct controller_peers peers;
	/* its own */
	void *instance;
	struct controller_rule *rules; /* by tenant */
	struct rng random;
	weir_time due;    /* of the next step */
	char failed[128]; /* an error that the controller told, or that the gate gave */
};

/* Those of any gate. */
extern const struct site_ops sim_site_ops;

/* A new instance begins; `name` seeds its random numbers. */
int sim_site_begin(struct sim_site *s, struct weir_err *err);
void sim_site_end(struct sim_site *s);
/* -EINVAL: something failed. */
int sim_site_step(struct sim_site *s, struct weir_err *err);
/* Put the facts, of this subject; t < 0: those of the end. `host`: prefix of the tenants' paths; NULL: none. */
int sim_site_facts(const struct sim_site *s, const char *subject, const char *host,
	struct metrics *m, double t);
