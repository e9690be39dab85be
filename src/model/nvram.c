/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvram: the content of a write cache, gathered by stripe.
 *
 * METHOD  A bitmap of dirty groups under a tree of 64-way summaries: set, clear and "next from
 *         here" are O(levels). A dirty group has an entry with one 64-bit mask per unit, from a
 *         pool of the largest possible size; memory is touched only when first used.
 */
#include "model/nvram.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int bits_init(struct nvram *n)
{
	uint64_t words = n->groups;

	for (int i = 0; i < NVRAM_LEVELS; i++) {
		words = (words + 63) / 64;
		n->level[i] = calloc(words, sizeof(uint64_t));
		if (!n->level[i])
			return -ENOMEM;
	}
	return 0;
}

static void bits_set(struct nvram *n, uint64_t g)
{
	for (int i = 0; i < NVRAM_LEVELS; i++, g /= 64)
		n->level[i][g / 64] |= UINT64_C(1) << (g % 64);
}

static void bits_clear(struct nvram *n, uint64_t g)
{
	for (int i = 0; i < NVRAM_LEVELS; i++, g /= 64) {
		n->level[i][g / 64] &= ~(UINT64_C(1) << (g % 64));
		if (n->level[i][g / 64])
			return;
	}
}

/* Return the first set bit at or after g, or UINT64_MAX. */
static uint64_t bits_next(const struct nvram *n, uint64_t g)
{
	uint64_t size = n->groups, word;
	int i = 0;

	for (;;) { /* up, until a word has a bit at or after this one */
		if (g >= size)
			return UINT64_MAX;
		word = n->level[i][g / 64] & ~UINT64_C(0) << (g % 64);
		if (word)
			break;
		if (++i == NVRAM_LEVELS)
			return UINT64_MAX;
		g = g / 64 + 1;
		size = (size + 63) / 64;
	}
	g = g / 64 * 64 + (unsigned)__builtin_ctzll(word);
	while (i-- > 0) /* down, always to the first bit */
		g = g * 64 + (unsigned)__builtin_ctzll(n->level[i][g]);
	return g;
}

int nvram_init(struct nvram *n, uint64_t groups, uint32_t units, uint32_t unit, uint64_t capacity)
{
	uint64_t entries;

	memset(n, 0, sizeof(*n));
	n->groups = groups;
	n->units = units;
	n->unit = unit;
	n->grain = unit / 64;
	n->capacity = capacity;
	entries = capacity / n->grain + 1; /* every entry has at least one grain dirty */
	if (entries > groups)
		entries = groups;
	n->entry = calloc(groups, sizeof(*n->entry));
	n->masks = calloc(entries * units, sizeof(*n->masks));
	n->free_list = malloc(entries * sizeof(*n->free_list));
	if (!n->entry || !n->masks || !n->free_list || bits_init(n) < 0) {
		nvram_free(n);
		return -ENOMEM;
	}
	while (n->n_free < entries) {
		n->free_list[n->n_free] = (uint32_t)(entries - 1 - n->n_free);
		n->n_free++;
	}
	return 0;
}

void nvram_free(struct nvram *n)
{
	free(n->entry);
	free(n->masks);
	free(n->free_list);
	for (int i = 0; i < NVRAM_LEVELS; i++)
		free(n->level[i]);
	memset(n, 0, sizeof(*n));
}

/* Return the bits of one unit's mask that [from, to) touches, even in part. */
static uint64_t mask_of(const struct nvram *n, uint64_t from, uint64_t to)
{
	uint64_t first = from / n->grain, count = (to + n->grain - 1) / n->grain - first;

	return (count >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1) << first;
}

static uint64_t *masks_for(struct nvram *n, uint64_t group)
{
	uint32_t e = n->entry[group];

	if (!e) {
		e = n->free_list[--n->n_free] + 1;
		n->entry[group] = e;
		n->n_dirty++;
		bits_set(n, group);
	}
	return &n->masks[(size_t)(e - 1) * n->units];
}

bool nvram_write(struct nvram *n, uint64_t offset, uint64_t bytes)
{
	uint64_t end = offset + bytes, stripe = (uint64_t)n->unit * n->units;
	uint64_t span = (end - 1) / stripe - offset / stripe + 1;
	uint64_t rounded = ((end + n->grain - 1) / n->grain - offset / n->grain) * n->grain;

	if (n->dirty && (n->dirty + rounded > n->capacity || n->n_free < span))
		return false;
	while (offset < end && (n->n_free || n->entry[offset / stripe])) {
		uint64_t number = offset / n->unit, from = offset % n->unit, to = n->unit;
		uint64_t *mask = &masks_for(n, number / n->units)[number % n->units], old = *mask;

		if (to - from > end - offset)
			to = from + (end - offset);
		*mask |= mask_of(n, from, to);
		n->dirty += (uint64_t)__builtin_popcountll(*mask & ~old) * n->grain;
		offset += to - from;
	}
	return true;
}

bool nvram_holds(const struct nvram *n, uint64_t offset, uint64_t bytes)
{
	uint64_t end = offset + bytes;

	while (offset < end) {
		uint64_t number = offset / n->unit, from = offset % n->unit, to = n->unit, mask;
		uint32_t e = n->entry[number / n->units];

		if (!e)
			return false;
		if (to - from > end - offset)
			to = from + (end - offset);
		mask = mask_of(n, from, to);
		if ((n->masks[(size_t)(e - 1) * n->units + number % n->units] & mask) != mask)
			return false;
		offset += to - from;
	}
	return true;
}

uint64_t nvram_take(struct nvram *n, uint64_t *ret_group, struct nvram_range *ret_ranges)
{
	uint64_t group = bits_next(n, n->hand), *masks, bytes = 0;
	uint32_t e;

	if (group == UINT64_MAX)
		group = bits_next(n, 0);
	e = n->entry[group];
	masks = &n->masks[(size_t)(e - 1) * n->units];
	for (uint32_t i = 0; i < n->units; i++) {
		ret_ranges[i] = (struct nvram_range){0, 0};
		if (!masks[i])
			continue;
		ret_ranges[i].from = (unsigned)__builtin_ctzll(masks[i]) * n->grain;
		ret_ranges[i].to = (64 - (unsigned)__builtin_clzll(masks[i])) * n->grain;
		bytes += (uint64_t)__builtin_popcountll(masks[i]) * n->grain;
		masks[i] = 0;
	}
	bits_clear(n, group);
	n->entry[group] = 0;
	n->free_list[n->n_free++] = e - 1;
	n->n_dirty--;
	n->hand = group + 1 < n->groups ? group + 1 : 0;
	*ret_group = group;
	return bytes;
}

void nvram_release(struct nvram *n, uint64_t bytes)
{
	n->dirty -= bytes;
}
