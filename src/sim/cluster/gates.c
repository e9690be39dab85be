/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gates: a server of a simulated cluster as it is live: a gate, whose leaves hold R- and L-tokens, in
 * front of a device, in virtual time. server.c counts requests; this file passes each of them
 * through the gate, whose fair queueing by (equal) weights replaces the round robin.
 *
 * METHOD  Within a slot servers do not receive messages, so each runs through it alone: requests
 *         arrive when it begins; then the next event, a completed request or one that may pass,
 *         happens at its own time. A closed loop sends its next request when one completes.
 */
#include <weir/gate.h>
#include "base/array.h"
#include "base/lesser.h"
#include "model/server.h"
#include "sim/cluster/cluster.h"
#include <errno.h>
#include <stdlib.h>

/* Requests in the device at once. Fewer than the paper's buckets have outstanding (5), so that the
 * gate, and not the device, decides the order. */
#define INSIDE 2
#define BATCH  16
#define HOLDS  1e15 /* tokens, a bucket at most: more than any limit */

struct gates_io {
	struct weir_req req;
	struct device_io io;
	struct gates_io *next; /* free ones */
	uint32_t place;
};

struct gates_leaf { /* of a place */
	weir_node node;
	bool limited;
	uint32_t here; /* requests: waiting and inside */
	uint32_t loop; /* the place's loop in the last slot */
};

struct sim_gates {
	struct weir_gate *gate;
	struct device *device;
	struct gates_leaf *leaves; /* by place */
	struct weir_knob *knobs;
	size_t n_leaves, room_leaves, n_knobs, room_knobs;
	struct gates_io **all, *free;
	size_t n_all, room_all;
	double rate;
};

int sim_gates_begin(struct sim_server *s, uint64_t seed)
{
	struct weir_gate_config config = {
		.nodes = 16, .cost = WEIR_UNIT_REQUESTS, .window = INSIDE};
	struct server_config device = {
		.servers = INSIDE, .rate = s->cluster->config.capacity, .service = SERVER_FIXED};
	struct sim_gates *g = calloc(1, sizeof(*g));
	char name[SIM_SERVER_NAME];
	int r;

	if (!g)
		return -ENOMEM;
	s->gates = g;
	g->rate = device.rate;
	sim_server_name(s->number, name);
	r = weir_gate_new(&config, &g->gate);
	return r ? r : server_new(&device, seed, name, &g->device, NULL);
}

void sim_gates_end(struct sim_server *s)
{
	struct sim_gates *g = s->gates;

	if (!g)
		return;
	weir_gate_free(g->gate);
	device_free(g->device);
	for (size_t i = 0; i < g->n_all; i++)
		free(g->all[i]);
	free(g->all);
	free(g->leaves);
	free(g->knobs);
	free(g);
}

/* Tokens are buckets that only grants fill, as in the gateway. */
int sim_gates_add(struct sim_server *s, bool limited)
{
	static const struct weir_bucket_spec tokens[] = {
		{WEIR_RTOKENS, WEIR_UNIT_REQUESTS, 0, 0, HOLDS},
		{WEIR_LTOKENS, WEIR_UNIT_REQUESTS, 0, 0, HOLDS}};
	struct sim_gates *g = s->gates;
	struct weir_knob knob = {
		.kind = WEIR_KNOB_BUCKETS, .buckets = tokens, .n_buckets = limited ? 2 : 1};
	int r = array_grow(&g->leaves, &g->room_leaves, g->n_leaves + 1);

	if (r == 0) /* R- and L-tokens */
		r = array_grow(&g->knobs, &g->room_knobs, 2 * (g->n_leaves + 1));
	if (r == 0)
		r = weir_gate_add(g->gate, WEIR_ROOT, &knob.node);
	if (r == 0 && s->cluster->config.control)
		r = weir_gate_set(g->gate, s->cluster->now, &knob, 1, NULL);
	if (r == 0)
		g->leaves[g->n_leaves++] =
			(struct gates_leaf){.node = knob.node, .limited = limited};
	return r;
}

void sim_gates_grant(struct sim_server *s, size_t place, int64_t r, int64_t l)
{
	struct sim_gates *g = s->gates;
	const struct gates_leaf *leaf = &g->leaves[place];

	if (r)
		g->knobs[g->n_knobs++] = (struct weir_knob){
			.node = leaf->node, .kind = WEIR_KNOB_RGRANT, .value = (double)r};
	if (l && leaf->limited)
		g->knobs[g->n_knobs++] = (struct weir_knob){
			.node = leaf->node, .kind = WEIR_KNOB_LGRANT, .value = (double)l};
}

int sim_gates_set(struct sim_server *s)
{
	struct sim_gates *g = s->gates;
	size_t n = g->n_knobs;

	g->n_knobs = 0;
	return n ? weir_gate_set(g->gate, s->cluster->now, g->knobs, n, NULL) : 0;
}

/* ---- requests */

static struct gates_io *take_io(struct sim_gates *g)
{
	struct gates_io *io = g->free;

	if (io) {
		g->free = io->next;
		return io;
	}
	if (array_grow(&g->all, &g->room_all, g->n_all + 1) < 0)
		return NULL;
	io = malloc(sizeof(*io));
	if (io)
		g->all[g->n_all++] = io;
	return io;
}

static void give(struct sim_gates *g, struct gates_io *io)
{
	g->leaves[io->place].here--;
	io->next = g->free;
	g->free = io;
}

static int submit(struct sim_gates *g, weir_time now, uint32_t place, uint64_t n)
{
	int r = 0;

	for (; r == 0 && n; n--) {
		struct gates_io *io = take_io(g);
		struct weir_req *req;

		if (!io)
			return -ENOMEM;
		io->place = place;
		io->req = (struct weir_req){.user = io, .tenant = g->leaves[place].node};
		io->io = (struct device_io){.user = io, .bytes = 4096};
		req = &io->req;
		r = weir_gate_submit(g->gate, now, &req, 1);
		g->leaves[place].here++;
	}
	return r;
}

static bool any(const struct weir_req *req, void *arg)
{
	(void)req;
	(void)arg;
	return true;
}

static void drop(struct weir_req *req, void *arg)
{
	give(arg, req->user);
}

/* Submit the requests that arrive in this slot; a closed loop that left takes its waiting requests with it. */
static int arrivals(struct sim_server *s, weir_time slot)
{
	struct sim_gates *g = s->gates;
	weir_time now = s->cluster->now;
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->n; i++) {
		struct sim_place *p = &s->places[i];
		struct gates_leaf *leaf = &g->leaves[i];
		double mean = p->rate * (double)slot / (double)WEIR_SEC;

		if (p->loop < leaf->loop)
			weir_gate_cancel(g->gate, now, leaf->node, any, drop, g);
		leaf->loop = p->loop;
		if (p->loop > leaf->here)
			r = submit(g, now, (uint32_t)i, p->loop - leaf->here);
		else if (!p->loop && p->rate > 0)
			r = submit(g, now, (uint32_t)i, sim_server_come(s, p, mean));
		p->open += p->loop ? slot : 0;
	}
	return r;
}

/* ---- a slot */

static void pass(struct sim_gates *g, weir_time now)
{
	struct weir_req *reqs[BATCH];
	size_t n;

	while ((n = weir_gate_next(g->gate, now, reqs, BATCH)) > 0)
		for (size_t i = 0; i < n; i++)
			device_submit(g->device, now, &((struct gates_io *)reqs[i]->user)->io);
}

static int finish(struct sim_server *s, weir_time now)
{
	struct sim_gates *g = s->gates;
	struct device_io *next;
	int r = 0;

	for (struct device_io *d = device_step(g->device, now); d && r == 0; d = next) {
		struct gates_io *io = d->user;
		uint32_t place = io->place;
		struct weir_req *req = &io->req;

		next = d->next;
		weir_gate_done(g->gate, now, &req, 1);
		give(g, io);
		if (s->places[place].loop > g->leaves[place].here)
			r = submit(g, now, place, 1);
	}
	return r;
}

/* Add the gate's counters to the place's. */
static int count(struct sim_server *s, weir_time now)
{
	struct sim_gates *g = s->gates;
	struct weir_gate_totals totals;

	for (size_t i = 0; i < s->n; i++) {
		struct sim_place *p = &s->places[i];
		struct weir_gate_stats st;
		int r = weir_gate_get_stats(g->gate, now, g->leaves[i].node, &st);

		if (r)
			return r;
		s->cluster->served += st.dispatched - p->served;
		p->arrived = st.arrivals;
		p->served = st.dispatched;
		p->queued = st.queued;
		p->inside = st.in_flight;
		p->waited = 0;
		for (int k = 0; k < WEIR_CAUSES; k++)
			p->waited += st.wait_ns[k];
	}
	weir_gate_get_totals(g->gate, now, &totals);
	s->totals.requests = totals.served;
	s->totals.full = totals.full;
	return 0;
}

int sim_gates_step(struct sim_server *s, weir_time slot, double rate)
{
	struct sim_gates *g = s->gates;
	weir_time now = s->cluster->now, end = now + slot;
	int r = finish(s, now);

	if (r == 0 && rate != g->rate)
		r = server_set_rate(g->device, now, g->rate = rate);
	if (r == 0)
		r = arrivals(s, slot);
	while (r == 0 && now < end) {
		pass(g, now);
		now = lesser(device_next(g->device), weir_gate_wakeup(g->gate, now));
		if (now < end)
			r = finish(s, now);
	}
	return r ? r : count(s, end);
}
