/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: what a service uses of a machine's links, as one word of a message (PEER_USAGE).
 *
 *    63 … 32  the service: the low half of peer_hash of its path
 *    31 … 16  bytes/s that it receives
 *    15 …  0  bytes/s that it sends
 *
 * A rate is m·2^e, with 11 bits of m above 5 bits of e: exact below 2048, and to 1/2048 above, up to 4.3 TB/s.
 *
 * Pure.
 */
#pragma once

#include <stdint.h>

#define USAGE_MAX (2047. * 2147483648.) /* bytes/s: the highest rate */

struct usage {
	uint32_t service;
	double in, out; /* bytes/s, ≥ 0 */
};

uint64_t usage_pack(const struct usage *u);
struct usage usage_unpack(uint64_t word);
/* Return the rate that a receiver of the packed one reads. */
double usage_rounded(double rate);
/* Return true if two rates differ by more than this part of the larger one, or one alone is zero. */
#define USAGE_MOVED (1. / 128)
int usage_moved(double a, double b);
