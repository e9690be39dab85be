/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * throttle: the requests that an address may send by TCP before its clients have proven an identity.
 *
 * LAW     An address has a bucket of THROTTLE_BURST units, which fills by THROTTLE_RATE a second. A request takes one before its
 *         token is looked at, the first one by TLS before its handshake; a request that proves its sender gives back all that its
 *         connection took. An address is one of IPv4, or 64 bits of IPv6, which is what one customer has.
 * METHOD  A table of THROTTLE_ADDRESSES buckets in sets of 8: a further address replaces the one of its set whose bucket is fullest,
 *         which is that which asked least.
 */
#pragma once

#include <weir/clock.h>
#include <stdbool.h>
#include <sys/socket.h>

#define THROTTLE_BURST     200
#define THROTTLE_RATE      20 /* a second */
#define THROTTLE_ADDRESSES 1024

struct throttle;
struct throttle *throttle_new(void); /* NULL: no memory */
void throttle_free(struct throttle *t);
/* Take a unit, or return false: there are none. */
bool throttle_take(struct throttle *t, const struct sockaddr *from, weir_time now);
void throttle_give(struct throttle *t, const struct sockaddr *from, weir_time now, unsigned n);
