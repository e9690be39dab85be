/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  Our own. Operators of other schedulers complain about capacity that is measured once,
 *         wrongly, at start; PARDA (Gulati et al., §3.1) and pShift both derive it from served
 *         requests.
 * LAW     Over an interval of length d, of which the window was full for f ≥ 0.8·d, and which
 *         served n: the capacity C of the saturated resource lies between n/d (it served at least
 *         that much) and n/f (some of n was served while the window was not full).
 *           C < n/d, by more than chance   C ← n/d           it served more than C
 *           C outside [n/d, n/f]           C ← C + (1 − e^(−d/τ))·(nearest bound − C)
 *           C inside                       C stays
 *         While the resource is not saturated, C stays.
 * SYMBOLS d, f, τ (`settle`) ns; n requests or bytes; C per second.
 *         By chance: a count of n requests varies by about √n, so a rise counts as real when it
 *         exceeds 3/√n, and at least 5 %: otherwise the largest of many noisy intervals would
 *         become the capacity.
 * METHOD  Requests and bytes alike; n of the chance is the number of requests for both. O(1).
 * DIFFERS From the usual maximum with decay, which overestimates by the noise, and from the usual
 *         average, which is wrong whenever demand is low.
 * EXAMPLE C = 1000; an interval of 1 s, full for 0.9 s, serves 950: [950, 1056] contains C, which
 *         stays. One that is full throughout and serves 500: C ← 1000 − 0.095·500 = 952.
 */
#include "control/capacity.h"
#include <math.h>

void capacity_init(struct capacity *c, const struct capacity_config *config)
{
	*c = (struct capacity){0};
	if (config)
		c->config = *config;
	if (c->config.interval <= 0)
		c->config.interval = WEIR_SEC;
	if (c->config.settle <= 0)
		c->config.settle = 10 * WEIR_SEC;
	if (!(c->config.saturated > 0))
		c->config.saturated = 0.8;
}

static double learn(double rate, double low, double high, double chance, double part)
{
	if (low > rate * (1 + fmax(0.05, chance)))
		return low;
	if (rate < low)
		return rate + part * (low - rate);
	if (rate > high)
		return rate + part * (high - rate);
	return rate;
}

static void begin(struct capacity *c, weir_time now, const struct capacity_totals *totals)
{
	c->started = true;
	c->since = now;
	c->start = *totals;
}

bool capacity_step(struct capacity *c, weir_time now, const struct capacity_totals *totals)
{
	double d, f, part, chance, n[2];

	if (!c->started) {
		begin(c, now, totals);
		return false;
	}
	if (now - c->since < c->config.interval)
		return false;
	d = (double)(now - c->since) / WEIR_SEC;
	f = (double)(totals->full - c->start.full) / WEIR_SEC;
	n[0] = (double)(totals->requests - c->start.requests);
	n[1] = (double)(totals->bytes - c->start.bytes);
	begin(c, now, totals);
	/* A device that served nothing for a whole interval hangs: ignore the interval. */
	if (f < c->config.saturated * d || n[0] <= 0)
		return false;
	f = fmin(f, d);
	part = 1 - exp(-d * WEIR_SEC / (double)c->config.settle);
	chance = 3 / sqrt(n[0]);
	for (int u = 0; u < 2; u++)
		c->rate[u] = learn(c->rate[u], n[u] / d, n[u] / f, chance, part);
	c->seen = now;
	return true;
}

bool capacity_watch(struct capacity *c, weir_time now, struct weir_gate *const *gates, size_t n,
	uint64_t requests, uint64_t bytes)
{
	struct capacity_totals totals = {.requests = requests, .bytes = bytes};
	struct weir_gate_totals t;
	int64_t used = 0;

	for (size_t i = 0; i < n; i++) {
		weir_gate_get_totals(gates[i], now, &t);
		if (t.submitted == 0)
			continue;
		totals.full += t.full;
		used++;
	}
	if (used)
		totals.full /= used;
	return capacity_step(c, now, &totals);
}
