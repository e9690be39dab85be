/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * learner: the controller `capacity`: control/capacity, fed from the simulated world.
 *
 * A device is taken as saturated while the window of the gate in front of it is full: its own gate,
 * or, where it has none, the hosts' gates, of which the mean over those that sent anything counts.
 */
#ifndef WEIR_SIM_CONTROL_LEARNER_H
#define WEIR_SIM_CONTROL_LEARNER_H

#include "sim/control/controller.h"

extern const struct sim_controller_ops learner_capacity;

#endif
