/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resource-client: clients come and go.
 *
 * A client that goes takes its requests with it: those in the gate, and those that the next turn would
 * have taken. What the back end has, it finishes.
 */
#include "port/resource-impl.h"
#include <errno.h>

/* The policy may have been swapped since the gateway looked. */
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
	c->node = WEIR_ROOT;
	c->tenant = tenant;
	if (tenant >= 0 && r->gate && (size_t)tenant < r->n_nodes)
		c->node = r->nodes[tenant];
	c->next = r->clients;
	c->link = &r->clients;
	if (c->next)
		c->next->link = &c->next;
	r->clients = c;
	r->n_clients++;
	if (tenant < 0 && c->refused)
		c->refused(c);
}

struct leaving {
	struct client *client;
	struct request_list dropped;
};

static bool is_of(const struct weir_req *q, void *arg)
{
	struct leaving *l = arg;

	return !q->user && ((const struct request *)(const void *)q)->client == l->client;
}

static void drop(struct weir_req *q, void *arg)
{
	struct leaving *l = arg;

	request_list_add(&l->dropped, resource_request(q));
}

static void drop_from(struct request_list *l, struct leaving *leaving)
{
	struct request *q = l->first, *next;

	for (request_list_clear(l); q; q = next) {
		next = q->next;
		request_list_add(q->client == leaving->client ? &leaving->dropped : l, q);
	}
}

void resource_leave(struct resource *r, struct client *c)
{
	struct leaving leaving = {.client = c};
	struct request *q, *next;

	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	r->n_clients--;
	resource_stir(r);
	if (!c->in_flight)
		return;
	request_list_clear(&leaving.dropped);
	if (r->queued)
		r->queued -=
			(uint32_t)weir_gate_cancel(r->gate, r->now, c->node, is_of, drop, &leaving);
	drop_from(&r->again, &leaving);
	drop_from(&r->arrived, &leaving);
	for (q = leaving.dropped.first; q; q = next) {
		next = q->next;
		q->io.error = -ECANCELED;
		c->in_flight--;
		q->done(q);
	}
}
