/* SPDX-License-Identifier: BSD-3-Clause */
/* peers: who else there is, for control/parda/parda; its header says by which rules. */
#ifndef WEIR_CONTROL_PARDA_PEERS_H
#define WEIR_CONTROL_PARDA_PEERS_H

#include "control/parda/parda.h"

/* Values of `apart`: when it is heard again; when all of its side have been; and a step later, when nobody
 * still adds up what others have changed. */
#define PARDA_APART    4
#define PARDA_ADD_UP   2
#define PARDA_MERGE    1
#define PARDA_VANISHED 43200 /* steps, a day; hosts apart for longer are each other's strangers */
#define PARDA_RETIRED  2     /* instances of one id that are remembered after they were replaced */

struct parda_peer {
	struct parda_report last;
	double before; /* its window in the period that `last` is of; where that is not known, what
	                  was inside or its window now, if that is more */
	unsigned silent; /* own steps since it was last heard */
	unsigned twice;  /* steps for which to say that its id is used twice */
	unsigned
		apart; /* counts down: steps since it is back, that had gone on apart from us; 0: was not */
	/* Another instance that speaks under its id: which, how far it is, steps since. */
	uint64_t other, other_sequence;
	unsigned other_silent;
	uint64_t retired[PARDA_RETIRED]; /* latest first; 0: none */
	bool has_left;                   /* it said so */
	bool is_new;                     /* it has started, and room was not yet made for it */
};

struct parda_peers {
	struct parda_peer
		*peers; /* n of them, the forgotten too: they keep their place and number */
	uint32_t n, room, most;
	uint32_t *index; /* hash of id → 1 + place; a power of two, at least twice n */
	uint32_t index_room;
	unsigned age;
};

int parda_peers_init(struct parda_peers *t, uint32_t most, unsigned age);
void parda_peers_free(struct parda_peers *t);

enum parda_heard parda_peers_hear(struct parda_peers *t, const struct parda_report *r);
/* Forgets it at once; what it sends after that counts again. */
void parda_peers_leave(struct parda_peers *t, uint64_t id, uint64_t instance);
/* One of our periods has passed. */
void parda_peers_age(struct parda_peers *t);

/* The part of its window that a host keeps: those that have started get the rest once they have shares and load.
 * shares: own. 1: nobody has. */
double parda_peers_room(struct parda_peers *t, double shares);
/* Those that have started so far need no room: the host has taken its own beside them. */
void parda_peers_settle(struct parda_peers *t);
/* What all have together is added up and divided again, some steps from now, as if they had been apart. */
void parda_peers_divide(struct parda_peers *t);

static inline bool parda_peer_counts(const struct parda_peers *t, const struct parda_peer *p)
{
	return p->silent <= t->age;
}

/* It is forgotten, but not for long, and did not say that it leaves: it may only be cut off. */
static inline bool parda_peer_vanished(const struct parda_peers *t, const struct parda_peer *p)
{
	return !parda_peer_counts(t, p) && !p->has_left && p->silent < PARDA_VANISHED;
}

#endif
