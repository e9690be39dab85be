/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * talk: datagrams between the shapers of machines, sealed and fresh as those of peers (serve/peer/peer.h).
 *
 * A machine finds its own address in `network.rack.machines`, and has one socket there; all other machines must reach it from that
 * address. The key of `network.rack.key` is the same for all machines that shape links, in whatever rack.
 *
 *   usage     to all other machines of the rack; taken from these only
 *   limits    of the fabric's broker, from the rack's leader: as usage
 *   feedback  to the machine at any address, at the same port as ours; taken from every machine that has the key
 *
 * A message may be lost, and is not sent again. Those that reach `usage` and `feedback` are genuine, fresh, and delivered once;
 * all others are counted by reason. The first message of a machine that has just started, or of which this one did not know,
 * is not taken: it is asked for a proof of its presence first, which takes a round trip.
 *
 * One thread: the loop's. Nothing blocks but talk_new.
 */
#pragma once

#include "policy/policy.h"
#include "serve/peer/peer.h"

#define TALK_WORDS PEER_WORDS_MAX /* of one message, at most */

struct talk_config {
	struct loop *loop;
	const struct policy_network *network; /* with a rack; borrowed */
	const char *machine;                  /* this one's name */
	/* From the machine of this index in network.machines. */
	void (*usage)(void *arg, size_t machine, const char *name, const uint64_t *words,
		unsigned n, weir_time now);
	void (*limits)(void *arg, size_t machine, const char *name, const uint64_t *words,
		unsigned n, weir_time now);
	/* From a receiver at an address, IPv4 as ::ffff:a.b.c.d; NULL: feedback is not taken. */
	void (*feedback)(void *arg, const uint8_t address[16], const uint64_t *words, unsigned n,
		weir_time now);
	void *arg;
};

struct talk;
/* Errors name the address or the file. May block: names are resolved. */
int talk_new(const struct talk_config *c, struct talk **ret, struct weir_err *err);
void talk_free(struct talk *t); /* NULL is allowed */

size_t talk_own(const struct talk *t);       /* the index of this machine */
const char *talk_name(const struct talk *t); /* this machine's */
uint16_t talk_port(
	const struct talk *t); /* the shaper's traffic is not shaped: program_config.udp */

/* Messages have n ≤ TALK_WORDS words. */
void talk_usage(struct talk *t, const uint64_t *words, unsigned n);
void talk_limits(struct talk *t, const uint64_t *words, unsigned n);
/* -EAFNOSUPPORT: an address of another family than the rack's. */
int talk_feedback(struct talk *t, const uint8_t address[16], const uint64_t *words, unsigned n);

struct talk_stats {
	struct peer_stats peers; /* received messages by verdict, and what was sent */
	uint64_t outside;        /* usage or limits from an address that is not in the rack */
};
void talk_stats(const struct talk *t, struct talk_stats *ret);
