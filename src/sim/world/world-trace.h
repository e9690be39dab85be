/* SPDX-License-Identifier: BSD-3-Clause */
/* world-trace: the trace that a tenant's workloads will send: over the whole duration, of the same streams as in the run. */
#pragma once

#include "sim/world/world.h"

/* Add the arrivals of those that run from the start to an empty trace, whose records the caller frees, also on error. -EINVAL: there
 * are none; -ENOMEM. */
int world_trace_make(
	struct world *w, const struct world_tenant *t, struct trace *ret, struct weir_err *err);
/* Return true if none of its workloads is closed: only then are the arrivals known before the run. */
bool world_trace_is_open(const struct world_tenant *t);
