/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * divide-table: divide the limits of all tenants of a policy over the gates of one process.
 *
 * A round: divide_table_take for every gate with its measurements, divide_table_targets, and then
 * up to a few times divide_table_tell and divide_table_confirm for each gate that was told. The
 * caller carries the messages; a gate is `busy` between the two. Parts are rows as in struct
 * policy_part.
 *
 * Pure: times are arguments.
 */
#pragma once

#include "control/joint.h"
#include "policy/policy.h"

struct divide_demand { /* of one tenant at one gate since the last call */
	struct {       /* costs as limits count them */
		float passed_requests, passed_bytes;
		float waiting_requests, waiting_bytes; /* now, for whatever cause */
	} kind[2];                                     /* reads, and all other operations */
	uint32_t clients;
	/* Parts of the time, 0 … 1: its own max held a request; the same with room in the
	 * window. */
	float held, held_alone;
};

struct divide_table;

/* Borrows p. Every limit starts in equal parts. NULL: no memory. */
struct divide_table *divide_table_new(const struct weir_policy *p, size_t gates);
void divide_table_free(struct divide_table *t);
/* Keep the parts of limits that existed before; the gates have applied all that they were told. was: by gate, its number in
 * `old`, or -1: it is new, and has a little to start with. old NULL: there was one gate, number 0, with all limits. */
void divide_table_inherit(struct divide_table *t, const struct divide_table *old, const int *was);

const struct weir_policy *divide_table_policy(const struct divide_table *t);
size_t divide_table_rows(const struct divide_table *t); /* of one gate */

/* Pass the measurements at a gate over `span` ns; demand: one per tenant. */
void divide_table_take(
	struct divide_table *t, size_t gate, const struct divide_demand *demand, weir_time span);
/* All gates that answered were passed: compute the final part of each gate. */
void divide_table_targets(struct divide_table *t);
/* Compute the parts that each gate is told next; busy: gates that have not confirmed. Return true
 * if a gate is told a new part. */
bool divide_table_tell(struct divide_table *t, const bool *busy);
/* Return true if the gate has other parts than it was told. */
bool divide_table_differs(const struct divide_table *t, size_t gate);
/* Copy the gate's told parts to ret_rows, divide_table_rows of them. */
void divide_table_parts(const struct divide_table *t, size_t gate, double *ret_rows);
/* Return the joint buckets of limits that are not divided, whose parts are 0; NULL for the others. One a row. */
struct joint *const *divide_table_joints(const struct divide_table *t);
/* Take from the books the tokens of bursts that the gate is given with its told parts; busy: as for divide_table_tell, gates are
 * asked in order. By row. */
void divide_table_tokens(struct divide_table *t, size_t gate, const bool *busy, double *ret_rows);
/* The gate has applied (true) or could not apply (false) its parts. tokens: of bursts that it gave up, or did not take; by row. */
void divide_table_confirm(struct divide_table *t, size_t gate, bool done, const double *tokens);

/* Return how many tenants have a limit and clients at two or more gates; *ret_idle: none of them
 * has demand. */
size_t divide_table_shared(const struct divide_table *t, bool *ret_idle);
