/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controller: the table of functions by which the simulated world runs controllers. sim/control has three:
 *
 *   device.c    any controller (control/controller.h) at one gate, of a device or of a host
 *   hosts.c     controllers of several hosts that exchange reports (has_peers)
 *   learner.c   the capacity of a device with `capacity: auto`
 *
 * The resource of a policy names its controller; sim/run/parse.c chooses among the three. A new controller
 * changes none of them.
 */
#pragma once

#include "control/controller.h"
#include "sim/metrics.h"

struct world;
struct scenario;
struct scenario_controller;

struct sim_controller_ops {
	const char *name;
	weir_time period; /* unless the scenario states another */
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
	/* Put the values that are reported at the end; may be NULL. */
	int (*report)(void *state, struct world *w, struct metrics *m);
	void (*free)(void *state);
};
