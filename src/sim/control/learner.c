/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/no-memory.h"
#include "sim/control/learner.h"
#include "control/capacity.h"
#include "sim/world.h"
#include <errno.h>
#include <stdlib.h>

struct learner {
	struct capacity capacity;
	uint32_t station;
};

static int learner_init(struct world *w, const struct scenario_controller *config, void **ret_state,
	struct weir_err *err)
{
	struct learner *l = calloc(1, sizeof(*l));

	if (!l)
		return no_memory(err);
	capacity_init(&l->capacity, NULL);
	l->station = config->station;
	*ret_state = l;
	return 0;
}

/* Return the time so far for which the window in front of the station was full. */
static weir_time full_time(struct world *w, const struct world_station *st, weir_time now)
{
	struct weir_gate_totals totals;
	weir_time sum = 0;
	int64_t n = 0;

	if (st->gate) {
		weir_gate_get_totals(st->gate->gate, now, &totals);
		return totals.full;
	}
	for (uint32_t i = 0; i < w->scenario->n_hosts; i++) {
		if (&w->stations[w->hosts[i].group->device] != st)
			continue;
		weir_gate_get_totals(w->hosts[i].gate->gate, now, &totals);
		if (totals.submitted == 0)
			continue;
		sum += totals.full;
		n++;
	}
	return n ? sum / n : 0;
}

static int learner_step(void *state, struct world *w, weir_time now, struct weir_err *err)
{
	struct learner *l = state;
	struct world_station *st = &w->stations[l->station];
	struct capacity_totals totals = {st->count.done, st->count.bytes, full_time(w, st, now)};

	if (capacity_step(&l->capacity, now, &totals))
		st->capacity = l->capacity.rate[WEIR_UNIT_REQUESTS];
	return 0;
}

static int learner_report(void *state, struct world *w, struct metrics *m)
{
	struct learner *l = state;
	const char *name = w->scenario->stations[l->station].name;
	int r = metrics_putf(m, "iops", l->capacity.rate[0], "device.%s.capacity_iops", name);

	return r ? r
		 : metrics_putf(m, "B/s", l->capacity.rate[1], "device.%s.capacity_bytes", name);
}

const struct sim_controller_ops learner_capacity = {
	.name = "capacity",
	.period = 100 * WEIR_MS, /* capacity makes its own intervals out of them */
	.init = learner_init,
	.step = learner_step,
	.report = learner_report,
	.free = free,
};
