/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controller: AdapTBF at one resource: sets the tokens of its tenants, every period.
 *
 * A job is a leaf of the policy, known by its path; its priority comes from its weight. The
 * instance outlives changes of the policy: a tenant that stays keeps its tokens through a swap, a
 * removed tenant keeps its record until it is forgotten. While AdapTBF is switched off, the ledger
 * is kept.
 *
 * The structures are for tests; other code uses adaptbf_controller (keys.h).
 */
#pragma once

#include "control/adaptbf/gate.h"
#include "control/adaptbf/jobnames.h"
#include "control/adaptbf/keys.h"

struct adaptbf_plan {                /* of the next version of the policy */
	struct adaptbf_gate *driver; /* if the old driver cannot be kept; else NULL */
	uint64_t *ids;               /* by tenant; 0: a group */
	double *shares;              /* by tenant */
	size_t n_ids;
	struct adaptbf_gate_leaf *leaves;
	size_t n_leaves;
};

struct adaptbf_control {
	struct site *site;
	struct lend *adaptbf;
	struct adaptbf_gate *driver; /* NULL: resting */
	struct adaptbf_settings settings;
	double capacity[2]; /* stated */
	bool is_on, learns;
	enum weir_unit unit; /* unit of the tokens in its books */
	struct jobnames names;
	uint64_t *ids; /* by tenant of the version in force; 0: a group */
	size_t n_ids;
	struct adaptbf_plan plan;
	weir_time due, stepped;
	uint64_t activity; /* of the site, at the last step */
	double took;       /* ns of a step: collect, allocate, apply; lately, on average */
	int64_t tokens_off, records_off; /* largest errors of both sums so far */
};

/* Run one period, whether the resource is idle or not. 0, or the error of lend_step. */
int adaptbf_control_step(struct adaptbf_control *s, weir_time now);
