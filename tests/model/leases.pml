/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * leases: leases, generations and take-over of a cluster's controllers, for Spin: two controllers, three servers, one store.
 *
 * One bucket with a limit of LIMIT tokens, of which each server has one without a controller. A grant gives a server one or two.
 * Time passes in ticks. Every action is possible at any time, and none is necessary: so machines are paused, and
 * messages lost. A grant arrives at once, later, or never. docs/model.md says which code each part stands for.
 * Controllers, and servers, are alike: the first ones come first.
 *
 *   LIMIT   the tokens that servers may use never exceed the limit
 *
 * Each of these, defined, leaves something out, and a property then fails:
 *   NO_UNKNOWN    a new leader counts nothing for what an older one may have granted to servers that have not answered
 *   NO_AGE        votes do not age: a leader grants on, although a majority has left it
 *   NO_ORDER      servers obey older generations, too
 */
#define C 2
#define S 3
#define LIMIT 4
#ifndef HOLD
#define HOLD 2  /* ticks for which a grant is held, at most */
#endif
#ifndef LEAD
#define LEAD 1  /* ticks for which an acknowledgement counts as a vote */
#endif
#ifndef REVISIONS
#define REVISIONS 2
#endif
#define NEVER (LEAD + 1) /* an age: no vote */

byte revision; /* of the store: a later leader has a higher generation */

/* a controller */
byte gen[C];     /* under which it leads; 0: it does not */
bool started[C];
byte unknown[C], besides[C]; /* tokens that servers without an answer may have together, and for how long */
byte most[C * S], held[C * S], age[C * S]; /* of a server: tokens at most, ticks of its hold, age of its vote */
bool known[C * S]; /* it has reported its holdings to this controller */

/* a server */
byte obeys[S]; /* the highest generation that it obeyed */
byte cap[S], until[S];

/* a grant on its way */
byte sent[C * S], left[C * S];

byte i, j, n, sum;

#define X(c, s) ((c) * S + (s))
#define USES(s) (until[s] -> cap[s] : 1)

inline books(c) /* sum: what servers may have, as far as c knows */
{
	sum = 0; n = 0;
	for (j : 0 .. S - 1) {
		if
		:: known[X(c, j)] -> sum = sum + most[X(c, j)]
		:: else -> n++
		fi
	}
	if
	:: besides[c] && n -> sum = sum + (unknown[c] > n -> unknown[c] : n)
	:: else -> sum = sum + n
	fi
}

inline majority(c) /* n: votes that count */
{
	n = 0;
	for (j : 0 .. S - 1) {
		if
		:: known[X(c, j)] && age[X(c, j)] <= LEAD -> n++
		:: else
		fi
	}
#ifdef NO_AGE
	n = S;
#endif
}

inline stand_down(c)
{
	gen[c] = 0; started[c] = 0; unknown[c] = 0; besides[c] = 0;
	for (j : 0 .. S - 1) {
		known[X(c, j)] = 0; most[X(c, j)] = 0; held[X(c, j)] = 0; age[X(c, j)] = NEVER;
		sent[X(c, j)] = 0; left[X(c, j)] = 0;
	}
}

inline tick()
{
	for (i : 0 .. C - 1) {
		besides[i] = (besides[i] -> besides[i] - 1 : 0);
		if
		:: besides[i] == 0 -> unknown[i] = 0
		:: else
		fi
	}
	for (i : 0 .. C * S - 1) {
		age[i] = (age[i] < NEVER -> age[i] + 1 : NEVER);
		if
		:: held[i] > 0 ->
			held[i]--;
			if
			:: held[i] == 0 && known[i] -> most[i] = 1
			:: else
			fi
		:: else
		fi
		if
		:: left[i] > 0 ->
			left[i]--;
			if
			:: left[i] == 0 -> sent[i] = 0
			:: else
			fi
		:: else
		fi
	}
	for (i : 0 .. S - 1) {
		if
		:: until[i] > 0 ->
			until[i]--;
			if
			:: until[i] == 0 -> cap[i] = 0
			:: else
			fi
		:: else
		fi
	}
}

/* A server answers a controller that leads: it obeys, and reports its holdings; or acknowledges its last grant. */
inline answer(c, s)
{
	if
	:: obeys[s] != gen[c] || !known[X(c, s)] ->
		obeys[s] = gen[c];
		if
		:: started[c] && besides[c] ->
			/* what it has is no longer among the unknown */
			unknown[c] = (unknown[c] > USES(s) -> unknown[c] - USES(s) : 0)
		:: else
		fi
		most[X(c, s)] = USES(s);
		held[X(c, s)] = until[s];
		known[X(c, s)] = 1
	:: else ->
		/* of what was told only the grant on its way is open */
		if
		:: sent[X(c, s)] > USES(s) -> most[X(c, s)] = sent[X(c, s)]
		:: else -> most[X(c, s)] = USES(s)
		fi
		if
		:: sent[X(c, s)] == 0 -> held[X(c, s)] = until[s]
		:: else
		fi
	fi;
	age[X(c, s)] = 0
}

inline start(c)
{
	/* holdings that end while an older controller may still grant count for the servers that have not answered */
	sum = 0;
	for (j : 0 .. S - 1) {
		if
		:: known[X(c, j)] -> sum = sum + (held[X(c, j)] > LEAD + 1 -> most[X(c, j)] : (most[X(c, j)] -> 1 : 0))
		:: else
		fi
	}
	unknown[c] = LIMIT - sum;
	besides[c] = LEAD + 1 + HOLD;
#ifdef NO_UNKNOWN
	unknown[c] = 0;
	besides[c] = 0;
#endif
	started[c] = 1
}

inline grant(c, s, v)
{
	sent[X(c, s)] = v; left[X(c, s)] = HOLD; held[X(c, s)] = HOLD;
	most[X(c, s)] = (most[X(c, s)] > v -> most[X(c, s)] : v)
}

#ifdef NO_ORDER
#define MAY_OBEY(c, s) 1
#define MAY_TAKE(c, s) 1
#else
#define MAY_OBEY(c, s) (gen[c] >= obeys[s])
#define MAY_TAKE(c, s) (gen[c] == obeys[s])
#endif

active proctype world()
{
	byte c, s;

	d_step {
		for (i : 0 .. C * S - 1) { age[i] = NEVER }
		revision = 0; i = 0; j = 0
	}
	do
	:: d_step { tick(); c = 0; s = 0; i = 0; j = 0; n = 0; sum = 0 }
	:: atomic {
		if :: c = 0 :: c = 1 fi;
		if
		/* elected: the one before may go on, as it does without the store */
		:: gen[c] == 0 && revision < REVISIONS && (c == 0 || revision) -> d_step { revision++; gen[c] = revision }
		/* it ends, or stands down */
		:: gen[c] -> d_step { stand_down(c); j = 0 }
		:: gen[c] && !started[c] ->
			d_step { majority(c) }
			if
			:: n >= 2 -> d_step { start(c) }
			:: else
			fi
		:: gen[c] ->
			if :: s = 0 :: s = 1 :: s = 2 fi;
			if
			:: MAY_OBEY(c, s) && (s == 0 || obeys[s - 1]) -> d_step { answer(c, s) }
			:: started[c] && known[X(c, s)] && sent[X(c, s)] == 0 ->
				d_step { majority(c) }
				if
				:: n >= 2 ->
					d_step { books(c) }
					if
					:: sum < LIMIT || most[X(c, s)] == 2 -> d_step { grant(c, s, 2) }
					:: d_step { grant(c, s, 1) }
					fi
				:: else
				fi
			:: sent[X(c, s)] && MAY_TAKE(c, s) ->
				d_step { cap[s] = sent[X(c, s)]; until[s] = left[X(c, s)]; sent[X(c, s)] = 0; left[X(c, s)] = 0 }
			:: else
			fi
		:: else
		fi;
		d_step {
			c = 0; s = 0; i = 0; j = 0; n = 0; sum = 0;
			assert(USES(0) + USES(1) + USES(2) <= LIMIT); /* LIMIT */
		}
	   }
	od
}

