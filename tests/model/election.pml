/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * election: which controller trusts that it leads, for Spin: two controllers, one store, requests and answers that are late or lost.
 *
 * Time passes in ticks, for the controllers' clocks also while they are paused. Every action is possible at any time, and none is
 * necessary. docs/model.md says which code each part stands for.
 *
 *   TRUST  no two controllers trust their leases at a time
 *   ORDER  a generation under which a controller begins to lead is above all that a server obeyed
 *
 * Each of these, defined, leaves something out, and a property then fails:
 *   ANSWER_TIME  a lease is trusted from the answer to a keep-alive on, not from its sending
 *   NO_OFFSET    a store that was restored from a backup is not raised above what servers obeyed
 */
#define C 2
#define TTL 4    /* ticks of a lease in the store */
#define TRUST 3  /* of them, for which it is trusted */
#define MOST 6   /* generations */

byte leader, lease;    /* the store's: controller + 1; ticks */
byte revision, offset; /* the store's */
byte obeyed;           /* the highest generation that a server obeyed */
bool restored;
byte trust[C], gen[C];
byte asked[C], answered[C]; /* a keep-alive on its way to the store, its answer: ticks of trust that it gives; 0: none */

byte i;

inline down(x) { if :: x > 0 -> x-- :: else fi }

inline tick()
{
	down(lease);
	if
	:: lease == 0 -> leader = 0
	:: else
	fi;
	for (i : 0 .. C - 1) {
		down(trust[i]); down(asked[i]); down(answered[i])
	}
	i = 0
}

active proctype world()
{
	byte c;

	do
	:: d_step { tick() }
	/* a backup of the store, with a revision and an offset of before; it takes longer than a lease */
	:: d_step { !restored && trust[0] == 0 && trust[1] == 0 && asked[0] == 0 && asked[1] == 0 && answered[0] == 0 && answered[1] == 0;
		restored = 1; revision = 0; offset = 0; leader = 0; lease = 0 }
	:: atomic {
		if :: c = 0 :: c = 1 fi;
		if
		:: leader == 0 && revision + offset < MOST ->
			d_step { leader = c + 1; lease = TTL; revision++; trust[c] = TRUST; gen[c] = 0; answered[c] = 0; asked[c] = 0 }
		:: leader == c + 1 && asked[c] == 0 && answered[c] == 0 -> asked[c] = TRUST
		:: asked[c] ->
			d_step {
				if
				:: leader == c + 1 -> lease = TTL; answered[c] = asked[c]
				:: else
				fi;
				asked[c] = 0
			}
		:: answered[c] ->
			d_step {
#ifdef ANSWER_TIME
				trust[c] = TRUST;
#else
				trust[c] = (answered[c] > trust[c] -> answered[c] : trust[c]);
#endif
				answered[c] = 0
			}
#ifdef NO_OFFSET
		:: trust[c] && leader == c + 1 && gen[c] == 0 ->
#else
		/* raise the offset above what servers report */
		:: leader == c + 1 && gen[c] == 0 && revision + offset <= obeyed && obeyed < MOST ->
			d_step { offset = obeyed + 1 - revision }
		:: trust[c] && leader == c + 1 && gen[c] == 0 && revision + offset > obeyed ->
#endif
			d_step {
				assert(revision + offset > obeyed); /* ORDER */
				gen[c] = revision + offset; obeyed = gen[c]
			}
		:: gen[c] && leader != c + 1 -> gen[c] = 0
		:: else
		fi;
		c = 0;
		assert(trust[0] == 0 || trust[1] == 0) /* TRUST */
	   }
	od
}
