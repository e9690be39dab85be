/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer-guard: which datagrams of other hosts are fresh.
 *
 * A seal proves who wrote a message, not when. Whoever listens on the network may keep one and send it
 * again, today or in a year. No clock that hosts share is relied on: clocks of hosts step, and a host
 * with a wrong one would be shut out. Instead:
 *
 *  1. Of one instance only growing sequence numbers are taken. So a duplicate, one that was overtaken
 *     and a replay of what was heard change nothing.
 *  2. An instance that is new here is asked to prove that it is there now: it gets a random number and
 *     sends it back in a sealed answer. Until then nothing of it is taken. So what a host said before
 *     it was restarted, or before we were, is worth nothing to who kept it. One question and one
 *     answer for each pair and start.
 *  3. What was held up is late. A message carries the time of the sender's own clock, which never
 *     steps. Arrival minus that time is least for the fastest message; one that exceeds this least by
 *     more than `late` was held up, by the network, by a forger, or because we were paused. It is not
 *     taken, and the sender is asked as in 2, which also mends it when its clock stood still (a
 *     machine that was suspended). Clocks drift: the least is let grow by 1/1000 of the time.
 *
 * Two living hosts of one name have different instances, and both prove to be there: both are heard, and
 * it is said. A host that was restarted also has two, but the older is not heard again.
 *
 * Pure: `now` is an argument, any clock that never steps. Random numbers come from the caller.
 */
#ifndef WEIR_WIRE_PEER_GUARD_H
#define WEIR_WIRE_PEER_GUARD_H

#include "wire/peer.h"
#include <stdbool.h>

/* ns: an answer that comes later proves nothing; who did not answer is asked again after it. */
#define PEER_GUARD_ANSWER (2 * WEIR_SEC)
/* Questions and answers in a second: 1,000 hosts that all start at once are through in one. */
#define PEER_GUARD_TALK 2048

struct peer_guard_config {
	const char *name;  /* ours; copied */
	uint64_t instance; /* ours */
	weir_time late;    /* ns: see 3; > 0 */
	unsigned most;     /* instances to remember, ≥ 1; beyond it the longest silent goes */
};

struct peer_guard;
int peer_guard_new(
	const struct peer_guard_config *c, struct peer_guard **ret_guard); /* or -ENOMEM */
void peer_guard_free(struct peer_guard *g);                                /* NULL is fine */

struct peer_guard_advice {
	bool ask; /* send a challenge with the nonce that was given to where the message came from */
	bool same; /* taken, and yet another living host has the same name */
};

/* A message whose seal was right and that peer_read took. nonce: fresh random bytes, used if it comes to
 * a question. A challenge that is TAKEN is to be answered, one in a CROWD is not. *ret_advice is always
 * set. */
enum peer_verdict peer_guard_judge(struct peer_guard *g, const struct peer_message *m,
	weir_time now, const uint8_t nonce[PEER_NONCE], struct peer_guard_advice *ret_advice);

/* How many instances were heard in the last `span` and did not leave. */
unsigned peer_guard_heard(const struct peer_guard *g, weir_time now, weir_time span);

#endif
