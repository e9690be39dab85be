/* SPDX-License-Identifier: BSD-3-Clause */
/* read: a scenario's `network:`; weir-scenario(5) is its manual. */
#include "sim/network/network.h"
#include "base/field.h"
#include "base/no-memory.h"
#include "policy/impl.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_MACHINES 10000
#define MOST_FLOWS    4000000
#define MOST_SIZE     UINT64_C(1000000000000)

static const char *const kinds[] = {"tcp", "udp", "rpc", NULL};
static const char *const arrivals[] = {"even", "uniform", "poisson", NULL};
static const char *const sizes[] = {"fixed", "exponential", NULL};
static const char *const faults[] = {"rack", "fabric", NULL};

#define TOP(member) offsetof(struct sim_network_config, member)
static const struct field top_fields[] = {{"segment", FIELD_SIZE, TOP(segment), NULL},
	{"buffer", FIELD_SIZE, TOP(buffer), NULL}, {"mark", FIELD_SIZE, TOP(mark), NULL},
	{"delay", FIELD_TIME, TOP(delay), NULL}, {"period", FIELD_TIME, TOP(period), NULL},
	{"sample", FIELD_TIME, TOP(sample), NULL}, {"settle", FIELD_TIME, TOP(settle), NULL},
	{"timeout", FIELD_TIME, TOP(timeout), NULL},
	{"message_delay", FIELD_TIME, TOP(message_delay), NULL},
	{"loss", FIELD_REAL, TOP(loss), NULL}, {"window", FIELD_REAL, TOP(widest), NULL},
	{"adapt", FIELD_FLAG, TOP(adapt), NULL}, {"feedback", FIELD_FLAG, TOP(feedback), NULL},
	{"ecn", FIELD_FLAG, TOP(ecn), NULL}, {"rack_broker", FIELD_FLAG, TOP(rack), NULL},
	{"fabric_broker", FIELD_FLAG, TOP(fabric), NULL}, {"forget", FIELD_FLAG, TOP(forget), NULL},
	{"live_rate", FIELD_REAL, TOP(live_rate), NULL},
	{"live_time", FIELD_REAL, TOP(live_time), NULL}, {"watch", FIELD_FLAG, TOP(watch), NULL},
	{"split", FIELD_WHOLE, TOP(split), NULL}, {0}};
#define RACK(member) offsetof(struct net_rack, member)
static const struct field rack_fields[] = {{"machines", FIELD_WHOLE, RACK(machines), NULL},
	{"rate", FIELD_BYTES_RATE, RACK(rate), NULL}, {"up", FIELD_BYTES_RATE, RACK(up), NULL},
	{"down", FIELD_BYTES_RATE, RACK(down), NULL},
	{"limit", FIELD_BYTES_RATE, RACK(limit), NULL}, {0}};
#define GROUP(member) offsetof(struct net_group, member)
static const struct field group_fields[] = {{"kind", FIELD_WORD, GROUP(kind), kinds},
	{"arrivals", FIELD_WORD, GROUP(arrivals), arrivals},
	{"sizes", FIELD_WORD, GROUP(sizes), sizes}, {"flows", FIELD_WHOLE, GROUP(many), NULL},
	{"batch", FIELD_WHOLE, GROUP(batch), NULL}, {"window", FIELD_WHOLE, GROUP(window), NULL},
	{"size", FIELD_SIZE, GROUP(size), NULL}, {"rate", FIELD_BYTES_RATE, GROUP(rate), NULL},
	{"start", FIELD_TIME, GROUP(start), NULL}, {"end", FIELD_TIME, GROUP(end), NULL},
	{"on", FIELD_TIME, GROUP(on), NULL}, {"off", FIELD_TIME, GROUP(off), NULL},
	{"weight", FIELD_REAL, GROUP(weight), NULL}, {"wander", FIELD_FLAG, GROUP(wander), NULL},
	{0}};
#define FAULT(member) offsetof(struct net_failure, member)
static const struct field failure_fields[] = {{"broker", FIELD_WORD, FAULT(what), faults},
	{"machines", FIELD_WHOLE, FAULT(machines), NULL}, {"from", FIELD_TIME, FAULT(from), NULL},
	{"to", FIELD_TIME, FAULT(to), NULL}, {0}};

/* Read the fields of a map that are there; `more`: its other keys, NULL-terminated. */
static int read_fields(yamldoc_node map, const struct field *fields, const char *const *more,
	void *to, struct weir_err *err)
{
	const char *keys[FIELDS_MOST + 8];
	size_t n = field_keys(fields, keys);
	struct weir_err why;
	int r;

	while (*more)
		keys[n++] = *more++;
	keys[n] = NULL;
	if ((r = yamldoc_map(map, keys, err)))
		return r;
	for (const struct field *f = fields; f->key; f++) {
		yamldoc_node at = yamldoc_get(map, f->key);
		const char *text = yamldoc_text(at);

		if (!at.id)
			continue;
		if (!text)
			return yamldoc_error(at, err, "must be one value");
		if (field_read(f, text, to, &why))
			return yamldoc_error(at, err, "%s", why.text);
	}
	return 0;
}

static int read_name(yamldoc_node map, const char *key, char to[NET_NAME], struct weir_err *err)
{
	const char *text;
	int r = yamldoc_string(map, key, &text, err);

	if (r == -ENOENT)
		return yamldoc_error(map, err, "needs '%s'", key);
	if (r)
		return r;
	if (!*text || strlen(text) >= NET_NAME)
		return yamldoc_error(
			yamldoc_get(map, key), err, "must have 1 to %d bytes", NET_NAME - 1);
	strcpy(to, text);
	return 0;
}

/* Get memory for the entries of a list, which may be absent. */
static int list(yamldoc_node n, size_t size, void *ret_entries, struct weir_err *err)
{
	void *entries;
	int r = n.id ? yamldoc_list(n, err) : 0;

	if (r)
		return r;
	entries = calloc(yamldoc_size(n) + 1, size);
	memcpy(ret_entries, &entries, sizeof(entries));
	return entries ? 0 : no_memory(err);
}

static int read_racks(yamldoc_node n, struct sim_network_config *c, struct weir_err *err)
{
	static const char *const more[] = {"name", NULL};
	int r = list(n, sizeof(*c->racks), &c->racks, err);

	for (size_t i = 0; r == 0 && i < yamldoc_size(n); i++) {
		struct net_rack *to = &c->racks[c->n_racks++];
		yamldoc_node map = yamldoc_at(n, i);

		*to = (struct net_rack){.machines = 1,
			.rate = 1.25e9,
			.up = INFINITY,
			.down = INFINITY,
			.limit = INFINITY,
			.first = c->n_machines};
		if ((r = read_fields(map, rack_fields, more, to, err)) ||
			(r = read_name(map, "name", to->name, err)))
			return r;
		if (!to->machines || to->machines > MOST_MACHINES ||
			c->n_machines + to->machines > MOST_MACHINES)
			return yamldoc_error(map, err, "from 1 to %d machines", MOST_MACHINES);
		if (!(to->rate > 0) || !(to->up > 0) || !(to->down > 0) || !(to->limit > 0))
			return yamldoc_error(map, err, "rates must be more than 0");
		c->n_machines += to->machines;
	}
	return r || c->n_racks ? r : yamldoc_error(n, err, "needs a rack");
}

/* Find the machines of "rack", "rack.3" (from 1), or "others:rack", all but one rack's, which must be the
 * first or the last. */
static bool find_machines(const struct sim_network_config *c, const char *name, uint32_t *ret_first,
	uint32_t *ret_many)
{
	const char *dot = strrchr(name, '.');
	size_t len = dot ? (size_t)(dot - name) : strlen(name);
	unsigned long number = dot ? strtoul(dot + 1, NULL, 10) : 0;

	if (strcmp(name, "all") == 0) {
		*ret_first = 0;
		*ret_many = c->n_machines;
		return true;
	}
	for (size_t i = 0; i < c->n_racks; i++) {
		const struct net_rack *k = &c->racks[i];

		if (strlen(k->name) != len || memcmp(k->name, name, len) != 0)
			continue;
		*ret_first = k->first + (dot ? (uint32_t)number - 1 : 0);
		*ret_many = dot ? 1 : k->machines;
		return !dot || (number >= 1 && number <= k->machines);
	}
	if (strncmp(name, "others:", 7) == 0 && c->n_racks > 1 &&
		strcmp(c->racks[c->n_racks - 1].name, name + 7) == 0) {
		*ret_first = 0;
		*ret_many = c->racks[c->n_racks - 1].first;
		return true;
	}
	return false;
}

static int find_service(
	yamldoc_node map, const struct sim_network_config *c, uint32_t *ret, struct weir_err *err)
{
	const char *name = yamldoc_text(yamldoc_get(map, "tenant"));
	int i = weir_policy_find(c->policy, name ? name : "");

	if (i < 0 || c->policy->tenants[i].first_child >= 0)
		return yamldoc_error(
			map, err, "tenant: no tenant '%s' without children", name ? name : "");
	*ret = (uint32_t)i;
	return 0;
}

static int check_group(yamldoc_node map, const struct net_group *g, struct weir_err *err)
{
	if (!g->many || (double)g->many * g->from_many * g->to_many > MOST_FLOWS)
		return yamldoc_error(map, err, "from 1 to %d flows", MOST_FLOWS);
	if (g->kind != NET_TCP && !(g->rate > 0))
		return yamldoc_error(map, err, "needs a 'rate'");
	if (g->kind == NET_RPC && (!g->size || g->size > MOST_SIZE || !g->batch))
		return yamldoc_error(
			map, err, "needs a 'size' up to 1 TB, and a 'batch' of 1 or more");
	if (g->kind == NET_RPC && g->wander)
		return yamldoc_error(map, err, "wander: not for rpc");
	if (!g->window || (g->wander && g->to_many < 2))
		return yamldoc_error(map, err, "needs a window, and other machines to wander to");
	if (g->from_first == g->to_first && g->from_many == 1 && g->to_many == 1)
		return yamldoc_error(map, err, "from and to are the same machine");
	return 0;
}

static int read_groups(yamldoc_node n, struct sim_network_config *c, struct weir_err *err)
{
	static const char *const more[] = {"name", "tenant", "from", "to", NULL};
	int r = list(n, sizeof(*c->groups), &c->groups, err);

	for (size_t i = 0; r == 0 && i < yamldoc_size(n); i++) {
		struct net_group *to = &c->groups[c->n_groups++];
		yamldoc_node map = yamldoc_at(n, i);

		*to = (struct net_group){.many = 1, .batch = 1, .window = 10, .weight = 1};
		if ((r = read_fields(map, group_fields, more, to, err)) ||
			(r = read_name(map, "name", to->name, err)) ||
			(r = read_name(map, "from", to->from, err)) ||
			(r = read_name(map, "to", to->to, err)) ||
			(r = find_service(map, c, &to->service, err)))
			return r;
		if (!find_machines(c, to->from, &to->from_first, &to->from_many))
			return yamldoc_error(map, err, "from: no machines '%s'", to->from);
		if (!find_machines(c, to->to, &to->to_first, &to->to_many))
			return yamldoc_error(map, err, "to: no machines '%s'", to->to);
		if (!(to->weight > 0 && to->weight <= 1000))
			return yamldoc_error(map, err, "weight: more than 0, at most 1000");
		r = check_group(map, to, err);
	}
	return r;
}

static int read_changes(yamldoc_node n, struct sim_network_config *c, struct weir_err *err)
{
	static const char *const keys[] = {"time", "tenant", "fabric", NULL};
	int r = list(n, sizeof(*c->changes), &c->changes, err);

	for (size_t i = 0; r == 0 && i < yamldoc_size(n); i++) {
		struct net_change *to = &c->changes[c->n_changes++];
		yamldoc_node map = yamldoc_at(n, i);
		struct weir_rate rate = {0, WEIR_UNIT_BYTES};

		if ((r = yamldoc_map(map, keys, err)) ||
			(r = find_service(map, c, &to->service, err)) ||
			(r = yamldoc_optional(yamldoc_time(map, "time", &to->at, err))) ||
			(r = yamldoc_optional(yamldoc_rate(map, "fabric", &rate, err))))
			return r;
		if (rate.unit != WEIR_UNIT_BYTES || !(rate.per_second > 0))
			return yamldoc_error(map, err, "needs 'fabric', a rate of bits or bytes");
		to->max = rate.per_second;
	}
	return r;
}

static int read_failures(yamldoc_node n, struct sim_network_config *c, struct weir_err *err)
{
	static const char *const more[] = {NULL};
	int r = list(n, sizeof(*c->failures), &c->failures, err);

	for (size_t i = 0; r == 0 && i < yamldoc_size(n); i++) {
		struct net_failure *to = &c->failures[c->n_failures++];

		*to = (struct net_failure){.machines = MOST_MACHINES, .to = WEIR_NEVER};
		r = read_fields(yamldoc_at(n, i), failure_fields, more, to, err);
	}
	return r;
}

static int check(yamldoc_node map, const struct sim_network_config *c, struct weir_err *err)
{
	if (c->segment < 64 || c->segment > 65536)
		return yamldoc_error(map, err, "segment: from 64 B to 64 KiB");
	if (c->period < WEIR_US || c->timeout < WEIR_US || c->sample < WEIR_MS)
		return yamldoc_error(
			map, err, "period and timeout: 1us or more; sample: 1ms or more");
	if (!(c->loss >= 0 && c->loss <= 1) || !(c->widest >= 1))
		return yamldoc_error(map, err, "loss: from 0 to 1; window: 1 or more");
	if (!(c->live_rate >= 1 && c->live_time >= 1))
		return yamldoc_error(map, err, "live_rate and live_time: 1 or more");
	if (c->message_delay < 0 || c->message_delay >= WEIR_SEC / 2 || c->delay < 0)
		return yamldoc_error(map, err, "message_delay: below 500ms");
	if (c->fabric && !c->rack)
		return yamldoc_error(
			map, err, "fabric_broker: needs rack_broker, which applies it");
	return 0;
}

void sim_network_config_free(struct sim_network_config *c)
{
	if (!c)
		return;
	free(c->racks);
	free(c->groups);
	free(c->changes);
	free(c->failures);
	weir_policy_free(c->policy);
}

int sim_network_read(yamldoc_node map, struct sim_network_config *ret, struct weir_err *err)
{
	static const char *const more[] = {"policy", "racks", "flows", "at", "failures", NULL};
	int r;

	*ret = (struct sim_network_config){.segment = 1500,
		.buffer = 1 << 20,
		.mark = 80000, /* Table 1 */
		.delay = WEIR_US,
		.period = PARLEY_PERIOD,
		.sample = WEIR_SEC,
		.timeout = 200 * WEIR_MS,
		.message_delay = WEIR_MS,
		.widest = 1000,
		.live_rate = 1,
		.live_time = 1,
		.adapt = true,
		.feedback = true,
		.ecn = true,
		.rack = true,
		.fabric = true,
		.split = 16};
	if ((r = read_fields(map, top_fields, more, ret, err)) || (r = check(map, ret, err)) ||
		(r = yamldoc_has(map, "policy") ? 0 : yamldoc_error(map, err, "needs 'policy'")) ||
		(r = policy_node_parse(
			 yamldoc_get(map, "policy"), NULL, NULL, &ret->policy, err)) ||
		(r = read_racks(yamldoc_get(map, "racks"), ret, err)) ||
		(r = read_groups(yamldoc_get(map, "flows"), ret, err)) ||
		(r = read_changes(yamldoc_get(map, "at"), ret, err)))
		return r;
	return read_failures(yamldoc_get(map, "failures"), ret, err);
}
