/* SPDX-License-Identifier: BSD-3-Clause */
/* server-impl: shared by the files of pshift's server. */
#pragma once

#include "control/ids.h"
#include "control/pshift/server.h"

#define PSHIFT_READY 2 /* tokens at the gate at least, while the cap has them: PSHIFT_AHEAD */
/* R-tokens come this much before they are due, at least, and an eighth of a period at most: longer than a late look at a
 * gate takes, and than demand that moves is told to all. With 50 ms, and periods of 1 s, pshift-exp4 misses. */
#define PSHIFT_HEAD (125 * WEIR_MS)
/* Tokens lost by a late look are added later, at this part of the rate: with the above, a second
 * has less than 1.05 times the max. */
#define PSHIFT_CATCH_UP 40
#define PSHIFT_MANY     1024 /* buckets: none of fewer rests */
/* A part of a period: a request that waits longer waits for more than its turn. */
#define PSHIFT_WAITS 20

struct pshift_spot { /* one bucket at this server; tokens */
	uint64_t id;
	int64_t static_r,
		static_l;        /* parts without a controller; static_l LEASE_NO_LIMIT: no limit */
	int64_t reservation;     /* over all servers */
	weir_time ready;         /* last time that none of its requests waited */
	weir_time waited_at;     /* last time that one did */
	weir_time delayed;       /* last time that one did while tokens for it were lost */
	weir_time moved;         /* when requests began to wait after none did: demand moved here */
	bool is_short;           /* it has waited, and holds less than its reservation */
	int64_t claim, cap;      /* of this period, as told */
	bool makes_up;           /* its claim counts beyond the pace of its limit, as told */
	int64_t reserved, limit; /* entitlements */
	int64_t used;            /* counted to this period */
	/* between the last two looks: may belong to two periods, and counts in both */
	int64_t recent;
	int64_t r, l;     /* at the gate */
	int64_t put;      /* R-tokens at the gate after the last look */
	int64_t borrowed; /* R-tokens at the gate. HELD: beyond its claim; STATIC: all */
	double paced;     /* tokens that have come in and are not at the gate */
	bool settled;     /* neither these nor the L-tokens at the gate changed in the last look */

	uint64_t served, arrived, queued, inside; /* counters as of the last look */
	double waited;
	uint64_t served_at[2]; /* … and at the last two turns of a length: see static_used() */

	/* The last measurement, and the counters at the start of the current one. */
	double coming, going;      /* a second, smoothed … */
	double known;              /* s: the time over which `coming` is the mean */
	double scatter;            /* of arrivals: 0 even … 1 random */
	int64_t arriving, serving; /* … and as whole numbers */
	bool closed;
	int idle; /* measurements */
	uint64_t arrived0, served0;
	uint64_t came, queued0; /* since requests always wait; and the queue at that time */
	uint64_t here0;         /* queued and inside, at the last measurement */
	int steady;             /* measurements in which the queue changed little */
	double waited0;
	/* Since the watch for a closed loop began: the most requests that were here; how many of
	 * these were missing (request·ns), over what time (ns); arrivals until then; requests here
	 * at the last look. */
	uint64_t peak, arrived_w, here;
	double missing, watched;

	struct lease_demand said; /* last report; bucket 0: none yet */
	weir_time said_at;
	uint64_t said_period, said_in; /* the report's sequence */
	bool new;                      /* the controller does not know its holdings */
	bool unheard, over;            /* over: used more than told, must be reported */
};

struct pshift_server {
	struct cluster_server_config config;
	char name[PEER_NAME_MAX + 1];
	struct ids ids;
	struct pshift_spot *spots;
	size_t n, room;
	uint8_t *resting; /* by index */
	size_t n_resting;
	bool limits; /* somebody has one */

	uint64_t generation, controller, accepted, asked; /* of the controller that it follows */
	weir_time spoke;                                  /* when that controller was last heard */
	bool lost;  /* … which is too long ago, or its connection was closed */
	bool left;  /* it holds less than that controller assumes: it follows again only if asked */
	bool wants; /* without a controller some bucket misses its reservation */
	enum lease_state state;
	uint64_t period, granted;   /* see pshift.h */
	uint64_t by, by_generation; /* the controller that told it the period: its instance, … */
	uint64_t joined;     /* the period in which it was granted more than static parts again */
	weir_time end, next; /* of the period: no more tokens; the next one begins */
	weir_time length, interval; /* as told … */
	/* … before the controller was lost; since then at most a tenth of a period */
	weir_time usual;
	uint64_t hold, gap;
	uint64_t blind;       /* up to this period its use before the start is unknown */
	weir_time now, began; /* of the last look; of this instance */
	weir_time turned;     /* when served_at last advanced */
	bool started;

	double capacity;
	weir_time measured; /* where the running measurement began … */
	weir_time measure;  /* … and when it ends, at the latest */
	uint64_t counted;   /* the period of the last look */
	uint64_t sequence;
	weir_time sent; /* the last report */
	double said_capacity;
	bool full, answer; /* a report is due: of everything; at once … */
	bool acknowledge;  /* … or with the next measurement: a grant was accepted */
	struct lease_message out;

	struct lend *borrow;
	weir_time borrowed;
	uint64_t reports, entries, taken, refused;
};

static inline bool pshift_limited(const struct pshift_spot *b)
{
	return b->static_l != LEASE_NO_LIMIT;
}

static inline weir_time pshift_shorter(weir_time t) /* by any other clock not longer */
{
	return t - t / PSHIFT_DRIFT;
}

static inline weir_time pshift_longer(weir_time t)
{
	return t + t / PSHIFT_DRIFT;
}

/* For this long after its start a server is young: its previous instance may have promised to follow a controller that
 * still counts on it. */
#define PSHIFT_YOUNG 3 /* periods */

/* Return the instance of the controller that it follows; 0: none that is known to live. */
static inline uint64_t pshift_followed(const struct pshift_server *s)
{
	return s->lost || s->left ? 0 : s->controller;
}

/* Return a time: what was measured so lately counts on. */
static inline weir_time pshift_just(const struct pshift_server *s)
{
	weir_time part = s->interval / 4, turn = s->length / PSHIFT_WAITS;

	return part < turn ? part : turn;
}

/* control/pshift/server.c */
void pshift_server_wake_all(struct pshift_server *s);

/* control/pshift/lease.c: which period it is, and what each bucket may have in it. */
void pshift_lease_start(struct pshift_server *s, weir_time now);
weir_time pshift_lease_blind(const struct pshift_server *s);    /* BLIND until then */
void pshift_lease_turn(struct pshift_server *s, weir_time now); /* begin all periods that are due */
bool pshift_lease_take(struct pshift_server *s, weir_time now, const struct lease_message *m);
void pshift_lease_tokens(struct pshift_server *s, weir_time now); /* grant the differences */

/* demand.c: measure demand, and decide which of it to report. 0 or -ENOMEM. */
void pshift_demand_look_for_want(struct pshift_server *s, weir_time now);
void pshift_demand_watch(struct pshift_server *s, weir_time now); /* at each look */
void pshift_demand_measure(struct pshift_server *s, weir_time now);
int pshift_demand_report(struct pshift_server *s, weir_time now);
void pshift_demand_rest(
	struct pshift_server *s); /* puts idle buckets to rest; after a measurement */

/* borrow.c: R-tokens without a controller. 0 or -ENOMEM. */
int pshift_borrow_step(struct pshift_server *s, weir_time now);
void pshift_borrow_end(struct pshift_server *s);
