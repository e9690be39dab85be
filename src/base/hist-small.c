/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/hist-small.h"
#include "base/hist-impl.h"
#include "base/array.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MORE 4 /* chunks to grow by */

_Static_assert(HIST_SMALL_CHUNKS + MORE <= UINT8_MAX, "places are bytes");
_Static_assert(WEIR_HIST_BUCKETS % HIST_SMALL_CHUNK == 0, "chunks are whole");

void hist_small_init(struct hist_small *h)
{
	*h = (struct hist_small){.min = UINT64_MAX};
}

void hist_small_free(struct hist_small *h)
{
	free(h->chunk);
	hist_small_init(h);
}

void hist_small_clear(struct hist_small *h)
{
	memset(h->place, 0, sizeof(h->place));
	h->count = h->sum = h->max = 0;
	h->min = UINT64_MAX;
	h->n = 0;
}

/* Return the chunk of a place, allocated if needed; NULL: no memory. */
static uint32_t *chunk_at(struct hist_small *h, unsigned place)
{
	if (h->place[place])
		return h->chunk[h->place[place] - 1];
	if (h->n == h->room) {
		if (array_resize(&h->chunk, h->room + (size_t)MORE) < 0)
			return NULL;
		h->room += MORE;
	}
	memset(h->chunk[h->n], 0, sizeof(*h->chunk));
	h->place[place] = ++h->n;
	return h->chunk[h->n - 1];
}

static void add_count(uint32_t *count, uint32_t n)
{
	if (__builtin_add_overflow(*count, n, count))
		*count = UINT32_MAX;
}

static void add_summary(
	struct hist_small *h, uint64_t count, uint64_t sum, uint64_t min, uint64_t max)
{
	h->count += count;
	if (__builtin_add_overflow(h->sum, sum, &h->sum))
		h->sum = UINT64_MAX;
	h->min = min < h->min ? min : h->min;
	h->max = max > h->max ? max : h->max;
}

int hist_small_record(struct hist_small *h, uint64_t value)
{
	unsigned index = hist_index(value);
	uint32_t *chunk = chunk_at(h, index / HIST_SMALL_CHUNK);

	if (!chunk)
		return -ENOMEM;
	add_count(&chunk[index % HIST_SMALL_CHUNK], 1);
	add_summary(h, 1, value, value, value);
	return 0;
}

int hist_small_merge(struct hist_small *into, const struct hist_small *from)
{
	for (unsigned place = 0; place < HIST_SMALL_CHUNKS; place++) {
		uint32_t *to;

		if (!from->place[place])
			continue;
		to = chunk_at(into, place);
		if (!to)
			return -ENOMEM;
		for (unsigned i = 0; i < HIST_SMALL_CHUNK; i++)
			add_count(&to[i], from->chunk[from->place[place] - 1][i]);
	}
	add_summary(into, from->count, from->sum, from->min, from->max);
	return 0;
}

void hist_small_fetch(const struct hist_small *h)
{
	__builtin_prefetch(h, 1);
	__builtin_prefetch(&h->place[64]);
	__builtin_prefetch(&h->place[128]);
}

void hist_small_read(const struct hist_small *h, struct weir_hist *ret)
{
	memset(ret->bucket, 0, sizeof(ret->bucket));
	for (unsigned place = 0; place < HIST_SMALL_CHUNKS; place++) {
		if (h->place[place])
			memcpy(&ret->bucket[place * HIST_SMALL_CHUNK],
				h->chunk[h->place[place] - 1], sizeof(*h->chunk));
	}
	ret->count = h->count;
	ret->sum = h->sum;
	ret->min = h->min;
	ret->max = h->max;
}
