/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shadow-cost: learn how much of a request's cost on a busy device depends on its size.
 *
 * Pure: times are arguments. The law is in shadow-cost.c.
 */
#pragma once

#include <weir/clock.h>
#include <stdbool.h>

struct shadow_work {
	double requests, pages; /* pages: 16 KiB, begun ones count as whole */
};

struct shadow_cost { /* zero-initialised by the caller */
	/* the current block of requests that ended */
	weir_time began; /* 0: none */
	struct shadow_work block;
	double mean; /* pages of a request */
	/* averages over blocks, per request: x, pages; y, ns */
	double n, x, y, xx, xy, yy;
	/* estimates: part of the cost of all requests that depends on pages, its standard
	 * deviation; the same part, of a request of one page */
	double part, error, page;
};

/* Record that a request ended; busy: the device had a queue since the last one ended. */
void shadow_cost_learn(
	struct shadow_cost *c, weir_time now, const struct shadow_work *own, bool busy);
/* Return the work as a number: a request of one page counts as 1. */
double shadow_cost_of(const struct shadow_cost *c, const struct shadow_work *w);
/* Return the error of that number, relative to the cost of the requests seen: a factor, >= 1. */
double shadow_cost_error(const struct shadow_cost *c, const struct shadow_work *w);
