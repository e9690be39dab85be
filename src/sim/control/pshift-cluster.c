/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/control/pshift-cluster.h"
#include "control/pshift/ids.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PERIODS 100000 /* a change each, of each bucket, is remembered */

uint32_t pshift_cluster_parts(const struct pshift_cluster *c, uint32_t bucket)
{
	return c->config.nested && bucket < c->config.servers ? bucket + 1 : c->config.servers;
}

/* ---- the controller */

static void control_sends(void *arg, size_t server, const struct lease_message *m)
{
	const struct pshift_leader *l = arg;

	pshift_post_send(l->cluster, (uint32_t)server, l->number, false, m);
}

/* Start the controller (0), or a stand-in. */
static int start_control(
	struct pshift_cluster *c, uint32_t number, struct pshift_control **ret_control)
{
	struct pshift_control_config config = {.name = number ? "stand-in" : "control",
		.cluster = PSHIFT_CLUSTER,
		.instance = 2 * ++c->instances,
		.rank = number,
		.length = c->config.period,
		.shortest = c->config.interval,
		.longest = c->config.interval,
		.placing = c->config.without == PSHIFT_CLUSTER_WITHOUT_SHIFTING    ? PSHIFT_SPLIT
			   : c->config.without == PSHIFT_CLUSTER_WITHOUT_PLACEMENT ? PSHIFT_RANDOM
										   : PSHIFT_SHIFT,
		.send = control_sends,
		.arg = &c->leaders[number]};
	int64_t r;

	c->leaders[number] = (struct pshift_leader){c, number};
	r = pshift_control_new(&config, ret_control);
	for (uint32_t j = 0; r >= 0 && j < c->config.servers; j++) {
		char name[PSHIFT_SITE_NAME];

		pshift_site_name(j, name);
		r = pshift_control_server(*ret_control, name);
	}
	for (uint32_t i = 0; r >= 0 && i < c->config.buckets; i++) {
		struct pshift_control_bucket b = {.id = i + 1,
			.reservation = c->buckets[i].reservation,
			.limit = c->buckets[i].limit,
			.parts = pshift_cluster_parts(c, i)};

		r = pshift_control_bucket(*ret_control, &b);
	}
	return r < 0 ? (int)r : 0;
}

/* Kill the controller's process: its connections are closed. */
static void kill_control(struct pshift_cluster *c)
{
	uint64_t instance = c->control ? pshift_control_instance(c->control) : 0;

	for (uint32_t j = 0; c->control && j < c->config.servers; j++)
		pshift_server_lost(c->sites[j].server, instance);
	pshift_control_free(c->control);
	c->control = NULL;
}

/* Without a kill, stand-ins would only listen. */
static int start_stand_ins(struct pshift_cluster *c)
{
	const struct pshift_cluster_config *g = &c->config;
	int r = 0;

	if (!g->control || !g->stand_in || g->back <= g->kill + 1)
		return 0;
	for (uint32_t k = 0; r == 0 && k < PSHIFT_STAND_INS && k < g->servers; k++)
		r = start_control(c, k + 1, &c->stand_ins[k]);
	return r;
}

static int step_control(struct pshift_cluster *c)
{
	const struct pshift_cluster_config *g = &c->config;
	bool gone = g->back > g->kill && c->now >= g->kill && c->now < g->back;
	int r = 0;

	if (gone || !g->control)
		kill_control(c);
	else if (!c->control)
		r = start_control(c, 0, &c->control);
	for (uint32_t k = 0; r == 0 && k <= PSHIFT_STAND_INS; k++)
		if (pshift_cluster_leader(c, k))
			r = pshift_control_step(pshift_cluster_leader(c, k), c->now);
	return r;
}

/* ---- a run */

/* A bucket with a limit has its part at each server from the start. */
static int place_limited(struct pshift_cluster *c)
{
	for (uint32_t i = 0; c->config.limit > 0 && i < c->config.buckets; i++)
		for (uint32_t j = 0; j < pshift_cluster_parts(c, i); j++)
			if (!pshift_cluster_place(c, i, j))
				return -ENOMEM;
	return 0;
}

void pshift_cluster_free(struct pshift_cluster *c)
{
	pshift_judge_end(c);
	pshift_load_end(c);
	pshift_post_end(c);
	for (uint32_t j = 0; c->sites && j < c->config.servers; j++)
		pshift_site_end(&c->sites[j]);
	pshift_moved_end(c);
	pshift_control_free(c->control);
	for (uint32_t k = 0; k < PSHIFT_STAND_INS; k++)
		pshift_control_free(c->stand_ins[k]);
	if (c->pairs)
		pshift_ids_free(c->pairs);
	free(c->pairs);
	free(c->sites);
	free(c->buckets);
	metrics_free(c->metrics);
	free(c);
}

int pshift_cluster_new(const struct pshift_cluster_config *config, weir_time duration,
	uint64_t seed, struct pshift_cluster **ret)
{
	struct pshift_cluster *c = calloc(1, sizeof(*c));
	int r = c ? 0 : -ENOMEM;

	if (r)
		return r;
	c->config = *config;
	c->duration = duration;
	rng_init(&c->rng, seed, "pshift-cluster");
	heap_init(&c->under_way, NULL);
	heap_init(&c->moves, NULL);
	c->sites = calloc(config->servers, sizeof(*c->sites));
	c->buckets = calloc(config->buckets, sizeof(*c->buckets));
	c->pairs = calloc(1, sizeof(*c->pairs));
	r = !c->sites || !c->buckets || !c->pairs ? -ENOMEM : metrics_new(&c->metrics);
	for (uint32_t j = 0; r == 0 && j < config->servers; j++)
		r = pshift_site_begin(c, j, seed);
	if (r == 0)
		r = pshift_load_begin(c);
	if (r == 0)
		r = place_limited(c);
	if (r == 0)
		r = pshift_judge_begin(c);
	if (r == 0)
		r = pshift_moved_begin(c);
	if (r)
		pshift_cluster_free(c);
	else
		*ret = c;
	return r;
}

static int step(struct pshift_cluster *c)
{
	int r = pshift_post_deliver(c);

	if (r == 0)
		r = pshift_load_step(c);
	for (uint32_t j = 0; r == 0 && j < c->config.servers; j++)
		r = pshift_site_step(&c->sites[j], c->config.slot);
	return r ? r : c->failed;
}

/* Return true if a period has ended, by the controller; without one they continue with the same
 * length. */
static bool turned(struct pshift_cluster *c)
{
	struct pshift_control_status s = {0};

	for (uint32_t k = 0; !s.started && k <= PSHIFT_STAND_INS; k++)
		if (pshift_cluster_leader(c, k))
			pshift_control_status(pshift_cluster_leader(c, k), &s);
	if (s.started && s.period > c->period) {
		c->period = s.period;
		c->began = c->now;
		return true;
	}
	if (s.started || c->now - c->began < c->config.period)
		return false;
	c->period++;
	c->began += c->config.period;
	return true;
}

/* A period that has not ended at the end of the run is not judged. */
static int run(struct pshift_cluster *c, const struct sim_options *o)
{
	int r = start_stand_ins(c);

	for (; r == 0 && c->now < c->duration; c->now += c->config.slot) {
		r = step_control(c);
		if (r == 0 && turned(c)) {
			pshift_moved_period(c);
			r = pshift_judge_period(c);
			if (r == 0 && o && o->progress &&
				o->progress((double)c->now / (double)c->duration, o->progress_arg))
				return -ECANCELED;
		}
		if (r == 0)
			r = step(c);
	}
	return r;
}

int pshift_cluster_run(const struct pshift_cluster_config *config, weir_time duration,
	uint64_t seed, const struct sim_options *options, struct metrics **ret,
	struct sim_cost *ret_cost, struct weir_err *err)
{
	struct pshift_cluster *c;
	int r;

	if (duration / config->period > MOST_PERIODS)
		return weir_err_set(err, -EINVAL, "cluster: more than %d periods", MOST_PERIODS);
	r = pshift_cluster_new(config, duration, seed, &c);
	if (r)
		return weir_err_set(err, r, "cluster: %s", strerror(-r));
	r = run(c, options);
	if (r == 0)
		r = pshift_judge_report(c);
	if (r == 0)
		r = pshift_moved_report(c);
	if (r == 0) {
		*ret = c->metrics;
		c->metrics = NULL;
		if (ret_cost)
			*ret_cost = (struct sim_cost){
				c->served + c->messages[0] + c->messages[1], c->served};
	} else if (r == -ENODATA) {
		weir_err_set(err, r, "cluster: no period ended after 'settle'");
	} else {
		weir_err_set(err, r, "cluster, at %.3f s: %s", (double)c->now / 1e9,
			r == -ECANCELED ? "stopped" : strerror(-r));
	}
	pshift_cluster_free(c);
	return r;
}
