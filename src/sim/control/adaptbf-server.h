/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * adaptbf-server: the controllers `adaptbf` and `tbf` of the simulated world.
 *
 * `adaptbf` is control/adaptbf/adaptbf at the gate before a device; `tbf` gives its leaves, once, the rates that
 * the rules of control/tbf/tbf say: what AdapTBF is compared with.
 */
#ifndef WEIR_SIM_CONTROL_ADAPTBF_SERVER_H
#define WEIR_SIM_CONTROL_ADAPTBF_SERVER_H

#include "sim/control/controller.h"

extern const struct sim_controller_ops adaptbf_server_ops;
extern const struct sim_controller_ops tbf_server_ops;

#endif
