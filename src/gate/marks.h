/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * marks: a set of small integers that finds the next element in O(1).
 *
 * METHOD  A bit per integer; a bit for every word of these that is not 0; and one word for all of those. O(1).
 */
#pragma once

#include "gate/pool.h"
#include <stdint.h>

#define MARKS_MOST 131072 /* numbers are less */
#define MARKS_NONE UINT32_MAX

struct marks {
	uint64_t *bits;  /* memory of the owner, zero at first; */
	uint64_t *words; /* words of `bits` that are not 0; memory of the owner, too; */
	uint64_t top;    /* words of `words` that are not 0; 0: the set is empty */
};

/* Return how many words are needed for numbers less than `most`, a multiple of 64: `bits`, and then `words`. */
static inline size_t marks_bits(uint32_t most)
{
	return most / 64;
}
static inline size_t marks_words(uint32_t most)
{
	return (marks_bits(most) + 63) / 64;
}

POOL_HOT void marks_add(struct marks *m, uint32_t s)
{
	uint64_t *word = &m->bits[s / 64], had = *word;

	*word = had | UINT64_C(1) << (s % 64);
	if (had)
		return;
	m->words[s / 4096] |= UINT64_C(1) << (s / 64 % 64);
	m->top |= UINT64_C(1) << (s / 4096);
}

static inline void marks_remove(struct marks *m, uint32_t s)
{
	m->bits[s / 64] &= ~(UINT64_C(1) << (s % 64));
	if (m->bits[s / 64])
		return;
	m->words[s / 4096] &= ~(UINT64_C(1) << (s / 64 % 64));
	if (!m->words[s / 4096])
		m->top &= ~(UINT64_C(1) << (s / 4096));
}

/* Return the first element from `from` on, or MARKS_NONE. */
static inline uint32_t marks_from(const struct marks *m, uint32_t from)
{
	uint32_t word = from / 64, high = from / 4096;
	uint64_t bits = m->bits[word] & (~UINT64_C(0) << (from % 64));

	if (bits)
		return word * 64 + (uint32_t)__builtin_ctzll(bits);
	/* Shifted twice: a shift by 64 would be undefined. */
	bits = m->words[high] & (~UINT64_C(0) << (word % 64) << 1);
	if (!bits) {
		bits = m->top & (~UINT64_C(0) << high << 1);
		if (!bits)
			return MARKS_NONE;
		high = (uint32_t)__builtin_ctzll(bits);
		bits = m->words[high];
	}
	word = high * 64 + (uint32_t)__builtin_ctzll(bits);
	return word * 64 + (uint32_t)__builtin_ctzll(m->bits[word]);
}
