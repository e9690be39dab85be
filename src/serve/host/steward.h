/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * steward: AdapTBF at one resource: who may have how many of its tokens, every period.
 *
 * It steps by a timer of the resource's own loop, sees the gate through control/adaptbf/gate, and asks
 * nobody. A job is a leaf of the policy, known by its path; its priority comes from its weight. It
 * outlives changes of the policy: a tenant that stays keeps its tokens through a swap, one that goes
 * keeps its record until it is forgotten, and where AdapTBF is switched off the ledger rests, to go on
 * when it is switched on again.
 *
 *   steward.c         steps, and the policy
 *   steward-image.c   a copy of what it knows, and to begin from one
 *
 * All on the resource's thread.
 */
#ifndef WEIR_SERVE_HOST_STEWARD_H
#define WEIR_SERVE_HOST_STEWARD_H

#include "control/adaptbf/adaptbf.h"

struct resource;

struct steward_image {       /* all of it its own memory */
	char *resource;      /* name */
	weir_time at;        /* on the clock of the times below */
	bool on;             /* else it rests */
	bool hold;           /* tokens: hold */
	bool learns;         /* the rate */
	enum weir_unit unit; /* what a token counts */
	uint64_t period;     /* ns */
	struct adaptbf_state state;
	struct adaptbf_account *jobs;
	size_t n_jobs;
	struct adaptbf_loan *loans, *paid; /* paid: newest first */
	size_t n_loans, n_paid;
	char **names; /* by id; NULL: nobody's */
	size_t n_names;
};
/* -ENOENT: AdapTBF was never on here; -ENOMEM. */
int steward_image(struct resource *r, struct steward_image *ret);
void steward_image_free(struct steward_image *i);
const char *steward_image_name(
	const struct steward_image *i, uint64_t id); /* NULL: left, or the pool */

/* How many steps there were; 0: AdapTBF was never on. */
uint64_t steward_steps(const struct resource *r);

/* As it was, before the first step; `at` is now. -EINVAL: not what a controller can have been in;
 * -EBUSY: it has stepped already; -ENOMEM. On error it is as before. */
int steward_restore(struct resource *r, const struct steward_image *from);

#endif
