/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * law: how many requests a host may have inside an array that it shares with others.
 *
 * PARDA (Gulati, Ahmad, Waldspurger: "PARDA: Proportional Allocation of Resources for Distributed
 * Storage Access", FAST 2009) takes the latency of an array as the sign of its load and moves each
 * host's window by it. These are its equations; control/parda/parda.h does the measuring and
 * reporting. Latencies and thresholds are in any one unit of time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* ---- eq. 1: the moving average. `past` ≤ 0: there is none, and the new value is the average. */

/* Literal form: `alpha` is the weight of the past, in 0 … 1. */
double parda_average(double past, double alpha, double latency);
/* Per IO: each of `ios`, whose mean latency is `latency`, has the weight `alpha`. */
double parda_average_ios(double past, double alpha, double latency, double ios);
/* By time: a value that is older by `tau` weighs 1/e; `span` and `tau` in one unit. */
double parda_average_time(double past, double span, double tau, double latency);

/* ---- eq. 2: the window */

struct parda_law {
	double threshold;  /* 𝓛: where latency shall be; > 0 */
	double gamma;      /* part of the way moved in one step, 0 … 1; the paper's is 0.8 */
	double wmin, wmax; /* slots: 0 ≤ wmin ≤ wmax. May be fractional. */
};

/* Return the window after one step; a latency ≤ 0 (not known) only applies the bounds. */
double parda_window(const struct parda_law *law, double window, double beta, double latency);

/* ---- eq. 3: where the windows come to rest, with capacity C in requests per unit of time */

double parda_equilibrium(double beta, double sum_beta, double capacity, double threshold);
/* Return the latency there: 𝓛 + Σβ / C, above the threshold. */
double parda_equilibrium_latency(double sum_beta, double capacity, double threshold);

/* ---- the scale of β. With Σβ = ε C 𝓛′ and the law fed 𝓛′ = 𝓛 / (1 + ε), latency rests at 𝓛. */

double parda_fed(double threshold, double epsilon); /* 𝓛′ */
/* Return K of β = K × shares, for all hosts together: `inside` slots in use, `shares` of the hosts
 * that use them. Quantised to PARDA_SCALE_STEPS an octave, so that hosts whose sums differ by a
 * late message have the same K. 0 if either is 0. */
#define PARDA_SCALE_STEPS 4
double parda_scale(double epsilon, double inside, double shares);

/* ---- eq. 4: shares, adjusted to what is idle */

struct parda_vm {
	double shares; /* > 0 */
	/* n_k: mean number of its requests that wait or are inside, without those held by its own
	 * limits */
	double outstanding;
	double min;      /* guaranteed requests per unit of time; 0: none */
	uint32_t number; /* the same in every period, for averages; not used here */
};

/* Return Σ s′_k: each VM's shares, reduced if it leaves a part of its slots unused. */
double parda_shares(const struct parda_vm *vms, size_t n, double window);

/* Return the slots that the guarantees need at this latency (Little's law), each no more than its
 * VM can use. */
double parda_floor(const struct parda_vm *vms, size_t n, double latency);

/* ---- §4: the threshold for requests of `bytes` on the mean, from that of requests of 16 KiB or less, when a request costs
 * as much as `fixed` bytes besides its own. `fixed` ≤ 0: as it is. */
double parda_by_size(double threshold, double bytes, double fixed);

/* ---- the median of n values, which are put into another order; 0 of none. Even n: the lower. */
double parda_median(double *values, size_t n);
