/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * joint: one token bucket for several gates, each of which belongs to another thread.
 *
 * A max of ten requests a second cannot be divided over four gates: each would hold a token, and after
 * a pause four requests would pass at once. Here a gate holds nothing. When requests wait at it, it takes
 * tokens for them from the joint bucket, in advance: it gets the time at which they are there. So gates
 * have their turns in the order in which they asked.
 *
 * LAW     Over any interval of length t all gates together take ≤ rate·t + size, and one largest amount.
 *         Tokens that were taken may be returned; they count as if they had not been taken.
 * SYMBOLS level(t) = rate·(t − empty), at most size; `empty` is the time at which the level is, was or will
 *         be 0. To take a moves it by a / rate; the tokens are there when the level was ≥ min(a, size).
 * COST    One atomic exchange, no lock, no call to another thread.
 * EXAMPLE rate 10/s, size 1, full at t = 0; three gates take 1 each: at 0, 100 and 200 ms.
 */
#pragma once

#include <weir/clock.h>
#include <stdatomic.h>

struct joint {
	_Atomic(weir_time) empty;
	atomic_uint users;
};

struct joint_size {
	double rate; /* units per second */
	double size; /* units */
};

struct joint *joint_new(void); /* full; NULL: no memory */
struct joint *joint_use(struct joint *j);
void joint_unuse(struct joint *j); /* frees it after the last; NULL: does nothing */

/* Return when the units are there. */
weir_time joint_take(struct joint *j, struct joint_size s, weir_time now, double units);
void joint_spend(struct joint *j, weir_time now); /* its level is 0, or less */
void joint_return(struct joint *j, struct joint_size s, double units);
