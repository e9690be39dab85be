/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * demo: the parts of `weir demo`.
 *
 *   demo.c  the verb: files, text, suggestions
 *   run.c   a gateway as a child process, three loads, and the policy applied half-way
 *   show.c  tables, charts and the picture
 */
#pragma once

#include <weir/err.h>
#include <weir/hist.h>
#include "cli/common/remote.h"
#include "cli/common/verb.h"
#include "sim/metrics.h"
#include <stdbool.h>
#include <stdint.h>

extern const struct verb verb_demo;

#define DEMO_TENANTS 3
#define DEMO_POINTS  256 /* intervals of a run at most */
extern const char *const demo_tenants[DEMO_TENANTS];

enum demo_phase { DEMO_WITHOUT, DEMO_WITH, DEMO_PHASES };

struct demo_tenant {
	struct metrics_point
		p99[DEMO_POINTS]; /* s, ms; of each interval in which it had a request */
	size_t n;
	double iops; /* in the last interval */
	struct {
		struct weir_hist latency; /* ns */
		uint64_t requests;
		double seconds;
	} phase[DEMO_PHASES];
};

struct demo {
	struct demo_tenant tenant[DEMO_TENANTS];
	double mark;    /* s: when the policy was applied; 0: not yet */
	double elapsed; /* s */
	/*
	 * The gateway's status soon after the policy was applied and at the end: the difference is
	 * the activity under the policy.
	 */
	json_t *start, *end;
	char page[64], token[33]; /* the address of the gateway's page, and what it asks for */
};

struct demo_plan {
	const char *before, *after; /* the policies: file names */
	double seconds;             /* of each half */
	uint64_t seed;
	bool stay; /* load the gateway again afterwards, until SIGINT or SIGTERM */
	void (*started)(const struct demo *d); /* the page can be opened */
	/* Called regularly, with the results so far. */
	void (*look)(const struct demo *d);
	/* Called once, with all results, while the gateway still serves. 0 or a negative errno with a message. */
	int (*measured)(void *arg, struct demo *d, struct weir_err *err);
	void *arg;
};

/* Run the demo and fill d, which must be zeroed. Return 0, or a negative errno and a message. */
int demo_run(const struct demo_plan *p, struct demo *d, struct weir_err *err);
void demo_free(struct demo *d);

/* Draw the rates and the chart so far on a terminal, over the last drawing. */
void demo_show_live(const struct demo *d);
void demo_show_live_end(void); /* clear the drawing */
int demo_show_table(const struct demo *d);
void demo_show_sum(const struct demo *d);
/* Draw the chart, and write DIR/latency.svg and .png. */
int demo_show_picture(const struct demo *d, const char *dir, struct weir_err *err);
