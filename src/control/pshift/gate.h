/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gate: a server of pShift at one resource: the tokens of its tenants, granted by the cluster's
 * controller.
 *
 * METHOD  A bucket's tokens are two buckets of its leaf that only grants fill, one of R-tokens and,
 *         if it has a limit, one of L-tokens. A swap of the policy puts them into the gate with the
 *         new tree, and a leaf that stays keeps its tokens. The server learns of each leaf as soon
 *         as the leaf has its knobs, and grants it the missing tokens. While no request arrives or
 *         completes at the resource, no token is spent: then the server reads the gate once an
 *         interval, not every few milliseconds; and at once when a request arrives.
 *
 * The structures are for tests; other code uses pshift_controller (keys.h).
 */
#pragma once

#include "control/pshift/keys.h"
#include "control/pshift/server.h"

struct pshift_gate_bucket { /* by index in the pshift_server */
	bool here;          /* it has a node in the gate */
	bool limited, wanted;
	bool new_r, new_l; /* its node lacks the tokens that the bucket holds */
	weir_node node;
	/* in the version in force; only while it is here. PSHIFT_NEXT: in the next one */
	size_t tenant;
	/* Served at the second-last look, and at the last look of the previous period; served in
	 * that period in all. Requests that passed between the two looks around its end count in
	 * both periods. */
	uint64_t previous, mark, last;
	/* Counters of its earlier nodes. */
	uint64_t arrivals, dispatched;
	double waited;
};

#define PSHIFT_NEXT SIZE_MAX

/* Grants set at once: a gate checks each knob of a set against those before it. */
#define PSHIFT_GATE_KNOBS 256

struct pshift_plan {   /* of the next version of the policy */
	int64_t *at;   /* by tenant: the bucket, or -1 */
	size_t n, new; /* tenants; most additional buckets */
};

struct pshift_gate_server {
	struct site *site;
	struct pshift_server *server;
	bool on;
	double stated; /* capacity, tokens a second; 0: learned */
	struct pshift_gate_bucket *buckets;
	struct cluster_server_load *loads;
	size_t n, room;
	struct weir_knob knobs[PSHIFT_GATE_KNOBS]; /* grants that the gate has not got yet */
	size_t n_knobs;
	bool grant_failed; /* the gate refused some in this look */
	struct pshift_plan plan;
	uint64_t submitted;           /* to the gate, as of the last look */
	bool recount;                 /* buckets have other nodes since then */
	uint64_t activity;            /* of the site, at the last look */
	weir_time looked;             /* time of that look */
	uint64_t period, last_period; /* of that look, and the one that `last` is of; 0: none */
	weir_time interval;           /* of reports, as of then */
	weir_time busy;               /* ns of all looks */
	uint64_t looks;
};

/* Read the gate's counters and update its tokens, idle or not. */
void pshift_gate_look(struct pshift_gate_server *s, weir_time now);
