/* SPDX-License-Identifier: BSD-3-Clause */
/* path: a segment's way: the leaf for its destination, its service's root, and the links. */
#include "sim/network/network.h"
#include "base/array.h"
#include <errno.h>
#include <stdlib.h>

#define SOCKET_BYTES 65536 /* of a udp sender that wait in a limiter; then it blocks */

static void set_link(
	struct sim_network *n, uint32_t i, double rate, const char *way, uint32_t of, bool of_rack)
{
	bool out = !of_rack && way[0] == 'o'; /* a host does not drop its own */

	n->links[i] = (struct net_link){.rate = rate,
		.buffer = out ? UINT64_MAX : n->config->buffer,
		.mark = out ? UINT64_MAX : n->config->mark,
		.way = way,
		.of = of,
		.of_rack = of_rack};
	if (n->config->watch && !out &&
		!(n->links[i].lengths = calloc(NET_LENGTHS, sizeof(uint64_t))))
		n->failed = -ENOMEM;
}

int net_path_begin(struct sim_network *n)
{
	const struct sim_network_config *c = n->config;

	n->links = calloc(n->n_links + 1, sizeof(*n->links));
	if (!n->links)
		return -ENOMEM;
	for (uint32_t k = 0; k < c->n_racks; k++) {
		const struct net_rack *rack = &c->racks[k];

		for (uint32_t m = rack->first; m < rack->first + rack->machines; m++) {
			set_link(n, 2 * m, rack->rate, "out", m, false);
			set_link(n, 2 * m + 1, rack->rate, "in", m, false);
		}
		set_link(n, 2 * (n->n_machines + k), rack->up, "up", k, true);
		set_link(n, 2 * (n->n_machines + k) + 1, rack->down, "down", k, true);
	}
	return n->failed;
}

void net_path_end(struct sim_network *n)
{
	for (uint32_t i = 0; n->links && i < n->n_links; i++)
		free(n->links[i].lengths);
	free(n->links);
	free(n->segments);
	free(n->leaves);
}

static uint32_t rack_of(const struct sim_network *n, uint32_t machine)
{
	uint32_t k = 0;

	while (machine >= n->config->racks[k].first + n->config->racks[k].machines)
		k++;
	return k;
}

/* Links of infinite rate are left out: they only add their delay, which is per link passed. */
void net_path_route(const struct sim_network *n, uint32_t from, uint32_t to, struct net_flow *f)
{
	uint32_t a = rack_of(n, from), b = rack_of(n, to);
	uint32_t links[NET_HOPS] = {
		2 * from, 2 * (n->n_machines + a), 2 * (n->n_machines + b) + 1, 2 * to + 1};

	f->from = from;
	f->to = to;
	f->n_links = 0;
	for (int i = 0; i < NET_HOPS; i++)
		if ((a != b || i == 0 || i == NET_HOPS - 1) && n->links[links[i]].rate < INFINITY)
			f->links[f->n_links++] = links[i];
}

/* ---- segments and queues of them */

uint32_t net_segment_new(struct sim_network *n)
{
	uint32_t s = n->free_segment;

	if (s != NET_NONE) {
		n->free_segment = n->segments[s].next;
		return s;
	}
	n->failed = array_grow_to(
		(void **)&n->segments, &n->room_segments, n->n_segments + 1, sizeof(*n->segments));
	return n->failed ? NET_NONE : (uint32_t)n->n_segments++;
}

void net_segment_free(struct sim_network *n, uint32_t s)
{
	n->segments[s].next = n->free_segment;
	n->free_segment = s;
}

void net_queue_put(struct sim_network *n, struct net_queue *q, uint32_t s)
{
	n->segments[s].next = NET_NONE;
	if (q->bytes)
		n->segments[q->last].next = s;
	else
		q->first = s;
	q->last = s;
	q->bytes += n->segments[s].bytes;
}

uint32_t net_queue_get(struct sim_network *n, struct net_queue *q)
{
	uint32_t s = q->first;

	if (!q->bytes)
		return NET_NONE;
	q->first = n->segments[s].next;
	q->bytes -= n->segments[s].bytes;
	return s;
}

/* ---- links */

static void drop(struct sim_network *n, uint32_t s)
{
	const struct net_flow *f = &n->flows[n->segments[s].flow];

	if (n->config->groups[f->group].kind == NET_UDP)
		net_segment_free(n, s);
	else
		net_push(n,
			n->now + (f->flying < 4 ? n->config->timeout
						: 2 * (f->n_links + 1) * n->config->delay),
			NET_LOST, s);
}

static void enter_link(struct sim_network *n, uint32_t s, struct net_link *l)
{
	struct net_segment *g = &n->segments[s];
	double now = (double)n->now, ahead = l->free > now ? l->free - now : 0;
	double waiting = ahead * l->rate / 1e9;

	if (waiting + g->bytes > (double)l->buffer) {
		l->drops++;
		drop(n, s);
		return;
	}
	if (waiting > (double)l->mark) {
		g->marked = true;
		l->marks++;
	}
	l->bytes += g->bytes;
	l->free = now + ahead + g->bytes * 1e9 / l->rate;
	g->stage++;
	net_push(n, (weir_time)(l->free + 0.5) + n->config->delay, NET_SEGMENT, s);
}

void net_path_next(struct sim_network *n, uint32_t s)
{
	const struct net_flow *f = &n->flows[n->segments[s].flow];
	unsigned hop = n->segments[s].stage - 2u;

	if (hop < f->n_links)
		enter_link(n, s, &n->links[f->links[hop]]);
	else
		net_flow_arrived(n, s);
}

/* ---- limiters */

static void leave_root(struct sim_network *n, uint32_t s)
{
	const struct net_flow *f = &n->flows[n->segments[s].flow];

	net_service(n, f->from, n->config->groups[f->group].service)->bytes[POLICY_NET_OUT] +=
		n->segments[s].bytes;
	n->segments[s].stage = 2;
	net_path_next(n, s);
}

static void arm(struct sim_network *n, struct net_limiter *l, enum net_event kind, uint64_t id,
	weir_time at)
{
	if (l->armed && l->armed <= at)
		return;
	l->armed = at;
	net_push(n, at, kind, id);
}

/* Let go what may leave. */
static void release(struct sim_network *n, struct net_limiter *l, enum net_event kind, uint64_t id,
	void (*leave)(struct sim_network *n, uint32_t s))
{
	while (l->queue.bytes) {
		weir_time dies = l->heard + PARLEY_LEAF, due;
		uint32_t s;

		if (kind == NET_LIMITER && n->now >= dies)
			parley_limiter_set(&l->law, INFINITY, n->now);
		due = parley_limiter_due(&l->law, n->now);
		if (due > n->now) {
			arm(n, l, kind, id, kind == NET_LIMITER && dies < due ? dies : due);
			return;
		}
		s = net_queue_get(n, &l->queue);
		parley_limiter_take(&l->law, n->segments[s].bytes);
		leave(n, s);
	}
}

static void enter(struct sim_network *n, struct net_limiter *l, enum net_event kind, uint64_t id,
	uint32_t s, void (*leave)(struct sim_network *n, uint32_t s))
{
	net_queue_put(n, &l->queue, s);
	release(n, l, kind, id, leave);
}

static void leave_leaf(struct sim_network *n, uint32_t s)
{
	const struct net_flow *f = &n->flows[n->segments[s].flow];
	uint32_t service = n->config->groups[f->group].service;

	n->segments[s].stage = 1;
	enter(n, &net_service(n, f->from, service)->root, NET_ROOT,
		(uint64_t)f->from * n->n_services + service, s, leave_root);
}

void net_path_send(struct sim_network *n, uint32_t s)
{
	uint32_t leaf = n->flows[n->segments[s].flow].leaf;

	n->segments[s].stage = 0;
	n->segments[s].marked = false;
	enter(n, &n->leaves[leaf], NET_LIMITER, leaf, s, leave_leaf);
}

weir_time net_path_blocked(const struct sim_network *n, const struct net_flow *f)
{
	const struct net_limiter *l[2] = {&n->leaves[f->leaf],
		&net_service(n, f->from, n->config->groups[f->group].service)->root};

	for (int i = 0; i < 2; i++)
		if (l[i]->queue.bytes > SOCKET_BYTES) {
			double wait = SOCKET_BYTES * 0.5e9 / l[i]->law.rate;

			return wait < WEIR_SEC ? (weir_time)wait : WEIR_SEC;
		}
	return 0;
}

void net_path_leaf(struct sim_network *n, uint32_t leaf)
{
	struct net_limiter *l = &n->leaves[leaf];

	if (l->armed == n->now) {
		l->armed = 0;
		release(n, l, NET_LIMITER, leaf, leave_leaf);
	}
}

void net_path_root(struct sim_network *n, uint64_t root)
{
	struct net_limiter *l =
		&n->machines[root / n->n_services].services[root % n->n_services].root;

	if (l->armed == n->now) {
		l->armed = 0;
		release(n, l, NET_ROOT, root, leave_root);
	}
}

void net_limit(
	struct sim_network *n, struct net_limiter *l, enum net_event kind, uint64_t id, double rate)
{
	if (l->law.rate == rate)
		return;
	parley_limiter_set(&l->law, rate, n->now);
	release(n, l, kind, id, kind == NET_LIMITER ? leave_leaf : leave_root);
}
