/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controller: where the controllers of src/ctl plug into the simulated world.
 *
 * A controller reads what the world's gates measured and sets knobs (world_gate_set), once a
 * period. Here stands only the plug: a table of functions, found by name. To add one: write its
 * ops in a file of its own, and name it in the table of controller.c. world.c stays as it is.
 *
 * A resource of a policy names it; `capacity` starts for each device that says `capacity: auto`.
 */
#ifndef WEIR_SIM_CONTROL_CONTROLLER_H
#define WEIR_SIM_CONTROL_CONTROLLER_H

#include "control/controller.h"
#include "sim/metrics.h"

struct world;
struct scenario;
struct scenario_controller;

struct sim_controller_ops {
	const char *name;
	weir_time period; /* unless the scenario says */
	unsigned phases;  /* steps in a period; 0: 1 */
	/* Check its settings when the scenario is read, after devices and hosts; may be NULL. */
	int (*check)(const struct scenario *s, const struct scenario_controller *config,
		struct weir_err *err);
	/* Once, at time 0, when the world is built. config->gate has the settings. */
	int (*init)(struct world *w, const struct scenario_controller *config, void **ret_state,
		struct weir_err *err);
	/* Every period, or every phase of it. Non-zero ends the run with that error. */
	int (*step)(void *state, struct world *w, weir_time now, struct weir_err *err);
	/* The time of the next step; NULL: every period. */
	weir_time (*due)(const void *state);
	/* What it has to say of itself, at the end; may be NULL. */
	int (*report)(void *state, struct world *w, struct metrics *m);
	void (*free)(void *state);
};

#endif
