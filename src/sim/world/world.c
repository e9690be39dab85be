/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/world/world.h"
#include "base/array.h"
#include "sim/world/controller.h"
#include "sim/world/measure.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 32 /* requests taken from a gate at once */
/* Rounds at one time after which time counts as standing still: more than the IOs of any scenario
 * can need one after the other, and done in seconds. */
#define ROUNDS_MAX 10000000

/* ---- the pool of IOs */

static int grow_pool(struct world *w)
{
	struct world_io *ios;

	if (array_resize(&w->chunks, w->n_chunks + 1) < 0)
		return -ENOMEM;
	ios = aligned_alloc(_Alignof(struct world_io), WORLD_CHUNK * sizeof(*ios));
	if (!ios)
		return -ENOMEM;
	memset(ios, 0, WORLD_CHUNK * sizeof(*ios));
	if (event_reserve(&w->events, w->io_events + (w->n_chunks + 1) * WORLD_CHUNK)) {
		free(ios);
		return -ENOMEM;
	}
	for (uint32_t i = WORLD_CHUNK; i-- > 0;) {
		ios[i].index = w->n_chunks * WORLD_CHUNK + i;
		ios[i].dev.user = &ios[i];
		ios[i].req.user = w->free_ios;
		w->free_ios = &ios[i];
	}
	w->chunks[w->n_chunks++] = ios;
	return 0;
}

static struct world_io *take_io(struct world *w, struct world_load *l)
{
	struct world_io *io;

	if (!w->free_ios && grow_pool(w)) {
		w->failed = -ENOMEM;
		return NULL;
	}
	io = w->free_ios;
	w->free_ios = io->req.user;
	io->load = l;
	return io;
}

static void give_io(struct world *w, struct world_io *io)
{
	io->req.user = w->free_ios;
	w->free_ios = io;
}

/* Arm an event; if it is overdue, for now: time does not go backwards. */
static void arm_event(struct world *w, uint32_t id, weir_time at)
{
	event_arm(&w->events, id, at > w->now ? at : w->now);
}

/* ---- gates */

void world_touch(struct world *w, struct world_gate *g)
{
	uint32_t at;

	if (g->dirty)
		return;
	g->dirty = true;
	at = w->dirty_head + w->dirty_n++;
	w->dirty[at < w->n_gates ? at : at - w->n_gates] = (uint32_t)(g - w->gates);
}

static void forward_io(struct world *w, struct world_io *io);

static void submit_to_station(struct world *w, struct world_station *st, struct world_io *io);

/* Pass a request on to the station behind its gate. On a link it has its priority if it fits its profile, else the last. */
static void pass_gate(struct world *w, struct world_gate *g, const struct weir_req *r)
{
	struct world_io *io = r->user;
	double priority = LINK_CLASSES - 1;

	if (g->station >= w->stations + w->scenario->n_devices) {
		if (r->class_ == WEIR_CLASS_PRIORITY)
			weir_gate_get(g->gate, r->tenant, WEIR_KNOB_PRIORITY, &priority);
		io->dev.priority =
			(uint8_t)(priority < LINK_CLASSES - 1 ? priority : LINK_CLASSES - 1);
	}
	submit_to_station(w, g->station, io);
}

/* Let all requests pass the gate that may now. */
static void pump_gate(struct world *w, struct world_gate *g)
{
	struct weir_req *out[BATCH];
	size_t n;

	do {
		n = weir_gate_next(g->gate, w->now, out, BATCH);
		for (size_t i = 0; i < n; i++) {
			if (g->host)
				forward_io(w, out[i]->user);
			else
				pass_gate(w, g, out[i]);
		}
	} while (n == BATCH);
	arm_event(w, g->event, weir_gate_wakeup(g->gate, w->now));
}

static void pump_dirty(struct world *w)
{
	while (w->dirty_n > 0) {
		struct world_gate *g = &w->gates[w->dirty[w->dirty_head]];

		if (++w->dirty_head == w->n_gates)
			w->dirty_head = 0;
		w->dirty_n--;
		g->dirty = false;
		pump_gate(w, g);
	}
}

/* ---- the path of an IO */

/* Return a request's device time in ns, as the gate estimates it. */
static double time_of(
	const struct scenario_gate *g, struct estimate_past *past, const struct weir_req *r)
{
	const struct policy_lab_resource *lab = &g->resource.lab;

	if (g->estimate)
		return estimate_work(g->estimate, past, r->op, r->offset, r->bytes);
	return (double)lab->estimate_io +
	       (lab->estimate_rate > 0 ? (double)r->bytes * 1e9 / lab->estimate_rate : 0);
}

void world_costs(const struct scenario_gate *g, struct estimate_past *past, struct weir_req *r)
{
	double time;

	r->requests = 1;
	if (g->resource.io_unit || r->op > WEIR_WRITE) {
		r->requests = weir_policy_cost(&g->resource, (enum weir_op)r->op, r->bytes);
		r->bytes = weir_policy_cost_bytes((enum weir_op)r->op, r->bytes);
	}
	time = time_of(g, past, r);
	r->time = time < UINT32_MAX ? (uint32_t)time : UINT32_MAX;
}

static void count_inside(struct world *w, struct world_station *st, int change)
{
	st->inside_ns += (double)st->inside * (double)(w->now - st->inside_since);
	st->inside_since = w->now;
	st->inside += (uint32_t)change;
}

void world_station_look(struct world *w, struct world_station *st)
{
	arm_event(w, st->event, device_next(st->device));
}

static void submit_to_station(struct world *w, struct world_station *st, struct world_io *io)
{
	if (event_at(&w->events, st->event) <= w->now)
		world_station_step(w, st);
	count_inside(w, st, 1);
	device_submit(st->device, w->now, &io->dev);
	world_station_look(w, st);
}

/* Submit an IO of dev.bytes to the station's gate, or to the station if it has none. */
static void submit_to_gate(
	struct world *w, struct world_station *st, weir_node node, struct world_io *io)
{
	struct weir_req *r = &io->at_station;

	if (!st->gate) {
		submit_to_station(w, st, io);
		return;
	}
	*r = (struct weir_req){.tenant = node,
		.bytes = io->dev.bytes,
		.offset = io->req.offset,
		.op = io->req.op,
		.user = io};
	world_costs(st->gate->config, NULL, r);
	weir_gate_submit(st->gate->gate, w->now, &r, 1);
	world_touch(w, st->gate);
}

uint32_t world_link_bytes(bool request, uint8_t op, uint32_t bytes)
{
	return WORLD_HEADER + (op == (request ? WEIR_WRITE : WEIR_READ) ? bytes : 0);
}

static void submit_to_link(struct world *w, uint32_t link, struct world_io *io, bool request)
{
	weir_node node = w->stations[link].gate ? *world_link_node(w, io->load->tenant, link) : 0;

	io->dev.priority = io->load->tenant->link_priority;
	io->dev.bytes = world_link_bytes(request, io->req.op, io->bytes);
	submit_to_gate(w, &w->stations[link], node, io);
}

static void submit_to_device(struct world *w, struct world_io *io)
{
	io->dev.bytes = io->bytes;
	submit_to_gate(w, &w->stations[io->load->group->device], io->load->tenant->device_node, io);
}

static struct world_io *take_own(struct world *w, struct world_own *o)
{
	struct world_io *io = take_io(w, NULL);

	if (io)
		io->req.user = o;
	return io;
}

int world_own_read(struct world *w, struct world_own *o, struct world_station *st, uint64_t offset,
	uint32_t bytes)
{
	struct world_io *io = take_own(w, o);

	if (!io)
		return -ENOMEM;
	io->dev.offset = offset;
	io->dev.bytes = bytes;
	io->dev.op = WEIR_READ;
	io->dev.priority = 0;
	io->dev.source = w->n_tenants; /* one more than the number of tenants */
	st->has_own = true;
	st->own_beside += st->inside > st->own;
	st->own++;
	submit_to_station(w, st, io);
	return 0;
}

static void end_own(struct world *w, struct world_io *io)
{
	struct world_own *o = io->req.user;
	weir_time latency = w->now - io->dev.arrived;

	give_io(w, io);
	o->done(o, w, latency);
}

static void complete_io(struct world *w, struct world_io *io);

/* Send an IO to the station of its hop: a link towards the device, the device, a link back, or its
 * end. */
static void forward_io(struct world *w, struct world_io *io)
{
	const struct scenario_group *g = io->load->group;
	unsigned hop = io->hop;

	if (hop < g->n_request)
		submit_to_link(w, g->request[hop], io, true);
	else if (hop == g->n_request)
		submit_to_device(w, io);
	else if (hop - g->n_request - 1 < g->n_reply)
		submit_to_link(w, g->reply[hop - g->n_request - 1], io, false);
	else
		complete_io(w, io);
}

/* Handle an IO that a station has finished. */
static void leave_station(struct world *w, struct world_station *st, struct world_io *io)
{
	count_inside(w, st, -1);
	if (!io->load) {
		st->own--;
		end_own(w, io);
		return;
	}
	if (io->dev.dropped) {
		st->drops++;
		event_arm(&w->events, w->io_events + io->index, w->now + io->load->group->retry);
		return;
	}
	st->marks += io->dev.marked;
	st->count.done++;
	st->count.bytes += io->dev.bytes;
	st->count.latency_ns += (double)(w->now - io->dev.arrived);
	if (st->gate) {
		struct weir_req *r = &io->at_station;
		weir_gate_done(st->gate->gate, w->now, &r, 1);
		world_touch(w, st->gate);
	}
	io->hop++;
	forward_io(w, io);
}

void world_station_step(struct world *w, struct world_station *st)
{
	struct device_io *done = device_step(st->device, w->now), *next;

	world_station_look(w, st);
	for (; done; done = next) {
		next = done->next;
		leave_station(w, st, done->user);
	}
}

/* ---- workloads */

/* Submit an IO of a workload to its host's gate. */
static void issue_io(struct world *w, struct world_io *io, const struct workload_io *shape)
{
	struct world_load *l = io->load;
	struct world_tenant *t = l->tenant;
	struct world_gate *g = l->gate;
	struct weir_req *r = &io->req;

	*r = (struct weir_req){.tenant = t->node,
		.bytes = shape->bytes,
		.offset = shape->offset,
		.op = shape->op,
		.user = io};
	world_costs(g->config, &t->past, r);
	io->bytes = shape->bytes;
	io->hop = 0;
	io->pausing = false;
	io->waits = true;
	io->dev.offset = shape->offset;
	io->dev.op = shape->op;
	io->dev.priority = t->link_priority;
	io->dev.source = t->number;
	if (l->bursts)
		world_burst_issue(w, l, io);
	w->submitted++;
	weir_gate_submit(g->gate, w->now, &r, 1);
	world_touch(w, g);
}

/* Issue the next IO of a closed workload whose slot is free, now or after a pause. */
static void refill_slot(struct world *w, struct world_load *l, struct world_io *io)
{
	struct workload_io shape;

	if (!l->running) {
		l->parked++;
		give_io(w, io);
		return;
	}
	if (!workload_next(l->source, w->now, &shape)) {
		give_io(w, io);
		return;
	}
	if (shape.at <= w->now) {
		issue_io(w, io, &shape);
		return;
	}
	io->pausing = true;
	io->req.offset = shape.offset;
	io->bytes = shape.bytes;
	io->req.op = shape.op;
	event_arm(&w->events, w->io_events + io->index, shape.at);
}

/* Handle an IO's own event: its pause is over, or it is time to try a link again. */
static void wake_io(struct world *w, struct world_io *io)
{
	struct workload_io shape = {w->now, io->req.offset, io->bytes, io->req.op};

	if (!io->pausing) {
		forward_io(w, io);
	} else if (io->load->running) {
		issue_io(w, io, &shape);
	} else {
		io->load->parked++;
		give_io(w, io);
	}
}

static void handle_arrivals(struct world *w, struct world_load *l)
{
	while (l->next.at <= w->now) {
		if (l->running) {
			struct world_io *io = take_io(w, l);
			if (!io)
				return;
			issue_io(w, io, &l->next);
		}
		if (!workload_next(l->source, w->now, &l->next))
			return;
	}
	event_arm(&w->events, l->event, l->next.at);
}

static void start_slots(struct world *w, struct world_load *l, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct world_io *io = take_io(w, l);
		if (!io)
			return;
		refill_slot(w, l, io);
	}
}

void world_load_run(struct world *w, struct world_load *l, bool run)
{
	uint32_t slots = l->parked;

	if (l->running == run)
		return;
	l->running = run;
	if (run && l->closed) {
		l->parked = 0;
		start_slots(w, l, slots);
	}
}

static void start_loads(struct world *w)
{
	for (uint32_t i = 0; i < w->n_loads; i++) {
		struct world_load *l = &w->loads[i];

		if (!l->closed) {
			if (workload_next(l->source, 0, &l->next))
				event_arm(&w->events, l->event, l->next.at);
		} else if (l->running) {
			start_slots(w, l, l->config->config.outstanding);
		} else {
			l->parked = l->config->config.outstanding;
		}
	}
}

static void complete_io(struct world *w, struct world_io *io)
{
	struct world_load *l = io->load;
	struct world_tenant *t = l->tenant;
	struct weir_req *r = &io->req;

	io->waits = false;
	weir_gate_done(l->gate->gate, w->now, &r, 1);
	world_touch(w, l->gate);
	t->count.done++;
	t->count.bytes += r->bytes;
	t->count.latency_ns += (double)(w->now - r->submitted);
	t->count.inside_ns += (double)(w->now - r->dispatched);
	if (t->slo_latency) {
		weir_time latency = w->now - r->submitted;

		t->slo.total++;
		t->slo.late += latency > t->slo_latency;
		t->slo.near += (double)latency > SITE_NEAR * (double)t->slo_latency;
	}
	w->completed++;
	measure_record(w->measure, t->number, w->now - r->submitted, w->now - r->dispatched);
	if (l->bursts)
		world_burst_complete(w, l, io);
	if (l->closed)
		refill_slot(w, l, io);
	else
		give_io(w, io);
}

/* ---- time */

static void arm_controller(struct world *w, uint32_t i)
{
	const struct world_controller *c = &w->controllers[i];
	const struct sim_controller_ops *ops = c->config->ops;
	weir_time due = ops->due ? ops->due(c->state) : w->now + c->config->period;

	if (due < WEIR_NEVER)
		event_arm(&w->events, w->other_events + WORLD_EVENT_CONTROLLERS + i, due);
}

static void other_event(struct world *w, uint32_t which)
{
	uint32_t id = w->other_events + which;

	switch (which) {
	case WORLD_EVENT_MOMENT: {
		const struct scenario *s = w->scenario;
		int r = world_change(w, &s->moments[w->next_moment++], &w->why);
		if (r)
			w->failed = r;
		if (w->next_moment < s->n_moments)
			event_arm(&w->events, id, s->moments[w->next_moment].time);
		break;
	}
	case WORLD_EVENT_SAMPLE:
		measure_sample(w->measure, w);
		event_arm(&w->events, id, w->now + w->scenario->sample);
		break;
	case WORLD_EVENT_WARMUP:
		measure_begin(w->measure, w);
		break;
	default: {
		struct world_controller *c = &w->controllers[which - WORLD_EVENT_CONTROLLERS];
		int r = c->config->ops->step(c->state, w, w->now, &w->why);
		if (r)
			w->failed = r;
		arm_controller(w, which - WORLD_EVENT_CONTROLLERS);
		break;
	}
	}
}

static void handle_event(struct world *w, uint32_t id)
{
	if (id < w->gate_events) {
		world_station_step(w, &w->stations[id]);
	} else if (id >= w->io_events) {
		uint32_t i = id - w->io_events;
		wake_io(w, &w->chunks[i / WORLD_CHUNK][i % WORLD_CHUNK]);
	} else if (id < w->load_events) {
		world_touch(w, &w->gates[id - w->gate_events]);
	} else if (id < w->other_events) {
		handle_arrivals(w, &w->loads[id - w->load_events]);
	} else {
		other_event(w, id - w->other_events);
	}
}

static void arm_others(struct world *w)
{
	const struct scenario *s = w->scenario;
	uint32_t id = w->other_events;

	if (s->n_moments)
		event_arm(&w->events, id + WORLD_EVENT_MOMENT, s->moments[0].time);
	if (s->sample)
		event_arm(&w->events, id + WORLD_EVENT_SAMPLE, s->sample);
	event_arm(&w->events, id + WORLD_EVENT_WARMUP, w->warmup);
	for (size_t i = 0; i < s->n_controllers; i++)
		arm_controller(w, (uint32_t)i);
}

static void run_one_time(struct world *w)
{
	unsigned rounds = 0;

	do {
		while (event_next(&w->events) == w->now)
			handle_event(w, event_pop(&w->events));
		pump_dirty(w);
		if (++rounds == ROUNDS_MAX)
			w->failed = -ELOOP;
	} while (event_next(&w->events) == w->now && !w->failed);
}

int world_run(struct world *w, weir_time until)
{
	weir_time next;

	if (until > w->end)
		until = w->end;
	if (w->now == 0 && w->events.popped == 0) {
		arm_others(w);
		start_loads(w);
		run_one_time(w);
	}
	while (!w->failed && (next = event_next(&w->events)) < until) {
		w->now = next;
		run_one_time(w);
	}
	if (!w->failed)
		w->now = until;
	return w->failed;
}
