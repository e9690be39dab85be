/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/shape/impl.h"
#include "base/container.h"
#include "base/no-memory.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TICK   (200 * WEIR_MS) /* between two divisions of the links */
#define SECOND 5               /* ticks, between two beats */
#define SCAN   10              /* ticks, between two looks at all cgroups */
#define NEARLY 0.9             /* of its share: a service that uses so much wants more */

/* ---- a version of the policy */

int shaper_rates(const struct policy_network *n, double *ret, struct weir_err *err)
{
	for (size_t i = 0; i < n->n_devices; i++) {
		const struct policy_device *d = &n->devices[i];
		double driver = tc_link_rate(d->name);

		if (!(d->rate > 0) && !(driver > 0))
			return weir_err_at(err, -EINVAL, d->at,
				"%s: its driver states no rate; state one, as in {name: %s, rate: "
				"10 Gbit/s}",
				d->name, d->name);
		if (driver > 0 && d->rate > driver)
			return weir_err_at(err, -EINVAL, d->at,
				"%s: a rate of %.4g Mbit/s, above the device's %.4g", d->name,
				d->rate * 8e-6, driver * 8e-6);
		ret[i] = d->rate > 0 ? d->rate : driver;
	}
	return 0;
}

/* All devices have headers of one length: return it. */
static int header_of(
	struct tc *t, const struct policy_network *n, unsigned *ret, struct weir_err *err)
{
	struct tc_link l;

	for (size_t i = 0; i < n->n_devices; i++) {
		int r = tc_link(t, n->devices[i].name, &l, err);

		if (r)
			return r;
		if (i && l.header != *ret)
			return weir_err_set(err, -EINVAL,
				"%s: its headers differ from those of %s; such devices need "
				"shapers of "
				"their own, in namespaces of their own",
				l.name, n->devices[0].name);
		*ret = l.header;
	}
	return 0;
}

static void warn_unseen(const struct rules *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->match[i]->cgroup && !r->seen[i])
			log_event(LOG_LEVEL_WARNING, "no-cgroup", "cgroup", r->match[i]->cgroup,
				"why", "there is none yet; it is matched when it appears", NULL);
}

/* Return the port of the fabric's broker, or 0. */
static uint16_t port_of(const struct policy_network *n)
{
	const char *port = n && n->fabric ? strrchr(n->fabric, ':') : NULL;

	return port ? (uint16_t)strtoul(port + 1, NULL, 10) : 0;
}

int shaper_version_new(
	struct shaper *s, struct weir_policy *p, struct shaper_version *ret, struct weir_err *err)
{
	struct program_config c = {.tag = 1 + device_namespace() % 7,
		.tcp = s->options.ssh,
		.udp = s->talk ? talk_port(s->talk) : 0,
		.fabric = port_of(p->network)};
	int r = 0;

	*ret = (struct shaper_version){.policy = p};
	if (!p->network)
		r = weir_err_set(err, -EINVAL,
			"the policy has no 'network', so that there is nothing to shape");
	else if (!p->network->n_devices)
		r = weir_err_at(err, -EINVAL, p->network->at,
			"'network' has no devices, so that there is nothing to shape");
	if (r == 0)
		r = header_of(&s->tc, p->network, &c.header, err);
	if (r == 0)
		r = tree_new(p, &ret->tree, err);
	if (r == 0)
		shaper_plan_lay(s, p, ret->tree);
	if (r == 0 && rules_new(p, ret->tree->of, &ret->rules) < 0)
		r = no_memory(err);
	if (r == 0) {
		c.rules = ret->rules;
		c.nodes = ret->tree->n;
		r = program_new(&c, &ret->program, err);
	}
	if (r == 0)
		r = interfaces_new(ret->rules, ret->program, p->network, &s->state,
			&s->options.guard, &ret->interfaces, err);
	if (r == 0 && ret->rules->cgroups) {
		r = cgroups_new(ret->rules, ret->program, &ret->cgroups, err);
		if (r == 0 && (r = cgroups_scan(ret->cgroups, err)) >= 0) {
			r = 0;
			warn_unseen(ret->rules);
		}
	}
	if (r == 0) {
		ret->use = calloc(ret->tree->n, sizeof(*ret->use));
		ret->queue = calloc(ret->tree->n, sizeof(*ret->queue));
		ret->full = calloc(ret->tree->n, sizeof(*ret->full));
		ret->share = calloc(ret->tree->n, sizeof(*ret->share));
		ret->demand = calloc(ret->tree->n, sizeof(*ret->demand));
		ret->many = calloc(ret->tree->n, sizeof(*ret->many));
		r = ret->use && ret->queue && ret->full && ret->share && ret->demand && ret->many &&
				    limits_arrays(ret) == 0
			    ? 0
			    : no_memory(err);
	}
	if (r)
		shaper_version_free(ret);
	return r;
}

void shaper_version_free(struct shaper_version *v)
{
	cgroups_free(v->cgroups);
	interfaces_free(v->interfaces);
	program_free(v->program);
	rules_free(v->rules);
	tree_free(v->tree);
	receive_free(v->receive);
	free(v->use);
	free(v->queue);
	free(v->full);
	free(v->share);
	free(v->demand);
	free(v->many);
	limits_free(v);
	weir_policy_free(v->policy);
	*v = (struct shaper_version){0};
}

/* ---- devices */

static void free_devices(struct device *d, size_t n)
{
	for (size_t i = 0; i < n; i++)
		device_free(&d[i]);
	free(d);
}

static int find_devices(struct shaper *s, const struct policy_network *n, struct device **ret,
	double *ret_rate, struct weir_err *err)
{
	struct device *d = calloc(n->n_devices, sizeof(*d));
	double *rates = calloc(n->n_devices, sizeof(*rates)), sum = 0;
	int r = d && rates ? shaper_rates(n, rates, err) : no_memory(err);

	for (size_t i = 0; r == 0 && i < n->n_devices; i++)
		sum += rates[i];
	for (size_t i = 0; r == 0 && i < n->n_devices; i++) {
		d[i].name = n->devices[i].name;
		d[i].rate = rates[i];
		d[i].part = rates[i] / sum;
		d[i].open = !(n->devices[i].rate > 0);
		d[i].index = i;
	}
	free(rates);
	if (r) {
		free(d);
		return r;
	}
	*ret = d;
	*ret_rate = sum;
	return 0;
}

/* The mins of services may need more than the devices have whose rates the policy does not state. */
static void warn_scaled(const struct shaper_version *v, double rate)
{
	char have[24], want[24];
	double sum = 0;

	for (size_t i = 1; i < v->tree->n; i++)
		sum += v->tree->nodes[i].parent ? 0 : v->tree->nodes[i].min;
	if (sum * (1 - 1e-9) > rate * v->tree->load)
		log_event(LOG_LEVEL_WARNING, "mins-scaled", "mins_mbit",
			log_number(want, sum * 8e-6), "link_mbit",
			log_number(have, rate * v->tree->load * 8e-6), NULL);
}

/* Divide the link as if all services sent without end, which is what devices begin with; and meter what they receive. */
static int begin_shares(struct shaper_version *v, double rate, struct weir_err *err)
{
	if (tree_shares(v->tree, rate * v->tree->load, NULL, v->full) < 0 ||
		receive_new(v->policy, v->tree, rate, v->policy->network->period, loop_clock(),
			&v->receive) < 0)
		return no_memory(err);
	memcpy(v->share, v->full, v->tree->n * sizeof(*v->full));
	return 0;
}

struct choosing {
	const struct device *devices;
	size_t n;
};

/* All devices have the same slots. */
static enum tree_slot slot_state(
	void *arg, uint16_t slot, uint16_t above, const struct tree_node *n)
{
	const struct choosing *c = arg;
	enum tree_slot worst = TREE_FREE;

	for (size_t i = 0; i < c->n; i++) {
		enum tree_slot is = device_slot(&c->devices[i], slot, above, n);

		worst = is > worst ? is : worst;
	}
	return worst;
}

/* Choose the classes of a version's services, given what devices have. before: the version in force, NULL: none. */
static int choose_slots(struct shaper *s, struct shaper_version *v, const struct tree *before,
	struct device *d, size_t n, struct weir_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = device_look(&d[i], &s->tc, err);
	if (r == 0) {
		tree_slots(v->tree, before, slot_state, &(struct choosing){d, n});
		program_slots(v->program, v->tree);
	}
	return r;
}

static int take_devices(struct shaper *s, struct shaper_version *v, struct device *d, size_t n,
	struct weir_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = device_take(
			&d[i], &s->tc, v->tree, v->program, &s->state, &s->options.guard, err);
	return r;
}

/* ---- each tick */

/* A new program knows no leaf. Rates are told again at once. */
void shaper_adopt_leaves(struct shaper *s)
{
	struct leaves_on on = shaper_leaves_on(s);

	leaves_adopt(&s->leaves, &on);
}

/* Divide the links by what services want now. */
static void divide(struct shaper *s)
{
	struct shaper_version *v = &s->now;
	struct weir_err err;
	int r;

	for (size_t i = 0; i < v->tree->n; i++) {
		double rate = v->use[i][SHAPE_OUT].rate;
		bool more = v->queue[i].queued || v->queue[i].dropped > v->queue[i].before ||
			    rate > NEARLY * v->share[i];

		v->demand[i] = more ? INFINITY : rate;
		v->many[i] = v->queue[i].many > v->queue[i].many_before ? v->queue[i].many
									: v->queue[i].many_before;
	}
	r = tree_shares(v->tree, s->rate * v->tree->load, v->demand, v->share);
	for (size_t i = 0; r == 0 && i < v->tree->n; i++) /* a small demand is no limit */
		if (v->tree->nodes[i].leaf && v->demand[i] < INFINITY)
			v->share[i] = fmax(v->share[i], v->full[i]);
	for (size_t i = 0; r == 0 && i < s->n_devices; i++)
		if (!s->devices[i].lost && device_share(&s->devices[i], &s->tc, v->tree, v->share,
						   v->many, v->cap[SHAPE_OUT], &err) < 0)
			log_event(LOG_LEVEL_ERROR, "shares", "device", s->devices[i].name, "why",
				err.text, NULL);
}

static void on_tick(struct loop_timer *t, weir_time now)
{
	struct shaper *s = container_of(t, struct shaper, tick);

	shaper_look_queues(s, now);
	shaper_look_counts(s, now);
	limits_tick(s, now, ++s->ticks % SECOND == 0);
	divide(s);
	shaper_retire(s);
	if (s->ticks % SECOND == 0) {
		program_beat(s->now.program, (uint64_t)loop_refresh(s->loop));
		if (s->talk) /* that others know this machine before it tells them rates */
			talk_usage(s->talk, NULL, 0);
		shaper_look_devices(s);
		shaper_set_end(s);
	}
	if (s->ticks % SCAN == 0)
		shaper_scan(s);
	loop_set(s->loop, t, now + TICK);
}

/* ---- another version */

/* Return true if messages go to the same machines as before. */
static bool same_rack(const struct policy_network *a, const struct policy_network *b)
{
	if (!a->rack || !b->rack)
		return !a->rack == !b->rack;
	if (a->n_machines != b->n_machines || strcmp(a->rack_key, b->rack_key) != 0)
		return false;
	for (size_t i = 0; i < a->n_machines; i++)
		if (strcmp(a->machines[i], b->machines[i]) != 0)
			return false;
	return true;
}

/* Its devices must be those of before. */
int shaper_change_to(struct shaper *s, struct weir_policy *p, struct weir_err *err)
{
	struct shaper_version v;
	struct device *d;
	double rate;
	int r = shaper_version_new(s, p, &v, err);

	if (r)
		return r;
	r = find_devices(s, v.policy->network, &d, &rate, err);
	if (r) {
		shaper_version_free(&v);
		return r;
	}
	if (v.policy->network->n_devices != s->n_devices)
		r = weir_err_set(err, -EINVAL, "the devices differ: this takes a restart");
	if (r == 0 && !same_rack(v.policy->network, s->now.policy->network))
		r = weir_err_set(err, -EINVAL,
			"the rack's machines or its key differ: this takes a restart");
	for (size_t i = 0; r == 0 && i < s->n_devices; i++)
		if (strcmp(d[i].name, s->devices[i].name) != 0)
			r = weir_err_set(err, -EINVAL, "the devices differ: this takes a restart");
	if (r == 0)
		r = choose_slots(s, &v, s->now.tree, d, s->n_devices, err);
	program_beat(v.program, (uint64_t)loop_refresh(s->loop));
	if (r == 0)
		r = begin_shares(&v, rate, err);
	if (r == 0)
		r = limits_change(s, &v, rate, err);
	if (r == 0)
		r = take_devices(s, &v, d, s->n_devices, err);
	if (r) {
		struct weir_err again;

		limits_change(s, &s->now, s->rate, &again);
		for (size_t i = 0; i < s->n_devices; i++)
			shaper_take_again(s, &s->devices[i], &again);
		shaper_adopt_leaves(s);
		free_devices(d, s->n_devices);
		shaper_version_free(&v);
		return r;
	}
	free_devices(s->devices, s->n_devices);
	s->devices = d;
	s->rate = rate;
	shaper_version_free(&s->now);
	s->now = v;
	shaper_adopt_leaves(s);
	warn_scaled(&s->now, rate);
	shaper_scan(s);
	return 0;
}

/* Read the policy again. */
static int change(struct shaper *s, struct weir_err *err)
{
	struct weir_policy *base, *p;
	char digest[SHAPER_DIGEST], was[SHAPER_DIGEST];
	int r = s->options.reread ? s->options.reread(s->options.reread_arg, &base, digest, err)
				  : -ENOTSUP;

	if (r)
		return r;
	memcpy(was, s->digest, sizeof(was));
	memcpy(s->digest, digest, sizeof(digest));
	r = shaper_set_lay(s, base, &p, err);
	if (r == 0)
		r = shaper_change_to(s, p, err);
	if (r) {
		memcpy(s->digest, was, sizeof(was));
		weir_policy_free(base);
		return r;
	}
	weir_policy_free(s->base);
	s->base = base;
	return 0;
}

static void on_reload(void *arg)
{
	struct weir_err err;
	int r = change(arg, &err);

	if (r)
		log_event(LOG_LEVEL_ERROR, "policy-refused", "why", err.text, NULL);
	else
		log_event(LOG_LEVEL_INFO, "policy", "state", "in force", NULL);
}

static void on_stop(void *arg)
{
	loop_stop(((struct shaper *)arg)->loop);
}

/* ---- from start to end */

/* A machine alone, without a rack, has no key: it tells no sender anything, and is told nothing. */
static int open_talk(struct shaper *s, const struct weir_policy *p, struct weir_err *err)
{
	struct talk_config c = {.loop = s->loop,
		.network = p->network,
		.feedback = shaper_feedback_hear,
		.usage = limits_usage,
		.limits = limits_fabric,
		.arg = s};
	char host[PEER_NAME_MAX + 1] = "";

	if (!p->network || !p->network->rack)
		return 0;
	gethostname(host, sizeof(host) - 1);
	c.machine = p->network->machine ? p->network->machine : host;
	return talk_new(&c, &s->talk, err);
}

static int start(struct shaper *s, struct weir_policy *p, struct weir_err *err)
{
	unsigned n;
	int r = tc_open(&s->tc, err);

	s->base = p;
	memcpy(s->digest, s->options.digest, sizeof(s->digest));
	if (r == 0)
		r = device_state_open(s->options.state, &s->state, err);
	if (r == 0 && (r = loop_new(&s->loop)))
		weir_err_set(err, r, "the event loop: %s", strerror(-r));
	if (r == 0)
		r = shaper_feedback_new(s, err);
	if (r == 0)
		r = open_talk(s, p, err);
	if (r == 0)
		r = shaper_set_load(s, err);
	if (r == 0)
		r = shaper_plan_load(s, err);
	if (r == 0)
		r = shaper_set_lay(s, s->base, &p, err);
	if (r == 0)
		r = shaper_version_new(s, p, &s->now, err);
	if (r)
		return r;
	r = find_devices(s, s->now.policy->network, &s->devices, &s->rate, err);
	if (r)
		return r;
	s->n_devices = s->now.policy->network->n_devices;
	r = choose_slots(s, &s->now, NULL, s->devices, s->n_devices, err);
	if (r == 0)
		r = begin_shares(&s->now, s->rate, err);
	if (r)
		return r;
	r = limits_start(s, err);
	if (r == 0)
		r = shaper_api_start(s, err);
	program_beat(s->now.program, (uint64_t)loop_clock());
	if (r == 0 && (r = take_devices(s, &s->now, s->devices, s->n_devices, err)))
		device_restore(&s->tc, &s->state, &n, NULL);
	if (r == 0) {
		shaper_adopt_leaves(s);
		warn_scaled(&s->now, s->rate);
		shaper_scan(s);
	}
	s->ready = r == 0;
	return r;
}

int shaper_new(struct weir_policy *p, const struct shaper_options *o, struct shaper **ret,
	struct weir_err *err)
{
	struct shaper *s = calloc(1, sizeof(*s));
	int r;

	if (!s) {
		weir_policy_free(p);
		return no_memory(err);
	}
	*s = (struct shaper){.options = *o, .state.lock = -1, .daemon.signals.fd = -1};
	r = start(s, p, err);
	if (r) {
		shaper_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

int shaper_run(struct shaper *s, void (*ready)(void *arg), void *arg)
{
	int r;

	s->daemon.loop = s->loop;
	s->daemon.stop = on_stop;
	s->daemon.reload = on_reload;
	s->daemon.arg = s;
	r = daemon_start(&s->daemon);
	if (r < 0)
		return r;
	s->tick.due = on_tick;
	s->began = s->looked = loop_clock();
	r = loop_set(s->loop, &s->tick, s->began + TICK);
	if (r == 0)
		r = shaper_feedback_start(s, s->began);
	if (r == 0) {
		daemon_ready(&s->daemon);
		ready(arg);
		log_event(LOG_LEVEL_INFO, "shaping", "device", s->devices[0].name, NULL);
		r = loop_run(s->loop);
	}
	loop_set(s->loop, &s->tick, WEIR_NEVER);
	loop_set(s->loop, &s->meter, WEIR_NEVER);
	daemon_end(&s->daemon);
	return r;
}

void shaper_free(struct shaper *s)
{
	if (!s)
		return;
	if (s->now.program)
		program_beat(s->now.program, 0); /* static from now on */
	http_free(s->http);
	brokers_free(s->brokers);
	talk_free(s->talk);
	shaper_feedback_free(s);
	loop_free(s->loop);
	shaper_version_free(&s->now);
	weir_policy_free(s->base);
	shaper_set_free(s);
	shaper_plan_free(s);
	free_devices(s->devices, s->n_devices);
	if (s->state.lock >= 0)
		device_state_close(&s->state);
	tc_close(&s->tc);
	free(s);
}
