/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gate: a server of pShift at one resource: its tenants' tokens, as the cluster's controller grants them.
 *
 * METHOD  A bucket's tokens are two buckets of its leaf that only grants fill, one of R-tokens and, if it has a limit, one
 *         of L-tokens. A swap of the policy puts them into the gate with the new tree, and a leaf that stays keeps its
 *         tokens. The server learns of each leaf as soon as that has its knobs, and grants it the tokens that it lacks.
 *         While no request comes or goes at the resource no token is spent: then the server looks at the gate once an
 *         interval, and not every few milliseconds; and at once when a request comes.
 *
 * The structures are for tests; all others use pshift_controller (keys.h).
 */
#ifndef WEIR_CONTROL_PSHIFT_GATE_H
#define WEIR_CONTROL_PSHIFT_GATE_H

#include "control/pshift/keys.h"
#include "control/pshift/server.h"

struct pshift_gate_bucket { /* by index in the pshift_server */
	bool here;          /* it has a node in the gate */
	bool limited, wanted;
	bool new_r, new_l; /* its node has none of the tokens that the bucket holds */
	weir_node node;
	size_t tenant; /* in the version in force; only while it is here. PSHIFT_NEXT: in the next one */
	/* Served at the look before the last, and at the last one of the period before this; served in that period
	 * in all. Requests that passed between the two looks around its end count to both. */
	uint64_t previous, mark, last;
	/* Counters of nodes that it had before. */
	uint64_t arrivals, dispatched;
	double waited;
};

#define PSHIFT_NEXT SIZE_MAX

struct pshift_plan {   /* of the next version of the policy */
	int64_t *at;   /* by tenant: the bucket, or -1 */
	size_t n, new; /* tenants; buckets that there may be more */
};

struct pshift_gate_server {
	struct site *site;
	struct pshift_server *server;
	bool on;
	double stated; /* capacity, tokens a second; 0: learned */
	struct pshift_gate_bucket *buckets;
	struct cluster_server_load *loads;
	struct weir_knob *knobs; /* of the grants of a look: two a bucket */
	size_t n, room, n_knobs;
	struct pshift_plan plan;
	uint64_t activity;            /* of the site, at the last look */
	weir_time looked;             /* time of that look */
	uint64_t period, last_period; /* of that look, and the one that `last` is of; 0: none */
	weir_time interval;           /* of reports, as of then */
	weir_time busy;               /* ns of all looks */
	uint64_t looks;
};

/* Look at the gate, and act on it, idle or not. */
void pshift_gate_look(struct pshift_gate_server *s, weir_time now);

#endif
