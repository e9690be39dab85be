/* SPDX-License-Identifier: BSD-3-Clause */
/* replay-impl: shared by the parts of a replay. */
#ifndef WEIR_PLAN_REPLAY_IMPL_H
#define WEIR_PLAN_REPLAY_IMPL_H

#include "plan/replay.h"
#include "base/heap.h"
#include "base/rng.h"
#include <weir/gate.h>

struct replay_course { /* of a tenant: how its trace goes round */
	weir_time period;
};

struct replay_sample {   /* of a tenant, by request */
	double *latency; /* s */
	struct replay_born {
		weir_time at;
		uint32_t record;
	} * born;
	size_t n, room, room_born;
};

/* replay-next.c: see replay.h. at: the percentile of the sample. A value, or a negative errno as the result. */
int replay_next(
	const struct replay_sample *s, const struct replay_tenant *of, double at, double *ret_next);

/* replay-alignment.c: run one alignment; shift: by tenant; requests that arrive within `horizon` are measured. 0 or a negative errno. */
int replay_align(const struct replay_input *in, const struct replay_course *course,
	const weir_time *shift, weir_time horizon, uint64_t seed, struct replay_sample *ret);

/* ---- a run of an alignment: replay-alignment.c, replay-stage.c */

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
	weir_time again; /* how long the run goes on behind the horizon */
	bool over;       /* no more requests are sent */
	struct stage *stages;
	struct hop *hops;
	uint32_t *first_hop; /* by tenant */
	size_t *record;      /* by tenant: the next one */
	weir_time *base;     /* by tenant: added to its time */
	struct heap heap;
	uint32_t *place;
	struct pool {
		size_t size;
		void *free; /* each has the next one in its first bytes */
	} ios, pieces;
	void **chunks;
	size_t n_chunks, chunks_room;
	uint32_t inside; /* requests of traces that have not left */
	struct rng rng;
	struct replay_sample *samples;
};

/* replay-alignment.c: memory of a pool, NULL: there is none; the next event of a source; a request's last piece is done. */
void *replay_take(struct run *r, struct pool *p);
void replay_give(struct pool *p, void *x);
void replay_set_event(struct run *r, uint32_t source, weir_time at);
int replay_leave(struct run *r, struct stage *s, struct io *io, weir_time dispatched);

static inline uint32_t replay_stage_source(const struct run *r, const struct stage *s, bool wake)
{
	return r->in->n_tenants + (uint32_t)(s - r->stages) + (wake ? r->in->n_stages : 0);
}

/* replay-stage.c: a request arrives at the stage of its hop; the first one in the server is done; requests pass. */
int replay_arrive(struct run *r, struct io *io);
int replay_complete(struct run *r, struct stage *s);
void replay_pump(struct run *r, struct stage *s);
int replay_stage_start(struct run *r, uint32_t i);

#endif
