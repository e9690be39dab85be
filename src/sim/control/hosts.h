/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hosts: a controller that has peers (control/controller.h), at the gate of each host of the simulated world.
 *
 * A scenario's map has the keys of the controller's settings, and besides: `period`; `device`, and `hosts`, a glob: the
 * hosts of that device with such names; `delay` and `loss` of reports; `faults`.
 *
 * Hosts do not step together: they take turns in HOSTS_PHASES parts of a period, as hosts do whose clocks are
 * independent. A report is on its way for `delay`, and each receiver misses it with the probability `loss`, drawn from
 * (seed, receiver, sender, sequence).
 */
#pragma once

#include "base/yamldoc.h"
#include "sim/world/controller.h"

#define HOSTS_PHASES 8

/* Of the scenario: `messages` and `faults`. */
enum hosts_fault_kind { HOSTS_CRASH, HOSTS_PAUSE, HOSTS_PARTITION, HOSTS_CLOCK };
struct hosts_fault { /* begins, or ends */
	weir_time at;
	enum hosts_fault_kind kind;
	bool ends;
	weir_time by;  /* HOSTS_CLOCK: ns */
	uint32_t host; /* index */
	yamldoc_node node;
};
struct hosts_network {
	weir_time delay; /* of a report */
	double loss;
	struct hosts_fault *faults; /* in order of time; the caller frees them */
	size_t n_faults;
};
/* Return 0, or -EINVAL / -ENOMEM with a message. */
int hosts_network_read(const struct scenario *s, struct hosts_network *ret, struct weir_err *err);

extern const struct sim_controller_ops hosts_controller;
