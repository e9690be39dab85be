/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * told: the words of a receiver's feedback (PEER_FEEDBACK): the rate at which each of some flows' senders may send to it.
 *
 * A flow is named as its sender sees it, who finds its own service for it: the two machines' policies need not agree on names.
 *
 *   0  rate, bytes/s, an IEEE 754 double
 *   1  the flow's destination: an address of IPv6, or of IPv4 as ::ffff:a.b.c.d: 2 words
 *   3  16 bits the sender's port, 16 the receiver's, 8 the protocol, 8 DSCP; 16 zeroes
 *
 * Pure: nothing here allocates or waits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TOLD_WORDS 4

struct told {
	double rate;
	uint8_t address[16];
	uint16_t mine, theirs; /* ports, of the machine that is told and of the receiver; 0: none */
	uint8_t protocol, dscp;
};

void told_write(uint64_t out[TOLD_WORDS], const struct told *t);
/* Return false for what makes no sense: *ret is not set then. most: bytes/s that any link has. */
#define TOLD_MOST 1e13
bool told_read(const uint64_t in[TOLD_WORDS], struct told *ret);
