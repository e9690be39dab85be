/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy-show: a policy as a table for people and as JSON for programs, a few lines at a time, so
 * that a policy with many tenants can be shown without blocking. Pure but for the FILE.
 *
 *   policy-show.c          tenants and resources as a table
 *   policy-show-json.c     the same as JSON
 *   policy-show-controllers.c  which controllers run
 *   policy-show-gateway.c  exports and the parts that only the gateway uses
 */
#pragma once

#include "policy/policy.h"
#include <jansson.h>
#include <stdio.h>

enum { POLICY_SHOW_COLUMNS = 9 };

struct policy_show_width { /* characters of the widest cell */
	int column[POLICY_SHOW_COLUMNS];
};

struct policy_show { /* the policy, and progress */
	const struct weir_policy *policy;
	const struct weir_bounds *bounds;      /* weir_policy_bounds */
	const double *of_parent, *of_all;      /* weir_policy_share */
	const struct policy_show_width *width; /* policy_show_widths; not needed for JSON */
	size_t at;                             /* zero it: the next line */
};

/* Compute the width of the table. O(tenants). 0 or -ENOMEM. */
int policy_show_widths(const struct policy_show *s, struct policy_show_width *ret);

/* Write about so many more lines. Return true if there is more. */
bool policy_show_table(struct policy_show *s, size_t lines, FILE *to);
bool policy_show_json(struct policy_show *s, size_t lines, FILE *to);

/* Write which controllers run, and why: a line each. policy-show-controllers.c */
void policy_show_controllers(const struct weir_policy *p, FILE *to);

/* Write all of it at once. 0 or -ENOMEM. */
int policy_show_all(const struct weir_policy *p, bool json, FILE *to);

/* ---- for policy-show*.c */

extern const char *const policy_show_units[2], *const policy_show_ops[3],
						       *const policy_show_costs[3];
/* Return true if a slot of min or max is worth showing, i.e. not implied by others. */
bool policy_show_is_min(const double *slots, unsigned slot);
bool policy_show_is_max(const double *slots, unsigned slot);
/* Requests whose cost is shown. */
#define POLICY_SHOW_EXAMPLES 6
struct policy_show_example {
	const char *name;
	enum weir_op op;
	uint64_t bytes;
};
extern const struct policy_show_example policy_show_examples[POLICY_SHOW_EXAMPLES];

void policy_show_export(const struct weir_policy *p, size_t i, FILE *to);
void policy_show_gateway(const struct weir_policy *p, FILE *to);
json_t *policy_show_json_gateway(const struct weir_policy *p);
json_t *policy_show_json_reach(const struct weir_resource *r);
