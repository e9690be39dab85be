/* SPDX-License-Identifier: BSD-3-Clause */
/* flow: what flows send, and what they make of acknowledgements and losses. */
#include "sim/network/network.h"
#include "base/array.h"
#include <errno.h>
#include <stdlib.h>

/* ---- messages */

static uint32_t message_new(struct sim_network *n)
{
	uint32_t m = n->free_message;

	if (m != NET_NONE) {
		n->free_message = n->messages[m].next;
		return m;
	}
	n->failed = array_grow_to(
		(void **)&n->messages, &n->room_messages, n->n_messages + 1, sizeof(*n->messages));
	return n->failed ? NET_NONE : (uint32_t)n->n_messages++;
}

static void message_done(struct sim_network *n, uint32_t group, uint32_t m)
{
	if (n->messages[m].begun >= n->config->settle)
		weir_hist_record(&n->times[group], (uint64_t)(n->now - n->messages[m].begun));
	n->messages[m].next = n->free_message;
	n->free_message = m;
}

/* ---- flows */

/* Return the leaf of a service for a destination, made if it is new. */
static uint32_t find_leaf(struct sim_network *n, uint32_t from, uint32_t service, uint32_t to)
{
	/* Flows of a group come pair by pair: the last leaves are likely. */
	for (size_t i = n->n_flows; i-- > 0 && i + 64 > n->n_flows;) {
		const struct net_flow *f = &n->flows[i];

		if (f->from == from && f->to == to &&
			n->config->groups[f->group].service == service)
			return f->leaf;
	}
	n->failed = array_grow_to(
		(void **)&n->leaves, &n->room_leaves, n->n_leaves + 1, sizeof(*n->leaves));
	if (n->failed)
		return NET_NONE;
	n->leaves[n->n_leaves] = (struct net_limiter){
		.law = {.rate = INFINITY, .burst = (double)n->config->segment}};
	return (uint32_t)n->n_leaves++;
}

static void add_flow(struct sim_network *n, uint32_t group, uint32_t from, uint32_t to)
{
	const struct net_group *g = &n->config->groups[group];
	uint32_t leaf = find_leaf(n, from, g->service, to);
	struct net_flow *f;

	n->failed = n->failed ? n->failed
			      : array_grow_to((void **)&n->flows, &n->room_flows, n->n_flows + 1,
					sizeof(*n->flows));
	if (n->failed)
		return;
	f = &n->flows[n->n_flows++];
	*f = (struct net_flow){.group = group,
		.leaf = leaf,
		.window = g->window,
		.threshold = n->config->widest,
		.first = NET_NONE,
		.on = g->kind == NET_RPC};
	net_path_route(n, from, to, f);
}

/* A group's flows: the first of each pair of machines, then the second … */
static void add_group(struct sim_network *n, uint32_t group)
{
	const struct net_group *g = &n->config->groups[group];
	uint32_t pairs = g->wander ? 1 : g->to_many;

	n->first_flow[group] = (uint32_t)n->n_flows;
	for (uint32_t a = 0; a < g->from_many; a++)
		for (uint32_t b = 0; b < pairs; b++)
			for (uint32_t k = 0; k < g->many; k++)
				if (g->from_first + a != g->to_first + b || g->wander)
					add_flow(n, group, g->from_first + a, g->to_first + b);
	n->first_flow[group + 1] = (uint32_t)n->n_flows;
}

int net_flow_begin(struct sim_network *n)
{
	const struct sim_network_config *c = n->config;

	n->first_flow = calloc(c->n_groups + 1, sizeof(*n->first_flow));
	n->begun = calloc(c->n_groups + 1, sizeof(*n->begun));
	n->times = calloc(c->n_groups + 1, sizeof(*n->times));
	if (!n->first_flow || !n->begun || !n->times)
		return -ENOMEM;
	for (uint32_t g = 0; g < c->n_groups; g++) {
		weir_hist_clear(&n->times[g]);
		add_group(n, g);
		if (c->groups[g].kind == NET_RPC)
			net_push(n, c->groups[g].start, NET_GROUP, g);
		for (uint32_t f = n->first_flow[g]; f < n->n_flows && c->groups[g].kind != NET_RPC;
			f++)
			net_push(n, c->groups[g].start, NET_TURN, f);
	}
	return n->failed;
}

void net_flow_end(struct sim_network *n)
{
	free(n->first_flow);
	free(n->begun);
	free(n->flows);
	free(n->messages);
	free(n->rngs);
}

/* ---- sending */

/* Return a time of 1 ns to 30 years. */
static weir_time interval(double ns)
{
	return ns > 1e18 ? (weir_time)1e18 : ns > 1 ? (weir_time)(ns + 0.5) : 1;
}

/* Make the flow's next segment; NET_NONE: there is nothing to send. */
static uint32_t next_segment(struct sim_network *n, uint32_t flow)
{
	struct net_flow *f = &n->flows[flow];
	bool rpc = n->config->groups[f->group].kind == NET_RPC;
	uint64_t bytes = n->config->segment;
	uint32_t s;

	if (f->lost.bytes)
		return net_queue_get(n, &f->lost);
	if (rpc ? f->first == NET_NONE : !f->on)
		return NET_NONE;
	s = net_segment_new(n);
	if (s == NET_NONE)
		return s;
	if (rpc && n->messages[f->first].unsent < bytes)
		bytes = n->messages[f->first].unsent;
	n->segments[s] = (struct net_segment){.flow = flow,
		.message = rpc ? f->first : NET_NONE,
		.bytes = (uint32_t)bytes,
		.number = f->sent++};
	if (rpc && !(n->messages[f->first].unsent -= bytes))
		f->first = n->messages[f->first].next;
	return s;
}

static void pump(struct sim_network *n, uint32_t flow)
{
	struct net_flow *f = &n->flows[flow];
	uint32_t s;

	while (f->flying < (uint32_t)f->window && (s = next_segment(n, flow)) != NET_NONE) {
		f->flying++;
		net_path_send(n, s);
	}
}

/* Begin one rpc of a group, on its flows in turn, between two machines at random. */
static void begin_rpc(struct sim_network *n, uint32_t group)
{
	const struct net_group *g = &n->config->groups[group];
	uint32_t flows = n->first_flow[group + 1] - n->first_flow[group], pairs = flows / g->many;
	uint32_t pair = pairs > 1 ? (uint32_t)rng_below(&n->rngs[group], pairs) : 0;
	uint32_t flow =
		n->first_flow[group] + pair * g->many + (uint32_t)(n->begun[group]++ % g->many);
	uint32_t m = message_new(n);
	struct net_flow *f = &n->flows[flow];
	uint64_t size = g->size;

	if (m == NET_NONE)
		return;
	if (g->sizes)
		size = 1 + (uint64_t)rng_exp(&n->rngs[group], (double)g->size);
	n->messages[m] = (struct net_message){n->now, size, size, NET_NONE};
	if (f->first == NET_NONE)
		f->first = m;
	else
		n->messages[f->last].next = m;
	f->last = m;
	pump(n, flow);
}

void net_flow_rpc(struct sim_network *n, uint32_t group)
{
	const struct net_group *g = &n->config->groups[group];
	double mean = (double)g->size * g->batch / g->rate * 1e9, next = mean;

	if (g->end && n->now >= g->end)
		return;
	for (uint32_t i = 0; i < g->batch; i++)
		begin_rpc(n, group);
	if (g->arrivals == NET_POISSON)
		next = rng_exp(&n->rngs[group], mean);
	else if (g->arrivals == NET_UNIFORM)
		next = 2 * mean * rng_double(&n->rngs[group]);
	net_push(n, n->now + interval(next), NET_GROUP, group);
}

void net_flow_udp(struct sim_network *n, uint32_t flow)
{
	struct net_flow *f = &n->flows[flow];
	weir_time wait;
	uint32_t s;

	if (!f->on)
		return;
	if ((wait = net_path_blocked(n, f))) {
		net_push(n, n->now + wait, NET_FLOW, flow);
		return;
	}
	if ((s = next_segment(n, flow)) == NET_NONE)
		return;
	net_path_send(n, s);
	net_push(n,
		n->now + interval((double)n->config->segment * 1e9 /
				  n->config->groups[f->group].rate),
		NET_FLOW, flow);
}

static void wander(struct sim_network *n, struct net_flow *f)
{
	const struct net_group *g = &n->config->groups[f->group];
	uint32_t to;

	do
		to = g->to_first + (uint32_t)rng_below(&n->rngs[f->group], g->to_many);
	while (to == f->from);
	net_path_route(n, f->from, to, f);
}

/* A flow starts, ends, or turns on or off. Flows of one group start within one segment's time, so that
 * they are not in step. */
void net_flow_turn(struct sim_network *n, uint32_t flow)
{
	struct net_flow *f = &n->flows[flow];
	const struct net_group *g = &n->config->groups[f->group];
	bool was = f->on;
	weir_time later = 0, gap = 1;

	f->on = g->end ? n->now < g->end : true;
	if (f->on && was && g->off)
		f->on = false;
	if (f->on && g->wander)
		wander(n, f);
	if (f->on && g->on)
		net_push(n, n->now + g->on, NET_TURN, flow);
	else if (!f->on && g->off && (!g->end || n->now < g->end))
		net_push(n, n->now + g->off, NET_TURN, flow);
	else if (f->on && g->end)
		net_push(n, g->end, NET_TURN, flow);
	if (g->kind == NET_TCP) {
		pump(n, flow);
	} else if (f->on && !was) {
		gap = interval((double)n->config->segment * 1e9 / g->rate);
		later = gap > 1 ? (weir_time)rng_below(&n->rngs[f->group], (uint64_t)gap) : 0;
		net_push(n, n->now + later, NET_FLOW, flow);
	}
}

/* ---- what comes back */

void net_flow_arrived(struct sim_network *n, uint32_t s)
{
	struct net_segment *g = &n->segments[s];
	struct net_flow *f = &n->flows[g->flow];
	int kind = n->config->groups[f->group].kind;

	f->got += g->bytes;
	n->got[f->group] += g->bytes;
	g->told = net_control_received(n, s);
	if (g->message != NET_NONE) {
		struct net_message *m = &n->messages[g->message];

		m->missing -= g->bytes;
		if (!m->missing)
			message_done(n, f->group, g->message);
	}
	if (kind == NET_UDP && !(g->told > 0))
		net_segment_free(n, s);
	else
		net_push(n, n->now + (f->n_links + 1) * n->config->delay, NET_ACK, s);
}

void net_flow_acked(struct sim_network *n, uint32_t s)
{
	uint32_t flow = n->segments[s].flow;
	struct net_flow *f = &n->flows[flow];
	float told = n->segments[s].told;

	net_segment_free(n, s);
	if (told > 0)
		net_control_told(n, flow, told);
	if (n->config->groups[f->group].kind == NET_UDP)
		return;
	f->flying--;
	if (f->window < f->threshold)
		f->window += 1;
	else
		f->window += 1 / f->window;
	if (f->window > n->config->widest)
		f->window = n->config->widest;
	pump(n, flow);
}

void net_flow_lost(struct sim_network *n, uint32_t s)
{
	uint32_t flow = n->segments[s].flow;
	struct net_flow *f = &n->flows[flow];

	if (n->segments[s].number >= f->recover) {
		f->threshold = f->window / 2 > 2 ? f->window / 2 : 2;
		f->window = f->flying < 4 ? 1 : f->threshold;
		f->recover = f->sent;
	}
	f->flying--;
	net_queue_put(n, &f->lost, s);
	pump(n, flow);
}
