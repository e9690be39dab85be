/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/sim.h"
#include "sim/cluster/cluster.h"
#include "sim/network/network.h"
#include "sim/run/systems.h"
#include "sim/world/measure.h"
#include "sim/world/world.h"
#include <errno.h>
#include <string.h>

#define PROGRESS_STEPS 200 /* calls of the progress callback per run */

static int run_steps(struct world *w, const struct sim_options *o, struct weir_err *err)
{
	int r;

	for (int i = 1; i <= PROGRESS_STEPS; i++) {
		r = world_run(w, (weir_time)((double)w->end * i / PROGRESS_STEPS));
		if (r == -ELOOP)
			return weir_err_set(err, r,
				"at %.9g s of virtual time: events repeat without time passing (a "
				"device that needs no time?)",
				(double)w->now / 1e9);
		if (r)
			return weir_err_set(err, r, "at %.9g s of virtual time: %s",
				(double)w->now / 1e9, w->why.text[0] ? w->why.text : strerror(-r));
		if (o && o->progress && o->progress((double)i / PROGRESS_STEPS, o->progress_arg))
			return weir_err_set(err, -ECANCELED, "stopped");
	}
	return 0;
}

int sim_run(const struct scenario *s, const struct sim_options *options, struct metrics **ret,
	struct sim_cost *ret_cost, struct weir_err *err)
{
	uint64_t seed = options && options->seed_set ? options->seed : s->seed;
	weir_time duration = options && options->duration ? options->duration : s->duration;
	struct world *w;
	int r;

	if (s->cluster)
		return sim_cluster_run(s->cluster, duration, seed, options, ret, ret_cost, err);
	if (s->network)
		return sim_network_run(s->network, duration, seed, options, ret, ret_cost, err);
	if (s->systems)
		return sim_systems_run(s, duration, seed, options, ret, ret_cost, err);
	r = world_new(s, seed, &w, err);
	if (r)
		return r;
	if (options && options->duration) {
		if (s->sample && options->duration / s->sample > SCENARIO_SAMPLES)
			r = weir_err_set(err, -EINVAL,
				"this duration has more than %d samples; set a longer "
				"'sample', or 0s for none",
				SCENARIO_SAMPLES);
		w->end = options->duration;
		if (w->warmup >= w->end)
			w->warmup = w->end / 2;
	}
	if (r == 0)
		r = run_steps(w, options, err);
	if (r == 0) {
		r = measure_end(w->measure, w, ret);
		if (r)
			weir_err_set(err, r, "measuring: %s", strerror(-r));
	}
	if (r == 0 && ret_cost)
		*ret_cost = (struct sim_cost){w->events.popped, w->completed};
	world_free(w);
	return r;
}
