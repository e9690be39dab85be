/* SPDX-License-Identifier: BSD-3-Clause */
/* world-trace: the trace that a tenant's workloads will send, for the planner. */
#include "base/array.h"
#include "base/no-memory.h"
#include "sim/world/world-trace.h"
#include <errno.h>
#include <stdlib.h>

static int add_workload(struct world *w, const struct world_load *l, struct trace *to, size_t *room,
	struct weir_err *err)
{
	struct workload *source;
	struct workload_io io;
	int r = world_load_source(w, l->tenant, l->config, 0, &source, err);

	if (r)
		return r;
	while (r == 0 && workload_next(source, 0, &io) && io.at < w->scenario->duration) {
		if (io.at < w->now)
			continue;
		r = array_grow(&to->records, room, to->n + 1);
		if (r == 0)
			to->records[to->n++] = (struct trace_record){
				.at = io.at, .offset = io.offset, .bytes = io.bytes, .op = io.op};
	}
	workload_free(source);
	return r < 0 ? no_memory(err) : 0;
}

static int by_time(const void *a, const void *b)
{
	const struct trace_record *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

int world_trace_make(
	struct world *w, const struct world_tenant *t, struct trace *ret, struct weir_err *err)
{
	size_t room = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < t->n_loads; i++)
		if (t->loads[i].running)
			r = add_workload(w, &t->loads[i], ret, &room, err);
	if (r == 0 && ret->n == 0)
		r = weir_err_set(err, -EINVAL, "plan: '%s' sends no request",
			t->host->gate->policy->tenants[t->index].path);
	if (r == 0 && t->n_loads > 1)
		qsort(ret->records, ret->n, sizeof(*ret->records), by_time);
	return r;
}

bool world_trace_is_known(const struct world_tenant *t)
{
	bool any = false;

	for (size_t i = 0; i < t->n_loads; i++) {
		if (t->loads[i].closed)
			return false;
		any |= t->loads[i].running;
	}
	return any;
}
