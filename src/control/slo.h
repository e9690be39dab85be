/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slo: whether a tenant's slo, such as p99.9 < 10ms, was met over the last minute and the last hour.
 *
 * Pure. Completions are recorded into a batch, cheaply and by whoever serves the tenant (slo_record);
 * now and then the batch is added to the tenant's windows (slo_add), which slide.
 *
 * LAW     A request is good if it took no longer than the bound. An slo is met over a window if at least
 *         `percentile` percent of the window's requests were good: exactly, from counters. The percentile
 *         itself is read from a histogram, to 1/32, and to the side of the bound on which it lies.
 * METHOD  A window is a ring of SLO_SLOTS slots, 5 s or 5 minutes each, and their sum: it covers the
 *         current slot and those before it, 55 to 60 s or minutes. A slot that is reused is taken off the
 *         sum first. So to look is O(buckets), whatever was recorded.
 * COST    Record: a count and two additions. 41 KiB for a tenant that has been active within the hour,
 *         without histograms 750 bytes.
 */
#ifndef WEIR_CONTROL_SLO_H
#define WEIR_CONTROL_SLO_H

#include <weir/clock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Buckets: one below 2^12 ns (4 µs), 16 an octave up to 2^36 ns (69 s), one above. */
#define SLO_LOW     12
#define SLO_OCTAVES 24
#define SLO_BUCKETS (2 + 16 * SLO_OCTAVES)

#define SLO_SLOTS 12

enum slo_window { SLO_MINUTE, SLO_HOUR, SLO_WINDOWS };

struct slo_batch { /* zero: nothing was recorded */
	uint64_t good, total;
	weir_time max;
	uint32_t bucket[SLO_BUCKETS];
};
void slo_record(struct slo_batch *b, weir_time latency, weir_time bound);

struct slo; /* of one tenant */
/* 0 or -ENOMEM. Histograms: as soon as something is added and `histograms` is true. */
int slo_new(double percentile, weir_time bound, struct slo **ret_slo);
void slo_free(struct slo *s);
/* Another bound or percentile: the windows begin anew, the counters go on. */
void slo_set(struct slo *s, double percentile, weir_time bound);

/* now never falls. histograms: may allocate for the percentiles; without, only counters are kept. */
void slo_add(struct slo *s, weir_time now, const struct slo_batch *b, bool histograms);
bool slo_has_histograms(const struct slo *s);

/* For how long the oldest request that waits at `now` has done so; 0: none waits. One beyond the bound is
 * a request that is not good, although it is not counted yet. Holds until the next call. */
void slo_waits(struct slo *s, weir_time oldest_wait);

struct slo_view {
	uint64_t good, total;
	weir_time value; /* of the percentile, ns; -1: not known (no request, or no histograms) */
	bool known;      /* there was a request, or one waits beyond the bound */
	bool met;
};
/* Nothing is added: a window without requests is not known. */
void slo_look(struct slo *s, weir_time now, enum slo_window w, struct slo_view *ret);
/* Without the percentile's value (-1), which is what takes time. */
void slo_judge(struct slo *s, weir_time now, enum slo_window w, struct slo_view *ret);
/* Since it was made: good and all requests. */
void slo_totals(const struct slo *s, uint64_t *ret_good, uint64_t *ret_total);

/* Whether the last word about a window is out of date: true when it is missed, and was met or not known when
 * said last; or when it was said to be missed and has been met, or not known, for a minute. *ret_missed: which.
 * Once a change. */
bool slo_changed(struct slo *s, weir_time now, enum slo_window w, bool *ret_missed);

#endif
