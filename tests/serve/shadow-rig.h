/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shadow-rig: throughput of tenants on a device model, enforced and as shadow mode estimates it; in
 * virtual time.
 */
#ifndef WEIR_TESTS_PORT_SHADOW_RIG_H
#define WEIR_TESTS_PORT_SHADOW_RIG_H

#include "serve/device-rig.h"
#include "model/array.h"
#include "model/server.h"
#include "model/ssd.h"

/* ---- devices */

static inline struct device *shadow_server(uint64_t seed, uint32_t servers, enum server_service how)
{
	struct server_config config = {.servers = servers, .rate = 4000, .service = how};
	struct device *d;
	struct weir_err err;

	CHECK_INT(server_new(&config, seed, "server", &d, &err), 0);
	return d;
}

static inline struct device *shadow_server_4(uint64_t seed)
{
	return shadow_server(seed, 4, SERVER_EXPONENTIAL);
}

static inline struct device *shadow_server_16(uint64_t seed)
{
	return shadow_server(seed, 16, SERVER_EXPONENTIAL);
}

static inline struct device *shadow_fixed(uint64_t seed)
{
	return shadow_server(seed, 16, SERVER_FIXED);
}

static inline struct device *shadow_ssd_of(uint64_t seed, uint32_t channels, uint32_t dies)
{
	struct ssd_config config = ssd_defaults();
	struct device *d;
	struct weir_err err;

	config.channels = channels;
	config.dies = dies;
	config.read = config.program = WEIR_MS;
	CHECK_INT(ssd_new(&config, seed, "ssd", &d, &err), 0);
	return d;
}

static inline struct device *shadow_ssd(uint64_t seed)
{
	return shadow_ssd_of(seed, 2, 2);
}

static inline struct device *shadow_ssd_32(uint64_t seed)
{
	return shadow_ssd_of(seed, 8, 4);
}

static inline struct device *shadow_array(uint64_t seed)
{
	struct array_config config = array_cx3();
	struct device *d;
	struct weir_err err;

	CHECK_INT(array_new(&config, seed, "array", &d, &err), 0);
	return d;
}

struct shadow_model {
	const char *name;
	struct device *(*make)(uint64_t seed);
	double rate; /* 4 KiB reads/s with many inside, about */
	bool rotational;
};

/* ---- a run */

#define TENANTS 4

struct seen {
	double rate[TENANTS];
	double low[TENANTS], high[TENANTS]; /* of the rate */
	uint32_t queued[TENANTS];
	struct shadow_estimate estimate[TENANTS];
};

struct shadow_run {
	const struct shadow_model *model;
	unsigned depth; /* of the gate */
	const char *tenants;
	const struct rig_client *clients; /* exports a, b, … */
	size_t n;
	uint64_t seed;
	weir_time late, stall, stall_every; /* the rig's */
};

/* Measure the tenants for 4 s, by the gate's count of requests that passed. */
static inline void shadow_run(const struct shadow_run *run, bool enforce, struct seen *ret)
{
	static struct rig w;
	struct device *d = run->model->make(run->seed);
	struct weir_gate_stats before[TENANTS], after[TENANTS];
	char text[1024];

	snprintf(text, sizeof(text),
		"enforce: %s\nresources: [{name: d, back: \"memory:1G\", depth: %u}]\ntenants:\n%s",
		enforce ? "true" : "false", run->depth, run->tenants);
	rig_new(&w, text, &d);
	rng_init(&w.rng, run->seed, "rig");
	w.late = run->late;
	w.stall = run->stall;
	w.stall_every = run->stall_every;
	w.back[0]->back.info.rotational = run->model->rotational;
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < run->n; i++)
		rig_join(&w, 0, (char[]){(char)('a' + i), '\0'}, run->clients[i]);
	rig_run(&w, 2 * WEIR_SEC);
	for (size_t i = 0; i < run->n; i++)
		CHECK_INT(weir_gate_get_stats(
				  w.resource[0]->gate, w.now, w.resource[0]->nodes[i], &before[i]),
			0);
	rig_run(&w, 4 * WEIR_SEC);
	for (size_t i = 0; i < run->n; i++) {
		CHECK_INT(weir_gate_get_stats(
				  w.resource[0]->gate, w.now, w.resource[0]->nodes[i], &after[i]),
			0);
		resource_shadow_estimate(
			w.resource[0], &w.client[i].client, &after[i], &ret->estimate[i]);
		ret->rate[i] = (double)(after[i].dispatched - before[i].dispatched) / 4;
		ret->low[i] = ret->rate[i] * ret->estimate[i].low;
		ret->high[i] = ret->rate[i] * ret->estimate[i].high;
		ret->queued[i] = after[i].queued;
	}
	rig_free(&w);
}

#define TWO(a, b)                                                                                  \
	"  - {name: a, " a ", match: {export: a}}\n  - {name: b, " b ", match: {export: b}}\n"

#endif
