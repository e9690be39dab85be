/* SPDX-License-Identifier: BSD-3-Clause */
/* peers: the table of peers for control/parda/parda.h, which has the rules. */
#pragma once

#include "control/parda/parda.h"

/* Values of `apart`: when it is heard again; when all of its side have been; and a step later, when
 * no host still adds up windows that others have changed. */
#define PARDA_APART    4
#define PARDA_ADD_UP   2
#define PARDA_MERGE    1
#define PARDA_VANISHED 43200 /* steps, a day; hosts cut off for longer count as strangers */
#define PARDA_RETIRED  2     /* instances of one id that are remembered after they were replaced */

struct parda_peer {
	struct parda_report last;
	/* its window in the period of `last`; if that is not known, the greater of its requests
	 * inside and its present window */
	double before;
	unsigned silent; /* own steps since it was last heard */
	unsigned twice;  /* steps for which to report that its id is used twice */
	/* counts down: steps since it is back, after it had continued apart from us; 0: was not */
	unsigned apart;
	/* Another instance that uses its id: its instance, its sequence, steps since. */
	uint64_t other, other_sequence;
	unsigned other_silent;
	uint64_t retired[PARDA_RETIRED]; /* latest first; 0: none */
	bool has_left;                   /* it reported that it leaves */
	bool is_new;                     /* it has started, and room was not yet made for it */
};

struct parda_peers {
	struct parda_peer
		*peers; /* n of them, including forgotten ones, which keep their place and number */
	uint32_t n, room, most;
	uint32_t *index; /* hash of id → 1 + place; a power of two, at least twice n */
	uint32_t index_room;
	unsigned age;
};

int parda_peers_init(struct parda_peers *t, uint32_t most, unsigned age);
void parda_peers_free(struct parda_peers *t);

enum parda_heard parda_peers_hear(struct parda_peers *t, const struct parda_report *r);
/* Forget a peer at once; later reports of it count again. */
void parda_peers_leave(struct parda_peers *t, uint64_t id, uint64_t instance);
/* One of our periods has passed. */
void parda_peers_age(struct parda_peers *t);

/* Return the part of its window that a host keeps: started hosts get the rest once they have shares
 * and load. shares: own. 1: no host has started. */
double parda_peers_room(struct parda_peers *t, double shares);
/* Hosts that have started so far need no room: this host has taken its own beside them. */
void parda_peers_settle(struct parda_peers *t);
/* Add up and divide the windows of all again, some steps from now, as if they had been apart. */
void parda_peers_divide(struct parda_peers *t);

static inline bool parda_peer_counts(const struct parda_peers *t, const struct parda_peer *p)
{
	return p->silent <= t->age;
}

/* Return true if the peer is forgotten, but not for long, and did not leave: it may only be cut
 * off. */
static inline bool parda_peer_vanished(const struct parda_peers *t, const struct parda_peer *p)
{
	return !parda_peer_counts(t, p) && !p->has_left && p->silent < PARDA_VANISHED;
}
