/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/shape/brokers-impl.h"
#include "base/container.h"
#include "base/no-memory.h"
#include "base/same.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const brokers_links[SHAPE_DIRS] = {"down", "up"};

/* ---- services */

const struct policy_net_share *brokers_share(
	const struct brokers_config *c, size_t node, int level, int dir)
{
	static const struct policy_net_share none = {.max = INFINITY, .weight = 1};
	const struct policy_net *net =
		node ? c->policy->tenants[c->tree->nodes[node].tenant].net : NULL;

	return net ? &net->share[level][dir] : &none;
}

double brokers_link(const struct brokers_config *c, int dir)
{
	double link = c->policy->network->capacity[dir], least = link;

	for (size_t i = 0; i < c->tree->n; i++)
		least = fmin(
			least, policy_net_bounded(brokers_share(c, i, POLICY_NET_RACK, dir), link));
	return least;
}

static void fill_services(const struct brokers_config *c, int dir, struct parley_service *s)
{
	s[0] = (struct parley_service){0, INFINITY, 1, 0, INFINITY, 1, -1};
	for (size_t i = 1; i < c->tree->n; i++) {
		policy_net_service(c->policy, c->tree->nodes[i].tenant, POLICY_NET_RACK,
			(enum policy_net_dir)dir, &s[i]);
		s[i].parent = c->tree->nodes[i].parent ? c->tree->nodes[i].parent : -1;
	}
}

static int refuse_twins(const struct brokers_config *c, const uint32_t *ids, struct weir_err *err)
{
	for (size_t i = 0; i < c->tree->n; i++)
		for (size_t k = 0; k < i; k++)
			if (ids[i] == ids[k])
				return weir_err_set(err, -EINVAL,
					"services '%s' and '%s' have the same number in messages; "
					"rename one",
					c->tree->nodes[k].path, c->tree->nodes[i].path);
	return -EINVAL;
}

static int make_rack(
	const struct brokers_config *c, size_t own, struct rack **ret, struct weir_err *err)
{
	size_t n = c->tree->n;
	struct parley_service *s = calloc(SHAPE_DIRS * n, sizeof(*s));
	uint32_t *ids = calloc(n, sizeof(*ids));
	struct rack_config config = {.ids = ids,
		.services = {s, s + n},
		.n_services = n,
		.machines = c->policy->network->n_machines,
		.own = own,
		.nic = c->policy->network->nic > 0 ? c->policy->network->nic : c->nic};
	int r = s && ids ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < n; i++)
		ids[i] = (uint32_t)peer_hash(c->tree->nodes[i].path);
	for (int d = 0; r == 0 && d < SHAPE_DIRS; d++) {
		config.link[d] = brokers_link(c, d);
		fill_services(c, d, s + (size_t)d * n);
	}
	if (r == 0)
		r = rack_new(&config, ret);
	if (r == -EEXIST)
		r = refuse_twins(c, ids, err);
	else if (r)
		r = no_memory(err);
	free(s);
	free(ids);
	return r;
}

/* ---- messages */

void brokers_usage(struct brokers *b, size_t machine, const char *name, const uint64_t *words,
	unsigned n, weir_time now)
{
	struct broker_machine *m = &b->machines[machine];

	memcpy(m->name, name, strlen(name) + 1); /* its length was checked */
	b->claims += rack_hear(b->rack, machine, words, n, now) == RACK_CLAIMS;
}

void brokers_limits(struct brokers *b, const uint64_t *words, unsigned n, weir_time now)
{
	weir_time left = n ? (weir_time)words[0] : 0;

	if (left <= 0 || left > FABRIC_LEFT)
		return;
	b->fabric.until = now + left;
	for (unsigned i = 1; i < n; i++) {
		struct usage u = usage_unpack(words[i]);
		size_t at = rack_find(b->rack, u.service);

		if (at == b->config.tree->n)
			continue;
		rack_fabric(b->rack, RACK_DOWN, at, u.in < USAGE_MAX ? u.in : INFINITY, now + left);
		rack_fabric(b->rack, RACK_UP, at, u.out < USAGE_MAX ? u.out : INFINITY, now + left);
	}
}

static void send_usage(struct brokers *b, size_t n)
{
	for (size_t at = 0; at == 0 || at < n; at += TALK_WORDS)
		talk_usage(b->config.talk, b->words + at,
			(unsigned)(n - at < TALK_WORDS ? n - at : TALK_WORDS));
}

static void on_beat(struct loop_timer *t, weir_time now)
{
	struct brokers *b = container_of(t, struct brokers, beat);

	if (b->said <= TALK_WORDS)
		send_usage(b, rack_beat(b->said));
}

/* ---- rounds */

static void log_rack(const struct brokers *b, enum log_level level, const char *event,
	const char *key, const char *value, const char *why)
{
	log_event(level, event, "rack", b->config.policy->network->rack, key, value, "why", why,
		NULL);
}

/* Log which machines fell silent, and which are back. */
static void look_at_machines(struct brokers *b, weir_time now)
{
	size_t alive = 0;
	bool stale;

	for (size_t i = 0; i < b->n_machines; i++) {
		struct broker_machine *m = &b->machines[i];
		bool is = rack_alive(b->rack, i, now);
		const char *name = m->name[0] ? m->name : b->config.policy->network->machines[i];

		alive += is;
		if (i == b->own || is == m->alive)
			continue;
		m->alive = is;
		if (is)
			log_rack(b, LOG_LEVEL_INFO, "rack-machine", "machine", name, "heard");
		else
			log_rack(b, LOG_LEVEL_WARNING, "rack-silent", "machine", name,
				"no message for 5 s: it counts with its mins");
	}
	stale = alive <= 1 && b->n_machines > 1;
	if (stale != b->stale) {
		char text[24];

		log_rack(b, stale ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
			stale ? "rack-stale" : "rack-fresh", "machines",
			log_number(text, (double)alive),
			stale ? "no other machine is heard for 5 s: the static policy holds"
			      : "others are heard");
	}
	b->stale = stale;
}

static void log_scaled(struct brokers *b, const bool scaled[SHAPE_DIRS])
{
	for (int d = 0; d < SHAPE_DIRS; d++) {
		if (scaled[d] != b->scaled[d])
			log_rack(b, scaled[d] ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
				scaled[d] ? "mins-scaled" : "mins-whole", "link", brokers_links[d],
				scaled[d] ? "the mins in use need more than the link has"
					  : "the link has what the mins need");
		b->scaled[d] = scaled[d];
	}
}

static void divide(struct brokers *b, weir_time now)
{
	size_t n = b->config.tree->n;
	bool scaled[SHAPE_DIRS];

	rack_step(b->rack, now, scaled);
	log_scaled(b, scaled);
	for (size_t k = 0; k < SHAPE_DIRS * n; k++)
		b->caps[k] =
			(struct parley_cap){b->stale ? INFINITY : rack_cap(b->rack, k / n, k % n),
				INFINITY, now + PARLEY_RACK};
}

void brokers_step(struct brokers *b, const double *const usage[SHAPE_DIRS], weir_time now)
{
	b->said = rack_report(b->rack, usage, now, b->words);
	send_usage(b, b->said);
	loop_set(b->config.loop, &b->beat, now + ROUND / 2);
	if (++b->rounds > BROKERS_FIRST)
		look_at_machines(b, now);
	leader_round(b, now);
	divide(b, now);
}

/* ---- what it came to */

double brokers_cap(const struct brokers *b, size_t node, enum shape_dir dir, weir_time now)
{
	return parley_cap_now(&b->caps[(size_t)dir * b->config.tree->n + node], now);
}

/* ---- from start to end */

static int make_arrays(const struct brokers_config *c, uint64_t **ret_words,
	struct parley_cap **ret_caps, struct weir_err *err)
{
	size_t n = c->tree->n;
	uint64_t *words = calloc(n + 1, sizeof(*words));
	struct parley_cap *caps = calloc(SHAPE_DIRS * n + 1, sizeof(*caps));

	if (!words || !caps) {
		free(words);
		free(caps);
		return no_memory(err);
	}
	for (size_t k = 0; k < SHAPE_DIRS * n; k++)
		caps[k] = (struct parley_cap){INFINITY, INFINITY, 0};
	*ret_words = words;
	*ret_caps = caps;
	return 0;
}

static int start(struct brokers *b, struct weir_err *err)
{
	const struct brokers_config *c = &b->config;
	int r;

	b->n_machines = c->policy->network->n_machines;
	b->own = talk_own(c->talk);
	b->machines = calloc(b->n_machines + 1, sizeof(*b->machines));
	if (!b->machines)
		return no_memory(err);
	memcpy(b->machines[b->own].name, talk_name(c->talk), strlen(talk_name(c->talk)) + 1);
	r = make_rack(c, b->own, &b->rack, err);
	r = r ? r : make_arrays(c, &b->words, &b->caps, err);
	return r ? r : leader_open(b, err);
}

int brokers_new(const struct brokers_config *c, struct brokers **ret, struct weir_err *err)
{
	struct brokers *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return no_memory(err);
	*b = (struct brokers){.config = *c, .beat = {.due = on_beat}};
	r = start(b, err);
	if (r) {
		brokers_free(b);
		return r;
	}
	*ret = b;
	return 0;
}

void brokers_free(struct brokers *b)
{
	if (!b)
		return;
	loop_set(b->config.loop, &b->beat, WEIR_NEVER);
	leader_close(b);
	rack_free(b->rack);
	free(b->machines);
	free(b->words);
	free(b->caps);
	free(b);
}

static bool same_rack(const struct policy_network *a, const struct policy_network *b)
{
	if (!same_text(a->rack, b->rack) || !same_text(a->rack_key, b->rack_key) ||
		!same_text(a->machine, b->machine) || !same_text(a->fabric, b->fabric) ||
		!same_text(a->fabric_key, b->fabric_key) || a->n_machines != b->n_machines)
		return false;
	for (size_t i = 0; i < a->n_machines; i++)
		if (strcmp(a->machines[i], b->machines[i]) != 0)
			return false;
	return true;
}

int brokers_policy(struct brokers *b, const struct brokers_config *c, struct weir_err *err)
{
	struct parley_cap *caps;
	struct rack *rack;
	uint64_t *words;
	int r;

	if (!same_rack(b->config.policy->network, c->policy->network))
		return weir_err_at(err, -EINVAL, c->policy->network->rack_at,
			"the rack's name, machines or key differ, or this machine's name, or the "
			"fabric's address or key: this takes a restart");
	r = make_rack(c, b->own, &rack, err);
	if (r)
		return r;
	r = make_arrays(c, &words, &caps, err);
	if (r) {
		rack_free(rack);
		return r;
	}
	rack_adopt(rack, b->rack);
	rack_free(b->rack);
	free(b->words);
	free(b->caps);
	b->rack = rack;
	b->words = words;
	b->caps = caps;
	b->said = 0;
	b->config = *c;
	return leader_policy(b, err);
}
