/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link: one direction of a network link, with its transmit buffer.
 *
 * LAW     An IO is a packet (or a burst) of `bytes`. It waits in the buffer, is sent in
 *         bytes / rate, and arrives `delay` later. Order FIFO, or strict by io->priority (0 first;
 *         7 and above are one class), FIFO inside a class. A transmission is not interrupted, except with `mtu` by an
 *         IO of a higher priority, at the end of the packet of that size which is being sent.
 * MARKS   io->marked is set if, at its arrival, the buffer already holds ecn_bytes or more, or
 *         ecn_packets or more (each if > 0), including the packet in transmission.
 * DROPS   A packet that does not fit the buffer (buffer > 0) is dropped: io->dropped, finished at
 *         once, returned by the next step. The packet in transmission still occupies the buffer.
 * COST    O(1) per packet. Nothing is random.
 */
#pragma once

#include <weir/err.h>
#include "model/device.h"

#define LINK_CLASSES 8

struct link_config {
	double rate;     /* bytes/s */
	weir_time delay; /* propagation */
	bool strict;     /* by priority instead of FIFO */
	uint64_t
		mtu; /* bytes: between packets of this size an IO of a higher priority goes first; 0: never */
	uint64_t buffer;                 /* bytes; 0: unlimited */
	uint64_t ecn_bytes, ecn_packets; /* 0: no marks */
};

struct link_config link_defaults(void); /* 10 Gbit/s, 10 µs, FIFO, unlimited, no marks */

/* Return 0; -EINVAL with a message that names the field; -ENOMEM. */
int link_new(const struct link_config *config, struct device **ret, struct weir_err *err);

/* Change the rate from `now` on, also for the rest of the packet in transmission. Everything up to
 * `now` must have been stepped. Return -EINVAL unless rate > 0 and finite. */
int link_set_rate(struct device *d, weir_time now, double rate);

uint64_t link_queued(const struct device *d); /* bytes in the buffer and in transmission */
