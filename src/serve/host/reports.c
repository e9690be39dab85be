/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/host/reports.h"
#include "serve/peer/peer.h"
#include "base/container.h"
#include "base/same.h"
#include "base/no-memory.h"
#include "serve/gateway/impl.h"
#include "serve/resource/control.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PERIOD (2 * WEIR_SEC) /* where the policy has none */
#define FIRST  4              /* of a period: from the start to the first step */
#define FAREWELL                                                                                   \
	WEIR_SEC       /* ns: for a shared file that is slow; a host that is gone ages out anyway */
#define UNDER_WAY 4096 /* messages to one resource; if its thread is held up, later ones are lost */

struct report_member { /* one resource's */
	struct reports *reports;
	struct gateway_resource *resource;
	uint64_t topic; /* of its controller; 0: that has no peers */
	bool has;       /* a report … */
	bool fresh;     /* … that was not sent yet */
	struct peer_report last;
	atomic_uint under_way;
};

struct reports {
	struct gateway *gateway;
	struct peers *peers; /* NULL: none */
	char host[PEER_NAME_MAX + 1];
	uint64_t instance;
	uint64_t sequence; /* of messages between our own resources */
	struct loop_timer timer;
	weir_time period;
	weir_time first;       /* of its steps */
	bool told;             /* the peers, in this period */
	bool closed, given_up; /* of the farewell */
};

/* ---- to a resource */

struct incoming {
	struct loop_task task;
	struct report_member *to;
	struct peer_message message;
};

static void hand_over(struct loop_task *t)
{
	struct incoming *in = container_of(t, struct incoming, task);

	atomic_fetch_sub(&in->to->under_way, 1);
	resource_control_receive(in->to->resource->resource, &in->message);
	free(in);
}

static bool is_about(const struct peer_message *m, uint64_t topic)
{
	for (unsigned i = 0; i < m->n_reports; i++)
		if (m->reports[i].resource == topic)
			return true;
	return m->kind == PEER_LEAVE;
}

static void give(struct report_member *to, const struct peer_message *m)
{
	struct incoming *in;

	if (!to->topic || !is_about(m, to->topic) || atomic_load(&to->under_way) >= UNDER_WAY)
		return;
	in = malloc(sizeof(*in));
	if (!in)
		return;
	*in = (struct incoming){.task = {.run = hand_over}, .to = to, .message = *m};
	atomic_fetch_add(&to->under_way, 1);
	loop_post(to->resource->worker->loop, &in->task);
}

static void receive(void *arg, const struct peer_message *m, weir_time now)
{
	struct reports *a = arg;

	for (size_t i = 0; i < a->gateway->n_resources; i++)
		give(a->gateway->resources[i]->member, m);
}

/* Resources of ours with one topic are each other's peers, and no message comes back to us. */
static void give_ours(
	struct reports *a, const struct report_member *from, const struct peer_report *r)
{
	struct peer_message m = {.kind = PEER_REPORT,
		.instance = a->instance,
		.sequence = ++a->sequence,
		.n_reports = 1,
		.reports = {*r}};

	memcpy(m.name, a->host, sizeof(m.name));
	for (size_t i = 0; i < a->gateway->n_resources; i++)
		if (a->gateway->resources[i]->member != from)
			give(a->gateway->resources[i]->member, &m);
}

/* ---- to the peers */

/* now: a report that goes out instead of its member's last one; NULL: none. */
static void send_all(
	struct reports *a, const struct report_member *from, const struct peer_report *now)
{
	struct peer_report reports[PEER_REPORTS_MAX];
	unsigned n = 0;

	for (size_t i = 0; i < a->gateway->n_resources; i++) {
		struct report_member *m = a->gateway->resources[i]->member;

		m->fresh &= now != NULL;
		if (m->topic && m->has && n < PEER_REPORTS_MAX)
			reports[n++] = m == from ? *now : m->last;
	}
	if (a->peers)
		peer_send(a->peers, reports, n);
}

static bool all_fresh(const struct reports *a)
{
	for (size_t i = 0; i < a->gateway->n_resources; i++) {
		const struct report_member *m = a->gateway->resources[i]->member;

		if (m->topic && !m->fresh)
			return false;
	}
	return true;
}

static void tick(struct loop_timer *t, weir_time now)
{
	struct reports *a = container_of(t, struct reports, timer);

	if (!a->told) /* a resource was late */
		send_all(a, NULL, NULL);
	a->told = false;
	loop_set(a->gateway->loop, t, now + a->period);
}

struct outgoing {
	struct loop_task task;
	struct report_member *from;
	struct peer_report report;
	bool at_once;
};

static void take_report(struct loop_task *t)
{
	struct outgoing *o = container_of(t, struct outgoing, task);
	struct report_member *m = o->from;
	struct reports *a = m->reports;

	if (!m->topic) { /* it was removed meanwhile */
		free(o);
		return;
	}
	give_ours(a, m, &o->report);
	if (o->at_once) {
		send_all(a, m, &o->report);
	} else {
		m->last = o->report;
		m->has = m->fresh = true;
		if (all_fresh(a)) {
			send_all(a, NULL, NULL);
			a->told = true;
		}
	}
	free(o);
}

/* On the resource's thread. A report that is lost is followed by another. */
static void publish(void *arg, const struct peer_report *report, bool at_once)
{
	struct report_member *m = arg;
	struct outgoing *o = malloc(sizeof(*o));

	if (!o)
		return;
	*o = (struct outgoing){
		.task = {.run = take_report}, .from = m, .report = *report, .at_once = at_once};
	loop_post(m->reports->gateway->loop, &o->task);
}

/* ---- the policy */

static void reports_policy(struct gateway *g)
{
	struct reports *a = g->reports;
	const struct weir_policy *p = g->policy;

	for (size_t i = 0; a && i < g->n_resources; i++) {
		struct report_member *m = g->resources[i]->member;

		m->topic = resource_control_topic(&p->resources[i]);
		m->has &= m->topic == m->last.resource;
		m->fresh &= m->has;
	}
}

static int reports_fits(const struct gateway *g, const struct weir_policy *p, struct weir_err *err)
{
	const struct weir_policy_peers *is = &g->policy->peers, *be = &p->peers;
	bool other = is->n_to != be->n_to || is->period != be->period ||
		     !same_text(is->listen, be->listen) || !same_text(is->key, be->key) ||
		     !same_text(is->cluster, be->cluster) || !same_text(is->host, be->host);

	for (size_t i = 0; i < is->n_to && !other; i++)
		other = !same_text(is->to[i], be->to[i]);
	return other ? weir_err_set(err, -EINVAL,
			       "other 'peers' take a restart: a host is one address, name and key "
			       "to the others from its "
			       "first message to its farewell")
		     : 0;
}

/* ---- start */

static int open_peers(struct reports *a, const char *host, struct weir_err *err)
{
	const struct weir_policy_peers *p = &a->gateway->policy->peers;
	const char **to = calloc(p->n_to + 1, sizeof(*to)); /* ends with NULL */
	struct peer_config c = {.loop = a->gateway->loop,
		.addresses = to,
		.listen = p->listen,
		.name = host,
		.cluster = p->cluster,
		.key = p->key,
		.receive = receive,
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

static int name_host(struct reports *a, struct weir_err *err)
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

static int reports_join(struct gateway_resource *r)
{
	struct reports *a = r->gateway->reports;
	struct report_member *m = a ? calloc(1, sizeof(*m)) : NULL;

	if (!m)
		return a ? -ENOMEM : 0;
	*m = (struct report_member){.reports = a, .resource = r};
	r->member = m;
	resource_control_peers(r->resource, &(struct resource_peers){.host = peer_hash(a->host),
						    .instance = a->instance,
						    .period = a->period,
						    .first = a->first,
						    .publish = publish,
						    .arg = m});
	return 0;
}

static void reports_leave(struct gateway_resource *r)
{
	if (r->member)
		r->member->topic = 0;
}

static void reports_forget(struct gateway_resource *r)
{
	free(r->member);
	r->member = NULL;
}

static int reports_start(struct gateway *g, struct weir_err *err)
{
	struct reports *a;
	int r;

	if (g->options.bare)
		return 0;
	a = calloc(1, sizeof(*a));
	if (!a)
		return no_memory(err);
	g->reports = a;
	a->gateway = g;
	a->period = g->policy->peers.period ? g->policy->peers.period : PERIOD;
	a->timer.due = tick;
	r = name_host(a, err);
	a->first = loop_clock() + a->period / FIRST;
	for (size_t i = 0; r == 0 && i < g->n_resources; i++)
		r = reports_join(g->resources[i]) < 0 ? no_memory(err) : 0;
	if (r < 0)
		return r;
	reports_policy(g);
	return loop_set(g->loop, &a->timer, a->first) < 0 ? no_memory(err) : 0;
}

/* ---- the end */

static void closed(void *arg)
{
	struct reports *a = arg;

	a->closed = true;
	a->peers = NULL;
	loop_stop(a->gateway->loop);
}

static void give_up(struct loop_timer *t, weir_time now)
{
	struct reports *a = container_of(t, struct reports, timer);

	a->given_up = true;
	loop_stop(a->gateway->loop);
}

static int disconnect(void *arg, struct gateway_resource *r)
{
	resource_control_peers(r->resource, NULL);
	return 0;
}

static void say_farewell(struct reports *a)
{
	struct loop *loop = a->gateway->loop;

	a->timer.due = give_up;
	loop_set(loop, &a->timer, loop_clock() + FAREWELL);
	peer_close(a->peers, closed, a);
	while (!a->closed && !a->given_up && loop_run(loop) == 0)
		; /* others may stop it as well */
	loop_set(loop, &a->timer, WEIR_NEVER);
}

static void reports_stop(struct gateway *g)
{
	struct reports *a = g->reports;

	if (!a)
		return;
	loop_set(g->loop, &a->timer, WEIR_NEVER);
	if (gateway_runs(g)) {
		gateway_each(g, disconnect, NULL, NULL);
		gateway_drain(g); /* what they have published */
	}
	if (a->peers)
		say_farewell(a);
	if (gateway_runs(g))
		gateway_settle(g); /* what they were given */
	g->reports = NULL;
	/* Else its storage gives nothing back: left behind, since it may yet; or a change looks at it. */
	if (!a->peers && !g->abandoned)
		free(a);
}

static void reports_look(const struct gateway *g, struct snapshot *s)
{
	s->has_peers = g->reports && g->reports->peers;
	if (s->has_peers)
		peer_stats(g->reports->peers, &s->peers);
}

const struct gateway_link link_to_peers = {
	.open = reports_start,
	.prepare = reports_join,
	.leave = reports_leave,
	.forget = reports_forget,
	.fits = reports_fits,
	.policy = reports_policy,
	.stop = reports_stop,
	.look = reports_look,
};
