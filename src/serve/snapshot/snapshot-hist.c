/* SPDX-License-Identifier: BSD-3-Clause */
/* snapshot-hist: histograms without their empty parts: a histogram takes 9 kB, and latencies of one
 * tenant fill a tenth of it. */
#include "serve/snapshot/snapshot.h"
#include <stdlib.h>
#include <string.h>

static struct snapshot_hist *cut(const struct weir_hist *h)
{
	uint32_t first = 0, end = WEIR_HIST_BUCKETS;
	struct snapshot_hist *to;

	while (end > 0 && !h->bucket[end - 1])
		end--;
	while (first < end && !h->bucket[first])
		first++;
	to = malloc(sizeof(*to) + (end - first) * sizeof(*to->bucket));
	if (!to)
		return NULL;
	*to = (struct snapshot_hist){.count = h->count,
		.sum = h->sum,
		.min = h->min,
		.max = h->max,
		.first = first,
		.n = end - first};
	memcpy(to->bucket, h->bucket + first, to->n * sizeof(*to->bucket));
	return to;
}

const struct weir_hist *snapshot_hist(const struct snapshot_hist *h, struct weir_hist *room)
{
	weir_hist_clear(room);
	room->count = h->count;
	room->sum = h->sum;
	room->min = h->min;
	room->max = h->max;
	memcpy(room->bucket + h->first, h->bucket, h->n * sizeof(*h->bucket));
	return room;
}

void snapshot_hist_add(struct snapshot_hist **into, const struct weir_hist *from)
{
	struct snapshot_hist *sum;
	struct weir_hist both;

	if (*into) {
		snapshot_hist(*into, &both);
		weir_hist_merge(&both, from);
		from = &both;
	}
	sum = cut(from);
	if (!sum)
		return;
	free(*into);
	*into = sum;
}
