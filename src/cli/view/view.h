/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * view: what a gateway says of itself (GET /v1/status), as tables for people.
 *
 * One look shows totals since the start (weir status); two looks, one after the other, show what
 * happened between them (weir top).
 */
#ifndef WEIR_CLI_VIEW_VIEW_H
#define WEIR_CLI_VIEW_VIEW_H

#include <weir/hist.h>
#include "cli/view/table.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define VIEW_PATH "/v1/status?histograms=1"

enum view_cause { VIEW_WINDOW, VIEW_MAX, VIEW_ABOVE, VIEW_TOKENS, VIEW_TURN, VIEW_CAUSES };

struct view_tenant { /* text is borrowed from the later look */
	const char *path;
	bool leaf;
	double weight, share; /* share: entitled, of all */
	double iops, bytes;   /* per second, in the interval */
	double got;           /* part of all that was served, 0 … 1; NAN: nothing was */
	double p50, p99;      /* s, in the interval; NAN: nothing was served */
	double queued, in_flight, clients, errors;
	double oldest;              /* s for which the oldest that waits has done so */
	double wait[VIEW_CAUSES];   /* requests that waited for it, on average */
	double inside;              /* requests in the device, on average */
	double low, high;           /* shadow mode: factors of rates that enforcement may have; 0 */
	const char *held_by;        /* whose max, if its head is held by one now; or NULL */
	const json_t *before, *now; /* the two looks at it; before NULL: it is new */
	size_t place;               /* in the policy */
};

struct view_resource {
	const char *name, *back, *state;
	bool up, stated;
	double bypassed; /* s for which requests have gone past its gate; NAN: they pass it */
	double window, in_flight, queued, clients;
	double window_bytes; /* NAN: no such window */
	double full;         /* part of the interval with the window full, 0 … 1 */
	double iops;         /* served per second */
	double capacity[2];  /* requests, bytes; NAN: not known */
	double errors;       /* in the interval */
	double size;
};

struct view {
	double span; /* s between the two looks */
	struct view_tenant *tenants;
	size_t n_tenants;
	struct view_resource *resources;
	size_t n_resources;
	double idle; /* tenants that the gateway left out for being so */
};

/* From two looks; before NULL: since the gateway started. Tenants and resources that are new or have
 * begun again count from 0. 0, -EPROTO: no status, -ENOMEM. Borrows `now`. */
int view_make(const json_t *before, const json_t *now, struct view *ret);
void view_free(struct view *v);

/* The latencies of a tenant between the two looks, by their key: "latency" (all of it) or "device", in ns.
 * The least and the largest are a bucket's. */
void view_latency(const struct view_tenant *t, const char *key, struct weir_hist *ret);

enum view_order {
	VIEW_BY_POLICY,
	VIEW_BY_IOPS,
	VIEW_BY_BYTES,
	VIEW_BY_P99,
	VIEW_BY_QUEUE,
	VIEW_ORDERS
};
extern const char *const view_order_names[VIEW_ORDERS];
void view_sort(struct view *v, enum view_order order); /* largest first; equals as in the policy */

/* Lines; headings begin with TABLE_HEAD. */
void view_write_head(const json_t *now, FILE *to);
void view_write_resources(const struct view *v, FILE *to);
void view_write_tenants(const struct view *v, FILE *to);
void view_write_idle(const struct view *v, FILE *to);     /* a line, if tenants were left out */
void view_write_clients(const json_t *clients, FILE *to); /* GET /v1/clients */
/* An empty line and a table of the resources that have a member `key`, an object, as the three below write;
 * `add` gives it the lines of one. False: there are no such, and nothing is written. */
typedef void view_add_fn(const json_t *resource, const json_t *part, struct table *t);
bool view_write_parts(const json_t *now, const char *key, const char *const *heads, unsigned right,
	view_add_fn *add, FILE *to);
/* view-slo.c: an empty line and a line for each tenant with an slo, if there are such. */
void view_write_slo(const json_t *now, FILE *to);
/* view-parda.c: an empty line and a line for each resource under PARDA, if there are such. */
void view_write_parda(const json_t *now, FILE *to);
/* view-pshift.c: the same of tenants' tokens at resources under pShift, and of their controllers. */
void view_write_pshift(const json_t *now, FILE *to);
/* A controller (weir control) answered, and what it says of its servers and tenants. */
bool view_is_control(const json_t *now);
void view_write_control(const json_t *now, FILE *to);
/* view-ledger.c: an empty line and the jobs of resources under AdapTBF, if there are such. */
void view_write_adaptbf(const json_t *now, FILE *to);
void view_write_ledger(const json_t *ledger, FILE *to); /* GET /v1/ledger */

#endif
