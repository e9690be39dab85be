/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * learner: the estimate of a simulated device with `capacity: auto`, by control/capacity.h.
 *
 * A device counts as saturated while the window of the gate in front of it is full: its own gate,
 * or, without one, the hosts' gates, averaged over those that sent requests.
 */
#pragma once

#include "sim/world/controller.h"

extern const struct sim_controller_ops learner_capacity;
