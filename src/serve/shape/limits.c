/* SPDX-License-Identifier: BSD-3-Clause */
/* limits: what brokers allow a shaper's services. */
#include "serve/shape/impl.h"
#include "base/no-memory.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

static struct brokers_config config_of(
	const struct shaper *s, const struct shaper_version *v, double rate)
{
	return (struct brokers_config){.loop = s->loop,
		.talk = s->talk,
		.policy = v->policy,
		.tree = v->tree,
		.nic = rate};
}

void limits_usage(void *arg, size_t machine, const char *name, const uint64_t *words, unsigned n,
	weir_time now)
{
	struct brokers *b = ((struct shaper *)arg)->brokers;

	if (b)
		brokers_usage(b, machine, name, words, n, now);
}

void limits_fabric(void *arg, size_t machine, const char *name, const uint64_t *words, unsigned n,
	weir_time now)
{
	struct brokers *b = ((struct shaper *)arg)->brokers;

	if (b)
		brokers_limits(b, words, n, now);
}

int limits_arrays(struct shaper_version *v)
{
	for (int d = 0; d < SHAPE_DIRS; d++) {
		v->cap[d] = calloc(v->tree->n, sizeof(*v->cap[d]));
		v->usage[d] = calloc(v->tree->n, sizeof(*v->usage[d]));
		if (!v->cap[d] || !v->usage[d])
			return -ENOMEM;
		for (size_t i = 0; i < v->tree->n; i++)
			v->cap[d][i] = INFINITY;
	}
	return 0;
}

void limits_free(struct shaper_version *v)
{
	for (int d = 0; d < SHAPE_DIRS; d++) {
		free(v->cap[d]);
		free(v->usage[d]);
	}
}

int limits_start(struct shaper *s, struct weir_err *err)
{
	struct brokers_config c = config_of(s, &s->now, s->rate);

	return s->talk ? brokers_new(&c, &s->brokers, err) : 0;
}

int limits_change(
	struct shaper *s, const struct shaper_version *v, double rate, struct weir_err *err)
{
	struct brokers_config c = config_of(s, v, rate);

	if (!s->brokers != !v->policy->network->rack)
		return weir_err_at(err, -EINVAL, v->policy->network->at,
			"a rack comes or goes: this takes a restart");
	return s->brokers ? brokers_policy(s->brokers, &c, err) : 0;
}

static void run_round(struct shaper *s, weir_time now)
{
	struct shaper_version *v = &s->now;
	double span = (double)(now - s->reported) / 1e9;
	const double *usage[SHAPE_DIRS] = {v->usage[SHAPE_IN], v->usage[SHAPE_OUT]};
	bool known = v->reported;

	for (size_t i = 0; i < v->tree->n; i++)
		for (int d = 0; v->tree->nodes[i].leaf && d < SHAPE_DIRS; d++) {
			struct shaper_use *u = &v->use[i][d];

			v->usage[d][i] = known && u->bytes > u->reported
						 ? (double)(u->bytes - u->reported) / span
						 : 0;
			u->reported = u->bytes;
		}
	s->reported = now;
	v->reported = true;
	if (known)
		brokers_step(s->brokers, usage, now);
}

void limits_tick(struct shaper *s, weir_time now, bool round)
{
	struct shaper_version *v = &s->now;

	if (!s->brokers)
		return;
	if (round)
		run_round(s, now);
	for (int d = 0; d < SHAPE_DIRS; d++)
		for (size_t i = 0; i < v->tree->n; i++)
			v->cap[d][i] = brokers_cap(s->brokers, i, (enum shape_dir)d, now);
	for (size_t i = 0; i < v->tree->n; i++) {
		v->receive->services[i].cap.runtime = v->cap[SHAPE_IN][i];
		v->receive->services[i].cap.until = now + PARLEY_RACK;
	}
}
