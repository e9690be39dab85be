/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * receive: the rates at which the senders to this machine's services may send.
 *
 * SOURCE  Parley §3.2.1, by control/parley/machine.h and broker.h, as sim/network/control.c.
 * METHOD  Every T each service's meter is given what arrived, and takes a step of R if its own period is over. Every 25 T
 *         the device's rate, less a tenth (PARLEY_LINE), is divided among services by what they received: the shares. A meter's
 *         capacity is the least of the service's share, its max and a broker's cap.
 *         R is on its way up to the device's rate while a service is below its capacity, and limits no sender there.
 * DIFFERS A machine with several devices is metered as if it had one of the sum of their rates.
 *
 * Pure: no clock, no system call; memory is taken when it is made.
 */
#pragma once

#include "control/parley/broker.h"
#include "control/parley/machine.h"
#include "serve/shape/tree.h"

struct receive_service {
	struct parley_meter meter;
	struct shape_count seen; /* at the last count */
	struct parley_cap cap;   /* of the rack's and the fabric's brokers */
	double share;            /* bytes/s; INFINITY: it has all it wants */
	double rate;             /* bytes/s, between the last two divisions */
	uint64_t divided;        /* bytes, at the last division */
	weir_time limited;       /* R was last below the line's rate; 0: never */
};

struct receive {
	struct receive_service *services; /* by node */
	size_t n;
	double line;             /* bytes/s */
	weir_time period, began; /* T; began: the time since the last division */
	struct parley_broker *own;
	double *usage;
};

/* The policy is borrowed for the call, the tree for as long as it lives. period 0: by the line's rate. 0 or -ENOMEM. */
int receive_new(const struct weir_policy *p, const struct tree *t, double line, weir_time period,
	weir_time now, struct receive **ret);
void receive_free(struct receive *r); /* NULL is allowed */

/* Take a node's counters. */
void receive_count(struct receive *r, size_t node, const struct shape_count *total);
/* End T. After receive_count of all nodes that are leaves. */
void receive_step(struct receive *r, const struct tree *t, weir_time now);
/* Return what a service may receive, bytes/s. */
double receive_capacity(const struct receive *r, size_t node, weir_time now);
/* Return R, bytes/s; INFINITY: no sender is limited. */
double receive_told(const struct receive *r, size_t node);
/* The same, but R for as long as some sender may keep to a lower one. */
double receive_telling(const struct receive *r, size_t node, weir_time now);
