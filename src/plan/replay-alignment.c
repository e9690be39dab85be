/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay-alignment: one run of all traces through their gates.
 *
 * METHOD   A heap of sources of events: the next arrival of each tenant, the next completion and wake-up of each stage, and for
 *          each tenant and stage the request that leaves it next. All events of one time are handled before the gates that they
 *          touched decide, as in the simulator.
 */
#include "plan/replay-impl.h"
#include "base/array.h"
#include "base/heap.h"
#include "base/rng.h"
#include <weir/gate.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK       256   /* requests and pieces that are allocated at once */
#define PIECES_MOST 65536 /* of a request */
#define FILLERS     4096  /* requests of tenants without a trace at a stage, at most */
#define BATCH       64

struct io { /* a request of a trace */
	struct io *next;
	weir_time born, leaves;
	uint32_t tenant, record, hop, left; /* left: pieces that are not done */
};

struct piece {               /* of a request at a stage; most are whole requests */
	struct weir_req req; /* first */
	struct piece *next;
	struct io *io; /* NULL: of a tenant without a trace */
	double work;
	weir_time ends;
};

struct stage {
	const struct replay_stage *is;
	struct weir_gate *gate;
	struct piece *first, *last; /* in the server, in order */
	weir_time busy_since;       /* the server, without a pause … */
	double busy;                /* … for so many s until it has done all of them */
	uint32_t live;              /* requests of traces in the stage */
	weir_node filler;           /* leaf of tenants without a trace */
	bool dirty, filled;
};

struct hop { /* of a tenant */
	weir_node node;
	struct io *first, *last; /* that leave it for the next stage */
	weir_time left;          /* when the last one left */
};

struct run {
	const struct replay_input *in;
	const struct replay_course *course;
	weir_time now, horizon;
	struct stage *stages;
	struct hop *hops;
	uint32_t *first_hop; /* by tenant */
	size_t *record;      /* by tenant: the next one */
	weir_time *base;     /* by tenant: added to its time */
	struct heap heap;
	uint32_t *place;
	void **chunks;
	size_t n_chunks, chunks_room;
	struct io *free_io;
	struct piece *free_piece;
	struct rng rng;
	struct replay_sample *samples;
};

/* ---- memory */

static void *new_chunk(struct run *r, size_t size)
{
	void *c = array_grow(&r->chunks, &r->chunks_room, r->n_chunks + 1) < 0
			  ? NULL
			  : calloc(CHUNK, size);

	if (c)
		r->chunks[r->n_chunks++] = c;
	return c;
}

static struct io *new_io(struct run *r)
{
	struct io *io = r->free_io;

	if (!io) {
		io = new_chunk(r, sizeof(*io));
		for (size_t i = 1; io && i < CHUNK; i++)
			io[i].next = i + 1 < CHUNK ? &io[i + 1] : NULL;
		r->free_io = io ? io + 1 : NULL;
		return io;
	}
	r->free_io = io->next;
	return io;
}

static struct piece *new_piece(struct run *r)
{
	struct piece *p = r->free_piece;

	if (!p) {
		p = new_chunk(r, sizeof(*p));
		for (size_t i = 1; p && i < CHUNK; i++)
			p[i].next = i + 1 < CHUNK ? &p[i + 1] : NULL;
		r->free_piece = p ? p + 1 : NULL;
		return p;
	}
	r->free_piece = p->next;
	return p;
}

/* ---- events */

static uint32_t stage_source(const struct run *r, const struct stage *s, bool wake)
{
	return r->in->n_tenants + (uint32_t)(s - r->stages) + (wake ? r->in->n_stages : 0);
}

static uint32_t hop_source(const struct run *r, const struct hop *h)
{
	return r->in->n_tenants + 2 * r->in->n_stages + (uint32_t)(h - r->hops);
}

/* Set the time of a source's next event; WEIR_NEVER: none. The heap has room. */
static void set_event(struct run *r, uint32_t source, weir_time at)
{
	uint32_t where = r->place[source];

	if (at == WEIR_NEVER && where != HEAP_NOWHERE)
		heap_remove(&r->heap, where);
	else if (at != WEIR_NEVER && where != HEAP_NOWHERE)
		heap_move(&r->heap, where, at, source);
	else if (at != WEIR_NEVER)
		heap_push(&r->heap, (struct heap_item){at, source, source});
}

/* ---- a stage */

static void fill_req(const struct stage *s, struct piece *p, weir_node node, double work)
{
	double cost = floor(s->is->link ? work : work * 1e9);
	uint32_t units = cost < UINT32_MAX ? (uint32_t)cost : UINT32_MAX;

	p->req = (struct weir_req){.tenant = node,
		.requests = 1,
		.bytes = s->is->link ? units : 0,
		.time = s->is->link ? 0 : units};
	p->work = work;
	p->next = NULL;
}

static int submit(struct run *r, struct stage *s, struct piece *p)
{
	struct weir_req *q = &p->req;

	s->dirty = true;
	return weir_gate_submit(s->gate, r->now, &q, 1);
}

static weir_time free_at(const struct stage *s)
{
	return s->busy_since + (weir_time)ceil(fmin(s->busy, 1e9) * 1e9 - 1e-3);
}

/* Let a request into the server. */
static void enter(struct stage *s, struct piece *p, weir_time now)
{
	if (free_at(s) <= now) {
		s->busy_since = now;
		s->busy = 0;
	}
	s->busy += p->work / s->is->rate;
	p->ends = free_at(s);
	p->next = NULL;
	if (s->last)
		s->last->next = p;
	else
		s->first = p;
	s->last = p;
}

/* Tenants without a trace have the window before a request comes: the first of their requests is somewhere inside its work. */
static void wake(struct run *r, struct stage *s)
{
	struct weir_req *out[BATCH];
	size_t n;

	s->busy_since = r->now;
	s->busy = -s->is->untraced / s->is->rate * rng_double(&r->rng);
	while ((n = weir_gate_next(s->gate, r->now, out, BATCH)) > 0)
		for (size_t i = 0; i < n; i++)
			enter(s, (struct piece *)out[i], free_at(s) - 1);
	s->filled = true;
}

/* No request of a trace is left: the others wait until the next one comes. */
static int sleep_stage(struct run *r, struct stage *s)
{
	int rc = 0;

	for (struct piece *p = s->first, *next; rc == 0 && p; p = next) {
		struct weir_req *q = &p->req;

		next = p->next;
		weir_gate_done(s->gate, r->now, &q, 1);
		fill_req(s, p, s->filler, s->is->untraced);
		rc = submit(r, s, p);
	}
	s->first = s->last = NULL;
	s->filled = s->dirty = false;
	set_event(r, stage_source(r, s, false), WEIR_NEVER);
	set_event(r, stage_source(r, s, true), WEIR_NEVER);
	return rc;
}

static int arrive(struct run *r, struct io *io)
{
	const struct replay_tenant *t = &r->in->tenants[io->tenant];
	struct stage *s = &r->stages[t->hop[io->hop].stage];
	const struct trace_record *q = &t->trace->records[io->record];
	double work = t->work[io->hop][io->record], part = s->is->piece;
	weir_node node = r->hops[r->first_hop[io->tenant] + io->hop].node;

	if (!s->is->link)
		part = work / replay_pieces(q);
	part = part > 0 ? fmax(part, work / PIECES_MOST) : work;
	if (s->is->untraced > 0 && !s->filled)
		wake(r, s);
	s->live++;
	io->left = 0;
	do {
		struct piece *p = new_piece(r);

		if (!p)
			return -ENOMEM;
		fill_req(s, p, node, fmin(part, work));
		p->req.op = q->op;
		p->io = io;
		io->left++;
		if (submit(r, s, p) < 0)
			return -EINVAL;
		work -= part;
	} while (work > 1e-9 * part);
	return 0;
}

static double draw_inside(struct run *r, const struct replay_stage *s, unsigned op)
{
	const struct estimate_inside *i = &s->inside[op < ESTIMATE_OPS ? op : ESTIMATE_OPS - 1];
	double p999 = i->p999 > 0 ? i->p999 : i->max, p99 = i->p99 > 0 ? i->p99 : p999;
	double p50 = i->p50 > 0 ? i->p50 : p99, u, x;

	if (i->max <= 0)
		return 0;
	u = rng_double(&r->rng);
	x = u < 0.5     ? p50
	    : u < 0.99  ? p50 + (p99 - p50) * (u - 0.5) / 0.49
	    : u < 0.999 ? p99 + (p999 - p99) * (u - 0.99) / 0.009
			: p999 + (i->max - p999) * (u - 0.999) / 0.001;
	return fmin(x * 1e-9, s->most_inside);
}

static int record(struct run *r, const struct io *io)
{
	const struct replay_tenant *t = &r->in->tenants[io->tenant];
	struct replay_sample *s = &r->samples[io->tenant];

	if (t->ops && !(t->ops >> t->trace->records[io->record].op & 1))
		return 0;
	if (array_grow(&s->latency, &s->room, s->n + 1) < 0)
		return -ENOMEM;
	s->latency[s->n++] = (double)(io->leaves - io->born) * 1e-9;
	return 0;
}

/* A request's last piece is done: it leaves the stage, behind those of its tenant that came before. */
static int leave(struct run *r, struct stage *s, struct io *io, weir_time dispatched)
{
	const struct replay_tenant *t = &r->in->tenants[io->tenant];
	struct hop *h = &r->hops[r->first_hop[io->tenant] + io->hop];
	double inside = draw_inside(r, s->is, t->trace->records[io->record].op);
	weir_time at = dispatched + (weir_time)(inside * 1e9);

	at = at > r->now ? at : r->now;
	h->left = at > h->left ? at : h->left;
	io->leaves = h->left;
	s->live--;
	if (io->hop + 1 == t->n_hops) {
		int rc = record(r, io);

		io->next = r->free_io;
		r->free_io = io;
		return rc;
	}
	io->next = NULL;
	if (h->first)
		h->last->next = io;
	else
		h->first = io;
	h->last = io;
	set_event(r, hop_source(r, h), h->first->leaves);
	return 0;
}

static int complete(struct run *r, struct stage *s)
{
	struct piece *p = s->first;
	struct weir_req *q = &p->req;
	struct io *io = p->io;
	weir_time dispatched = p->req.dispatched;
	int rc = 0;

	s->first = p->next;
	s->last = s->first ? s->last : NULL;
	weir_gate_done(s->gate, r->now, &q, 1);
	s->dirty = true;
	set_event(r, stage_source(r, s, false), s->first ? s->first->ends : WEIR_NEVER);
	if (!io) {
		fill_req(s, p, s->filler, s->is->untraced);
		return submit(r, s, p);
	}
	p->next = r->free_piece;
	r->free_piece = p;
	if (--io->left == 0)
		rc = leave(r, s, io, dispatched);
	if (rc == 0 && s->live == 0 && s->is->untraced > 0)
		rc = sleep_stage(r, s);
	return rc;
}

/* Let requests pass. */
static void pump(struct run *r, struct stage *s)
{
	struct weir_req *out[BATCH];
	weir_time at;

	s->dirty = false;
	do {
		size_t n = weir_gate_next(s->gate, r->now, out, BATCH);

		for (size_t i = 0; i < n; i++)
			enter(s, (struct piece *)out[i], r->now);
		at = weir_gate_wakeup(s->gate, r->now);
	} while (at <= r->now);
	set_event(r, stage_source(r, s, true), at);
	set_event(r, stage_source(r, s, false), s->first ? s->first->ends : WEIR_NEVER);
}

/* ---- tenants */

/* Set the event of the tenant's next request. */
static void next_arrival(struct run *r, uint32_t tenant)
{
	const struct trace *t = r->in->tenants[tenant].trace;
	weir_time at;

	if (r->record[tenant] == t->n) {
		r->record[tenant] = 0;
		r->base[tenant] += r->course[tenant].period;
	}
	at = r->base[tenant] + t->records[r->record[tenant]].at;
	set_event(r, tenant, at < r->horizon ? at : WEIR_NEVER);
}

static int issue(struct run *r, uint32_t tenant)
{
	struct io *io = new_io(r);

	if (!io)
		return -ENOMEM;
	*io = (struct io){
		.born = r->now, .tenant = tenant, .record = (uint32_t)r->record[tenant]++};
	next_arrival(r, tenant);
	return arrive(r, io);
}

static int transfer(struct run *r, struct hop *h)
{
	struct io *io = h->first;

	h->first = io->next;
	set_event(r, hop_source(r, h), h->first ? h->first->leaves : WEIR_NEVER);
	io->hop++;
	return arrive(r, io);
}

/* ---- all of it */

static int handle(struct run *r, uint32_t source)
{
	const uint32_t tenants = r->in->n_tenants, stages = r->in->n_stages;

	if (source < tenants)
		return issue(r, source);
	if (source >= tenants + 2 * stages)
		return transfer(r, &r->hops[source - tenants - 2 * stages]);
	if (source < tenants + stages)
		return complete(r, &r->stages[source - tenants]);
	set_event(r, source, WEIR_NEVER);
	r->stages[source - tenants - stages].dirty = true;
	return 0;
}

static int run_events(struct run *r)
{
	int rc = 0;

	while (rc == 0 && r->heap.n) {
		r->now = heap_min(&r->heap)->key;
		while (rc == 0 && r->heap.n && heap_min(&r->heap)->key <= r->now)
			rc = handle(r, (uint32_t)heap_min(&r->heap)->value);
		for (uint32_t i = 0; i < r->in->n_stages; i++)
			if (r->stages[i].dirty)
				pump(r, &r->stages[i]);
	}
	return rc;
}

/* ---- start */

static int add_leaf(struct stage *s, const struct replay_tenant *t, uint32_t k, weir_node *ret)
{
	struct weir_bucket_spec specs[MEISTER_PAIRS];
	const struct plan_hop *h = &t->hop[k];
	double units = s->is->link ? 1 : 1e9;
	int rc = weir_gate_add(s->gate, WEIR_ROOT, ret);

	if (rc < 0 || !t->priority)
		return rc;
	for (unsigned i = 0; i < h->n; i++)
		specs[i] = (struct weir_bucket_spec){WEIR_PROFILE,
			s->is->link ? WEIR_UNIT_BYTES : WEIR_UNIT_TIME, WEIR_OPS_ALL,
			h->pair[i].rate * units, ceil(h->pair[i].size * units) + 2};
	return weir_gate_set(s->gate, 0,
		(struct weir_knob[]){
			{.node = *ret, .kind = WEIR_KNOB_PRIORITY, .value = t->priority[k]},
			{.node = *ret,
				.kind = WEIR_KNOB_BUCKETS,
				.buckets = specs,
				.n_buckets = h->n}},
		2, NULL);
}

static int fill_stage(struct run *r, struct stage *s)
{
	int rc = weir_gate_add(s->gate, WEIR_ROOT, &s->filler);

	for (double i = 0; rc == 0 && i <= s->is->depth && i < FILLERS; i++) {
		struct piece *p = new_piece(r);

		if (!p)
			return -ENOMEM;
		fill_req(s, p, s->filler, s->is->untraced);
		rc = submit(r, s, p);
	}
	s->dirty = false;
	return rc;
}

static int start_stage(struct run *r, uint32_t i)
{
	struct stage *s = &r->stages[i];
	int rc;

	s->is = &r->in->stages[i];
	rc = weir_gate_new(&(struct weir_gate_config){.nodes = r->in->n_tenants + 2,
				   .cost = s->is->link ? WEIR_UNIT_BYTES : WEIR_UNIT_TIME,
				   .order = s->is->link ? WEIR_FIFO : WEIR_FAIR,
				   .window = s->is->depth},
		&s->gate);
	return rc == 0 && s->is->untraced > 0 ? fill_stage(r, s) : rc;
}

static int start_tenant(struct run *r, uint32_t i, weir_time shift)
{
	const struct replay_tenant *t = &r->in->tenants[i];
	int rc = 0;

	for (uint32_t k = 0; rc == 0 && k < t->n_hops; k++)
		rc = add_leaf(
			&r->stages[t->hop[k].stage], t, k, &r->hops[r->first_hop[i] + k].node);
	while (r->record[i] < t->trace->n && t->trace->records[r->record[i]].at < shift)
		r->record[i]++;
	r->base[i] = -shift;
	next_arrival(r, i);
	return rc;
}

static int start(struct run *r, const weir_time *shift)
{
	const uint32_t tenants = r->in->n_tenants, stages = r->in->n_stages;
	uint32_t hops = 0, sources;
	int rc = 0;

	for (uint32_t i = 0; i < tenants; i++)
		hops += r->in->tenants[i].n_hops;
	sources = tenants + 2 * stages + hops;
	r->stages = calloc(stages + 1, sizeof(*r->stages));
	r->hops = calloc(hops + 1, sizeof(*r->hops));
	r->first_hop = calloc(tenants + 1, sizeof(*r->first_hop));
	r->record = calloc(tenants + 1, sizeof(*r->record));
	r->base = calloc(tenants + 1, sizeof(*r->base));
	r->place = malloc(sources * sizeof(*r->place));
	if (!r->stages || !r->hops || !r->first_hop || !r->record || !r->base || !r->place)
		return -ENOMEM;
	memset(r->place, 0xff, sources * sizeof(*r->place));
	heap_init(&r->heap, r->place);
	if (heap_reserve(&r->heap, sources) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < tenants; i++)
		r->first_hop[i + 1] = r->first_hop[i] + r->in->tenants[i].n_hops;
	for (uint32_t i = 0; rc == 0 && i < stages; i++)
		rc = start_stage(r, i);
	for (uint32_t i = 0; rc == 0 && i < tenants; i++)
		rc = start_tenant(r, i, shift[i]);
	return rc;
}

int replay_align(const struct replay_input *in, const struct replay_course *course,
	const weir_time *shift, weir_time horizon, uint64_t seed, struct replay_sample *ret)
{
	struct run r = {.in = in, .course = course, .horizon = horizon, .samples = ret};
	int rc;

	rng_init(&r.rng, seed, "inside");
	rc = start(&r, shift);
	if (rc == 0)
		rc = run_events(&r);
	for (uint32_t i = 0; r.stages && i < in->n_stages; i++)
		if (r.stages[i].gate)
			weir_gate_free(r.stages[i].gate);
	for (size_t i = 0; i < r.n_chunks; i++)
		free(r.chunks[i]);
	free(r.chunks);
	heap_free(&r.heap);
	free(r.stages);
	free(r.hops);
	free(r.first_hop);
	free(r.record);
	free(r.base);
	free(r.place);
	return rc;
}
