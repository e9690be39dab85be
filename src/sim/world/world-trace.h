/* SPDX-License-Identifier: BSD-3-Clause */
/* world-trace: the trace that a tenant's workloads will send: from now to the end, of the same streams as in the run. */
#pragma once

#include "sim/world/world.h"

/* Add the arrivals of those that run to an empty trace, whose records the caller frees, also on error. -EINVAL: there are none; -ENOMEM. */
int world_trace_make(
	struct world *w, const struct world_tenant *t, struct trace *ret, struct weir_err *err);
/* Return true if some of its workloads run, and none is closed: only then are its arrivals known beforehand. */
bool world_trace_is_known(const struct world_tenant *t);
