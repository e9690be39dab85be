/* SPDX-License-Identifier: BSD-3-Clause */
/* adaptbf: what its files share. adaptbf.c: the step; adaptbf-jobs.c: who is known; adaptbf-state.c:
 * looking, and starting again. */
#ifndef WEIR_CTL_ADAPTBF_IMPL_H
#define WEIR_CTL_ADAPTBF_IMPL_H

#include "alg/adaptbf.h"
#include "ctl/adaptbf.h"

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
	uint64_t demand;
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

struct adaptbf_probe {   /* is there more to be had? Over some periods: */
	weir_time since; /* when they began */
	struct capacity_totals start;
	int64_t tokens, used;
};

struct adaptbf {
	struct adaptbf_config config;
	struct capacity capacity;
	struct adaptbf_probe probe;
	struct adaptbf_state state;

	struct adaptbf_slot *slots;
	uint32_t n_slots, room, free, known;
	uint32_t *index; /* id → slot; open addressing, 2 × room, a power of 2 */
	struct adaptbf_job *seen;
	size_t seen_room;
	struct adaptbf_arrays active;
	struct adaptbf_space space;
	struct ledger *ledger;
};

/* adaptbf-jobs.c */
uint32_t adaptbf_find(const struct adaptbf *a, uint64_t id); /* ADAPTBF_NOBODY: none */
/* Room for `more` jobs besides those known; 0 or -ENOMEM. */
int adaptbf_jobs_room(struct adaptbf *a, size_t more);
/* A job that is not known yet, and there is room. */
uint32_t adaptbf_add(struct adaptbf *a, uint64_t id);
void adaptbf_drop(struct adaptbf *a, weir_time now, uint32_t slot);

#endif
