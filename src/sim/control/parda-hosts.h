/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parda-hosts: the controller `parda`: one control/parda/parda for each host of the simulated world.
 *
 * Hosts do not step together: they take turns in PARDA_HOSTS_PHASES parts of a period, as hosts whose
 * clocks know nothing of each other do. A report is on its way for `delay`, and each receiver misses
 * it with the probability `loss`, drawn from (seed, receiver, sender, sequence).
 */
#ifndef WEIR_SIM_CONTROL_PARDA_HOSTS_H
#define WEIR_SIM_CONTROL_PARDA_HOSTS_H

#include "sim/control/controller.h"

#define PARDA_HOSTS_PHASES 8

extern const struct sim_controller_ops parda_hosts_ops;

#endif
