/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * snapshot: what a gateway measured, at one moment, gathered from all its threads.
 *
 * Counters only grow; a viewer takes two and divides by the time between. A policy may have a hundred
 * thousand tenants of which a thousand are used: a snapshot has memory for those that are, and what the
 * policy says of the others is the policy's, which the snapshot keeps.
 *
 *   snapshot.c       memory
 *   snapshot-hist.c  histograms, cut to what is in them
 *   snapshot-look.c  how one is gathered
 */
#ifndef WEIR_SERVE_GATEWAY_SNAPSHOT_H
#define WEIR_SERVE_GATEWAY_SNAPSHOT_H

#include <weir/hist.h>
#include "policy/policy.h"
#include "base/arena.h"
#include "control/facts.h"
#include "control/shadow-sender.h"
#include "control/slo.h"
#include <weir/gate.h>
#include "serve/host/peer.h"

struct gateway_version;

struct snapshot_hist { /* a struct weir_hist without the empty buckets at both ends */
	uint64_t count, sum, min, max;
	uint32_t first, n;
	uint32_t bucket[];
};

/* How a tenant's slo is met, from all resources together. */
struct snapshot_slo {
	const char *path;
	uint32_t tenant; /* index */
	double percentile;
	weir_time bound;
	uint64_t good,
		total; /* requests since the gateway started, or the tenant first had an slo */
	struct slo_view window[SLO_WINDOWS];
};

struct snapshot_tenant {
	const char *path;    /* of the policy */
	const char *held_by; /* cause MAX or ABOVE: the path whose max it is; else NULL */
	bool leaf;
	double weight, share;                      /* of all, while all are busy */
	double min[WEIR_LIMITS], max[WEIR_LIMITS]; /* struct weir_bounds; INFINITY: no max */
	uint64_t arrivals, dispatched, served, bytes, by_class[3], errors;
	uint64_t reads, writes, others;
	uint32_t queued, in_flight, clients;
	double wait_ns[WEIR_CAUSES], device_ns; /* request·ns */
	enum weir_cause cause;                  /* why its head waits now */
	weir_time oldest_wait; /* for how long the oldest that waits has done so; 0: none waits */
	struct shadow_estimate shadow;               /* shadow mode; a group: of all its clients */
	struct snapshot_hist *wait, *device, *total; /* ns; owned by the snapshot; NULL: none yet */
	const struct snapshot_slo *slo;              /* NULL: it has none */
};

struct snapshot_resource {
	const char *name, *back;
	const char *controller; /* NULL: none */
	struct facts facts;     /* of the controller; rows of tenants in the policy's order */
	char state[200];        /* "up", "lost; 2 reconnects", "unhealthy; …", … */
	bool up;
	bool healthy; /* up, and nothing is wrong with it */
	uint64_t flush_errors;
	uint64_t size;
	uint64_t window_bytes, in_flight_bytes; /* window_bytes 0: none */
	double window, capacity[2];             /* per second: requests, bytes; 0: not known yet */
	bool capacity_stated;
	uint64_t submitted, dispatched, served, errors, lost;
	uint32_t queued, in_flight, clients;
	weir_time full;         /* time with the window full */
	bool bypassed;          /* requests go past the gate */
	weir_time bypassed_for; /* if so, for how long */
	unsigned thread;
};

struct snapshot_client {
	char export_[256], name[80], tenant[256], resource[64], tls[128];
	weir_time since;
	uint64_t requests, bytes;
	uint32_t in_flight;
};

struct snapshot {
	weir_time now, started; /* CLOCK_MONOTONIC */
	uint64_t version;       /* of the policy: 1 at the start */
	bool enforce;
	/* As in the policy; a group: the sum of its leaves. NULL: idle: it never had a request and has no client.
	 * snapshot_tenant gives either. */
	struct snapshot_tenant **tenants;
	size_t n_tenants;
	struct snapshot_slo *slos; /* of the tenants that have one, in the policy's order */
	size_t n_slos;
	struct gateway_version *of; /* held; NULL: every tenant is there */
	struct snapshot_resource *resources;
	size_t n_resources;
	const char *clients_of; /* only clients of tenants whose path begins so; NULL: all */
	struct snapshot_client *clients; /* the first 1,000 */
	size_t n_clients, room_clients;
	uint64_t connections, refused,
		broken;               /* accepted; turned away; cut off for breaking the protocol */
	size_t memory, memory_budget; /* bytes of payload buffers held */
	struct facts_rows
		whole[FACTS_KINDS_MAX]; /* of controllers, by facts_index: of no one resource */
	bool has_peers;                 /* the policy names some */
	struct peer_stats peers;
	struct arena arena; /* what everything above lies in */
};

void snapshot_free(struct snapshot *s);
/* Zeroed memory of the snapshot's; NULL: there is none. Any thread, one at a time. */
void *snapshot_take(struct snapshot *s, size_t n, size_t size);
/* For controllers, to fill their facts in the snapshot's memory. */
struct facts_site snapshot_site(struct snapshot *s);
/* Room for one more client, zeroed; NULL: there are 1,000 already. */
struct snapshot_client *snapshot_client(struct snapshot *s);

/* ---- tenants */

/* Tenant i to be added to, made if it was idle so far; NULL: no memory. */
struct snapshot_tenant *snapshot_active(struct snapshot *s, size_t i);
/* Tenant i to be read; if it is idle, what the policy says of it, in *room. */
const struct snapshot_tenant *snapshot_tenant(
	const struct snapshot *s, size_t i, struct snapshot_tenant *room);
const char *snapshot_path(const struct snapshot *s, size_t i); /* for as long as the snapshot */

/* ---- histograms */

/* Adds one to *into, which is made (the snapshot's) if it is NULL; out of memory: left out. */
void snapshot_hist_add(struct snapshot_hist **into, const struct weir_hist *from);
/* As it was, in *room. h must not be NULL. */
const struct weir_hist *snapshot_hist(const struct snapshot_hist *h, struct weir_hist *room);

#endif
