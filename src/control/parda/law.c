/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  Gulati, Ahmad, Waldspurger: PARDA, FAST 2009, §3.2 (eq. 1 to 3), §3.4 (eq. 4), §4. The
 *         law is that of FAST TCP (Jin, Wei, Low, INFOCOM 2004).
 * LAW     eq. 1  L(t) = (1 − α) l + α L(t−1)
 *         eq. 2  w(t+1) = (1 − γ) w(t) + γ (𝓛/L(t) · w(t) + β), kept in wmin … wmax
 *         eq. 3  at rest w_i = β_i + β_i C𝓛 / Σβ
 *         eq. 4  w_k = s_k/Σs · w; a VM with n_k < w_k counts s_k n_k / w_k shares
 * SYMBOLS l, L latency observed and averaged; 𝓛 threshold; w window, slots; β slots; s shares;
 *         C capacity, requests per unit of time; γ, α, ε without unit.
 * METHOD  Each is a formula: O(1), or O(n) over the VMs of one host. The median is found by
 *         selection, O(n) on the mean.
 * DIFFERS - Latency rests above 𝓛, at 𝓛 + Σβ/C: put L = 𝓛 + Σβ/C and Little's C·L = Σw into
 *         eq. 2. So β has a unit, slots, and a scale: too large a Σβ misses the threshold, too
 *         small a one never reaches its ratios, since shares settle with time constant
 *         (T/γ)(1 + 1/ε), where ε = Σβ/C𝓛′. We choose ε, feed the law 𝓛′ = 𝓛/(1 + ε), and scale β
 *         so that Σβ = ε C 𝓛′. At rest C 𝓛′ (1 + ε) = C𝓛 is what is inside, so
 *             Σβ = ε/(1 + ε) · (requests inside, all hosts),
 *         which messages carry; C need not be known. With it eq. 2 rests at L = 𝓛 whether or not
 *         strangers use the array too, or some windows stand at wmax.
 *         - The paper smooths with α = 0.002 and calls it the weight of the past. Taken so, per
 *         interval, it hardly smooths; as the weight of each new IO it does, by more or less
 *         with the rate of IOs. Ours is by time. All three are here.
 *         - §4 takes latency per 8 KB. Ours raises the threshold instead, by the mean size over all
 *         hosts: N = C 𝓛 requests inside keep an array busy whatever their size, C is in inverse
 *         proportion to the mean cost, and so 𝓛 in proportion to it. By each host's own size the
 *         mean of the converted latencies would be too high where sizes differ.
 *         - 'Throughput is proportional to β_i/q_i' (§3.2) holds with q_i = L_i − 𝓛.
 * EXAMPLE 𝓛 = 30, γ = 0.8, w = 32, β = 1, L = 37.2: 0.2·32 + 0.8·(0.806·32 + 1) = 27.8.
 */
#include "control/parda/law.h"
#include <math.h>

#define BYTES 16384.0 /* of a request: a slot */

double parda_average(double past, double alpha, double latency)
{
	return past > 0 ? (1 - alpha) * latency + alpha * past : latency;
}

double parda_average_ios(double past, double alpha, double latency, double ios)
{
	return parda_average(past, pow(1 - alpha, ios), latency);
}

double parda_average_time(double past, double span, double tau, double latency)
{
	return parda_average(past, tau > 0 ? exp(-span / tau) : 0, latency);
}

static double between(double x, double least, double most)
{
	return fmax(least, fmin(x, most));
}

double parda_window(const struct parda_law *law, double window, double beta, double latency)
{
	double next = window;

	if (latency > 0)
		next = (1 - law->gamma) * window +
		       law->gamma * (law->threshold / latency * window + beta);
	return between(next, law->wmin, law->wmax);
}

double parda_equilibrium(double beta, double sum_beta, double capacity, double threshold)
{
	return beta + beta * capacity * threshold / sum_beta;
}

double parda_equilibrium_latency(double sum_beta, double capacity, double threshold)
{
	return threshold + sum_beta / capacity;
}

double parda_fed(double threshold, double epsilon)
{
	return threshold / (1 + epsilon);
}

double parda_scale(double epsilon, double inside, double shares)
{
	double exact = epsilon / (1 + epsilon) * inside / shares;

	if (!(inside > 0) || !(shares > 0) || !(exact > 0) || !isfinite(exact))
		return 0;
	return exp2(rint(PARDA_SCALE_STEPS * log2(exact)) / PARDA_SCALE_STEPS);
}

double parda_shares(const struct parda_vm *vms, size_t n, double window)
{
	double all = 0, used = 0;

	for (size_t k = 0; k < n; k++)
		all += vms[k].shares;
	for (size_t k = 0; k < n; k++) {
		double slots = vms[k].shares / all * window; /* eq. 4 */

		used += vms[k].outstanding < slots ? vms[k].outstanding / slots * vms[k].shares
						   : vms[k].shares;
	}
	return used;
}

double parda_floor(const struct parda_vm *vms, size_t n, double latency)
{
	double slots = 0;

	for (size_t k = 0; k < n; k++)
		slots += fmin(vms[k].min * latency, vms[k].outstanding);
	return slots;
}

double parda_by_size(double threshold, double bytes, double fixed)
{
	return fixed > 0 ? threshold * fmax(1, (fixed + bytes) / (fixed + BYTES)) : threshold;
}

static void swap(double *a, double *b)
{
	double x = *a;

	*a = *b;
	*b = x;
}

/* Hoare's selection; the middle one as pivot, so that sorted input is not the worst case. */
double parda_median(double *values, size_t n)
{
	size_t low = 0, high = n ? n - 1 : 0, k = high / 2;

	if (n == 0)
		return 0;
	while (low < high) {
		double pivot = values[low + (high - low) / 2];
		size_t i = low, j = high;

		for (;;) {
			while (values[i] < pivot)
				i++;
			while (values[j] > pivot)
				j--;
			if (i >= j)
				break;
			swap(&values[i++], &values[j--]);
		}
		/* values[low … j] ≤ pivot ≤ values[j + 1 … high] */
		if (k <= j)
			high = j;
		else
			low = j + 1;
	}
	return values[k];
}
