/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client: clients join and leave.
 *
 * When a client leaves, its requests are dropped: those in the gate, and those that the next turn
 * would have taken. The back end finishes those that it has. The same happens for all clients when
 * the process ends and the back end is unreachable. Of a client that said farewell and reads no
 * replies any more only the reads are dropped.
 *
 * METHOD  To drop requests, all that wait with them at the same node are looked at. So thousands of
 *         clients that leave a tenant with a long queue are dropped together: after more than FEW
 *         requests were looked at, clients that leave wait in a list, for PAUSE per request. Then
 *         resource_turn drops their requests, and looks at each node once.
 * COST    At most a twentieth of the thread's time, however many clients leave.
 */
#include "base/container.h"
#include "base/list.h"
#include "serve/back/volumes.h"
#include "serve/resource/impl.h"
#include <errno.h>

#define FEW   64   /* requests: to look at them costs less than to close a connection */
#define PAUSE 4000 /* ns per request looked at, which takes up to 200 ns */

static struct weir_who who_of(const struct client *c)
{
	return (struct weir_who){.export_ = c->export_,
		.client = *c->address ? c->address : NULL,
		.uid = *c->uid ? c->uid : NULL,
		.tls = *c->tls ? c->tls : NULL};
}

void resource_tenants(struct resource *r, resource_tenants_fn *fn, void *arg)
{
	for (const struct client *c = r->policy ? r->clients : NULL; c; c = c->next) {
		struct weir_who who = who_of(c);

		if (c->tenant >= 0)
			fn(arg, r->policy, &who, c->tenant);
	}
}

/* Match again: the policy may have been swapped since the gateway matched the client. */
static int match(const struct resource *r, const struct client *c)
{
	struct weir_who who = who_of(c);

	return r->policy ? weir_policy_match(r->policy, &who) : c->tenant;
}

static void link_client(struct resource *r, struct client *c)
{
	list_push(r->clients, c);
}

static void unlink_client(struct client *c)
{
	list_remove(c);
}

void resource_join(struct resource *r, struct client *c)
{
	int tenant = r->closed ? -1 : match(r, c);

	resource_stir(r);
	c->resource = r;
	c->in_flight = 0;
	c->left = c->unread = false;
	c->link_left = NULL;
	c->sender = NULL;
	c->node = WEIR_ROOT;
	c->tenant = tenant;
	if (tenant >= 0 && r->gate && (size_t)tenant < r->n_nodes)
		c->node = r->nodes[tenant];
	if (tenant >= 0 && !r->gate && resource_room(r, (size_t)tenant + 2) == 0)
		c->node = (weir_node)tenant + 1; /* only an index of its counts */
	link_client(r, c);
	r->n_clients++;
	back_volumes_client(r->back, c->offset, 1);
	resource_late_join(r, c);
	if (tenant < 0 && c->refused)
		c->refused(c, r->closed ? r->closed : "the policy has no tenant for it");
}

void resource_close(struct resource *r, const char *why)
{
	struct client *c, *next;

	r->closed = why;
	for (c = r->clients; c; c = next) {
		next = c->next; /* refused removes c from the list, and no other client */
		c->tenant = -1;
		if (c->refused)
			c->refused(c, why);
	}
}

bool resource_has_clients(const struct resource *r)
{
	return r->n_clients > 0;
}

struct leaving {
	struct resource *resource;
	bool all; /* requests of clients that stay, too */
	uint32_t looked;
	struct request_list dropped;
};

static bool is_read(const struct request *q)
{
	return q->io.op == BACK_READ || q->io.op == BACK_CACHE || q->io.op == BACK_STATUS ||
	       q->io.op == BACK_CALL;
}

static bool goes(const struct request *q, const struct leaving *l)
{
	return l->all || q->client->left || (q->client->unread && is_read(q));
}

static bool goes_from_gate(const struct weir_req *q, void *arg)
{
	struct leaving *l = arg;

	l->looked++;
	return !q->user && goes(container_of(q, const struct request, gate), l);
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
		request_list_add(goes(q, leaving) ? &leaving->dropped : l, q);
	}
}

static uint32_t count(const struct request_list *l)
{
	uint32_t n = 0;

	for (const struct request *q = l->first; q; q = q->next)
		n++;
	return n;
}

/* Drop the client's requests that are not in the gate. */
static void drop_from_lists(struct resource *r, struct leaving *leaving)
{
	struct request_list *l;

	drop_from(&r->again, leaving);
	drop_from(&r->arrived, leaving);
	for (size_t at = 0; (l = resource_stall_held(r, &at));) {
		uint32_t before = count(l);

		drop_from(l, leaving);
		resource_stall_dropped(r, before - count(l));
	}
}

static const struct client *next_of(const struct client *c, bool left)
{
	return left ? c->next_left : c->next;
}

void resource_cancel(struct resource *r, bool left, bool (*is_one)(const struct weir_req *, void *),
	void (*drop_one)(struct weir_req *, void *), void *arg)
{
	const struct client *clients = left ? r->left : r->clients, *c;

	for (c = clients; c && r->queued; c = next_of(c, left)) {
		if (r->counts[c->node].marked)
			continue;
		r->counts[c->node].marked = true;
		weir_gate_cancel(r->gate, r->now, c->node, is_one, drop_one, arg);
	}
	for (c = clients; c; c = next_of(c, left))
		r->counts[c->node].marked = false;
}

static void take_queued(struct resource *r, bool left, struct leaving *leaving)
{
	resource_cancel(r, left, goes_from_gate, drop, leaving);
}

static void answer_dropped(struct leaving *leaving, int error)
{
	struct request *q, *next;

	for (q = leaving->dropped.first; q; q = next) {
		next = q->next;
		q->io.error = error;
		resource_returned(q->client);
		q->done(q);
	}
}

void resource_forget_left(struct client *c)
{
	if (!c->link_left)
		return;
	*c->link_left = c->next_left;
	if (c->next_left)
		c->next_left->link_left = c->link_left;
	c->link_left = NULL;
}

void resource_drop_left(struct resource *r)
{
	struct leaving leaving = {.resource = r};

	request_list_clear(&leaving.dropped);
	take_queued(r, true, &leaving);
	while (r->left)
		resource_forget_left(r->left);
	drop_from_lists(r, &leaving);
	r->left_at = r->now + (leaving.looked > FEW ? (weir_time)leaving.looked * PAUSE : 0);
	answer_dropped(&leaving, -ECANCELED);
}

/* Drop what the client no longer wants: now, or with others. */
static void drop_soon(struct resource *r, struct client *c)
{
	if (!c->in_flight || c->link_left)
		return;
	c->next_left = r->left;
	c->link_left = &r->left;
	if (c->next_left)
		c->next_left->link_left = &c->next_left;
	r->left = c;
	if (r->left_at <= r->now)
		resource_drop_left(r);
	else if (r->started && r->left_at < r->timer_at &&
		 loop_set(r->loop, &r->timer, r->left_at) == 0)
		r->timer_at = r->left_at;
}

void resource_unread(struct resource *r, struct client *c)
{
	resource_stir(r);
	c->unread = true;
	drop_soon(r, c);
}

void resource_leave(struct resource *r, struct client *c)
{
	unlink_client(c);
	r->n_clients--;
	back_volumes_client(r->back, c->offset, -1);
	resource_shadow_leave(c);
	resource_stir(r);
	c->left = true;
	drop_soon(r, c);
}

const struct front_gate resource_gate = {
	.join = resource_join,
	.leave = resource_leave,
	.unread = resource_unread,
	.submit = resource_submit,
	.finish = resource_finish,
	.answered = resource_answered,
	.held = resource_held,
	.each_waiting = resource_each_waiting,
};

void resource_abandon(struct resource *r)
{
	struct leaving leaving = {.resource = r, .all = true};

	if (!r->back->ops->abandon || !r->back->ops->abandon(r->back))
		return;
	request_list_clear(&leaving.dropped);
	take_queued(r, true, &leaving);
	take_queued(r, false, &leaving);
	drop_from_lists(r, &leaving);
	answer_dropped(&leaving, -ESHUTDOWN);
}

uint64_t resource_unflushed(const struct resource *r)
{
	return r->back->ops->unflushed ? r->back->ops->unflushed(r->back) : 0;
}
