/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client: clients join and leave.
 *
 * When a client leaves, its requests are dropped: those in the gate, and those that the next turn
 * would have taken. The back end finishes those that it has. The same happens for all clients when
 * the process ends and the back end is unreachable.
 */
#include "base/container.h"
#include "serve/resource/impl.h"
#include <errno.h>

/* Match again: the policy may have been swapped since the gateway matched the client. */
static int match(const struct resource *r, const struct client *c)
{
	struct weir_who who = {.export_ = c->export_,
		.client = *c->address ? c->address : NULL,
		.uid = *c->uid ? c->uid : NULL,
		.tls = *c->tls ? c->tls : NULL};

	return r->policy ? weir_policy_match(r->policy, &who) : c->tenant;
}

void resource_join(struct resource *r, struct client *c)
{
	int tenant = match(r, c);

	resource_stir(r);
	c->resource = r;
	c->in_flight = 0;
	c->sender = NULL;
	c->node = WEIR_ROOT;
	c->tenant = tenant;
	if (tenant >= 0 && r->gate && (size_t)tenant < r->n_nodes)
		c->node = r->nodes[tenant];
	if (tenant >= 0 && !r->gate && resource_room(r, (size_t)tenant + 2) == 0)
		c->node = (weir_node)tenant + 1; /* only an index of its counts */
	c->next = r->clients;
	c->link = &r->clients;
	if (c->next)
		c->next->link = &c->next;
	r->clients = c;
	r->n_clients++;
	if (tenant < 0 && c->refused)
		c->refused(c, "the policy has no tenant for it");
}

struct leaving {
	struct resource *resource;
	const struct client *client; /* NULL: everybody's */
	struct request_list dropped;
};

static bool is_of_client(const struct request *q, const struct leaving *l)
{
	return !l->client || q->client == l->client;
}

static bool is_of(const struct weir_req *q, void *arg)
{
	return !q->user && is_of_client(container_of(q, const struct request, gate), arg);
}

static void drop(struct weir_req *q, void *arg)
{
	struct leaving *l = arg;

	resource_queue_out(l->resource, q);
	request_list_add(&l->dropped, resource_request(q));
}

static void drop_from(struct request_list *l, struct leaving *leaving)
{
	struct request *q = l->first, *next;

	for (request_list_clear(l); q; q = next) {
		next = q->next;
		request_list_add(is_of_client(q, leaving) ? &leaving->dropped : l, q);
	}
}

static void take_queued(struct resource *r, weir_node node, struct leaving *leaving)
{
	if (r->queued)
		weir_gate_cancel(r->gate, r->now, node, is_of, drop, leaving);
}

static void answer_dropped(struct leaving *leaving, int error)
{
	struct request *q, *next;

	for (q = leaving->dropped.first; q; q = next) {
		next = q->next;
		q->io.error = error;
		q->client->in_flight--;
		q->done(q);
	}
}

void resource_leave(struct resource *r, struct client *c)
{
	struct leaving leaving = {.resource = r, .client = c};

	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	r->n_clients--;
	resource_shadow_leave(c);
	resource_stir(r);
	if (!c->in_flight)
		return;
	request_list_clear(&leaving.dropped);
	take_queued(r, c->node, &leaving);
	drop_from(&r->again, &leaving);
	drop_from(&r->arrived, &leaving);
	answer_dropped(&leaving, -ECANCELED);
}

const struct front_gate resource_gate = {
	.join = resource_join,
	.leave = resource_leave,
	.submit = resource_submit,
	.finish = resource_finish,
	.answered = resource_answered,
	.held = resource_held,
};

void resource_abandon(struct resource *r)
{
	struct leaving leaving = {.resource = r, .client = NULL};

	if (!r->back->ops->abandon || !r->back->ops->abandon(r->back))
		return;
	request_list_clear(&leaving.dropped);
	for (const struct client *c = r->clients; c; c = c->next)
		take_queued(r, c->node, &leaving);
	drop_from(&r->again, &leaving);
	drop_from(&r->arrived, &leaving);
	answer_dropped(&leaving, -ESHUTDOWN);
}

uint64_t resource_unflushed(const struct resource *r)
{
	return r->back->ops->unflushed ? r->back->ops->unflushed(r->back) : 0;
}
