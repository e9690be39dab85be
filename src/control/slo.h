/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slo: whether a tenant's slo, such as p99.9 < 10ms, was met over the last minute and the last
 * hour.
 *
 * Pure. The thread that serves the tenant records completions into a batch (slo_record), which is
 * cheap; now and then the batch is added to the tenant's sliding windows (slo_add).
 *
 * LAW     A request is good if it took no longer than the bound. An slo is met over a window if at
 *         least `percentile` percent of the window's requests were good: exactly, from counters.
 *         A request that waits, and has waited beyond the bound, counts as if it completed now.
 *         The percentile itself is read from a histogram, to 1/32, and moved to its side of the
 *         bound.
 * METHOD  A window is a ring of SLO_SLOTS slots, 5 s or 5 minutes each, and their sum: it covers
 *         the current slot and the slots before it, 55 to 60 s or minutes. A slot that is reused is
 *         subtracted from the sum first. So reading is O(buckets), however much was recorded.
 * COST    Recording is a count and two additions. 41 KiB for a tenant that was active within the
 *         hour, 750 bytes without histograms.
 */
#pragma once

#include <weir/clock.h>
#include <stdbool.h>
#include <stdint.h>

/* Buckets: one below 2^12 ns (4 µs), 16 an octave up to 2^36 ns (69 s), one above. */
#define SLO_LOW     12
#define SLO_OCTAVES 24
#define SLO_BUCKETS (2 + 16 * SLO_OCTAVES)

#define SLO_SLOTS 12

enum slo_window { SLO_MINUTE, SLO_HOUR, SLO_WINDOWS };

struct slo_batch { /* zero: empty */
	uint64_t good, total;
	weir_time max;
	uint32_t bucket[SLO_BUCKETS];
};
void slo_record(struct slo_batch *b, weir_time latency, weir_time bound);

struct slo; /* of one tenant */
/* 0 or -ENOMEM. Histograms are allocated by the first slo_add with `histograms`. */
int slo_new(double percentile, weir_time bound, struct slo **ret_slo);
void slo_free(struct slo *s);
/* Change the bound or percentile: the windows start again, the counters continue. */
void slo_set(struct slo *s, double percentile, weir_time bound);

/* Add a batch; `now` never falls. histograms: may allocate for the percentiles; otherwise only
 * counters are kept. */
void slo_add(struct slo *s, weir_time now, const struct slo_batch *b, bool histograms);
bool slo_has_histograms(const struct slo *s);

/* Add requests that wait now and have waited beyond the bound, with that time as their latency: they
 * count as not good before they complete. NULL: forget them, none waits. */
void slo_waits(struct slo *s, const struct slo_batch *waits);

struct slo_view {
	uint64_t good, total; /* completed, and waiting beyond the bound */
	weir_time value; /* of the percentile, ns; -1: not known (no request, or no histograms) */
	bool known;      /* total is not 0 */
	bool met;
};
/* Read a window and add nothing; a window without requests is not known. */
void slo_look(struct slo *s, weir_time now, enum slo_window w, struct slo_view *ret);
/* Return the good and all requests that completed since slo_new. */
void slo_totals(const struct slo *s, uint64_t *ret_good, uint64_t *ret_total);

/* Return true if the state of a window changed since it was last reported: it is missed, and was
 * met or not known; or it was reported missed and has been met, or not known, for a minute.
 * *ret_missed is the new state. True once per change. */
bool slo_changed(struct slo *s, weir_time now, enum slo_window w, bool *ret_missed);
