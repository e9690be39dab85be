/* SPDX-License-Identifier: BSD-3-Clause */
/* control-impl: shared by the files of pshift's controller. */
#pragma once

#include "control/pshift/books.h"
#include "control/pshift/control.h"
#include "control/ids.h"

struct pshift_entry { /* one bucket at one server; tokens */
	uint32_t bucket, server;
	uint32_t next; /* next entry of the same server; UINT32_MAX: none */
	bool closed;
	bool dirty; /* must be told, even if `told` equals the wanted number */
	/* As reported. */
	uint64_t period; /* period that `used` counts */
	weir_time at;
	int64_t used, queue, arriving, serving;
	int64_t static_part;
	/* As told. */
	int64_t claim, reserved;
	uint64_t in; /* the last message that contained any of it */
	struct pshift_line cap, limit;
	uint64_t cap_of; /* the period of the cap that it reported to hold */
	int64_t had;     /* part of the limit at its first report, which is not among the unknown */
	/* As placed; and the most that it could use, by its demand: of this period, and of a whole
	 * one. */
	int64_t could[2];
	int64_t want_claim, want_cap, want_reserved, want_limit;
};

struct pshift_member { /* a server */
	char name[PEER_NAME_MAX + 1];
	uint64_t instance;
	bool full;  /* it has reported its holdings, and follows this controller */
	bool due;   /* a grant must be sent */
	bool new;   /* joined since the last round: gets nothing before the next one */
	bool apart; /* it may have fallen back to its static part: pshift.h, SAFETY */
	enum lease_state state;
	uint64_t asked; /* the last LEASE_ASK that it answered */
	uint64_t heard; /* sequence of the last report, … */
	weir_time at;   /* … and when it came */
	/* For the report with the shortest transit in about a period: when it was sent, by the
	 * server's clock, and when it arrived. */
	weir_time echo, echo_at;
	uint64_t accepted, sequence; /* of grants: taken; sent last */
	uint64_t granted;            /* a_j as far as known; 0: never */
	/* the same for its previous instance, if it restarted while this controller led */
	uint64_t alive;
	uint64_t told;  /* the last period in which it was sent a grant, … */
	uint64_t until; /* … and the last period for which that grant is held */
	uint64_t since; /* the period in which it began to follow */
	weir_time told_at, asked_at;
	uint64_t settled; /* grants up to this one need not be repeated */
	bool awaited;     /* by the open round */
	/* lead.c: the controller that it follows, by its last report (0: none), and when that
	 * arrived (−1: never). */
	uint64_t leader;
	weir_time led_at;
	bool wants; /* as reported */
	/* Votes: the newest of our messages that it has acknowledged, how many periods ago that was
	 * sent, and the last messages sent before this period and before the previous one. */
	uint64_t acked, mark[2];
	unsigned age;
	uint64_t proof;   /* the last message sent before a restart of a server was noticed */
	bool unproven;    /* it restarted, and gets nothing before a majority has answered since */
	int64_t capacity; /* a second */
	uint32_t entries; /* first of its list */
};

struct pshift_share { /* a bucket */
	uint64_t id;
	int64_t reservation, limit;
	uint32_t parts;
	uint32_t seen; /* entries */
	bool waiting;
	bool staged; /* `next` waits for pshift_control_enter */
	struct cluster_bucket next;
	/* Tokens of this period and the next that restarted servers may have used. */
	int64_t lost, lost_next;
	/* The most that servers without a report hold together, in this period and in each that
	 * follows, and the period in which that was computed. */
	int64_t unknown[2];
	uint64_t since;
	uint64_t renewed; /* one of them had restarted: its unknown use counts until this period */
	uint64_t moved; /* the last period in which demand came to one of its servers, or left it */
	/* the last period in which a server with a part of it was silent or started, or will not have its part back */
	uint64_t ended;
};

struct pshift_control { /* arrays of entries by place: in the order of buckets */
	struct cluster_lead_config config;
	char name[PEER_NAME_MAX + 1];
	uint64_t generation, highest; /* its own; the highest that it heard of */
	uint64_t mandate;             /* the generation for which it was elected; 0: it was not */
	bool asking;                  /* it asks servers to follow it */
	bool started;                 /* a majority follows, and it grants */
	/* it knows the period: it granted, and no other controller has since */
	bool counts;
	bool heir;     /* it may still take over from a controller that started earlier */
	bool unproven; /* a server is unproven */
	bool overdrawn;
	uint64_t first_leader; /* that was heard of */
	weir_time now, began;  /* −1: not yet */
	weir_time marked;      /* asking: when votes were last aged */
	weir_time patience;    /* does not ask earlier */
	weir_time unled;       /* since when it might ask; −1: it may not */
	unsigned idle;         /* for a stand-in: periods without demand for reservations */
	uint64_t period;
	uint64_t since;  /* the period in which it took over */
	uint64_t ruled;  /* the last period in which a majority followed */
	uint64_t held;   /* the last period for which servers held what they had at the takeover */
	uint64_t frozen; /* raises nothing before this period */
	uint64_t hold;   /* of grants: periods; 0: none is sent */
	uint64_t reach;  /* the last period for which any grant may be held */
	weir_time end;   /* of the period */
	weir_time interval, round; /* start of the last one */
	weir_time news;            /* since when: */
	bool changed;              /* a report may change the placement */
	size_t reporting;          /* servers that the open round waits for */
	bool turned;               /* it is the first round of its period */
	bool freed;                /* a server has acknowledged a lowered limit, since: */
	weir_time told;            /* when limits were last told */
	weir_time tell, ask;       /* when a grant is due next, or a server must be asked */
	double moved;              /* tokens by which demand differed from the expected */

	struct pshift_member *servers;
	size_t n_servers, room_servers;
	struct pshift_share *buckets;
	size_t n_buckets, room_buckets;
	struct ids ids, names, pairs; /* buckets; servers, by peer_hash; entries */
	struct pshift_entry *entries;
	size_t n_entries, room_entries;
	size_t waiting; /* buckets */

	/* Input of control/pshift/alloc.h; rebuilt when entries were added. */
	bool stale_order;
	size_t ordered; /* entries that have a place */
	size_t room_places, room_shares, room_members;
	uint32_t *first, *place, *server;       /* buckets + 1; entry at a place; its server */
	int64_t *demand, *rtokens[2], *ltokens; /* by place; [0]: the rest, [1]: a period */
	int64_t *reservation, *most;            /* by bucket */
	/* by server; spare: beyond the R-tokens placed there */
	int64_t *capacity, *spare;
	struct pshift *alg[2];
	struct pshift_input input; /* of the last placing of a whole period */
	struct pshift_result result;

	struct lease_message out;
	uint64_t rounds, grants, tokens;
};

/* hear.c: handle a report; see pshift_control_receive. */
enum peer_verdict pshift_hear(
	struct pshift_control *c, weir_time now, const struct lease_message *m);
/* A bucket's limit grows: its servers may have their new static parts before they report. */
void pshift_hear_limit(struct pshift_control *c, size_t bucket);
/* Return the estimated use of this period by now. */
int64_t pshift_used(const struct pshift_control *c, const struct pshift_entry *e, weir_time now);

/* For so many periods after its last grant a server does not fall back to its static part: one less
 * than the server's own count, since without one controller that counts, a server may be a period
 * ahead of another (pshift.h, SAFETY). */
#define PSHIFT_APART (PSHIFT_HOLD + PSHIFT_GAP - 1)

/* Return the period from which that time counts; a restarted server is BLIND for as long. 0: not
 * known. */
static inline uint64_t pshift_granted(const struct pshift_member *s)
{
	return s->granted > s->alive ? s->granted : s->alive;
}

/* Return true if the server may use its static part in this period, without having been told. */
static inline bool pshift_may_be_static(
	const struct pshift_control *c, const struct pshift_member *s)
{
	return !pshift_granted(s) || c->period > pshift_granted(s) + PSHIFT_APART;
}

/* Record that a server with a part of the bucket has ended. A later mark stays, if it is of this count of periods. */
static inline void pshift_note_end(struct pshift_share *b, uint64_t period)
{
	if (b->ended < period || b->ended > period + 2)
		b->ended = period;
}

/* Return true if that was so lately that tokens may be missing because of it. */
static inline bool pshift_just_ended(const struct pshift_control *c, const struct pshift_share *b)
{
	return b->ended && c->period <= b->ended + 2;
}

/* Return true if the hold of a server's last grant has ended (0: it has none): by its own law it has no more than its
 * static parts in this period, even if it is yet to begin it or if its clock stood still. Others may have been told that
 * they have the rest. */
static inline bool pshift_is_late(const struct pshift_control *c, uint64_t granted)
{
	return !granted || granted + PSHIFT_HOLD < c->period;
}

/* After a takeover the previous controller may still grant, for so many periods at most: pshift.h,
 * LEADING. */
#define PSHIFT_LEAD 2

static inline uint64_t pshift_instance(uint64_t random, unsigned rank)
{
	return rank ? random | 1 : random > 1 ? random & ~UINT64_C(1) : 2;
}

#define PSHIFT_TOO_OLD 3 /* periods: a vote that does not count */

/* lead.c: which controller leads. */
void pshift_lead_begin(struct pshift_control *c);               /* forget all servers' holdings */
void pshift_lead_stop(struct pshift_control *c);                /* it is a standby from now on */
void pshift_lead_step(struct pshift_control *c, weir_time now); /* while it does not grant */
void pshift_lead_turn(struct pshift_control *c); /* a period ends; the controller may stand down */
void pshift_lead_ask(struct pshift_control *c, weir_time now);
void pshift_lead_hear(struct pshift_control *c, weir_time now, struct pshift_member *s,
	const struct lease_report *r);
/* Return true if the report's server follows this controller. May stand down. */
bool pshift_lead_follows(struct pshift_control *c, const struct lease_report *r);
void pshift_lead_acknowledged(
	struct pshift_control *c, struct pshift_member *s, const struct lease_report *r);
void pshift_lead_restarted(struct pshift_control *c, struct pshift_member *s);

/* limits.c. Set how long grants may be held, and which servers count with their static parts: valid
 * until the next call; each period needs one before anything is told. */
void pshift_limits_reach(struct pshift_control *c);
/* Return the most of the limit that the server may have without being told: in the periods that follow; in the one
 * that has just begun; and in this one, with what it was told. */
int64_t pshift_limits_entitled(const struct pshift_control *c, const struct pshift_entry *e);
int64_t pshift_limits_begins(const struct pshift_control *c, const struct pshift_entry *e);
int64_t pshift_limits_cap(const struct pshift_control *c, const struct pshift_entry *e);
/* Return the most that servers without a report may hold of a bucket's limit; and record the first
 * report of one of them, in that period. */
void pshift_limits_heard(struct pshift_control *c, struct pshift_entry *e, uint64_t period);
void pshift_limits_turn(struct pshift_control *c, size_t bucket); /* a period begins */
void pshift_limits_more(struct pshift_share *b, int64_t tokens);  /* its limit grows */
/* Record that the server of a known entry reports this limit. */
void pshift_limits_holds(struct pshift_control *c, struct pshift_entry *e, int64_t limit);
/* Return true if the hold of unknown grants has ended: those servers have their static parts. */
bool pshift_limits_over(const struct pshift_control *c, const struct pshift_share *b);
int64_t pshift_limits_unknown(const struct pshift_control *c, size_t bucket, bool entitled);
/* Tell servers the wanted limits, as far as the books allow. */
void pshift_limits_tell(struct pshift_control *c, size_t bucket);

/* tell.c. Tell servers the wanted numbers of a bucket, as far as allowed; and send all due
 * grants. */
void pshift_tell_bucket(struct pshift_control *c, size_t bucket);
int pshift_tell_servers(struct pshift_control *c, weir_time now);
/* Return true if the server reports and follows. Entries of other servers are left alone. */
bool pshift_tell_live(const struct pshift_control *c, size_t server);
/* Return true if the last report is so old that no grant could state the period's end by the
 * server's clock. */
bool pshift_tell_lost(const struct pshift_control *c, const struct pshift_member *s);
/* Return true if a difference is worth a message: not 1/64, nor a single token of rounding, unless
 * there are very few. */
bool pshift_tell_differs(int64_t a, int64_t b);
/* Mark the entry: its server's next message contains it. */
void pshift_tell_soon(struct pshift_control *c, struct pshift_entry *e);

/* round.c: place tokens, set the wanted numbers, tell. 0 or -ENOMEM. */
int pshift_round(struct pshift_control *c, weir_time now);

static inline bool pshift_has_limit(const struct pshift_share *b)
{
	return b->limit != LEASE_NO_LIMIT;
}

/* Return the static part of a server without a report. */
static inline int64_t pshift_static_part(const struct pshift_share *b)
{
	return b->limit / b->parts;
}
