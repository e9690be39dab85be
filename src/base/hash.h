/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hash: a number for some bytes, the same in every process. Not for data that a hostile client chooses.
 *
 * SOURCE  Fowler, Noll, Vo: FNV-1a, 64 bits
 * EXAMPLE "a": 0xaf63dc4c8601ec8c
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HASH_BEGIN 0xcbf29ce484222325u

/* Go on from the hash of what stands before; begin with HASH_BEGIN. */
static inline uint64_t hash_more(uint64_t hash, const void *data, size_t n)
{
	const unsigned char *at = data;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ at[i]) * 0x100000001b3u;
	return hash;
}
