/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device: any controller (control/controller.h) at the gate of a simulated device, which is its site.
 *
 * A scenario's map has the keys of the controller's settings, and besides: `device`, which may be left out if there is
 * only one; `rate`, the device's capacity; `learn`, if that is a guess.
 */
#ifndef WEIR_SIM_CONTROL_DEVICE_H
#define WEIR_SIM_CONTROL_DEVICE_H

#include "sim/control/controller.h"

extern const struct sim_controller_ops device_controller;

#endif
