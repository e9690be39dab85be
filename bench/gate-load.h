/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gate-load: tenants that are always backlogged, and their gate.
 *
 * METHOD  Every tenant has four requests, in shuffled memory, so that one dispatch in a hundred
 *         leaves its tenant idle until that request is submitted again; with two each it is one in
 *         ten. A round takes a batch from the gate, finishes it and submits it again, in virtual
 *         time at a fixed capacity; the figure is real nanoseconds per request for
 *         submit + next + done. The floor is one FIFO through the same driver and memory. Costs
 *         1–16, weights 1–100, min half a tenant's fair share: some two thirds of the requests pass
 *         by R-token. Max is twice the fair share, so that weights decide and max rarely binds; or,
 *         with GATE_LOAD_BINDING, nine tenths of it, so that the resource idles and nearly every
 *         request waits for its tenant's max. With GATE_LOAD_ZIPF all tenants have the same weight
 *         and max, and a request draws another tenant each time it is submitted: the k-th in
 *         proportion to 1/k. The first tenant's demand exceeds its max, so that most requests wait
 *         there; the others mostly have one request at a time. With GATE_LOAD_LATE a request is
 *         done and submitted again when GATE_LOAD_LATER more have passed; and each time as many
 *         have passed, other memory is written to, 4 KiB per request, as payloads would be; that
 *         time is not counted. Tenants begin one after the other, as fast as the resource could
 *         serve them. Buckets that were full at the same nanosecond would stay in step forever,
 *         since a profile is charged as of when a request fits it: the requests of a thousand
 *         tenants of one weight would all fit at the same few points of time in a second.
 */
#pragma once

#include "base/rng.h"
#include <weir/gate.h>
#include "bench/bench.h"

#define GATE_LOAD_BATCH 32
#define GATE_LOAD_LATER 1024

enum gate_load_features {
	GATE_LOAD_PLAIN = 0,
	GATE_LOAD_LIMITS = 1,     /* min half and max twice the fair share */
	GATE_LOAD_PROFILES = 2,   /* four profile buckets, and eight priorities */
	GATE_LOAD_HISTOGRAMS = 4, /* for every tenant */
	GATE_LOAD_BINDING = 8,    /* max nine tenths of the fair share */
	GATE_LOAD_ACCURATE = 16,  /* max the fair share and min nine tenths of it */
	/* every second tenant has neither, and a thousand times its weight */
	GATE_LOAD_FLOOD = 32,
	GATE_LOAD_AT_ONCE = 64,   /* all begin at the same time */
	GATE_LOAD_TWO_EACH = 128, /* two requests per tenant, instead of four */
	GATE_LOAD_FLOOR = 256,    /* no gate: one FIFO */
	GATE_LOAD_ONE_EACH = 512, /* one request per tenant, instead of four */
	GATE_LOAD_ZIPF = 1024,    /* requests draw their tenants by Zipf's law; weights are equal */
	GATE_LOAD_LATE = 2048,    /* done GATE_LOAD_LATER requests later, with the caches dirtied */
	GATE_LOAD_SINGLE = 4096,  /* batches of one */
	GATE_LOAD_TIME = 8192,    /* profile buckets in device time, not in requests */
};

/* The functions of the gate or the FIFO. Both are called directly through these pointers: the floor must neither be
 * inlined nor be spared a call. */
struct gate_load_target {
	int (*submit)(struct weir_gate *, weir_time, struct weir_req *const *, size_t);
	size_t (*next)(struct weir_gate *, weir_time, struct weir_req **, size_t);
	void (*done)(struct weir_gate *, weir_time, struct weir_req *const *, size_t);
	struct weir_gate *object; /* the gate; or the FIFO, whose functions convert the pointer */
};

struct gate_load_fifo {
	struct weir_req *head, **tail;
	uint64_t served;
};

/* GATE_LOAD_LATE: requests that have passed and are not done yet. */
struct gate_load_late {
	struct weir_req *reqs[2 * GATE_LOAD_LATER]; /* a ring */
	uint32_t in, out;
	char *dirt;   /* other memory, written to part by part */
	size_t dirty; /* bytes written so far */
};

struct gate_load {
	struct gate_load_target target;
	struct weir_gate *gate; /* NULL: the floor */
	struct gate_load_fifo fifo;
	struct weir_req *reqs;
	weir_node *nodes;
	double *weights;
	uint32_t tenants, n_reqs;
	size_t batch; /* requests per call */
	double total_weight;
	weir_time now;
	unsigned features;
	uint32_t cost_max;  /* costs are 1 to this */
	double capacity;    /* cost units per virtual second */
	double per_request; /* virtual ns */
	struct rng rng;
	weir_node *draws; /* GATE_LOAD_ZIPF: the tenants of the next requests, a ring */
	uint32_t n_drawn;
	struct gate_load_late late;
};

/* Make a load; `idle` further tenants without requests are spread among the others. Return 0 or
 * -ENOMEM. */
int gate_load_new(uint32_t tenants, unsigned features, uint32_t idle, struct gate_load **ret);
void gate_load_free(struct gate_load *l);
double gate_load_weight(const struct gate_load *l, uint32_t i); /* as set at the gate */
/* Return the max and the min of tenant i: units per virtual second. */
double gate_load_max(const struct gate_load *l, uint32_t i);
double gate_load_min(const struct gate_load *l, uint32_t i);

/* Let at least this many requests pass, up to a batch at a time. Return how many; fewer: no request
 * can pass any more. */
uint64_t gate_load_drive(struct gate_load *l, uint64_t requests);
/* Return the real ns per request, without the time for dirtying the caches. */
double gate_load_time(struct gate_load *l, uint64_t requests);
/* Warm up: spread the tags, touch the memory, and allocate the histograms. */
void gate_load_warm(struct gate_load *l);
/* Let two loads serve this many requests each, in turns, so that both see the same machine. Add a
 * sample of each. */
void gate_load_turns(struct gate_load *a, struct gate_load *b, uint64_t requests,
	struct bench_samples *ret_a, struct bench_samples *ret_b);
