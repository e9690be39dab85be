/* SPDX-License-Identifier: BSD-3-Clause */
/* lessee-impl: the lessee from inside, for lessee*.c and their test. */
#ifndef WEIR_SERVE_HOST_LESSEE_IMPL_H
#define WEIR_SERVE_HOST_LESSEE_IMPL_H

#include "serve/host/lessee.h"
#include "serve/resource/impl.h"

struct lessee_bucket { /* by index in the pshift_server */
	bool here;     /* it has a node in the gate */
	bool limited, wanted;
	bool new_r, new_l; /* at its node are none of the tokens that it holds */
	weir_node node;
	size_t tenant; /* in the policy in force; only while it is here. LESSEE_NEXT: in the next one */
	/* Served at the look before the last, and at the last one of the period before this; what came to that
	 * period in all. What passed between the two looks around its end counts to both. */
	uint64_t previous, mark, last;
	/* Counters of nodes that it had before. */
	uint64_t arrivals, dispatched;
	double waited;
};

#define LESSEE_NEXT SIZE_MAX

struct lessee_plan {   /* of a policy that is to come */
	int64_t *at;   /* by tenant: the bucket, or -1 */
	size_t n, new; /* tenants; buckets that there may be more */
};

struct lessee {
	struct resource *resource;
	struct pshift_server *server;
	bool on;
	struct lessee_bucket *buckets;
	struct pshift_server_load *loads;
	struct weir_knob *knobs; /* of what is granted in a look: two a bucket */
	size_t n, room, n_knobs;
	struct lessee_plan plan;
	struct loop_timer timer;
	struct loop_turn turn; /* wakes it when something comes */
	bool turning;          /* that is added */
	bool asleep;           /* the timer is set to when an interval has passed, and not sooner */
	lessee_post *post;
	void *post_arg;
	uint64_t activity;            /* of the resource, at the last look */
	weir_time looked;             /* when that was */
	uint64_t period, last_period; /* of that look, and the one that `last` is of; 0: none */
	weir_time interval;           /* of reports, as of then */
	weir_time busy;               /* ns of all looks */
	uint64_t looks;
};

/* A look at the gate, and what follows from it; the timer does it. For tests, which have their own times. */
void lessee_look_at(struct lessee *l, weir_time now);
/* Tokens a second: what the policy states, or else what was learned. */
double lessee_capacity(const struct resource *r);

/* lessee-look.c */
void lessee_look(struct resource *r, struct snapshot *snap, struct snapshot_resource *to);

#endif
