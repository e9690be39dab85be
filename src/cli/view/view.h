/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * view: the status of a gateway (GET /v1/status) as tables.
 *
 * One status shows totals since the start (weir status); two, one after the other, show the
 * activity between them (weir top).
 */
#pragma once

#include <weir/hist.h>
#include "cli/view/table.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define VIEW_PATH "/v1/status?histograms=1"

enum view_cause { VIEW_WINDOW, VIEW_MAX, VIEW_ABOVE, VIEW_TOKENS, VIEW_TURN, VIEW_CAUSES };

struct view_tenant { /* text is borrowed from the later status */
	const char *path;
	bool leaf;
	double weight;
	double due; /* part of its resources while all with clients there are busy; NAN: no client */
	double iops, bytes; /* per second, in the interval */
	double got; /* part of the requests served by its resources, 0 … 1; NAN: none was served */
	double p50, p99; /* s, in the interval; NAN: no request was served */
	double queued, in_flight, clients, errors;
	double oldest;            /* s: waiting time of the oldest request that waits */
	double wait[VIEW_CAUSES]; /* mean number of requests that waited for each cause */
	double waited; /* part of its requests that waited for longer than a round of the thread; NAN: not known */
	double inside;              /* mean number of requests in the device */
	double low, high;           /* shadow mode: range of the enforced rate, as factors; else 0.
	                             NAN: not known */
	const char *held_by;        /* tenant whose max holds its first request now; or NULL */
	const json_t *before, *now; /* its two states; before NULL: it is new */
	size_t place;               /* in the policy */
};

struct view_resource {
	const char *name, *back, *state;
	bool up, stated;
	double bypassed; /* s for which its gate has been bypassed; NAN: it is not */
	double window, in_flight, queued, clients;
	double window_bytes; /* NAN: no such window */
	double full;         /* part of the interval with the window full, 0 … 1 */
	double iops;         /* served per second */
	double waited;       /* as of a tenant */
	double capacity[2];  /* requests, bytes; NAN: not known */
	double errors;       /* in the interval */
	double size;
};

struct view {
	double span; /* s between the two */
	struct view_tenant *tenants;
	size_t n_tenants;
	struct view_resource *resources;
	size_t n_resources;
	double idle; /* number of idle tenants that the gateway left out */
};

/*
 * Make a view from two statuses; before NULL: since the gateway started. Tenants and resources that
 * are new or were restarted count from 0. Return 0, -EPROTO (not a status) or -ENOMEM. Borrows
 * `now`.
 */
int view_make(const json_t *before, const json_t *now, struct view *ret);
void view_free(struct view *v);

/*
 * Return the latencies of a tenant in the interval, by their key: "latency" (the whole) or
 * "device", in ns. The least and the largest are those of a bucket.
 */
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

/* Return a member of an object: a number, NAN if there is none; a text, "-" if there is none. */
double view_number(const json_t *j, const char *key);
static inline double view_count(const json_t *j, const char *key) /* 0 if there is none */
{
	return json_number_value(json_object_get(j, key));
}
const char *view_text(const json_t *j, const char *key);
#define VIEW_SHORT 32
/* Write a time in seconds with three digits; "-" for NAN. Return it. */
const char *view_seconds(double s, char to[VIEW_SHORT]);

/* Write lines; headings begin with TABLE_HEAD. */
void view_write_head(const json_t *now, FILE *to);
void view_write_resources(const struct view *v, FILE *to);
/* A line for each resource at which weights do not act now for some tenant, since few of its requests wait. */
void view_write_unweighed(const struct view *v, FILE *to);
void view_write_tenants(const struct view *v, FILE *to);
void view_write_idle(const struct view *v, FILE *to); /* a line, if tenants were left out */
/* Write a line for each text of a list in j: "LABEL: TEXT". */
void view_write_lines(const json_t *j, const char *key, const char *label, FILE *to);
/* Write all tables of a status; idle: with a line about tenants that were left out. */
void view_write_all(const struct view *v, const json_t *now, bool idle, FILE *to);
void view_write_clients(const json_t *clients, FILE *to); /* GET /v1/clients */
/* view-slo.c: an empty line and a line for each tenant with an slo, if there are such. */
void view_write_slo(const json_t *now, FILE *to);
/* view-facts.c: an empty line and a table for each controller that some resource has. */
void view_write_facts(const json_t *now, FILE *to);
void view_write_ledger(const json_t *ledger, FILE *to); /* GET /v1/ledger */
/* view-control.c */
/* A controller (weir control) answered, and what it says of its servers and tenants. */
bool view_is_control(const json_t *now);
void view_write_control(const json_t *now, FILE *to);
/* Return true for the status of a shaper of links; write it. */
bool view_is_shape(const json_t *now);
void view_write_shape(const json_t *now, FILE *to);
