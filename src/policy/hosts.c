/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hosts: the keys of a host that shares a resource with others: whom it tells how it fares, and what
 * moves its window there.
 */
#include "control/parda/parda.h"
#include "policy/impl.h"
#include "wire/peer.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const peers_keys[] = {"to", "listen", "key", "cluster", "host", "period", NULL};
static const char *const controllers[] = {
	"none", "parda", "adaptbf", "tbf", "pshift", NULL}; /* enum weir_controller */
static const char *const parda_keys[] = {"array", "threshold_max", "gamma", "epsilon", "wmin",
	"wmax", "estimate", "smoothing", "alpha", "tau", "age", "size_fixed", "slot", "start",
	"stranger", "idle", "burst", "probe", NULL};
static const char *const estimates[] = {"aggregated", "local", NULL};
static const char *const strangers[] = {"floor", "ignore", NULL};
static const char *const starts[] = {"least", "depth", NULL};
static const char *const smoothings[] = {"time", "io", "interval", NULL}; /* enum parda_smoothing */
static const char *const idles[] = {"average", "literal", "ignore", NULL}; /* enum parda_idle */

#define PERIOD        (2 * WEIR_SEC)  /* PARDA's; much less is noise */
#define SLOT          (16u << 10)     /* bytes: with `cost: bytes`; the paper's example (§2) */
#define THRESHOLD_MAX (100 * WEIR_MS) /* where it is to be found: what people still put up with */

/* ---- peers */

/* One address or a list. Whether they can be used is for who opens them to say. */
static void read_to(struct policy_reading *r, yamldoc_node n)
{
	struct weir_policy_peers *to = &r->policy->peers;
	bool several = yamldoc_kind(n) == YAMLDOC_LIST;
	size_t many = several ? yamldoc_size(n) : 1;

	if (!n.id || !many)
		return;
	to->to = calloc(many, sizeof(*to->to));
	to->to_at = calloc(many, sizeof(*to->to_at));
	if (!to->to || !to->to_at) {
		r->no_memory = true;
		return;
	}
	for (size_t i = 0; i < many; i++) {
		yamldoc_node one = several ? yamldoc_at(n, i) : n;
		const char *text = yamldoc_text(one);

		if (!text || !strchr(text, ':'))
			policy_refuse(
				r, one, "must be an address, as in udp:HOST:PORT or file:PATH");
		else if ((to->to[to->n_to] = policy_string(r, text)))
			to->to_at[to->n_to++] = policy_place(r, one);
	}
}

void policy_hosts_read(struct policy_reading *r, yamldoc_node root)
{
	struct weir_policy_peers *to = &r->policy->peers;
	yamldoc_node n = yamldoc_get(root, "peers");
	struct weir_err err;

	to->period = PERIOD;
	if (n.id && yamldoc_kind(n) != YAMLDOC_MAP) {
		read_to(r, n);
		return;
	}
	if (!n.id || !policy_keys(r, n, peers_keys))
		return;
	read_to(r, yamldoc_get(n, "to"));
	to->listen = policy_get_string(r, n, "listen");
	to->listen_at = policy_place(r, yamldoc_get(n, "listen"));
	to->key = policy_get_string(r, n, "key");
	to->cluster = policy_get_string(r, n, "cluster");
	to->host = policy_get_string(r, n, "host");
	if (to->host && peer_name_check(to->host) < 0)
		policy_refuse(r, yamldoc_get(n, "host"),
			"must be a name of 1 to %d bytes, without spaces", PEER_NAME_MAX);
	if (policy_took(r, yamldoc_time(n, "period", &to->period, &err), &err) == 0 &&
		(to->period < 100 * WEIR_MS || to->period > 60 * WEIR_SEC))
		policy_refuse(r, yamldoc_get(n, "period"), "must be from 100 ms to 60 s");
}

/* ---- the controller */

static void read_bounds(struct policy_reading *r, yamldoc_node n, struct weir_policy_parda *to)
{
	struct weir_err err;

	policy_took(r, yamldoc_count(n, "gamma", &to->gamma, &err), &err);
	if (!(to->gamma > 0 && to->gamma <= 1))
		policy_refuse(r, yamldoc_get(n, "gamma"), "must be more than 0 and at most 1");
	policy_took(r, yamldoc_count(n, "epsilon", &to->epsilon, &err), &err);
	if (!(to->epsilon <= 10))
		policy_refuse(r, yamldoc_get(n, "epsilon"), "must be at most 10");
	policy_took(r, yamldoc_count(n, "wmin", &to->wmin, &err), &err);
	policy_took(r, yamldoc_count(n, "wmax", &to->wmax, &err), &err);
	if (!(to->wmax >= 1 && to->wmax <= 65536))
		policy_refuse(r, yamldoc_get(n, "wmax"), "must be from 1 to 65536");
	if (!(to->wmin > 0 && to->wmin <= to->wmax))
		policy_refuse(r, yamldoc_get(n, "wmin"), "must be more than 0, and at most wmax");
}

/* What a slot stands for is asked only where bytes are shared. */
static void read_slot(struct policy_reading *r, yamldoc_node n, struct weir_policy_parda *to)
{
	yamldoc_node slot = yamldoc_get(n, "slot");
	struct weir_err err;

	if (slot.id && !to->slot)
		policy_refuse(r, slot, "is for 'cost: bytes'");
	else if (policy_took(r, yamldoc_size_of(n, "slot", &to->slot, &err), &err) == 0 &&
		 (to->slot < 512 || to->slot > 32u << 20))
		policy_refuse(r, slot, "must be from 512 bytes to 32 MiB");
}

static void read_parda(struct policy_reading *r, yamldoc_node n, struct weir_policy_parda *to)
{
	int estimate = 0, smoothing = PARDA_BY_TIME, start = 0, stranger = 0;
	struct weir_err err;
	int64_t age = 0;

	if (!n.id || !policy_keys(r, n, parda_keys))
		return;
	read_bounds(r, n, to);
	if (yamldoc_get(n, "threshold_max").id && !to->find)
		policy_refuse(r, yamldoc_get(n, "threshold_max"), "is for 'threshold: auto'");
	else if (policy_took(r, yamldoc_time(n, "threshold_max", &to->threshold, &err), &err) ==
			 0 &&
		 to->threshold <= 0)
		policy_refuse(r, yamldoc_get(n, "threshold_max"), "must be more than 0");
	if (yamldoc_get(n, "array").id)
		to->array = policy_get_string(r, n, "array");
	policy_took(r, yamldoc_choice(n, "estimate", estimates, &estimate, &err), &err);
	policy_took(r, yamldoc_choice(n, "smoothing", smoothings, &smoothing, &err), &err);
	policy_took(r, yamldoc_choice(n, "start", starts, &start, &err), &err);
	to->abrupt = start == 1;
	policy_took(r, yamldoc_choice(n, "stranger", strangers, &stranger, &err), &err);
	to->no_floor = stranger == 1;
	to->local = estimate == 1;
	to->smoothing = smoothing;
	policy_took(r, yamldoc_choice(n, "idle", idles, &to->idle, &err), &err);
	policy_took(r, yamldoc_time(n, "burst", &to->burst, &err), &err);
	if (to->burst > PARDA_BURST_MOST)
		policy_refuse(r, yamldoc_get(n, "burst"), "must be at most an hour");
	policy_took(r, yamldoc_bool(n, "probe", &to->probe, &err), &err);
	if (to->probe && !to->find)
		policy_refuse(r, yamldoc_get(n, "probe"), "is for 'threshold: auto'");
	policy_took(r, yamldoc_count(n, "alpha", &to->alpha, &err), &err);
	if (!(to->alpha <= 1))
		policy_refuse(r, yamldoc_get(n, "alpha"), "must be at most 1");
	policy_took(r, yamldoc_time(n, "tau", &to->tau, &err), &err);
	policy_took(r, yamldoc_int(n, "age", 1, 1000, &age, &err), &err);
	to->age = (unsigned)age;
	policy_took(r, yamldoc_size_of(n, "size_fixed", &to->size_fixed, &err), &err);
	read_slot(r, n, to);
}

static void read_threshold(struct policy_reading *r, yamldoc_node n, struct weir_policy_parda *to)
{
	const char *text = yamldoc_text(yamldoc_get(n, "threshold"));
	struct weir_err err;

	to->find = text && strcmp(text, "auto") == 0;
	if (to->find)
		to->threshold = THRESHOLD_MAX;
	else if (policy_took(r, yamldoc_time(n, "threshold", &to->threshold, &err), &err) == 0 &&
		 to->threshold <= 0)
		policy_refuse(r, yamldoc_get(n, "threshold"), "must be more than 0, or auto");
}

void policy_hosts_read_resource(struct policy_reading *r, yamldoc_node n, struct weir_resource *to)
{
	struct weir_policy_parda *parda = &to->parda;
	int controller = WEIR_CONTROLLER_NONE;
	struct weir_err err;
	int rc;

	*parda = (struct weir_policy_parda){.array = to->name,
		.gamma = 0.8,
		.epsilon = 0.2,
		.wmin = 1,
		.wmax = 64,
		.burst = PARDA_BURST,
		.slot = to->cost == WEIR_UNIT_BYTES ? SLOT : 0};
	rc = policy_took(r, yamldoc_choice(n, "controller", controllers, &controller, &err), &err);
	if (rc && (rc != -ENOENT || yamldoc_has(n, "controller")))
		return;
	to->controller = (enum weir_controller)controller;
	read_threshold(r, n, parda);
	read_parda(r, yamldoc_get(n, "parda"), parda);
	if (to->controller == WEIR_CONTROLLER_PARDA && !yamldoc_has(n, "threshold"))
		policy_refuse(r, n,
			"controller parda needs a threshold, as in 'threshold: 25ms' or 'auto'");
	if (to->controller != WEIR_CONTROLLER_PARDA &&
		(yamldoc_get(n, "threshold").id || yamldoc_get(n, "parda").id))
		policy_refuse(r, n, "threshold and parda are for 'controller: parda'");
}

double weir_policy_shares(const struct weir_policy *p, size_t leaf)
{
	const struct weir_tenant *t = &p->tenants[leaf];
	double shares = 1;

	for (; t->parent >= 0; t = &p->tenants[t->parent]) {
		double all = 0;

		for (int i = p->tenants[t->parent].first_child; i >= 0;
			i = p->tenants[i].next_sibling)
			all += p->tenants[i].weight;
		shares *= t->weight / all;
	}
	return shares * t->weight;
}
