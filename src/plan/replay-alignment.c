/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay-alignment: one run of all traces through their gates.
 *
 * METHOD   A heap of sources of events: the next arrival of each tenant, the next completion and wake-up of each stage, and for
 *          each tenant and stage the request that leaves it next. All events of one time are handled before the gates that they
 *          touched decide, as in the simulator.
 *          A run begins with empty gates, in the middle of busy periods. So it goes on behind its horizon until no request is left
 *          inside, for as long again at most; the requests of that time stand for those of the same length at the begin, which are not
 *          measured. Requests of the round before that change nothing if the load of each stage is below its rate.
 */
#include "plan/replay-impl.h"
#include "base/array.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 256 /* requests or pieces that are allocated at once */

/* ---- memory */

void replay_give(struct pool *p, void *x)
{
	memcpy(x, &p->free, sizeof(p->free));
	p->free = x;
}

void *replay_take(struct run *r, struct pool *p)
{
	char *x = p->free;

	if (x) {
		memcpy(&p->free, x, sizeof(p->free));
		return x;
	}
	x = array_grow(&r->chunks, &r->chunks_room, r->n_chunks + 1) < 0 ? NULL
									 : calloc(CHUNK, p->size);
	if (!x)
		return NULL;
	r->chunks[r->n_chunks++] = x;
	for (size_t i = 1; i < CHUNK; i++)
		replay_give(p, x + i * p->size);
	return x;
}

/* ---- events */

static uint32_t hop_source(const struct run *r, const struct hop *h)
{
	return r->in->n_tenants + 2 * r->in->n_stages + (uint32_t)(h - r->hops);
}

/* Set the time of a source's next event; WEIR_NEVER: none. The heap has room. */
void replay_set_event(struct run *r, uint32_t source, weir_time at)
{
	uint32_t where = r->place[source];

	if (at == WEIR_NEVER && where != HEAP_NOWHERE)
		heap_remove(&r->heap, where);
	else if (at != WEIR_NEVER && where != HEAP_NOWHERE)
		heap_move(&r->heap, where, at, source);
	else if (at != WEIR_NEVER)
		heap_push(&r->heap, (struct heap_item){at, source, source});
}

/* ---- requests */

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
	if (array_grow(&s->latency, &s->room, s->n + 1) < 0 ||
		array_grow(&s->born, &s->room_born, s->n + 1) < 0)
		return -ENOMEM;
	s->born[s->n] = (struct replay_born){io->born, io->record};
	s->latency[s->n++] = (double)(io->leaves - io->born) * 1e-9;
	return 0;
}

/* A request's last piece is done: it leaves the stage, behind those of its tenant that came before. */
int replay_leave(struct run *r, struct stage *s, struct io *io, weir_time dispatched)
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

		r->inside--;
		replay_give(&r->ios, io);
		return rc;
	}
	io->next = NULL;
	if (h->first)
		h->last->next = io;
	else
		h->first = io;
	h->last = io;
	replay_set_event(r, hop_source(r, h), h->first->leaves);
	return 0;
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
	replay_set_event(r, tenant, at < (r->in->aligned ? 1 : 2) * r->horizon ? at : WEIR_NEVER);
}

static int issue(struct run *r, uint32_t tenant)
{
	struct io *io;

	r->over = r->over || (r->now >= r->horizon && r->inside == 0);
	if (r->over) {
		replay_set_event(r, tenant, WEIR_NEVER);
		return 0;
	}
	io = replay_take(r, &r->ios);
	if (!io)
		return -ENOMEM;
	if (r->now >= r->horizon)
		r->again = r->now - r->horizon + 1;
	r->inside++;
	*io = (struct io){
		.born = r->now, .tenant = tenant, .record = (uint32_t)r->record[tenant]++};
	next_arrival(r, tenant);
	return replay_arrive(r, io);
}

static int transfer(struct run *r, struct hop *h)
{
	struct io *io = h->first;

	h->first = io->next;
	replay_set_event(r, hop_source(r, h), h->first ? h->first->leaves : WEIR_NEVER);
	io->hop++;
	return replay_arrive(r, io);
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
		return replay_complete(r, &r->stages[source - tenants]);
	replay_set_event(r, source, WEIR_NEVER);
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
				replay_pump(r, &r->stages[i]);
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

static int start_tenant(struct run *r, uint32_t i, weir_time shift)
{
	const struct replay_tenant *t = &r->in->tenants[i];
	int rc = 0;

	for (uint32_t k = 0; rc == 0 && k < t->n_hops; k++)
		rc = add_leaf(
			&r->stages[t->hop[k].stage], t, k, &r->hops[r->first_hop[i] + k].node);
	while (r->record[i] < t->trace->n && t->start + t->trace->records[r->record[i]].at < shift)
		r->record[i]++;
	r->base[i] = t->start - shift;
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
		rc = replay_stage_start(r, i);
	for (uint32_t i = 0; rc == 0 && i < tenants; i++)
		rc = start_tenant(r, i, shift[i]);
	return rc;
}

static void drop_before(struct replay_sample *s, weir_time from)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		if (s->born[i].at < from)
			continue;
		s->latency[n] = s->latency[i];
		s->born[n++] = s->born[i];
	}
	s->n = n;
}

int replay_align(const struct replay_input *in, const struct replay_course *course,
	const weir_time *shift, weir_time horizon, uint64_t seed, struct replay_sample *ret)
{
	struct run r = {.in = in,
		.course = course,
		.horizon = horizon,
		.ios = {.size = sizeof(struct io)},
		.pieces = {.size = sizeof(struct piece)},
		.samples = ret};
	int rc;

	rng_init(&r.rng, seed, "inside");
	rc = start(&r, shift);
	if (rc == 0)
		rc = run_events(&r);
	for (uint32_t i = 0; i < in->n_tenants; i++)
		drop_before(&ret[i], r.again);
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
