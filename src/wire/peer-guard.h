/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer-guard: decide which datagrams of other hosts are fresh.
 *
 * A seal proves the author of a message, not its time. An attacker on the network may record a
 * message and send it again, today or in a year. Hosts' clocks cannot be relied on: they step, and
 * a host with a wrong clock would be excluded. Instead:
 *
 *  1. Within one instance only growing sequence numbers are taken. So duplicates, reordered
 *     messages and replays of taken messages change nothing.
 *  2. A new instance must prove its presence: it gets a random number and returns it in a sealed
 *     answer. Until then none of its messages is taken. So recordings from before a restart of the
 *     sender or of this host are worthless. One challenge and one answer per pair and start.
 *  3. A delayed message is late. A message carries the time of the sender's monotonic clock.
 *     Arrival minus that time is least for the fastest message; a message that exceeds this least
 *     by more than `late` was delayed, by the network, by a forger, or because this host was paused.
 *     It is not taken, and the sender is challenged as in 2, which also recovers a sender whose
 *     clock stood still (a suspended machine). Clocks drift: the least grows by 1/1000 of the time.
 *
 * Two living hosts of one name have different instances, and both prove their presence: messages of
 * both are taken, and `same` is reported. A restarted host also has two instances, but the older
 * one falls silent.
 *
 * Pure: `now` is an argument, from any monotonic clock. The caller provides random numbers.
 */
#pragma once

#include "wire/peer.h"
#include <stdbool.h>

/* ns: an answer that arrives later proves nothing; a sender that did not answer is then challenged
 * again. */
#define PEER_GUARD_ANSWER (2 * WEIR_SEC)
/* Challenges and answers per second: enough for 1,000 hosts that all start in the same second. */
#define PEER_GUARD_TALK 2048

struct peer_guard_config {
	const char *name;  /* of this host; copied */
	uint64_t instance; /* of this host */
	weir_time late;    /* ns: see 3 above; > 0 */
	unsigned most; /* instances to remember, ≥ 1; beyond it the longest silent is dropped */
};

struct peer_guard;
int peer_guard_new(
	const struct peer_guard_config *c, struct peer_guard **ret_guard); /* or -ENOMEM */
void peer_guard_free(struct peer_guard *g);                                /* NULL is allowed */

struct peer_guard_advice {
	bool ask;  /* send a challenge with the given nonce to the message's sender */
	bool same; /* taken, but another living host has the same name */
};

/* Judge a message whose seal was right and that peer_read took. nonce: fresh random bytes, used for
 * a challenge. Answer a challenge if it is TAKEN, not if it is CROWD. *ret_advice is always set. */
enum peer_verdict peer_guard_judge(struct peer_guard *g, const struct peer_message *m,
	weir_time now, const uint8_t nonce[PEER_NONCE], struct peer_guard_advice *ret_advice);

/* Return the number of instances that were heard in the last `span` and did not leave. */
unsigned peer_guard_heard(const struct peer_guard *g, weir_time now, weir_time span);
