/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cluster: the two machines of a controller that divides tenants' tokens over the servers of a cluster.
 *
 * A server turns the counters of its buckets into reports, and grants into tokens. The controller of all servers turns
 * reports into grants; a server may stand in for it. Both take `now` and messages (wire/lease.h), and send messages by a
 * function of their caller: a process (serve/host/control.c), the simulator (sim/cluster), a test. A bucket is a tenant in
 * the cluster; tokens are requests.
 *
 * A server with a gate is a site (controller.h), and has its machine behind that plug; the table here is for servers that
 * are only counted.
 */
#pragma once

#include "control/facts.h"
#include "wire/lease.h"
#include <stdbool.h>

#define CLUSTER_STAND_INS                                                                          \
	3 /* servers that may stand in for a controller: the first of the cluster */

/* ---- the controller */

/* How R-tokens are placed. All but the first are there so that an experiment can show the effect of shifting. */
enum cluster_placing {
	CLUSTER_SHIFT,
	CLUSTER_SPLIT,  /* in proportion to demand, whatever the servers can do */
	CLUSTER_RANDOM, /* the same, but each bucket's parts at servers drawn at random */
};

struct cluster_lead_config {
	const char *name; /* copied; peer_name_check */
	uint64_t cluster;
	uint64_t instance; /* random at each start; its last bit depends on `rank` */
	/* 0: a controller. Else the rank of a server that may stand in: it leads only while no controller does, and
	 * buckets wait for their reservations. */
	unsigned rank;
	weir_time length; /* ns of a QoS period */
	weir_time shortest,
		longest; /* ns of an interval; 0: length/20, length/2. Equal: it is fixed */
	enum cluster_placing placing;
	/* It leads only under a generation that `elect` gives it: the servers elect none. */
	bool elected;
	/* A message for a server: to be sent or lost before this returns. */
	void (*send)(void *arg, size_t server, const struct lease_message *m);
	void *arg;
};

struct cluster_bucket {
	uint64_t id;
	int64_t reservation; /* tokens a period, over all servers */
	int64_t limit;       /* the same, or LEASE_NO_LIMIT */
	uint32_t parts;      /* servers that have a static part of limit / parts; ≥ 1 */
};

struct cluster_status {
	uint64_t generation, period;
	uint64_t highest; /* generation that any server or controller reported, or this one had */
	bool started;     /* it knows what the servers hold, and grants */
	bool standby;     /* it neither grants nor asks servers to follow it … */
	bool led;         /* … and another controller is followed */
	bool overdrawn; /* static parts of some bucket are more than its limit: a policy that differs */
	weir_time interval;
	size_t servers, heard, silent; /* in all; reported in full; silent for a period */
	size_t buckets, entries,
		waiting; /* waiting: limits that wait for a server to give up some */
	int64_t asked,
		phi; /* tokens that reservations need in a period, with the demand of now; placed */
	uint64_t rounds, grants, tokens; /* placed; messages; entries in them */
};

typedef const char *cluster_name(void *arg, size_t index);

struct cluster_lead {
	/* 0, -EINVAL or -ENOMEM. */
	int (*new)(const struct cluster_lead_config *config, void **ret);
	void (*free)(void *c);
	uint64_t (*instance)(const void *c); /* as its messages have it */
	/* A server of the cluster, by the name in its reports: its index from 0, or -ENOMEM, -EINVAL. */
	int64_t (*server)(void *c, const char *name);
	/* A new bucket, or other numbers of a known one (a limit that falls holds from the period after the next): its
	 * index from 0, or -EINVAL, -ENOMEM. */
	int64_t (*bucket)(void *c, const struct cluster_bucket *b);
	/* The same, but the numbers of a known bucket, and the reservation of a new one, wait for `enter`: a policy of many
	 * buckets is set in steps, and comes into force at once. */
	int64_t (*stage)(void *c, const struct cluster_bucket *b);
	void (*enter)(void *c);
	/* With `elected`: it was elected, and leads under that generation once that is above all that it has heard of, in the
	 * next step; 0: it no longer is, and stands down at once. A generation leads once: after it stood down a higher one is needed. */
	void (*elect)(void *c, uint64_t generation);
	/* PEER_TAKEN; PEER_OLD: known already; PEER_UNPROVEN: started anew, and is asked first; PEER_NOISE: of no server of
	 * the cluster; PEER_BROKEN: not for a controller; PEER_CROWD: no memory. */
	enum peer_verdict (*receive)(void *c, weir_time now, const struct lease_message *m);
	/* At the latest when `due` says; after reports, too. 0; -ENOMEM (the next step makes up for it). */
	int (*step)(void *c, weir_time now);
	weir_time (*due)(const void *c);
	void (*status)(const void *c, struct cluster_status *ret);
	/* Reservations that no allocation can meet, with the demand of the last round: one line for each group of servers
	 * that are full. 0 or -ENOMEM. */
	int (*explain)(void *c, cluster_name *server, cluster_name *bucket, void *arg,
		void (*line)(void *arg, const char *words));
};

/* ---- a server */

struct cluster_server_config {
	const char *name;  /* copied; peer_name_check */
	uint64_t cluster;  /* peer_hash of its name */
	uint64_t instance; /* random at each start, not 0 */
	weir_time length;  /* ns of a QoS period, until a controller sets it */
	bool fresh;        /* the cluster's first start, or this server's: need not be blind */
	/* With very many buckets, leave those that rest out of a look: idle buckets that have all tokens that they can
	 * have. The driver wakes them. */
	bool rests;
	/* Changes that are not reported, as a part of the expected value; 0: 0.02, below 0: report all. */
	double tolerance;
	/* Add so many R- and L-tokens to bucket `index` at the gate, or remove them; exactly. */
	void (*grant)(void *arg, size_t index, int64_t r, int64_t l);
	/* Send a message to the controller, or lose it, before returning. */
	void (*send)(void *arg, const struct lease_message *m);
	void *arg;
};

struct cluster_server_bucket {
	uint64_t id; /* peer_hash of its name */
	/* Its part of the reservation, and of the limit (or LEASE_NO_LIMIT), in tokens a period, when no
	 * controller is there. Parts of limits add up to no more than the limit over all servers. */
	int64_t reserved, limit;
	int64_t reservation; /* over all servers; 0: it never waits for a stand-in */
};

struct cluster_server_load {      /* counters of one bucket since any origin; tokens (requests) */
	uint64_t arrived, served; /* served: for which the gate spent tokens, or would have */
	uint64_t queued;          /* waiting now */
	double waited;            /* request·ns, as the gate counts them */
	uint64_t inside;          /* passed and not yet done */
};

struct cluster_server {
	/* 0, -EINVAL or -ENOMEM. */
	int (*new)(const struct cluster_server_config *config, void **ret);
	void (*free)(void *s);
	/* A new bucket, or another part of a known one: its index, counting from 0, or -ENOMEM. */
	int64_t (*add)(void *s, const struct cluster_server_bucket *b);
	/* The loads of all buckets by index; capacity in tokens a second, as it is estimated now. 0 or -ENOMEM (the next
	 * look makes up for it). At the latest when `due` says; after a message that was taken, at once. */
	int (*look)(
		void *s, weir_time now, const struct cluster_server_load *loads, double capacity);
	weir_time (*due)(const void *s);
	/* PEER_TAKEN, PEER_OLD (another controller's, late, or known already), PEER_BROKEN (not for a server). */
	enum peer_verdict (*receive)(void *s, weir_time now, const struct lease_message *m);
	/* The connection to that controller (its instance) was closed. */
	void (*lost)(void *s, uint64_t controller);
};

/* ---- facts */

struct cluster_link {         /* a row of the whole gateway: facts_kind.whole */
	struct facts_row row; /* keys: the controller's address, the server */
	bool up;
	weir_time since; /* ns for which it has been so; 0: not known */
	uint64_t lost;
	const char *why; /* NULL: nothing is known */
	const char *state;
};
