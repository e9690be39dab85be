/* SPDX-License-Identifier: BSD-3-Clause */
/* replay-stage: a stage of a replay, a gate before a server. */
#include "plan/replay-impl.h"
#include <errno.h>
#include <math.h>

#define PIECES_MOST 65536 /* of a request */
#define FILLERS     4096  /* requests of tenants without a trace at a stage, at most */
#define BATCH       64

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
	replay_set_event(r, replay_stage_source(r, s, false), WEIR_NEVER);
	replay_set_event(r, replay_stage_source(r, s, true), WEIR_NEVER);
	return rc;
}

int replay_arrive(struct run *r, struct io *io)
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
		struct piece *p = replay_take(r, &r->pieces);

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

int replay_complete(struct run *r, struct stage *s)
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
	replay_set_event(
		r, replay_stage_source(r, s, false), s->first ? s->first->ends : WEIR_NEVER);
	if (!io) {
		fill_req(s, p, s->filler, s->is->untraced);
		return submit(r, s, p);
	}
	replay_give(&r->pieces, p);
	if (--io->left == 0)
		rc = replay_leave(r, s, io, dispatched);
	if (rc == 0 && s->live == 0 && s->is->untraced > 0)
		rc = sleep_stage(r, s);
	return rc;
}

/* Let requests pass. */
void replay_pump(struct run *r, struct stage *s)
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
	replay_set_event(r, replay_stage_source(r, s, true), at);
	replay_set_event(
		r, replay_stage_source(r, s, false), s->first ? s->first->ends : WEIR_NEVER);
}

static int fill_stage(struct run *r, struct stage *s)
{
	int rc = weir_gate_add(s->gate, WEIR_ROOT, &s->filler);

	for (double i = 0; rc == 0 && i <= s->is->depth && i < FILLERS; i++) {
		struct piece *p = replay_take(r, &r->pieces);

		if (!p)
			return -ENOMEM;
		fill_req(s, p, s->filler, s->is->untraced);
		rc = submit(r, s, p);
	}
	s->dirty = false;
	return rc;
}

int replay_stage_start(struct run *r, uint32_t i)
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
