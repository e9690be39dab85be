/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/container.h"
#include "base/no-memory.h"
#include "base/same.h"
#include "serve/host/cluster.h"
#include "policy/impl.h"
#include "serve/host/cluster-kept.h"
#include "serve/host/cluster-plan.h"
#include "control/controller.h"
#include "serve/gateway/impl.h"
#include "serve/lease/lease-link.h"
#include "serve/resource/control.h"
#include "serve/host/control.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* Most frames of one server on their way to the main thread. If that is delayed, later frames are
 * dropped, which the protocol allows. */
#define UNDER_WAY 16
#define RETRIES   10 /* attempts to connect, a period */

struct server_link { /* to one controller */
	struct cluster_member *server;
	struct lease_link *link;
	uint64_t controller; /* the last instance heard of that controller */
};

struct cluster_member { /* one resource's */
	struct cluster *cluster;
	struct gateway_resource *resource;
	struct server_link *links; /* one a controller */
	struct lease_message message;
	atomic_uint under_way;
	uint64_t instance; /* of its connections; the server has its own */
};

struct cluster {
	struct gateway *gateway;
	struct peer_key key;
	struct lease_conn_stats stats;
	size_t n_links; /* of each server: to controllers, then to those that may stand in */
	struct control *stand_ins[CLUSTER_STAND_INS]; /* servers of this gateway; NULL: none */
	struct gateway_version *version;              /* that they read, or have read */
	struct cluster_plan *plan;
	struct cluster_kept *kept;
};

/* ---- from a resource's thread to the controllers */

struct outgoing {
	struct loop_task task; /* first */
	struct cluster_member *server;
	uint8_t *frame;
	size_t n;
};

static void send_all(struct loop_task *t)
{
	struct outgoing *o = (struct outgoing *)(void *)t;
	struct cluster_member *s = o->server;

	for (size_t i = 0; s->links && i < s->cluster->n_links; i++)
		if (s->links[i].link)
			lease_link_send(s->links[i].link, o->frame, o->n);
	atomic_fetch_sub(&s->under_way, 1);
	free(o->frame);
	free(o);
}

static void post(void *arg, uint8_t *frame, size_t n)
{
	struct cluster_member *s = arg;
	struct outgoing *o = atomic_load(&s->under_way) < UNDER_WAY ? malloc(sizeof(*o)) : NULL;

	if (!o) {
		free(frame);
		return;
	}
	*o = (struct outgoing){.task = {.run = send_all}, .server = s, .frame = frame, .n = n};
	atomic_fetch_add(&s->under_way, 1);
	loop_post(s->cluster->gateway->loop, &o->task);
}

/* ---- and back */

struct incoming {
	struct loop_task task; /* first */
	struct cluster_kept_wait wait;
	struct loop *loop; /* the resource's */
	struct resource *resource;
	struct lease_message message;
	uint64_t obeyed;
};

static void hand_over(struct loop_task *t)
{
	struct incoming *in = (struct incoming *)(void *)t;

	resource_control_hear(in->resource,
		&(struct controller_news){
			.kind = CONTROLLER_MESSAGE, .obeyed = in->obeyed, .message = &in->message});
	lease_message_free(&in->message);
	free(in);
}

/* The generation is kept: now it may be obeyed. */
static void was_kept(struct cluster_kept_wait *w)
{
	struct incoming *in = container_of(w, struct incoming, wait);

	if (!w->cancelled)
		loop_post(in->loop, &in->task);
	else
		free(in);
}

static void drop_kept(struct cluster_kept_wait *w)
{
	free(container_of(w, struct incoming, wait));
}

static void receive(void *arg, struct lease_message *m)
{
	struct server_link *l = arg;
	struct cluster_member *s = l->server;
	struct incoming *in = malloc(sizeof(*in));

	if (m->kind == LEASE_PLAN) {
		cluster_plan_hear(s->cluster->plan, l, m);
		free(in);
		return;
	}
	l->controller = m->instance;
	if (!in)
		return;
	*in = (struct incoming){.task = {.run = hand_over},
		.wait = {.server = s->resource->name, .done = was_kept},
		.loop = s->resource->worker->loop,
		.resource = s->resource->resource,
		.message = *m,
		.obeyed = cluster_kept_get(s->cluster->kept, s->resource->name)};
	*m = (struct lease_message){0};
	if (in->message.kind == LEASE_ASK)
		in->wait.generation = in->message.grant.generation;
	if (!cluster_kept_raise(s->cluster->kept, &in->wait))
		loop_post(in->loop, &in->task);
}

/* Tell one controller about the plan, or all that name their servers' links. */
static void tell(void *arg, void *to, struct lease_message *m)
{
	struct cluster *c = arg;
	struct server_link *one = to;

	if (one) {
		lease_link_tell(one->link, m);
		return;
	}
	for (size_t i = 0; i < c->gateway->n_resources; i++) {
		struct cluster_member *s = c->gateway->resources[i]->server;

		for (size_t k = 0; s && s->links && k < c->gateway->policy->cluster.n_controllers;
			k++)
			if (s->links[k].link)
				lease_link_tell(s->links[k].link, m);
	}
}

struct notice {
	struct loop_task task; /* first */
	struct resource *resource;
	uint64_t controller; /* the controller that was lost; 0: one has connected */
};

static void take_notice(struct loop_task *t)
{
	struct notice *n = (struct notice *)(void *)t;

	resource_control_hear(n->resource,
		&(struct controller_news){.kind = n->controller ? CONTROLLER_LOST : CONTROLLER_MET,
			.from = n->controller});
	free(n);
}

/* Tell the resource's thread that a controller connected or was lost. Without memory the notice is dropped: the server
 * reports twice a period anyway, and counts the time of silence. */
static void notify(const struct cluster_member *s, uint64_t controller)
{
	struct notice *n = malloc(sizeof(*n));

	if (!n)
		return;
	*n = (struct notice){.task = {.run = take_notice},
		.resource = s->resource->resource,
		.controller = controller};
	loop_post(s->resource->worker->loop, &n->task);
}

static void link_up(void *arg)
{
	notify(((struct server_link *)arg)->server, 0);
}

static void link_down(void *arg)
{
	const struct server_link *l = arg;

	cluster_plan_lost(l->server->cluster->plan, l);
	if (l->controller)
		notify(l->server, l->controller);
}

/* ---- start */

static int connect_one(void *arg, struct gateway_resource *r)
{
	resource_control_connect(r->resource, post, r->server);
	return 0;
}

static int disconnect_one(void *arg, struct gateway_resource *r)
{
	resource_control_connect(r->resource, NULL, NULL);
	return 0;
}

/* Return the address of link i; NULL: none. */
static const char *address_of(const struct weir_policy *p, size_t i, char *room)
{
	if (i < p->cluster.n_controllers)
		return p->cluster.controllers[i];
	i -= p->cluster.n_controllers;
	return policy_cluster_stand_in(p, (unsigned)i, room, POLICY_CLUSTER_ADDRESS) ? room : NULL;
}

static int open_links(struct cluster *c, struct cluster_member *s)
{
	const struct weir_policy_cluster *p = &c->gateway->policy->cluster;

	s->links = calloc(c->n_links, sizeof(*s->links));
	if (!s->links)
		return -ENOMEM;
	while (!s->instance)
		randombytes_buf(&s->instance, sizeof(s->instance));
	for (size_t i = 0; i < c->n_links; i++) {
		char room[POLICY_CLUSTER_ADDRESS];
		struct lease_link_config config = {
			.address = address_of(c->gateway->policy, i, room),
			.quiet = i >= p->n_controllers,
			/* Find a controller that comes back within a fraction of a period, even if
			 * it lives no longer than that. */
			.retry = p->period / RETRIES,
			.conn = {.loop = c->gateway->loop,
				.key = &c->key,
				.cluster = peer_hash(p->name),
				.instance = s->instance,
				.name = s->resource->name,
				.entries = LEASE_ENTRIES_MAX,
				.stats = &c->stats,
				.message = &s->message},
			.receive = receive,
			.up = link_up,
			.down = link_down,
			.arg = &s->links[i]};
		int rc = 0;

		s->links[i].server = s;
		if (config.address)
			rc = lease_link_new(&config, &s->links[i].link);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* A server that cannot listen does not stand in; the others may. One that was removed does not either. */
static void update_stand_ins(struct cluster *c)
{
	const struct gateway *g = c->gateway;

	for (unsigned k = 0; k < CLUSTER_STAND_INS; k++) {
		char address[POLICY_CLUSTER_ADDRESS];
		const char *server =
			policy_cluster_stand_in(g->policy, k, address, sizeof(address));
		bool ours = server && gateway_resource(g, server);
		struct weir_err err;

		if (!ours) {
			control_free(c->stand_ins[k]);
			c->stand_ins[k] = NULL;
		} else if (c->stand_ins[k]) {
			if (control_policy(
				    c->stand_ins[k], c->version->policy, c->version->bounds) < 0)
				log_event(
					LOG_LEVEL_ERROR, "stand-in", "why", "out of memory", NULL);
		} else if (control_stand_in(g->loop, c->version->policy, c->version->bounds, server,
				   k + 1, address, &c->stand_ins[k], &err) < 0) {
			log_event(LOG_LEVEL_WARNING, "cannot-stand-in", "server", server, "why",
				err.text, NULL);
		}
	}
}

static void cluster_policy(struct gateway *g)
{
	struct cluster *c = g->cluster;
	struct gateway_version *old;

	if (!c)
		return;
	old = c->version;
	c->version = gateway_version_hold(g->in_force);
	update_stand_ins(c);
	cluster_plan_policy(c->plan);
	if (old)
		gateway_version_drop(old); /* not the last reference: the change has one */
}

static void close_links(struct cluster_member *s)
{
	for (size_t k = 0; s->links && k < s->cluster->n_links; k++) {
		cluster_plan_lost(s->cluster->plan, &s->links[k]);
		lease_link_free(s->links[k].link);
	}
	free(s->links);
	s->links = NULL;
}

static int add_server(struct cluster *c, struct gateway_resource *r)
{
	struct cluster_member *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->cluster = c;
	s->resource = r;
	r->server = s;
	return open_links(c, s);
}

static void cluster_join(struct gateway_resource *r)
{
	struct cluster *c = r->gateway->cluster;
	int rc = c ? add_server(c, r) : 0;

	if (c && rc == 0)
		gateway_at(r, connect_one, NULL);
	if (rc < 0)
		log_event(LOG_LEVEL_ERROR, "not-in-cluster", "resource", r->name, "why",
			strerror(-rc), NULL);
}

static void cluster_leave(struct gateway_resource *r)
{
	if (!r->server)
		return;
	close_links(r->server);
	cluster_kept_leave(r->gateway->cluster->kept, r->name);
}

static void cluster_forget(struct gateway_resource *r)
{
	if (!r->server)
		return;
	lease_message_free(&r->server->message);
	free(r->server);
	r->server = NULL;
}

static int cluster_start(struct gateway *g, struct weir_err *err)
{
	const struct weir_policy_cluster *p = &g->policy->cluster;
	struct cluster *c;
	int rc;

	if (g->options.bare || !p->n_servers)
		return 0;
	c = calloc(1, sizeof(*c));
	if (!c)
		return no_memory(err);
	g->cluster = c;
	c->gateway = g;
	rc = peer_key_read(p->key, p->name, &c->key, err);
	if (rc < 0)
		return rc;
	c->n_links = p->n_controllers + CLUSTER_STAND_INS;
	rc = cluster_kept_new(g->loop, g->state, p->name, &c->kept, err);
	if (rc < 0)
		return rc;
	rc = cluster_plan_new(
		&(struct cluster_plan_config){.gateway = g, .tell = tell, .arg = c}, &c->plan);
	for (size_t i = 0; rc == 0 && i < g->n_resources; i++)
		rc = add_server(c, g->resources[i]);
	if (rc == 0)
		rc = gateway_each(g, connect_one, NULL, NULL);
	if (rc == 0)
		cluster_policy(g);
	return rc < 0 ? weir_err_set(err, rc, "%s", strerror(-rc)) : 0;
}

/* ---- change */

static int cluster_fits(const struct gateway *g, const struct weir_policy *p, struct weir_err *err)
{
	const struct weir_policy_cluster *is = &g->policy->cluster, *be = &p->cluster;
	bool other = !is->n_servers != !be->n_servers || !same_text(is->name, be->name) ||
		     !same_text(is->key, be->key) || is->period != be->period ||
		     is->n_controllers != be->n_controllers || is->n_stand_ins != be->n_stand_ins ||
		     is->no_stand_in != be->no_stand_in;

	for (size_t i = 0; !other && i < is->n_controllers; i++)
		other = !same_text(is->controllers[i], be->controllers[i]);
	for (size_t i = 0; !other && i < is->n_stand_ins; i++)
		other = !same_text(is->stand_ins[i], be->stand_ins[i]);
	return other ? weir_err_set(err, -EINVAL,
			       "another cluster, key, period or controller needs a restart")
		     : 0;
}

/* ---- the end */

static void cluster_stop(struct gateway *g)
{
	struct cluster *c = g->cluster;

	if (!c)
		return;
	for (unsigned k = 0; k < CLUSTER_STAND_INS; k++)
		control_free(c->stand_ins[k]);
	for (size_t i = 0; i < g->n_resources; i++)
		cluster_leave(g->resources[i]);
	if (gateway_runs(g)) {
		gateway_each(g, disconnect_one, NULL, NULL);
		gateway_drain(g);
		gateway_settle(g);
	}
	if (c->version)
		gateway_version_drop(c->version);
	cluster_plan_free(c->plan);
	cluster_kept_free(c->kept, drop_kept);
	peer_key_forget(&c->key);
	free(c);
	g->cluster = NULL;
}

/* ---- look */

static void cluster_look(const struct gateway *g, struct snapshot *s)
{
	const struct facts_kind *kind = controller_in_cluster()->facts;
	const struct facts_table *t = &kind->whole;
	struct facts_rows *rows = &s->whole[facts_index(kind)];
	const struct cluster *c = g->cluster;

	if (!c)
		return;
	rows->rows = snapshot_take(s, g->n_resources * c->n_links + 1, t->size);
	for (size_t i = 0; rows->rows && i < g->n_resources; i++) {
		const struct gateway_resource *r = g->resources[i];

		for (size_t k = 0;
			r->server && r->server->links && k < g->policy->cluster.n_controllers;
			k++) {
			struct cluster_link *to = facts_row(t, rows, rows->n++);
			struct lease_link_status st;

			lease_link_status(r->server->links[k].link, &st);
			to->row.key[0] = arena_text(&s->arena, st.address);
			to->row.key[1] = arena_text(&s->arena, r->name);
			to->why = *st.why ? arena_text(&s->arena, st.why) : NULL;
			to->up = st.up;
			to->since = st.since ? loop_clock() - st.since : 0;
			to->lost = st.downs;
		}
	}
}

const struct gateway_link link_to_cluster = {
	.start = cluster_start,
	.join = cluster_join,
	.leave = cluster_leave,
	.forget = cluster_forget,
	.fits = cluster_fits,
	.policy = cluster_policy,
	.stop = cluster_stop,
	.look = cluster_look,
};
