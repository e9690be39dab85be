/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pshift-cluster: servers and buckets under pShift, at the level of tokens and counted requests.
 *
 * A scenario with `cluster:` instead of devices and hosts is run here: thousands of buckets on tens
 * to thousands of servers, for which gates and single requests would be too expensive (the paper's
 * simulator, §IV-B, does the same). The state machines of servers and controller, and the messages
 * between them as bytes, are the real ones (control/pshift, wire/lease.h); simulated are the
 * network (delay, loss), the demand, and a server that serves `capacity` requests a second in the
 * order of Algorithm 1, slot by slot: round robin among buckets with R-tokens, then among the rest
 * that may be served.
 *
 *   pshift-cluster.c   time and the controller
 *   pshift-site.c      a server: its arrivals, and its service in a slot
 *   pshift-gates.c     … with gates and a device instead of counters
 *   pshift-post.c      messages
 *   pshift-load.c      the demand of buckets at servers, and its changes
 *   pshift-moved.c     service of buckets that move while the controller is gone
 *   pshift-judge.c     results, period by period, compared with the best allocation
 *   pshift-read.c      the scenario's map
 */
#ifndef WEIR_SIM_CONTROL_PSHIFT_CLUSTER_H
#define WEIR_SIM_CONTROL_PSHIFT_CLUSTER_H

#include "base/heap.h"
#include "base/rng.h"
#include "base/yamldoc.h"
#include "control/capacity.h"
#include "control/pshift/control.h"
#include "control/pshift/server.h"
#include "sim/metrics.h"
#include "sim/sim.h"

/* Mechanisms that an experiment can switch off, in the order of the words in pshift-read.c. */
enum pshift_cluster_without {
	PSHIFT_CLUSTER_WITHOUT_NOTHING,
	PSHIFT_CLUSTER_WITHOUT_SHIFTING,  /* tokens are split by demand, and stay so */
	PSHIFT_CLUSTER_WITHOUT_PLACEMENT, /* tokens go to servers drawn at random, not by demand */
	PSHIFT_CLUSTER_WITHOUT_EXPIRY,    /* a server holds a grant for ever */
};

struct pshift_cluster_config { /* weir-scenario(5), "cluster" */
	uint32_t servers, buckets;
	double capacity; /* requests a second, of each server */
	double noise;    /* of the rate, from slot to slot: ± this part */
	double guess;    /* the servers' initial estimate of their capacity, as a part of it */
	bool learn;      /* … and they learn it */
	weir_time period, interval, slot, delay; /* interval 0: it adapts */
	double loss;
	double reserved;      /* Σ reservations ÷ capacity of all servers; or 0 and: */
	double reservation;   /* requests a second, of each bucket */
	double limit;         /* ÷ reservation; 0: none */
	double zipf;          /* of reservations, and of a bucket's demand over its servers */
	double demand;        /* ÷ reservation; or 0 and: */
	uint32_t outstanding; /* requests that always wait, at each of its servers */
	bool poisson;         /* with demand: requests come at random, not evenly */
	uint32_t least, most; /* servers at which a bucket is active */
	double skew;    /* servers are drawn by Zipf's law with this exponent, s1 most often */
	bool nested;    /* bucket i is active at servers 1 … i, and stays */
	double changes; /* of a bucket's servers, a period */
	bool afresh;    /* requests that wait at the end of a period are dropped */
	bool control;   /* else no bucket has tokens, and all are served in turn */
	bool gates;     /* servers are gates with a device behind each */
	weir_time kill, back; /* the controller is gone from … to; 0: it lives */
	uint32_t cut;         /* this server (from 1) is cut off from the controller … */
	weir_time cut_from, cut_to;
	bool stand_in;    /* servers stand in for it */
	weir_time settle; /* periods before this time are not judged */
	enum pshift_cluster_without without;
	bool files; /* live: the servers' data are in files, not in memory */
};

/* Read the scenario's map. 0 or -EINVAL. */
int pshift_cluster_read(yamldoc_node map, struct pshift_cluster_config *ret, struct weir_err *err);
/* 0, or a negative errno with a message. */
int pshift_cluster_run(const struct pshift_cluster_config *config, weir_time duration,
	uint64_t seed, const struct sim_options *options, struct metrics **ret,
	struct sim_cost *ret_cost, struct weir_err *err);

/* ---- for its own files, and for live runs with real servers instead of simulated ones: they
 * draw from the same seed the same demand, and are judged by the same judge. */

#define PSHIFT_CLUSTER   1  /* its number in messages */
#define PSHIFT_SITE_NAME 32 /* bytes of a server's name */

struct pshift_place { /* one bucket at one server; first the members that each slot reads */
	uint32_t bucket;
	uint32_t loop;     /* requests that always wait */
	double rate, part; /* arrivals a second; a fraction of one */
	uint64_t queued, arrived, served;
	int64_t r;
	double waited; /* request·ns */
	int64_t l;
	uint32_t inside; /* with gates: passed and not yet done */
	bool listed;     /* listed among the places with requests */
	/* of this period, for the judge: */
	uint64_t served0, arrived0, queued0;
	weir_time open; /* time for which it had a closed loop */
};

struct pshift_site { /* a server */
	struct pshift_cluster *cluster;
	uint32_t number;
	struct pshift_server *server;
	weir_time offset; /* of its clock */
	struct pshift_place *places;
	size_t n, room;
	uint32_t *listed, *turn; /* places with requests; those in the current turn */
	size_t n_listed;
	uint32_t next; /* where the round robin continues */
	double credit;
	struct capacity capacity;
	struct capacity_totals totals;
	struct pshift_server_load *loads;
	struct pshift_gates *gates; /* or NULL */
	struct rng rng;
};

struct pshift_bucket {
	int64_t reservation, limit; /* a period */
	uint32_t *at;               /* servers at which it is active now */
	uint32_t n_at;
	weir_time *moves; /* when it changes, in order */
	size_t n_moves, moved;
};

struct pshift_parcel { /* a message under way */
	uint8_t *bytes;
	size_t n, room;
	uint32_t server, leader;
	bool up;
};

struct pshift_cluster {
	struct pshift_cluster_config config;
	weir_time now, duration;
	uint64_t period; /* and when it began */
	weir_time began;
	struct pshift_site *sites;
	struct pshift_bucket *buckets;
	struct pshift_control *control;
	struct pshift_control *stand_ins[PSHIFT_STAND_INS]; /* NULL: none */
	struct pshift_leader {                              /* argument of `send` of each of them */
		struct pshift_cluster *cluster;
		uint32_t number; /* 0: the controller; 1 …: a stand-in */
	} leaders[1 + PSHIFT_STAND_INS];
	uint64_t instances;
	struct rng rng;
	struct heap under_way;
	struct pshift_parcel *parcels;
	size_t n_parcels, room_parcels;
	uint32_t *free_parcels;
	size_t n_free;
	uint64_t posted;
	struct lease_message in; /* as read */
	struct heap moves;
	struct pshift_ids *pairs; /* of a bucket and a server, to the place */
	int failed;               /* sticky */

	/* measured */
	uint64_t messages[2], bytes[2]; /* to the controller; from it */
	uint64_t served;
	struct pshift_judge *judge;
	struct pshift_moved *moved;
	struct metrics *metrics;
};

/* Return the controller (0), or a stand-in (1 …); NULL: absent. */
static inline struct pshift_control *pshift_cluster_leader(
	const struct pshift_cluster *c, uint32_t number)
{
	return number ? c->stand_ins[number - 1] : c->control;
}

/* Return the bucket's place at the server, made if it is new; NULL: no memory. */
struct pshift_place *pshift_cluster_place(
	struct pshift_cluster *c, uint32_t bucket, uint32_t server);

/* 0 or a negative errno. */
int pshift_cluster_new(const struct pshift_cluster_config *config, weir_time duration,
	uint64_t seed, struct pshift_cluster **ret);
void pshift_cluster_free(struct pshift_cluster *c);

/* Return the number of servers at which a bucket may become active. */
uint32_t pshift_cluster_parts(const struct pshift_cluster *c, uint32_t bucket);

/* Messages between a server and the controller or a stand-in; delivered when they are due. */
void pshift_post_send(struct pshift_cluster *c, uint32_t server, uint32_t leader, bool up,
	const struct lease_message *m);
int pshift_post_deliver(struct pshift_cluster *c); /* those that are due */
void pshift_post_end(struct pshift_cluster *c);

int pshift_site_begin(struct pshift_cluster *c, uint32_t number, uint64_t seed);
void pshift_site_name(uint32_t number, char name[PSHIFT_SITE_NAME]);
void pshift_site_list(struct pshift_site *s, struct pshift_place *p); /* it has requests */
/* read and update its tokens */
int pshift_site_look(struct pshift_site *s);
uint64_t pshift_site_come(struct pshift_site *s, struct pshift_place *p, double mean);
int pshift_site_step(struct pshift_site *s, weir_time slot);
void pshift_site_end(struct pshift_site *s);

int pshift_gates_begin(struct pshift_site *s, uint64_t seed);
int pshift_gates_add(struct pshift_site *s, bool limited); /* for the next place */
void pshift_gates_grant(struct pshift_site *s, size_t place, int64_t r, int64_t l); /* later: */
int pshift_gates_set(struct pshift_site *s); /* apply the grants */
int pshift_gates_step(struct pshift_site *s, weir_time slot, double rate);
void pshift_gates_end(struct pshift_site *s);

int pshift_load_begin(struct pshift_cluster *c);
int pshift_load_step(struct pshift_cluster *c); /* apply the changes up to now */
void pshift_load_end(struct pshift_cluster *c);

/* Buckets that move while the controller is gone. */
int pshift_moved_begin(struct pshift_cluster *c);
void pshift_moved_note(struct pshift_cluster *c, uint32_t bucket); /* it moves now */
void pshift_moved_period(struct pshift_cluster *c);                /* one has ended */
int pshift_moved_report(struct pshift_cluster *c);
void pshift_moved_end(struct pshift_cluster *c);

int pshift_judge_begin(struct pshift_cluster *c);
int pshift_judge_period(struct pshift_cluster *c); /* one has ended */
int pshift_judge_report(struct pshift_cluster *c);
void pshift_judge_end(struct pshift_cluster *c);

#endif
