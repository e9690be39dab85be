/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device: any controller (control/controller.h) at the gate of a simulated device, which is its site.
 *
 * The same controller may stand at the gate of a host, which then is its site.
 */
#pragma once

#include "sim/world/controller.h"

extern const struct sim_controller_ops device_controller;
