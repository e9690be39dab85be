/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shadow-sender: what a client would send if its requests took another time than they do.
 *
 * A client in a closed loop sends its next request when one comes back, so that it sends less when it is
 * held. It is taken for one with so many requests outstanding, that thinks for so long between a
 * reply and the next request. A client in an open loop sends whatever comes back.
 *
 * Pure: times are arguments.
 */
#ifndef WEIR_CONTROL_SHADOW_SENDER_H
#define WEIR_CONTROL_SHADOW_SENDER_H

#include <weir/clock.h>
#include <stdbool.h>
#include <stdint.h>

struct shadow_sender { /* zero it */
	/* estimates */
	bool closed;
	uint32_t outstanding; /* at most at once; 0: not known yet */
	weir_time think;      /* mean, ns */
	weir_time took;       /* mean time of a request, ns */
	weir_time active;     /* until then it is taken to go on */
	/* of the look under way */
	weir_time began, last;
	double area, square; /* outstanding · ns; its square · ns */
	uint32_t arrivals, most, first, now;
	bool grows; /* the number outstanding did, since there was none */
};

/* A request arrived; `outstanding`: with it. */
void shadow_sender_arrives(struct shadow_sender *s, weir_time now, uint32_t outstanding);
/* One came back; `outstanding`: without it. */
void shadow_sender_returns(struct shadow_sender *s, weir_time now, uint32_t outstanding);

/* How sure the figures of a tenant are in shadow mode: over its clients. */
struct shadow_estimate {
	uint32_t closed, open; /* clients in a closed loop, and the others */
	uint64_t outstanding;  /* of the closed, together */
	weir_time think;       /* of the closed, added up, ns */
	double low, high; /* factors of every rate: enforcement is expected between; 0: no client */
};

#endif
