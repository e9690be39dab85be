/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/no-memory.h"
#include "sim/control/learner.h"
#include "control/capacity.h"
#include "sim/world/measure-put.h"
#include "sim/world/world.h"
#include <stdio.h>
#include <stdlib.h>

struct learner {
	struct capacity capacity;
	uint32_t station;
	struct weir_gate *gates[]; /* in front of the station; room for one of each host */
};

static int learner_init(struct world *w, const struct scenario_controller *config, void **ret_state,
	struct weir_err *err)
{
	struct learner *l =
		calloc(1, sizeof(*l) + (w->scenario->n_hosts + 1) * sizeof(l->gates[0]));

	if (!l)
		return no_memory(err);
	capacity_init(&l->capacity, NULL);
	l->station = config->station;
	*ret_state = l;
	return 0;
}

/* Collect the gates in front of the station: its own, or those of its hosts. */
static size_t find_gates(struct learner *l, struct world *w, const struct world_station *st)
{
	size_t n = 0;

	if (st->gate)
		l->gates[n++] = st->gate->gate;
	for (uint32_t i = 0; !st->gate && i < w->scenario->n_hosts; i++)
		if (&w->stations[w->hosts[i].group->device] == st)
			l->gates[n++] = w->hosts[i].gate->gate;
	return n;
}

static int learner_step(void *state, struct world *w, weir_time now, struct weir_err *err)
{
	struct learner *l = state;
	struct world_station *st = &w->stations[l->station];

	if (capacity_watch(&l->capacity, now, l->gates, find_gates(l, w, st), st->count.done,
		    st->count.bytes))
		st->capacity = l->capacity.rate[WEIR_UNIT_REQUESTS];
	return 0;
}

static int learner_report(void *state, struct world *w, struct metrics *m)
{
	struct learner *l = state;
	char prefix[256];

	snprintf(prefix, sizeof(prefix), "device.%s", w->scenario->stations[l->station].name);
	measure_put_capacity(m, l->capacity.rate, prefix);
	return metrics_failed(m);
}

const struct sim_controller_ops learner_capacity = {
	.name = "capacity",
	.period = 100 * WEIR_MS, /* capacity makes its own intervals out of them */
	.init = learner_init,
	.step = learner_step,
	.report = learner_report,
	.free = free,
};
