/* SPDX-License-Identifier: BSD-3-Clause */
/* control-impl: what the files of a pshift-control share. */
#ifndef WEIR_CONTROL_PSHIFT_CONTROL_IMPL_H
#define WEIR_CONTROL_PSHIFT_CONTROL_IMPL_H

#include "control/pshift/books.h"
#include "control/pshift/control.h"
#include "control/ids.h"

struct pshift_entry { /* one bucket at one server; tokens */
	uint32_t bucket, server;
	uint32_t next; /* of the same server; UINT32_MAX: none */
	bool closed;
	bool dirty; /* to be told, although told is what is wanted */
	/* As heard. */
	uint64_t period; /* that `used` counts */
	weir_time at;
	int64_t used, queue, arriving, serving;
	int64_t static_part;
	/* As told. */
	int64_t claim, reserved;
	uint64_t in; /* the message that last told any of it */
	struct pshift_line cap, limit;
	uint64_t cap_of; /* the period of the cap that it said it holds */
	int64_t had;     /* of the limit, when it was first heard: what is unknown is beyond that */
	/* As placed; and what it could use, with its demand: of this period, and of a whole one. */
	int64_t could[2];
	int64_t want_claim, want_cap, want_reserved, want_limit;
};

struct pshift_member { /* a server */
	char name[PEER_NAME_MAX + 1];
	uint64_t instance;
	bool full;  /* it has said what it holds, and follows this controller */
	bool due;   /* something is to be told */
	bool new;   /* since the last round: it must not be told anything before the next */
	bool apart; /* it may have come to its static part: pshift.h, SAFETY */
	enum lease_state state;
	uint64_t asked; /* the last LEASE_ASK that was answered */
	uint64_t heard; /* sequence of the last report, … */
	weir_time at;   /* … and when it came */
	/* Of the report that was under way for the shortest time, in about a period: when it was sent, by
	 * the server's clock, and when it came. */
	weir_time echo, echo_at;
	uint64_t accepted, sequence; /* of grants: taken; sent last */
	uint64_t granted;            /* a_j as far as known; 0: never */
	uint64_t alive; /* the same of the one before it, if it started anew while this one led */
	uint64_t told;  /* the last period in which it was sent a grant, … */
	uint64_t until; /* … and until which that is held */
	uint64_t since; /* the period in which it came to follow */
	weir_time told_at, asked_at;
	uint64_t settled; /* grants up to that one need not be sent again */
	bool awaited;     /* by the round that is open */
	/* control/pshift/lead.c: the controller that it follows, by its last report (0: none), and when that came (−1:
	 * never). */
	uint64_t leader;
	weir_time led_at;
	bool wants; /* as it said */
	/* Votes: the newest of our messages that it has acknowledged, how many periods ago that was sent, and
	 * the messages sent before this period and before the last one. */
	uint64_t acked, mark[2];
	unsigned age;
	uint64_t proof; /* the last message sent before a server was seen to have started anew */
	bool unproven;  /* it started anew, and gets nothing before a majority has answered since */
	int64_t capacity; /* a second */
	uint32_t entries; /* first of its list */
};

struct pshift_share { /* a bucket */
	uint64_t id;
	int64_t reservation, limit;
	uint32_t parts;
	uint32_t seen; /* entries */
	bool waiting;
	/* Of this period and the next: what servers that started anew may have used. */
	int64_t lost, lost_next;
	/* At most what servers that have not been heard hold together, in this period and in each that
	 * follows, and the period in which that was found. */
	int64_t unknown[2];
	uint64_t since;
	uint64_t
		renewed; /* one of them had started anew: what it may have used before counts until this one */
};

struct pshift_control { /* arrays of entries by place: in the order of buckets */
	struct cluster_lead_config config;
	char name[PEER_NAME_MAX + 1];
	uint64_t generation, highest; /* its own; the highest that was heard of */
	bool asking;                  /* it asks servers to follow it */
	bool started;                 /* a majority follows, and it grants */
	bool counts;                  /* it knows the period: it granted, and no other has since */
	bool heir;     /* it may still take over from a controller that was there first */
	bool unproven; /* a server is */
	bool overdrawn;
	uint64_t first_leader; /* that was heard of */
	weir_time now, began;  /* −1: not yet */
	weir_time marked;      /* asking: when votes were last aged */
	weir_time patience;    /* it does not ask before */
	weir_time unled;       /* since when it might ask; −1: it may not */
	unsigned idle;         /* of a stand-in: periods in which nothing reserved was wanted */
	uint64_t period;
	uint64_t since;  /* the period in which it took over */
	uint64_t ruled;  /* the last period in which a majority was seen to follow */
	uint64_t held;   /* the last until which the heard held what they had at the takeover */
	uint64_t frozen; /* nothing is raised before this one */
	uint64_t hold;   /* of grants: periods */
	uint64_t reach;  /* the last period for which anybody may hold what it has */
	weir_time end;   /* of the period */
	weir_time interval, round; /* when the last one was */
	weir_time news;            /* since when: */
	bool changed;              /* something was heard that may change tokens */
	size_t reporting;          /* servers that the round that is open waits for */
	bool turned;               /* it is the first of its period */
	bool freed;                /* a server has acknowledged what it was told, since: */
	weir_time told;            /* when limits were last told */
	weir_time tell, ask;       /* when a grant is due next, or a server to be asked */
	double moved;              /* tokens by which demands differed from what was expected */

	struct pshift_member *servers;
	size_t n_servers, room_servers;
	struct pshift_share *buckets;
	size_t n_buckets, room_buckets;
	struct ids ids, names, pairs; /* buckets; servers, by peer_hash; entries */
	struct pshift_entry *entries;
	size_t n_entries, room_entries;
	size_t waiting; /* buckets */

	/* What control/pshift/alloc wants; made anew when entries came in. */
	bool stale_order;
	size_t ordered; /* entries that have a place */
	size_t room_places, room_shares, room_members;
	uint32_t *first, *place, *server;       /* buckets + 1; entry at a place; its server */
	int64_t *demand, *rtokens[2], *ltokens; /* by place; [0]: the rest, [1]: a period */
	int64_t *reservation, *most;            /* by bucket */
	int64_t *capacity, *spare;              /* by server; spare: beyond the R-tokens at it */
	struct pshift *alg[2];
	struct pshift_input input; /* of the last placing of a whole period */
	struct pshift_result result;

	struct lease_message out;
	uint64_t rounds, grants, tokens;
};

/* Room for one more than n in an array that grows: 0 or -ENOMEM. */
int pshift_room(void **array, size_t one, size_t n, size_t *room);

/* control/pshift/hear.c: a report, as pshift_control_receive says. */
enum peer_verdict pshift_hear(
	struct pshift_control *c, weir_time now, const struct lease_message *m);
/* Used of this period by now, as far as can be told. */
int64_t pshift_used(const struct pshift_control *c, const struct pshift_entry *e, weir_time now);

/* Up to so many periods after its last grant a server has not come to its static part: one less than it counts
 * itself, since where nobody or two count one may be a period ahead of another (pshift.h, SAFETY). */
#define PSHIFT_APART (PSHIFT_HOLD + PSHIFT_GAP - 1)

/* From this period on that much counts: one that started anew is BLIND for as long. 0: it is not known. */
static inline uint64_t pshift_granted(const struct pshift_member *s)
{
	return s->granted > s->alive ? s->granted : s->alive;
}

/* In this period, without having been told. */
static inline bool pshift_may_be_static(
	const struct pshift_control *c, const struct pshift_member *s)
{
	return !pshift_granted(s) || c->period > pshift_granted(s) + PSHIFT_APART;
}

/* After a takeover, for so many periods at most, a controller that was followed before may still grant: pshift.h,
 * LEADING. */
#define PSHIFT_LEAD 2

static inline uint64_t pshift_instance(uint64_t random, unsigned rank)
{
	return rank ? random | 1 : random > 1 ? random & ~UINT64_C(1) : 2;
}

#define PSHIFT_TOO_OLD 3 /* periods: a vote that does not count */

/* control/pshift/lead.c: which controller leads. */
void pshift_lead_begin(struct pshift_control *c);               /* of no server anything is known */
void pshift_lead_step(struct pshift_control *c, weir_time now); /* while it does not grant */
void pshift_lead_turn(struct pshift_control *c); /* a period ends; it may stand down */
void pshift_lead_ask(struct pshift_control *c, weir_time now);
void pshift_lead_hear(struct pshift_control *c, weir_time now, struct pshift_member *s,
	const struct lease_report *r);
/* Does the report's server follow this controller? May stand down. */
bool pshift_lead_follows(struct pshift_control *c, const struct lease_report *r);
void pshift_lead_acknowledged(
	struct pshift_control *c, struct pshift_member *s, const struct lease_report *r);
void pshift_lead_restarted(struct pshift_control *c, struct pshift_member *s);

/* control/pshift/limits.c. For how long grants may be held, and who counts with its static part: from then on until
 * the next call, which each period needs before anything is told. */
void pshift_limits_reach(struct pshift_control *c);
/* What the server may have of the limit without being told, at most: in the periods that follow, and (begins)
 * in the one that has begun. */
int64_t pshift_limits_entitled(const struct pshift_control *c, const struct pshift_entry *e);
int64_t pshift_limits_begins(const struct pshift_control *c, const struct pshift_entry *e);
/* What servers that have not been heard may hold of a bucket's limit, at most; and that one of them was heard, being
 * in that period: what it holds is known. */
void pshift_limits_heard(struct pshift_control *c, struct pshift_entry *e, uint64_t period);
void pshift_limits_turn(struct pshift_control *c, size_t bucket); /* a period begins */
void pshift_limits_more(struct pshift_share *b, int64_t tokens);  /* its limit grows */
/* It is about to be heard that the server of an entry that is known has this limit. */
void pshift_limits_holds(struct pshift_control *c, struct pshift_entry *e, int64_t limit);
int64_t pshift_limits_unknown(const struct pshift_control *c, size_t bucket, bool entitled);
/* What is wanted of its limit, as far as may be. */
void pshift_limits_tell(struct pshift_control *c, size_t bucket);

/* control/pshift/tell.c. What is wanted of a bucket, as far as may be; and what is due of all, sent. */
void pshift_tell_bucket(struct pshift_control *c, size_t bucket);
int pshift_tell_servers(struct pshift_control *c, weir_time now);
/* Is it heard, and does it follow? Entries of others are left as they are. */
bool pshift_tell_live(const struct pshift_control *c, size_t server);
/* Was it heard so long ago that no grant could say when the period ends, by its own clock? */
bool pshift_tell_lost(const struct pshift_control *c, const struct pshift_member *s);
/* A part in 64 is not worth a message, nor is a single token, by which parts are rounded; unless there are
 * so few that it counts. */
bool pshift_tell_differs(int64_t a, int64_t b);
/* Some of what it was told is now different: its server's next message says it. */
void pshift_tell_soon(struct pshift_control *c, struct pshift_entry *e);

/* control/pshift/round.c: places tokens, sets what is wanted, tells. 0 or -ENOMEM. */
int pshift_round(struct pshift_control *c, weir_time now);

static inline bool pshift_has_limit(const struct pshift_share *b)
{
	return b->limit != LEASE_NO_LIMIT;
}

/* The static part of who has not been heard. */
static inline int64_t pshift_static_part(const struct pshift_share *b)
{
	return b->limit / b->parts;
}

#endif
