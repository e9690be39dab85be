/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/cluster/cluster.h"
#include "control/ids.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PERIODS 100000 /* a change each, of each bucket, is remembered */

uint32_t sim_cluster_parts(const struct sim_cluster *c, uint32_t bucket)
{
	return c->config.nested && bucket < c->config.servers ? bucket + 1 : c->config.servers;
}

/* ---- the controller */

static void control_sends(void *arg, size_t server, const struct lease_message *m)
{
	const struct sim_leader *l = arg;

	sim_post_send(l->cluster, (uint32_t)server, l->number, false, m);
}

/* The controller (0), or a stand-in. */
static int start_control(struct sim_cluster *c, uint32_t number, void **ret_control)
{
	struct cluster_lead_config config = {.name = number ? "stand-in" : "control",
		.cluster = SIM_CLUSTER,
		.instance = 2 * ++c->instances,
		.rank = number,
		.length = c->config.period,
		.shortest = c->config.interval,
		.longest = c->config.interval,
		.placing = c->config.without == SIM_CLUSTER_WITHOUT_SHIFTING    ? CLUSTER_SPLIT
			   : c->config.without == SIM_CLUSTER_WITHOUT_PLACEMENT ? CLUSTER_RANDOM
										: CLUSTER_SHIFT,
		.send = control_sends,
		.arg = &c->leaders[number]};
	int64_t r;

	c->leaders[number] = (struct sim_leader){c, number};
	r = c->lead->new (&config, ret_control);
	for (uint32_t j = 0; r >= 0 && j < c->config.servers; j++) {
		char name[SIM_SERVER_NAME];

		sim_server_name(j, name);
		r = c->lead->server(*ret_control, name);
	}
	for (uint32_t i = 0; r >= 0 && i < c->config.buckets; i++) {
		struct cluster_bucket b = {.id = i + 1,
			.reservation = c->buckets[i].reservation,
			.limit = c->buckets[i].limit,
			.parts = sim_cluster_parts(c, i)};

		r = c->lead->bucket(*ret_control, &b);
	}
	return r < 0 ? (int)r : 0;
}

static void lead_free(const struct sim_cluster *c, void *lead)
{
	if (lead)
		c->lead->free(lead);
}

/* Kill the controller's process, which closes its connections. */
static void kill_control(struct sim_cluster *c)
{
	uint64_t instance = c->control ? c->lead->instance(c->control) : 0;

	for (uint32_t j = 0; c->control && j < c->config.servers; j++)
		c->machine->lost(c->servers[j].machine, instance);
	lead_free(c, c->control);
	c->control = NULL;
}

/* Stand-ins act only while the controller is killed; without a kill, make none. */
static int start_stand_ins(struct sim_cluster *c)
{
	const struct sim_cluster_config *g = &c->config;
	int r = 0;

	if (!g->control || !g->stand_in || g->back <= g->kill + 1)
		return 0;
	for (uint32_t k = 0; r == 0 && k < CLUSTER_STAND_INS && k < g->servers; k++)
		r = start_control(c, k + 1, &c->stand_ins[k]);
	return r;
}

static int step_control(struct sim_cluster *c)
{
	const struct sim_cluster_config *g = &c->config;
	bool gone = g->back > g->kill && c->now >= g->kill && c->now < g->back;
	int r = 0;

	if (gone || !g->control)
		kill_control(c);
	else if (!c->control)
		r = start_control(c, 0, &c->control);
	for (uint32_t k = 0; r == 0 && k <= CLUSTER_STAND_INS; k++)
		if (sim_cluster_leader(c, k))
			r = c->lead->step(sim_cluster_leader(c, k), c->now);
	return r;
}

/* ---- a run */

/* Give each bucket with a limit its part at each server from the start. */
static int place_limited(struct sim_cluster *c)
{
	for (uint32_t i = 0; c->config.limit > 0 && i < c->config.buckets; i++)
		for (uint32_t j = 0; j < sim_cluster_parts(c, i); j++)
			if (!sim_cluster_place(c, i, j))
				return -ENOMEM;
	return 0;
}

void sim_cluster_free(struct sim_cluster *c)
{
	sim_judge_end(c);
	sim_load_end(c);
	sim_post_end(c);
	for (uint32_t j = 0; c->servers && j < c->config.servers; j++)
		sim_server_end(&c->servers[j]);
	sim_moved_end(c);
	lead_free(c, c->control);
	for (uint32_t k = 0; k < CLUSTER_STAND_INS; k++)
		lead_free(c, c->stand_ins[k]);
	if (c->pairs)
		ids_free(c->pairs);
	free(c->pairs);
	free(c->servers);
	free(c->buckets);
	metrics_free(c->metrics);
	free(c);
}

int sim_cluster_new(const struct sim_cluster_config *config, weir_time duration, uint64_t seed,
	struct sim_cluster **ret)
{
	const struct controller *kind = controller_in_cluster();
	struct sim_cluster *c = calloc(1, sizeof(*c));
	int r = c ? 0 : -ENOMEM;
	char stream[64];

	if (r)
		return r;
	c->config = *config;
	c->kind = kind->name;
	c->scale = 1;
	c->lead = kind->lead;
	c->machine = kind->server;
	c->duration = duration;
	snprintf(stream, sizeof(stream), "%s-cluster", c->kind);
	rng_init(&c->rng, seed, stream);
	heap_init(&c->under_way, NULL);
	heap_init(&c->moves, NULL);
	c->servers = calloc(config->servers, sizeof(*c->servers));
	c->buckets = calloc(config->buckets, sizeof(*c->buckets));
	c->pairs = calloc(1, sizeof(*c->pairs));
	r = !c->servers || !c->buckets || !c->pairs ? -ENOMEM : metrics_new(&c->metrics);
	for (uint32_t j = 0; r == 0 && j < config->servers; j++)
		r = sim_server_begin(c, j, seed);
	if (r == 0)
		r = sim_load_begin(c);
	if (r == 0)
		r = place_limited(c);
	if (r == 0)
		r = sim_judge_begin(c);
	if (r == 0)
		r = sim_moved_begin(c);
	if (r)
		sim_cluster_free(c);
	else
		*ret = c;
	return r;
}

static int step(struct sim_cluster *c)
{
	int r = sim_post_deliver(c);

	if (r == 0)
		r = sim_load_step(c);
	for (uint32_t j = 0; r == 0 && j < c->config.servers; j++)
		r = sim_server_step(&c->servers[j], c->config.slot);
	return r ? r : c->failed;
}

/* Return true if a period has ended, by the controller; without one, periods keep their length. */
static bool turned(struct sim_cluster *c)
{
	struct cluster_status s = {0};

	for (uint32_t k = 0; !s.started && k <= CLUSTER_STAND_INS; k++)
		if (sim_cluster_leader(c, k))
			c->lead->status(sim_cluster_leader(c, k), &s);
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

/* A period that the run's end cuts off is not judged. */
static int run_cluster(struct sim_cluster *c, const struct sim_options *o)
{
	int r = start_stand_ins(c);

	for (; r == 0 && c->now < c->duration; c->now += c->config.slot) {
		r = step_control(c);
		if (r == 0 && turned(c)) {
			sim_moved_period(c);
			r = sim_judge_period(c);
			if (r == 0 && o && o->progress &&
				o->progress((double)c->now / (double)c->duration, o->progress_arg))
				return -ECANCELED;
		}
		if (r == 0)
			r = step(c);
	}
	return r;
}

int sim_cluster_run(const struct sim_cluster_config *config, weir_time duration, uint64_t seed,
	const struct sim_options *options, struct metrics **ret, struct sim_cost *ret_cost,
	struct weir_err *err)
{
	struct sim_cluster *c;
	int r;

	if (duration / config->period > MOST_PERIODS)
		return weir_err_set(err, -EINVAL, "cluster: more than %d periods", MOST_PERIODS);
	r = sim_cluster_new(config, duration, seed, &c);
	if (r)
		return weir_err_set(err, r, "cluster: %s", strerror(-r));
	r = run_cluster(c, options);
	if (r == 0)
		r = sim_judge_report(c);
	if (r == 0)
		r = sim_moved_report(c);
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
	sim_cluster_free(c);
	return r;
}
