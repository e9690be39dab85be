/* SPDX-License-Identifier: BSD-3-Clause */
/* server-impl: what the files of a pshift-server share. */
#ifndef WEIR_CONTROL_PSHIFT_SERVER_IMPL_H
#define WEIR_CONTROL_PSHIFT_SERVER_IMPL_H

#include "control/pshift/ids.h"
#include "control/pshift/server.h"

/* L-tokens come in so often while a bucket has a limit: a fifth of what may keep a request waiting … */
#define PSHIFT_PACE (5 * WEIR_MS)
/* … and the gate holds what is spent in four of them, so that a late look holds up nobody: as much as the hold
 * bucket of a max, nearly (policy/install.c), … */
#define PSHIFT_AHEAD (20 * WEIR_MS)
#define PSHIFT_READY 2 /* … and two at least, while the cap has them */
/* What was lost to a later look comes in besides, this part of the rate: with the above, a second has less than
 * 1.05 times the max. */
#define PSHIFT_CATCH_UP 40
#define PSHIFT_JUST     4 /* a part of an interval: what was measured so lately counts on */

struct pshift_spot { /* one bucket at this server; tokens */
	uint64_t id;
	int64_t static_r,
		static_l;        /* parts without a controller; static_l LEASE_NO_LIMIT: no limit */
	int64_t reservation;     /* over all servers */
	weir_time ready;         /* when nothing of it waited last */
	bool is_short;           /* it has waited, and holds less than that */
	int64_t claim, cap;      /* of this period, as told */
	int64_t reserved, limit; /* entitlements */
	int64_t used;            /* counted to this period */
	int64_t recent; /* between the last two looks: may be of two periods, and counts to both */
	int64_t r, l;   /* at the gate */
	int64_t put;    /* R-tokens there after the last look */
	int64_t borrowed; /* R-tokens at the gate. HELD: beyond its claim; STATIC: all */
	double paced;     /* tokens that have come in and are not at the gate */

	uint64_t served, arrived, queued, inside; /* counters as of the last look */
	double waited;
	uint64_t served_at[2]; /* … and at the last two turns of a length: see static_used() */

	/* The last measurement, and the counters where the running one began. */
	double coming, going;      /* a second, smoothed … */
	double known;              /* s: the time of which `coming` is the mean */
	double scatter;            /* of what comes: 0 evenly … 1 as at random */
	int64_t arriving, serving; /* … and as whole numbers */
	bool closed;
	int idle; /* measurements */
	uint64_t arrived0, served0;
	uint64_t came, queued0; /* since something always waits; and what waited then */
	uint64_t here0;         /* queued and inside, at the last measurement */
	int steady;             /* measurements in which that changed little */
	double waited0;
	/* Since one began to watch for a closed loop: the most that was here, of which so much was missing
	 * (request·ns) in so long (ns); what had arrived by then; what was here at the last look. */
	uint64_t peak, arrived_w, here;
	double missing, watched;

	struct lease_demand said; /* what was reported last; bucket 0: nothing yet */
	weir_time said_at;
	uint64_t said_period, said_in; /* the report's sequence */
	bool new;                      /* the controller has not heard what it holds */
	bool unheard, over;            /* over: used more than it is told to, must be said */
};

struct pshift_server {
	struct pshift_server_config config;
	char name[PEER_NAME_MAX + 1];
	struct pshift_ids ids;
	struct pshift_spot *spots;
	size_t n, room;
	bool limits; /* somebody has one */

	uint64_t generation, controller, accepted, asked; /* the controller that it follows */
	weir_time spoke;                                  /* when that one was last heard */
	bool lost;  /* … which is too long ago, or its connection was closed */
	bool left;  /* it holds less than that one thinks: only if asked again it follows */
	bool wants; /* without a controller some bucket cannot have its reservation */
	enum lease_state state;
	uint64_t period, granted;   /* see pshift.h */
	uint64_t by, by_generation; /* the controller that told it the period: its instance, … */
	uint64_t joined;     /* the period in which it was granted more than static parts again */
	weir_time end, next; /* of the period: no more tokens; the next one begins */
	weir_time length, interval; /* as told … */
	weir_time
		usual; /* … before the controller was lost, from when on it is no longer than a tenth of a period */
	uint64_t hold, gap;
	uint64_t blind;       /* up to this period it cannot know what was used before it started */
	weir_time now, began; /* of the last look; of this instance */
	weir_time turned;     /* when served_at was last moved on */
	bool started;

	double capacity;
	weir_time measured; /* where the running measurement began … */
	weir_time measure;  /* … and when it ends, at the latest */
	uint64_t counted;   /* the period of the last look */
	uint64_t sequence;
	weir_time sent; /* the last report */
	double said_capacity;
	bool full, answer; /* a report is due: of everything; at once … */
	bool acknowledge;  /* … or with the next measurement: a grant was taken */
	struct lease_message out;

	struct adaptbf *borrow;
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

/* It started so lately that it may have promised, before, to follow a controller that still counts on that. */
#define PSHIFT_YOUNG 3 /* periods */

/* The instance of the controller that it follows; 0: none that lives, as far as it knows. */
static inline uint64_t pshift_followed(const struct pshift_server *s)
{
	return s->lost || s->left ? 0 : s->controller;
}

/* control/pshift/lease.c: which period it is, and what each bucket may have in it. */
void pshift_lease_start(struct pshift_server *s, weir_time now);
weir_time pshift_lease_blind(const struct pshift_server *s);    /* BLIND until then */
void pshift_lease_turn(struct pshift_server *s, weir_time now); /* as many as are due */
bool pshift_lease_take(struct pshift_server *s, weir_time now, const struct lease_message *m);
void pshift_lease_tokens(struct pshift_server *s, weir_time now); /* grants what changes */

/* control/pshift/demand.c: what buckets want, and what of it is worth a report. 0 or -ENOMEM. */
void pshift_demand_look_for_want(struct pshift_server *s, weir_time now);
void pshift_demand_watch(struct pshift_server *s, weir_time now); /* at each look */
void pshift_demand_measure(struct pshift_server *s, weir_time now);
int pshift_demand_report(struct pshift_server *s, weir_time now);

/* control/pshift/borrow.c: R-tokens while there is no controller. 0 or -ENOMEM. */
int pshift_borrow_step(struct pshift_server *s, weir_time now);
void pshift_borrow_end(struct pshift_server *s);

#endif
