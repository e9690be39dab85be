/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cluster: servers and buckets under pShift, at the level of tokens and requests counted.
 *
 * A scenario with `cluster:` instead of devices and hosts is run here: thousands of buckets on tens to
 * thousands of servers, for which a gate and a request of its own each would be too much (the paper's
 * simulator, §IV-B, does as we do). The servers' and the controller's machines, and the messages between
 * them as bytes, are those of src/control and src/wire; simulated are the network (delay, loss), the
 * demand, and a server that does `capacity` requests a second in the order of Algorithm 1, slot by slot:
 * round robin among those with R-tokens, then among the rest that may be served.
 *
 *   cluster.c   time and the controller
 *   server.c    a server: its arrivals and its service in a slot
 *   gates.c     … with gates and a device in the place of counters
 *   post.c      messages
 *   load.c      the demand of each bucket at each server, and its changes
 *   moved.c     the service of buckets that move while the controller is gone
 *   judge.c     the service of each period, compared with the best that any allocation could give
 *   read.c      the scenario's map
 */
#pragma once

#include "base/heap.h"
#include "base/rng.h"
#include "base/yamldoc.h"
#include "control/capacity.h"
#include "control/controller.h"
#include "sim/metrics.h"
#include "sim/sim.h"

/* The part that is switched off, so that an experiment can show its effect. In the order of the words
 * in read.c. */
enum sim_cluster_without {
	SIM_CLUSTER_WITHOUT_NOTHING,
	SIM_CLUSTER_WITHOUT_SHIFTING,  /* tokens are split by demand, and stay so */
	SIM_CLUSTER_WITHOUT_PLACEMENT, /* tokens go to servers drawn at random, not by demand */
	SIM_CLUSTER_WITHOUT_EXPIRY,    /* a server's grants never end */
};

struct sim_cluster_config { /* weir-scenario(5), "cluster" */
	uint32_t servers, buckets;
	double capacity; /* requests a second, of each server */
	double noise;    /* of it, from slot to slot: ± this part */
	double guess;    /* capacity that servers assume at first, as a part of it */
	bool learn;      /* … and learn it */
	weir_time period, interval, slot, delay; /* interval 0: it adapts */
	double loss;
	double reserved;      /* Σ reservations ÷ what all servers can do; or 0 and: */
	double reservation;   /* requests a second, of each bucket */
	double limit;         /* ÷ reservation; 0: none */
	double zipf;          /* of reservations, and of a bucket's demand over its servers */
	double demand;        /* ÷ reservation; or 0 and: */
	uint32_t outstanding; /* requests that always wait, at each of its servers */
	int poisson;          /* with demand: 1: requests come at random, not evenly */
	uint32_t least, most; /* servers that a bucket is active at */
	double skew;    /* servers are drawn by Zipf's law with this exponent, s1 most often */
	bool nested;    /* bucket i is active at servers 1 … i, and stays */
	double changes; /* of a bucket's servers, a period */
	bool afresh;    /* requests that wait when a period ends are dropped */
	bool control;   /* else no bucket has tokens, and all are served in turn */
	bool gates;     /* servers are gates with a device behind each */
	weir_time kill, back; /* the controller is gone from … to; 0: it lives */
	uint32_t cut;         /* this server (from 1) is cut off from the controller … */
	weir_time cut_from, cut_to;
	bool stand_in;    /* servers stand in for it */
	weir_time settle; /* before this nothing is judged */
	int without;      /* enum sim_cluster_without */
	bool files;       /* live: the servers' data are in files, not in memory */
};

/* Read the scenario's map. Return 0 or -EINVAL. */
int sim_cluster_read(yamldoc_node map, struct sim_cluster_config *ret, struct weir_err *err);
/* 0, or a negative errno and why. */
int sim_cluster_run(const struct sim_cluster_config *config, weir_time duration, uint64_t seed,
	const struct sim_options *options, struct metrics **ret, struct sim_cost *ret_cost,
	struct weir_err *err);

/* ---- for its own files, and for live runs with real servers, which draw the same demand from the same
 * seed and use the same judge. */

#define SIM_CLUSTER     1  /* its number in messages */
#define SIM_SERVER_NAME 32 /* bytes of a server's name */

struct sim_place { /* one bucket at one server; first what each slot reads */
	uint32_t bucket;
	uint32_t loop;     /* requests that always wait */
	double rate, part; /* arrivals a second; a fraction of one */
	uint64_t queued, arrived, served;
	int64_t r;
	double waited; /* request·ns */
	int64_t l;
	uint32_t inside; /* with gates: passed and not yet done */
	bool listed;     /* in the server's list of places with requests */
	/* of this period, for the judge: */
	uint64_t served0, arrived0, queued0;
	weir_time open; /* time for which it had a loop */
};

struct sim_server { /* a server */
	struct sim_cluster *cluster;
	uint32_t number;
	void *machine;    /* struct cluster_server */
	weir_time offset; /* of its clock */
	struct sim_place *places;
	size_t n;
	uint32_t *listed, *turn; /* places with requests; those whose turn it is */
	size_t room[4];          /* of places, listed, turn and loads */
	size_t n_listed;
	uint32_t next; /* where the round robin goes on */
	double credit;
	struct capacity capacity;
	struct capacity_totals totals;
	struct cluster_server_load *loads;
	struct sim_gates *gates; /* or NULL */
	struct rng rng;
};

struct sim_bucket {
	int64_t reservation, limit; /* a period */
	uint32_t *at;               /* servers it is active at now */
	uint32_t n_at;
	weir_time *moves; /* when it changes, in order */
	size_t n_moves, moved;
};

struct sim_message { /* a message under way */
	uint8_t *bytes;
	size_t n, room;
	uint32_t server, leader;
	bool up;
};

struct sim_cluster {
	struct sim_cluster_config config;
	const char *kind;                     /* the controller's name, of metrics */
	const struct cluster_lead *lead;      /* its machines */
	const struct cluster_server *machine; /* of a server */
	double scale; /* of the rates that are reported; 1, unless the servers are live */
	weir_time now, duration;
	uint64_t period; /* and when it began */
	weir_time began;
	struct sim_server *servers;
	struct sim_bucket *buckets;
	void *control;
	void *stand_ins[CLUSTER_STAND_INS]; /* NULL: none */
	struct sim_leader {                 /* what `send` of one of them is given */
		struct sim_cluster *cluster;
		uint32_t number; /* 0: the controller; 1 …: a stand-in */
	} leaders[1 + CLUSTER_STAND_INS];
	uint64_t instances;
	struct rng rng;
	struct heap under_way;
	struct sim_message *slots;
	size_t n_slots, room_slots;
	uint32_t *free_slots;
	size_t n_free, room_free;
	uint64_t posted;
	struct lease_message in; /* as read */
	struct heap moves;
	struct ids *pairs; /* of a bucket and a server, to the place */
	int failed;        /* sticky */

	/* measured */
	uint64_t messages[2], bytes[2]; /* to the controller; from it */
	uint64_t served;
	struct sim_judge *judge;
	struct sim_moved *moved;
	struct metrics *metrics;
};

/* Return the controller (0) or a stand-in (1 …); NULL: it is down. */
static inline void *sim_cluster_leader(const struct sim_cluster *c, uint32_t number)
{
	return number ? c->stand_ins[number - 1] : c->control;
}

/* Return the bucket's place at the server, which is made if it is new; NULL: no memory. */
struct sim_place *sim_cluster_place(struct sim_cluster *c, uint32_t bucket, uint32_t server);

/* 0 or a negative errno. */
int sim_cluster_new(const struct sim_cluster_config *config, weir_time duration, uint64_t seed,
	struct sim_cluster **ret);
void sim_cluster_free(struct sim_cluster *c);

/* Servers that a bucket may come to. */
uint32_t sim_cluster_parts(const struct sim_cluster *c, uint32_t bucket);

/* Messages between a server and the controller or a stand-in; given to them when they are due. */
void sim_post_send(struct sim_cluster *c, uint32_t server, uint32_t leader, bool up,
	const struct lease_message *m);
int sim_post_deliver(struct sim_cluster *c); /* those that are due */
void sim_post_end(struct sim_cluster *c);

int sim_server_begin(struct sim_cluster *c, uint32_t number, uint64_t seed);
void sim_server_name(uint32_t number, char name[SIM_SERVER_NAME]);
void sim_server_list(struct sim_server *s, struct sim_place *p); /* it has requests */
int sim_server_look(struct sim_server *s);                       /* read its tokens */
uint64_t sim_server_come(struct sim_server *s, struct sim_place *p, double mean);
int sim_server_step(struct sim_server *s, weir_time slot);
void sim_server_end(struct sim_server *s);

int sim_gates_begin(struct sim_server *s, uint64_t seed);
int sim_gates_add(struct sim_server *s, bool limited); /* the place that comes next */
void sim_gates_grant(struct sim_server *s, size_t place, int64_t r, int64_t l); /* later: */
int sim_gates_set(struct sim_server *s); /* set the granted tokens at the gate */
int sim_gates_step(struct sim_server *s, weir_time slot, double rate);
void sim_gates_end(struct sim_server *s);

int sim_load_begin(struct sim_cluster *c);
int sim_load_step(struct sim_cluster *c); /* make the changes that are due by now */
void sim_load_end(struct sim_cluster *c);

/* Buckets that move while the controller is gone. */
int sim_moved_begin(struct sim_cluster *c);
void sim_moved_note(struct sim_cluster *c, uint32_t bucket); /* it moves now */
void sim_moved_period(struct sim_cluster *c);                /* one has ended */
int sim_moved_report(struct sim_cluster *c);
void sim_moved_end(struct sim_cluster *c);

int sim_judge_begin(struct sim_cluster *c);
int sim_judge_period(struct sim_cluster *c); /* one has ended */
int sim_judge_report(struct sim_cluster *c);
void sim_judge_end(struct sim_cluster *c);
