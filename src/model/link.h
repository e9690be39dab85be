/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link: one direction of a wire, with the buffer in front of it.
 *
 * LAW     An IO is a packet (or a burst) of `bytes`. It waits in the buffer, is sent in
 *         bytes / rate, and arrives `delay` later. Order FIFO, or strict by io->priority (0 first;
 *         7 and above are one class), FIFO inside a class; what is being sent is not interrupted.
 * MARKS   io->marked is set when, at its arrival, the buffer already holds ecn_bytes or more, or
 *         ecn_packets or more (each if > 0), what is being sent included.
 * DROPS   A packet for which the buffer has no room (buffer > 0) is dropped: io->dropped, finished
 *         at once, handed back by the next step. What is being sent still takes its room.
 * COST    O(1) per packet. Nothing is random.
 */
#ifndef WEIR_MODEL_LINK_H
#define WEIR_MODEL_LINK_H

#include "base/err.h"
#include "model/device.h"

#define LINK_CLASSES 8

struct link_config {
	double rate;                     /* bytes/s */
	weir_time delay;                 /* propagation */
	bool strict;                     /* by priority instead of FIFO */
	uint64_t buffer;                 /* bytes; 0: endless */
	uint64_t ecn_bytes, ecn_packets; /* 0: no marks */
};

struct link_config link_defaults(void); /* 10 Gbit/s, 10 µs, FIFO, endless, no marks */

/* 0; -EINVAL with a message that names the field; -ENOMEM. */
int link_new(const struct link_config *config, struct device **ret, struct weir_err *err);

/* From `now` on, also for what is left of the packet being sent. Everything up to `now` has been
 * stepped. -EINVAL unless rate > 0 and finite. */
int link_set_rate(struct device *d, weir_time now, double rate);

uint64_t link_queued(const struct device *d); /* bytes in the buffer, what is being sent included */

#endif
