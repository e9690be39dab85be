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
#ifndef WEIR_SIM_CONTROL_HOSTS_H
#define WEIR_SIM_CONTROL_HOSTS_H

#include "sim/control/controller.h"

#define HOSTS_PHASES 8

extern const struct sim_controller_ops hosts_controller;

#endif
