/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shadow-sender: estimate what a client would send if its requests took another time.
 *
 * A client in a closed loop sends its next request when a reply arrives, so it sends less while it
 * is held. It is modelled by its number of outstanding requests and by the think time between a
 * reply and the next request. A client in an open loop sends independently of replies.
 *
 * Pure: times are arguments.
 */
#pragma once

#include <weir/clock.h>
#include <stdbool.h>
#include <stdint.h>

struct shadow_sender { /* zero-initialised by the caller */
	/* estimates */
	bool closed;
	uint32_t outstanding; /* at most at once; 0: not known yet */
	weir_time think;      /* mean, ns */
	weir_time took;       /* mean time of a request, ns */
	weir_time active;     /* the client is considered active until then */
	/* of the current observation */
	weir_time began, last;
	double area, square; /* outstanding · ns; its square · ns */
	uint32_t arrivals, most, first, now;
	bool grows; /* the number outstanding has grown since it was last 0 */
};

/* Record an arrival; `outstanding` includes it. */
void shadow_sender_arrives(struct shadow_sender *s, weir_time now, uint32_t outstanding);
/* Record a completion; `outstanding` excludes it. */
void shadow_sender_returns(struct shadow_sender *s, weir_time now, uint32_t outstanding);
/* Return the relative error of the client's estimated rate, by its think time; 0: it does not think. */
double shadow_sender_error(const struct shadow_sender *s);

/* Confidence in a tenant's figures in shadow mode, over its clients. */
struct shadow_estimate {
	uint32_t closed, open; /* clients in a closed loop, and the others */
	uint64_t outstanding;  /* of the closed, together */
	weir_time think;       /* of the closed, added up, ns */
	/* factors of every rate between which enforcement is expected; 0: no client */
	double low, high;
};

/* A wider range, as the ratio of its ends, is no answer: the device was not seen as the gate would load it. */
#define SHADOW_TELLS 4.0
static inline bool shadow_estimate_tells(const struct shadow_estimate *e)
{
	return e->high <= SHADOW_TELLS * e->low;
}
