/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * leader: this machine as the leader of its rack: the rack's usage to the fabric's broker, its limits to the rack.
 *
 * METHOD  Each machine knows which others are alive; that with the lowest name leads. Two machines that disagree both report, and the
 *         broker hears the lower name. Limits go to the rack in each round while they hold, with the time that is left, so that a
 *         message that is lost, or a machine that starts, delays them by a second, and no message keeps them longer.
 */
#include "serve/shape/brokers-impl.h"
#include "base/no-memory.h"
#include "control/parley/fabric.h"
#include "serve/loop/log.h"
#include "wire/bytes.h"
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define CLUSTER "weir-fabric"

static const struct policy_network *network_of(const struct brokers *b)
{
	return b->config.policy->network;
}

static weir_time period_of(const struct brokers *b)
{
	return network_of(b)->fabric_period ? network_of(b)->fabric_period : FABRIC_PERIOD;
}

/* ---- in */

/* Keep the words of services that are limited, or were: the others are told of both. */
static void keep_limits(struct leader *f, const struct lease_message *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n / 8; i++) {
		uint64_t word = bytes_get64(m->bytes + 8 * i);
		struct usage u = usage_unpack(word);
		bool was = false;

		for (size_t k = 0; k < f->n_limits && !was; k++)
			was = usage_unpack(f->limits[k]).service == u.service;
		if (was || u.in < USAGE_MAX || u.out < USAGE_MAX)
			bytes_put64(m->bytes + 8 * n++, word);
	}
	free(f->limits);
	f->limits = calloc(n + 1, sizeof(*f->limits));
	f->n_limits = f->limits ? n : 0;
	for (size_t i = 0; i < f->n_limits; i++)
		f->limits[i] = bytes_get64(m->bytes + 8 * i);
}

static void receive(void *arg, struct lease_message *m)
{
	struct brokers *b = arg;
	struct leader *f = &b->fabric;

	if (m->kind != LEASE_LIMITS || strcmp(m->rack.name, network_of(b)->rack) != 0 ||
		m->rack.span > FABRIC_LEFT)
		return;
	f->answers++;
	f->until = loop_clock() + m->rack.span;
	keep_limits(f, m);
}

/* ---- out */

static void report(struct brokers *b, weir_time now)
{
	struct leader *f = &b->fabric;
	size_t n = b->config.tree->n, k = 0;
	uint8_t *bytes = calloc(n, 8);
	struct lease_message m = {.kind = LEASE_USAGE, .rack.span = now - f->began, .bytes = bytes};

	for (size_t i = 1; bytes && i < n; i++) {
		struct usage u = {(uint32_t)peer_hash(b->config.tree->nodes[i].path),
			f->sum[SHAPE_IN][i] / f->rounds, f->sum[SHAPE_OUT][i] / f->rounds};

		if (u.in > 0 || u.out > 0)
			bytes_put64(bytes + 8 * k++, usage_pack(&u));
	}
	m.n = 8 * k;
	strncpy(m.rack.name, network_of(b)->rack, PEER_NAME_MAX);
	if (bytes && lease_link_tell(f->link, &m) == 0)
		f->reports++;
	free(bytes);
	f->rounds = 0;
	f->began = now;
	for (int d = 0; d < SHAPE_DIRS; d++)
		memset(f->sum[d], 0, n * sizeof(*f->sum[d]));
}

static void measure(struct brokers *b)
{
	struct leader *f = &b->fabric;

	for (size_t i = 0; i < b->config.tree->n; i++) {
		f->sum[SHAPE_IN][i] += rack_usage(b->rack, RACK_DOWN, i);
		f->sum[SHAPE_OUT][i] += rack_usage(b->rack, RACK_UP, i);
	}
	f->rounds++;
}

/* Tell all machines of the rack, this one too, what is left of the limits. */
static void tell(struct brokers *b, weir_time now)
{
	struct leader *f = &b->fabric;
	uint64_t words[TALK_WORDS];

	words[0] = (uint64_t)(f->until - now);
	for (size_t at = 0; at < f->n_limits;) {
		unsigned n = 1;

		while (n < TALK_WORDS && at < f->n_limits)
			words[n++] = f->limits[at++];
		brokers_limits(b, words, n, now);
		talk_limits(b->config.talk, words, n);
	}
}

/* ---- the leader of the rack */

const char *leader_name(const struct brokers *b)
{
	const char *lowest = talk_name(b->config.talk);

	for (size_t i = 0; i < b->n_machines; i++)
		if (b->machines[i].alive && i != b->own && strcmp(b->machines[i].name, lowest) < 0)
			lowest = b->machines[i].name;
	return lowest;
}

static void lead(struct brokers *b, weir_time now)
{
	struct leader *f = &b->fabric;
	struct lease_link_config c = {.address = network_of(b)->fabric,
		.conn = {.loop = b->config.loop,
			.key = &f->key,
			.fabric = true,
			.cluster = peer_hash(CLUSTER),
			.instance = f->instance,
			.name = talk_name(b->config.talk),
			.entries = LEASE_ENTRIES_MAX,
			.stats = &f->stats,
			.message = &f->message},
		.receive = receive,
		.arg = b};

	if (lease_link_new(&c, &f->link) < 0)
		return;
	log_event(LOG_LEVEL_INFO, "fabric-lead", "rack", network_of(b)->rack, "broker",
		network_of(b)->fabric, NULL);
	f->rounds = 0;
	f->began = now;
	for (int d = 0; d < SHAPE_DIRS; d++)
		memset(f->sum[d], 0, b->config.tree->n * sizeof(*f->sum[d]));
}

static void resign(struct leader *f)
{
	lease_link_free(f->link);
	f->link = NULL;
	free(f->limits);
	f->limits = NULL;
	f->n_limits = 0;
}

static void log_stale(struct brokers *b, weir_time now)
{
	struct leader *f = &b->fabric;
	bool stale = f->until && f->until <= now;

	if (stale != f->stale)
		log_event(stale ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
			stale ? "fabric-stale" : "fabric-fresh", "rack", network_of(b)->rack, "why",
			stale ? "no limits of the fabric's broker came: the static ones hold"
			      : "limits came",
			NULL);
	f->stale = stale;
}

void leader_round(struct brokers *b, weir_time now)
{
	struct leader *f = &b->fabric;
	bool leads = strcmp(leader_name(b), talk_name(b->config.talk)) == 0;

	if (!network_of(b)->fabric || b->rounds <= BROKERS_FIRST)
		return;
	if (leads != (f->link != NULL)) {
		if (leads)
			lead(b, now);
		else
			resign(f);
	}
	if (f->link) {
		measure(b);
		if (now - f->began >= period_of(b))
			report(b, now);
		if (f->until > now)
			tell(b, now);
	}
	log_stale(b, now);
}

/* ---- from start to end */

int leader_policy(struct brokers *b, struct weir_err *err)
{
	struct leader *f = &b->fabric;

	for (int d = 0; d < SHAPE_DIRS; d++) {
		free(f->sum[d]);
		f->sum[d] = calloc(b->config.tree->n, sizeof(*f->sum[d]));
		if (!f->sum[d])
			return no_memory(err);
	}
	f->rounds = 0;
	return 0;
}

int leader_open(struct brokers *b, struct weir_err *err)
{
	struct leader *f = &b->fabric;
	const struct policy_network *n = network_of(b);
	int r;

	if (!n->fabric)
		return leader_policy(b, err);
	if (strlen(n->rack) > PEER_NAME_MAX)
		return weir_err_at(err, -EINVAL, n->rack_at,
			"the rack's name is longer than %d bytes", PEER_NAME_MAX);
	r = peer_key_read(n->fabric_key ? n->fabric_key : n->rack_key, CLUSTER, &f->key, err);
	while (r == 0 && !f->instance)
		randombytes_buf(&f->instance, sizeof(f->instance));
	return r ? r : leader_policy(b, err);
}

void leader_close(struct brokers *b)
{
	struct leader *f = &b->fabric;

	resign(f);
	lease_message_free(&f->message);
	peer_key_forget(&f->key);
	for (int d = 0; d < SHAPE_DIRS; d++)
		free(f->sum[d]);
}
