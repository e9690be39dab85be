/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ssd: flash behind channels.
 *
 * LAW     The drive has `channels` buses with `dies` dies on each. An IO is cut at page boundaries;
 *         page p lies on channel p mod channels, die (p / channels) mod dies. A page read holds its
 *         die for `read` and then the bus for its bytes / channel_rate (the die too, whose register
 *         holds the data); a page write holds the bus first, then its die for `program`. Dies and
 *         buses serve first come first served. Finished IOs leave through one port at `bandwidth`.
 *         After `gc_every` programs a die is busy for gc_time more (exponential around it if
 *         gc_random).
 *         An IO's `busy` is the time for which its pages are sensed, programmed and on a bus: by
 *         default 65 µs for a read of 4 KiB and 1.29 ms for one of 256 KiB, without waiting.
 * COST    O(log(channels · dies)) per page; no allocation after set-up. At most `slots` pages are
 *         inside; further IOs wait in one FIFO.
 */
#pragma once

#include <weir/err.h>
#include "model/device.h"

struct ssd_config {
	uint32_t channels, dies; /* dies per channel; both ≥ 1, product ≤ 65536 */
	uint32_t page;           /* bytes */
	weir_time read, program; /* per page */
	double channel_rate;     /* bytes/s */
	double bandwidth;        /* bytes/s of the whole drive; 0: no cap */
	weir_time overhead;      /* added to every IO without queueing */
	uint32_t slots;          /* pages inside at once, ≥ 1 */
	uint32_t gc_every;       /* programs of a die between two pauses; 0: no pauses */
	weir_time gc_time;
	bool gc_random;
};

/* 8 channels × 4 dies of 16 KiB pages: about 460k random 4 KiB reads/s, 3.2 GB/s. */
struct ssd_config ssd_defaults(void);

/* Create an SSD. Random: only the lengths of pauses, if gc_random. Return 0; -EINVAL with a
 * message; -ENOMEM. */
int ssd_new(const struct ssd_config *config, uint64_t seed, const char *name, struct device **ret,
	struct weir_err *err);
