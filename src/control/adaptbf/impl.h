/* SPDX-License-Identifier: BSD-3-Clause */
/* adaptbf: what its files share. adaptbf.c: the step; control/adaptbf/jobs.c: who is known; control/adaptbf/rate.c: how
 * much there is; control/adaptbf/state.c: looking, and starting again. */
#ifndef WEIR_CONTROL_ADAPTBF_IMPL_H
#define WEIR_CONTROL_ADAPTBF_IMPL_H

#include "control/adaptbf/law.h"
#include "control/adaptbf/adaptbf.h"

#define ADAPTBF_NOBODY UINT32_MAX

struct adaptbf_slot { /* one job that is known */
	uint64_t id;  /* 0: free */
	uint32_t weight;
	uint32_t next_free;
	bool active;              /* in the last period */
	bool fresh;               /* never active yet */
	weir_time seen;           /* when it was last active, or first known */
	uint64_t step;            /* when the driver last listed it */
	uint64_t arrived, served; /* the driver's counters then */
	/* over the last period: */
	uint64_t arrivals, serves;
	int64_t queued;
	double most;
	bool above;
	weir_time held;  /* as the driver said */
	weir_time holds; /* and over the last period */
	uint64_t demand;
	bool waits;  /* for tokens, and not for its own limits */
	bool wants;  /* it is let what others have to spare */
	double rate; /* of its rule, tokens a second; 0: it has none */
	double more; /* tokens of the period that the rule allows beyond its own */
	/* the law's own: */
	int64_t tokens, initial, record;
	int32_t remainder, reclaim;
};

struct adaptbf_arrays { /* of the active, as the law wants them */
	uint32_t *slot, *weight;
	uint64_t *demand;
	int64_t *tokens, *record, *initial;
	int32_t *remainder, *reclaim;
	struct adaptbf_rule *rules; /* of the active and as many that stop */
	size_t room;
};

struct adaptbf_probe {     /* control/adaptbf/rate.c's */
	weir_time full_at; /* when the server was last full for some time */
	weir_time known;   /* F */
	weir_time at;      /* of the last period; and as of then: */
	struct adaptbf_totals last;
	/* over some periods, up to a second: */
	weir_time since; /* when they began */
	weir_time full;  /* time of being full, in those in which it was not idle */
	uint64_t served; /* in that */
	double all;      /* served, full or not; tokens */
	bool waited;     /* a job did, at the end of each of them */
	double growth;   /* of a guess, a second */
	double lost; /* tokens of a period by which each rule allows more, because some are lost */
};

struct adaptbf {
	struct adaptbf_config config;
	struct adaptbf_probe probe;
	struct adaptbf_state state;
	bool first;    /* the next step is, or follows a rest: counters have no past */
	uint64_t ages; /* part of a claim that is lost in a period, × LEDGER_ONE */

	struct adaptbf_slot *slots;
	uint32_t n_slots, room, free, known;
	uint32_t *index; /* id → slot; open addressing, 2 × room, a power of 2 */
	struct adaptbf_job *seen;
	size_t seen_room;
	struct adaptbf_arrays active;
	struct adaptbf_space space;
	struct ledger *ledger;
};

/* control/adaptbf/jobs.c */
uint32_t adaptbf_find(const struct adaptbf *a, uint64_t id); /* ADAPTBF_NOBODY: none */
/* Room for `more` jobs besides those known; 0 or -ENOMEM. */
int adaptbf_jobs_room(struct adaptbf *a, size_t more);
/* A job that is not known yet, and there is room. */
uint32_t adaptbf_add(struct adaptbf *a, uint64_t id);
/* Its record passes to the tombstone; as if it were new, but for its counters. */
void adaptbf_settle(struct adaptbf *a, weir_time now, uint32_t slot);
/* The same, and it is not known any more. */
void adaptbf_drop(struct adaptbf *a, weir_time now, uint32_t slot);

/* control/adaptbf/rate.c */
/* What the driver said of its jobs is in the slots. */
void adaptbf_learn(
	struct adaptbf *a, weir_time now, const struct adaptbf_driver_ops *ops, void *driver);
/* K of a second, of what was learned or stated. */
double adaptbf_supply(const struct adaptbf *a);
/* The rates of the rules of the n active jobs: their tokens, and what is let of those that would be lost. */
void adaptbf_rates(struct adaptbf *a, size_t n);
/* Would it have used more than its tokens? */
bool adaptbf_waits(const struct adaptbf *a, const struct adaptbf_slot *s);
/* The same, and no limit would have kept it from that. */
bool adaptbf_waits_for_tokens(const struct adaptbf *a, const struct adaptbf_slot *s);

#endif
