/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * snapshot: the measurements of a gateway at one moment, gathered from all its threads.
 *
 * Counters only grow; a viewer takes two snapshots and divides by the time between. A policy may
 * have a hundred thousand tenants of which a thousand are used: a snapshot has memory for those,
 * and keeps the policy version for the others.
 *
 *   snapshot.c       memory
 *   snapshot-hist.c  histograms, without their empty parts
 *   snapshot-look.c  gathers a snapshot
 */
#pragma once

#include <weir/hist.h>
#include "policy/policy.h"
#include "base/arena.h"
#include "control/facts.h"
#include "control/shadow-sender.h"
#include "control/slo.h"
#include <weir/gate.h>
#include "serve/peer/peer.h"

struct gateway_version;

struct snapshot_hist { /* a struct weir_hist without the empty buckets at both ends */
	uint64_t count, sum, min, max;
	uint32_t first, n;
	uint32_t bucket[];
};

/* A tenant's slo, over all resources. */
struct snapshot_slo {
	const char *path;
	uint32_t tenant; /* index */
	double percentile;
	weir_time bound;
	uint64_t good,
		total; /* requests since the gateway started, or the tenant first had an slo */
	struct slo_view window[SLO_WINDOWS];
};

struct snapshot_resource;
struct snapshot_place { /* a resource at which a tenant, or one below it, has clients */
	struct snapshot_place *next;         /* of the tenant */
	const struct snapshot_place *parent; /* of its parent, at the same resource; NULL: none */
	const struct snapshot_resource *here;
	double weight, below; /* below: the weights of all children that have clients here */
};
/* Return the part of the resource that is due to the tenant while all that have clients there are busy, 0 to 1. */
double snapshot_due(const struct snapshot_place *at);

/* A tenant's claim at a resource, and whether the tenant keeps to it. */
struct snapshot_claim {
	struct snapshot_claim *next; /* of the tenant */
	const char *resource;
	int priority;
	uint64_t in, out; /* requests within its profile and beyond it */
	/* 0, unless it is out of it: since when, by how much (control/meister/meter.h), and the pair that broke first, in seconds
	 * or bytes */
	weir_time out_for, over;
	double excess, rate, size;
};

struct snapshot_tenant {
	const char *path;    /* of the policy */
	const char *held_by; /* cause MAX or ABOVE: the path whose max it is; else NULL */
	bool leaf;
	double weight, share;                      /* of all, while all are busy */
	struct snapshot_place *at;                 /* where it has clients; NULL: it has none */
	double min[WEIR_LIMITS], max[WEIR_LIMITS]; /* struct weir_bounds; INFINITY: no max */
	uint64_t arrivals, dispatched, served, bytes, by_class[3], errors;
	uint64_t reads, writes, others;
	uint64_t waited; /* passed in a later turn of the thread than that in which they came */
	uint32_t queued, in_flight, clients;
	double wait_ns[WEIR_CAUSES], device_ns; /* request·ns */
	enum weir_cause cause;                  /* why its first request waits now */
	weir_time oldest_wait; /* for how long the oldest request has waited; 0: none waits */
	struct shadow_estimate shadow;               /* shadow mode; a group: of all its clients */
	struct snapshot_hist *wait, *device, *total; /* ns; owned by the snapshot; NULL: none yet */
	const struct snapshot_slo *slo;              /* NULL: it has none */
	struct snapshot_claim *claims;               /* NULL: the plan has none, or it is idle */
	bool min_off;                                /* its min does not fit, and is not in force */
	/* a group: the counters of leaves that it had, part of its own; NULL: it lost none */
	struct snapshot_tenant *gone;
};

struct snapshot_resource {
	const char *name, *back;
	const char *controller; /* NULL: none */
	struct facts facts;     /* of the controller; rows of tenants in the policy's order */
	char state[200];        /* "up", "lost; 2 reconnects", "unhealthy; …", … */
	bool up;
	bool healthy;     /* up, and without a problem */
	uint32_t stalled; /* volumes that do not answer */
	uint64_t flush_errors;
	uint64_t size;
	uint64_t window_bytes, in_flight_bytes; /* window_bytes 0: no limit */
	double window, capacity[2];             /* per second: requests, bytes; 0: not known yet */
	bool capacity_stated;
	double drift; /* of its profile; NAN: not known, or it has none */
	double mins;  /* of its tenants, over its capacity; NAN: not known */
	uint64_t submitted, dispatched, waited, served, errors, lost;
	uint32_t queued, in_flight, clients;
	double weights;         /* of the tenants without a parent that have clients here */
	weir_time full;         /* time with the window full */
	bool bypassed;          /* requests go past the gate */
	weir_time bypassed_for; /* if bypassed, for how long */
	unsigned thread;
};

struct snapshot_client {
	char export_[256], name[80], tenant[256], resource[64], tls[128];
	weir_time since;
	uint64_t requests, bytes;
	uint32_t in_flight;
};

struct snapshot_volume { /* one with trouble */
	const char *name, *why;
};

struct snapshot {
	weir_time now, started; /* CLOCK_MONOTONIC */
	uint64_t version;       /* of the policy: 1 at the start */
	bool enforce;
	double plan_age; /* s since the plan was applied */
	/* As in the policy; a group: the sum of its leaves. NULL: idle: it never had a request and
	 * has no client. Use snapshot_tenant to read. */
	struct snapshot_tenant **tenants;
	size_t n_tenants;
	struct snapshot_slo *slos; /* of the tenants with an slo, in the policy's order */
	size_t n_slos;
	struct gateway_version *of; /* held; NULL: every tenant is present */
	struct snapshot_resource *resources;
	size_t n_resources;
	struct snapshot_volume *volumes;
	size_t n_volumes;
	const char *clients_of; /* only clients of tenants whose path begins with it; NULL: all */
	struct snapshot_client *clients; /* the first 1,000 */
	size_t n_clients, room_clients;
	uint64_t connections, refused,
		broken;               /* accepted; turned away; cut off for breaking the protocol */
	size_t memory, memory_budget; /* bytes of payload buffers held */
	/* of controllers, by facts_index: those of no single resource */
	struct facts_rows whole[FACTS_KINDS_MAX];
	bool has_peers; /* the policy names some */
	struct peer_stats peers;
	struct arena arena; /* memory of everything above */
};

void snapshot_free(struct snapshot *s);
/* Return zeroed memory of the snapshot; NULL: out of memory. Any thread, one at a time. */
void *snapshot_take(struct snapshot *s, size_t n, size_t size);
/* Return the site with which controllers fill their facts in the snapshot's memory. */
struct facts_site snapshot_site(struct snapshot *s);
/* Return room for one more client, zeroed; NULL: there are 1,000 already. */
struct snapshot_client *snapshot_client(struct snapshot *s);

/* ---- tenants */

/* Return tenant i for writing, made if it was idle so far; NULL: no memory. */
struct snapshot_tenant *snapshot_active(struct snapshot *s, size_t i);
/* Note that tenant i, which is active, has a client at the resource. Return the place; NULL: no memory. */
struct snapshot_place *snapshot_place(struct snapshot *s, size_t i, struct snapshot_resource *here);
/* Return tenant i for reading; if it is idle, its policy, in *room. */
const struct snapshot_tenant *snapshot_tenant(
	const struct snapshot *s, size_t i, struct snapshot_tenant *room);
const char *snapshot_path(const struct snapshot *s, size_t i); /* for as long as the snapshot */

/* ---- histograms */

/* Add a histogram to *into, which is made (owned by the snapshot) if it is NULL; ignored if out of
 * memory. */
void snapshot_hist_add(struct snapshot_hist **into, const struct weir_hist *from);
/* Restore the whole histogram in *room. h must not be NULL. */
const struct weir_hist *snapshot_hist(const struct snapshot_hist *h, struct weir_hist *room);
