/* SPDX-License-Identifier: BSD-3-Clause */
/* agent: start, change and end of a host's controllers; agent-step.c is what they do. */
#include "base/no-memory.h"
#include "base/container.h"
#include "control/parda/facts.h"
#include "control/parda/message.h"
#include "serve/host/agent-impl.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAREWELL                                                                                   \
	WEIR_SEC /* ns: for a shared file that is slow; a host that is gone ages out anyway */

/* ---- the seats */

static void seat_clear(struct agent_seat *s)
{
	parda_free(s->parda);
	free(s->now);
	free(s->was);
	free(s->vms);
	s->parda = NULL;
	s->now = s->was = NULL;
	s->vms = NULL;
}

/* Return true if the settings differ in nothing but the law and the credit. */
static bool same(const struct parda_settings *a, const struct parda_settings *b)
{
	struct parda_settings like = *b;

	like.threshold = a->threshold;
	like.threshold_max = a->threshold_max;
	like.gamma = a->gamma;
	like.wmin = a->wmin;
	like.wmax = a->wmax;
	return memcmp(a, &like, sizeof(like)) == 0;
}

/* Seats are seen to in their order, so that those before this one have their array already. */
static uint64_t number_of(const struct agent_seat *s, const char *array)
{
	uint64_t n = 0;

	for (const struct agent_seat *other = s->agent->seats; other < s; other++)
		n += other->parda && strcmp(other->config.array, array) == 0;
	return n;
}

/* Slots to begin with: what the gate has, where a controller of the same kind has set it before; 0: as a host that
 * starts. */
static double begin_at(const struct agent_seat *s, const struct weir_resource *spec)
{
	const struct parda_settings *c = spec->settings;
	double wmax = c->wmax;

	if (s->parda)
		return s->last.report.window;
	if (!c->start)
		return 0;
	return spec->depth > 0 && spec->depth < wmax ? spec->depth : wmax;
}

/* The controller goes on where only its law is another; else it begins anew, with the window that it has. */
static int seat_controller(struct agent_seat *s, const struct weir_resource *spec)
{
	const struct parda_settings *c = spec->settings;
	const struct agent *a = s->agent;
	uint64_t number = number_of(s, c->array);
	struct parda_config config = parda_settings_config(c, a->period);
	struct parda *made;
	int r = 0;

	config.id = parda_message_id(a->host, number);
	config.instance = a->instance;
	config.window = begin_at(s, spec);
	if (s->parda && same(&s->config, c) && s->number == number) {
		parda_renumber(s->parda); /* tenants of another policy */
		r = parda_set_law(s->parda, &config.law);
	} else {
		r = parda_new(&config, &made);
		if (r == 0) {
			parda_free(s->parda);
			s->parda = made;
			s->steps = 0;
			s->last = (struct parda_decision){.window = parda_start_window(made)};
		}
	}
	if (r < 0)
		return r;
	if (c->wmax != s->config.wmax || c->threshold != s->config.threshold)
		s->said_too_low = s->said_wmax = s->said_unreachable = false;
	s->config = *c;
	s->hash = peer_hash(s->config.array);
	s->number = number;
	return 0;
}

static int seat_room(struct agent_seat *s, const struct weir_policy *p)
{
	size_t n = p->n_tenants + 1;

	free(s->now);
	free(s->was);
	free(s->vms);
	s->now = calloc(n, sizeof(*s->now));
	s->was = calloc(n, sizeof(*s->was));
	s->vms = calloc(n, sizeof(*s->vms));
	s->policy = p;
	s->n = p->n_tenants;
	s->fresh = false;
	return s->now && s->was && s->vms ? 0 : -ENOMEM;
}

/* No task of the seat's is on the resource's thread: what was sent before a swap has run. */
static int seat_policy(struct agent_seat *s, const struct weir_policy *p)
{
	const struct weir_resource *spec = NULL;
	int r;

	for (size_t i = 0; i < p->n_resources; i++)
		if (strcmp(p->resources[i].name, s->resource->name) == 0)
			spec = &p->resources[i];
	if (!spec || spec->controller != &parda_controller) {
		seat_clear(s);
		return 0;
	}
	r = seat_room(s, p);
	if (r == 0)
		r = seat_controller(s, spec);
	if (r < 0)
		seat_clear(s);
	return r;
}

static bool is_wanted(const struct weir_policy *p)
{
	bool wanted = p->peers.n_to > 0;

	for (size_t i = 0; i < p->n_resources; i++)
		wanted |= p->resources[i].controller == &parda_controller;
	return wanted;
}

/* A controller that begins says at once how many may be inside: the depth might be a flood. */
static bool sets_window(const struct agent_seat *s)
{
	return s->parda && !s->steps && !s->config.start && s->policy->enforce;
}

void agent_policy(struct gateway *g)
{
	struct agent *a = g->agent;

	if (!a)
		return;
	a->serial++;
	for (size_t i = 0; i < a->n_seats; i++) {
		int r = seat_policy(&a->seats[i], g->policy);

		if (r < 0)
			log_event(LOG_LEVEL_ERROR, "controller", "resource",
				a->seats[i].resource->name, "why", strerror(-r), NULL);
		else if (sets_window(&a->seats[i]))
			agent_send(&a->seats[i], AGENT_SET);
	}
	agent_probe_wake(a);
}

static bool differ(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) != 0 : a != b;
}

int agent_fits(const struct gateway *g, const struct weir_policy *p, struct weir_err *err)
{
	const struct weir_policy_peers *is = &g->policy->peers, *be = &p->peers;
	bool other = is->n_to != be->n_to || is->period != be->period;

	if (!g->agent) /* it is started for who has use for it */
		other = is_wanted(p);
	else
		other |= differ(is->listen, be->listen) || differ(is->key, be->key) ||
			 differ(is->cluster, be->cluster) || differ(is->host, be->host);
	for (size_t i = 0; i < is->n_to && !other; i++)
		other = differ(is->to[i], be->to[i]);
	return other ? weir_err_set(err, -EINVAL,
			       "other peers, or the first controller: that takes a restart")
		     : 0;
}

/* ---- start */

static int open_peers(struct agent *a, const char *host, struct weir_err *err)
{
	const struct weir_policy_peers *p = &a->gateway->policy->peers;
	const char **to = calloc(p->n_to + 1, sizeof(*to)); /* ends with NULL */
	struct peer_config c = {.loop = a->gateway->loop,
		.addresses = to,
		.listen = p->listen,
		.name = host,
		.cluster = p->cluster,
		.key = p->key,
		.receive = agent_receive,
		.arg = a};
	int r;

	if (!to)
		return no_memory(err);
	memcpy(to, p->to, p->n_to * sizeof(*to));
	r = peer_open(&c, &a->peers, err);
	free(to);
	if (r == 0)
		a->instance = peer_instance(a->peers);
	return r;
}

static int who_we_are(struct agent *a, struct weir_err *err)
{
	const struct weir_policy_peers *p = &a->gateway->policy->peers;
	char host[HOST_NAME_MAX + 1] = "";
	const char *name = p->host ? p->host : host;

	gethostname(host, HOST_NAME_MAX);
	/* Alone, any name and instance will do; a name that is too long for peers is refused with them. */
	snprintf(a->host, sizeof(a->host), "%.*s", PEER_NAME_MAX, name);
	a->instance = 1;
	return p->n_to ? open_peers(a, name, err) : 0;
}

static int fill_seats(struct agent *a, struct weir_err *err)
{
	struct gateway *g = a->gateway;

	a->seats = calloc(g->n_resources, sizeof(*a->seats));
	if (!a->seats)
		return no_memory(err);
	for (; a->n_seats < g->n_resources; a->n_seats++) {
		struct agent_seat *s = &a->seats[a->n_seats];
		int r;

		*s = (struct agent_seat){.there = {.run = agent_seat_there},
			.back = {.run = agent_seat_back},
			.agent = a,
			.resource = &g->resources[a->n_seats]};
		agent_probe_init(s);
		r = seat_policy(s, g->policy);
		if (r < 0)
			return weir_err_set(
				err, r, "resource '%s': %s", s->resource->name, strerror(-r));
	}
	return 0;
}

static int set_window(void *arg, struct gateway_resource *r)
{
	const struct agent *a = arg;
	const struct agent_seat *s = &a->seats[r - a->gateway->resources];

	if (sets_window(s))
		resource_window(r->resource, s->last.window);
	return 0;
}

int agent_start(struct gateway *g, struct weir_err *err)
{
	struct agent *a;
	int r;

	if (g->options.bare || !is_wanted(g->policy))
		return 0;
	a = calloc(1, sizeof(*a));
	if (!a)
		return no_memory(err);
	g->agent = a;
	a->gateway = g;
	a->period = g->policy->peers.period ? g->policy->peers.period : 2 * WEIR_SEC;
	a->timer.due = agent_tick;
	a->probe_timer.due = agent_probe_tick;
	r = who_we_are(a, err);
	if (r == 0)
		r = fill_seats(a, err);
	if (r == 0) /* before a client is let in */
		r = gateway_each(g, set_window, a, NULL);
	if (r == 0) /* the first look; what it measures counts from there */
		r = loop_set(g->loop, &a->timer, loop_clock());
	if (r == 0)
		agent_probe_wake(a);
	return r;
}

/* ---- the end */

static void closed(void *arg)
{
	struct agent *a = arg;

	a->closed = true;
	a->peers = NULL;
	loop_stop(a->gateway->loop);
}

static void give_up(struct loop_timer *t, weir_time now)
{
	struct agent *a = container_of(t, struct agent, timer);

	a->given_up = true;
	loop_stop(a->gateway->loop);
}

void agent_stop(struct gateway *g)
{
	struct agent *a = g->agent;

	if (!a)
		return;
	loop_set(g->loop, &a->timer, WEIR_NEVER);
	loop_set(g->loop, &a->probe_timer, WEIR_NEVER);
	a->serial++; /* what comes back from now on is not looked at */
	a->told = true;
	if (a->n_away || a->n_probing)
		gateway_settle(g);
	if (a->peers) {
		a->timer.due = give_up;
		loop_set(g->loop, &a->timer, loop_clock() + FAREWELL);
		peer_close(a->peers, closed, a);
		while (!a->closed && !a->given_up && loop_run(g->loop) == 0)
			; /* others may stop it as well */
		loop_set(g->loop, &a->timer, WEIR_NEVER);
	}
	g->agent = NULL;
	if (a->peers ||
		a->n_probing) /* their storage gives nothing back: left behind, since it may yet */
		return;
	for (size_t i = 0; i < a->n_seats; i++) {
		seat_clear(&a->seats[i]);
		resource_probe_free(&a->seats[i].probe.reads);
	}
	free(a->seats);
	free(a);
}

/* ---- look */

void agent_look(
	const struct gateway *g, size_t resource, const struct facts_site *site, struct facts *ret)
{
	const struct agent_seat *s = g->agent ? &g->agent->seats[resource] : NULL;

	struct parda_facts_of of;

	if (!s || !s->parda)
		return;
	of = (struct parda_facts_of){.parda = s->parda, .last = &s->last, .held = s->held_then};
	parda_facts.fill(&of, site, ret);
}

bool agent_peers(const struct gateway *g, struct peer_stats *ret)
{
	if (!g->agent || !g->agent->peers)
		return false;
	peer_stats(g->agent->peers, ret);
	return true;
}
