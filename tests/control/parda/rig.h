/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rig: hosts under control/parda/parda before an array, for the tests start.c and stranger.c.
 *
 * The array is a closed queueing network of `disks` equal disks: with N requests inside, each takes
 * (N + disks − 1) / C. Hosts step in turn, each in its own eighth of a period, on the measurements
 * since their last step.
 */
#ifndef WEIR_TESTS_CTL_PARDA_RIG_H
#define WEIR_TESTS_CTL_PARDA_RIG_H

#include "base/rng.h"
#include "control/parda/parda.h"
#include "test.h"

#define RIG_HOSTS  16
#define RIG_PHASES 8
#define RIG_PERIOD (2 * WEIR_SEC)
#define RIG_PART   (RIG_PERIOD / RIG_PHASES)

struct rig_host {
	struct parda *parda;
	struct parda_config config;
	struct parda_vm vm;
	struct parda_decision last;
	bool up;
	double window; /* in force */
	double demand; /* requests at most */
	/* since its last step: */
	double ios, latency_ns, inside_ns;
	weir_time stepped;
};

struct rig {
	struct rig_host hosts[RIG_HOSTS];
	int n;
	double capacity; /* requests per second */
	double disks;
	double noise;           /* relative deviation of the latency of an eighth of a period */
	double loss;            /* share of reports */
	double stranger;        /* requests of an initiator without a controller */
	double latency, inside; /* ns, requests: of the last eighth */
	double most_latency, most_inside; /* since the test set them to 0 */
	weir_time now;
	int phase;
	struct rng rng;
};

static inline void rig_start(struct rig *r, int i)
{
	struct rig_host *h = &r->hosts[i];

	parda_free(h->parda);
	h->config.instance = rng_u64(&r->rng) | 1;
	CHECK_INT(parda_new(&h->config, &h->parda), 0);
	h->window = parda_start_window(h->parda);
	h->up = true;
	h->ios = h->latency_ns = h->inside_ns = 0;
	h->stepped = r->now;
}

static inline void rig_make(struct rig *r, int n, const double *shares, struct parda_law law)
{
	memset(r, 0, sizeof(*r));
	r->n = n;
	r->capacity = 3200;
	r->disks = 1;
	r->now = 1000 * WEIR_SEC;
	rng_init(&r->rng, 1, "rig");
	for (int i = 0; i < n; i++) {
		r->hosts[i].vm.shares = shares[i];
		r->hosts[i].demand = 1e6;
		r->hosts[i].config =
			(struct parda_config){.id = (uint64_t)i + 100, .law = law, .epsilon = 0.2};
		rig_start(r, i);
	}
}

static inline void rig_free(struct rig *r)
{
	for (int i = 0; i < r->n; i++)
		parda_free(r->hosts[i].parda);
}

static inline double rig_inside(const struct rig_host *h)
{
	return h->up ? fmin(h->window, h->demand) : 0;
}

static inline void rig_tell(struct rig *r, int from)
{
	for (int i = 0; i < r->n; i++) {
		if (i != from && r->hosts[i].up && rng_double(&r->rng) >= r->loss)
			parda_hear(r->hosts[i].parda, &r->hosts[from].last.report);
	}
}

static inline void rig_step(struct rig *r, int i)
{
	struct rig_host *h = &r->hosts[i];
	double span = (double)(r->now - h->stepped);
	struct parda_measured m = {.ios = (uint64_t)(h->ios + 0.5), .vms = &h->vm, .n_vms = 1};

	if (span <= 0)
		return;
	m.latency_ns = h->ios > 0 ? h->latency_ns * (double)m.ios / h->ios : 0;
	m.inside = h->inside_ns / span;
	h->vm.outstanding = h->demand;
	parda_step(h->parda, r->now, &m, &h->last);
	h->window = h->last.window;
	h->ios = h->latency_ns = h->inside_ns = 0;
	h->stepped = r->now;
	rig_tell(r, i);
}

/* Run an eighth of a period. */
static inline void rig_part(struct rig *r)
{
	double all = r->stranger;

	for (int i = 0; i < r->n; i++)
		all += rig_inside(&r->hosts[i]);
	r->inside = all;
	r->latency = (fmax(all, 1) + r->disks - 1) / r->capacity * 1e9;
	r->latency *= 1 + r->noise * (rng_double(&r->rng) + rng_double(&r->rng) - 1) * 2.45;
	r->most_inside = fmax(r->most_inside, r->inside);
	r->most_latency = fmax(r->most_latency, r->latency);
	r->now += RIG_PART;
	for (int i = 0; i < r->n; i++) {
		struct rig_host *h = &r->hosts[i];
		double ios = rig_inside(h) / r->latency * (double)RIG_PART;

		h->ios += ios;
		h->latency_ns += ios * r->latency;
		h->inside_ns += rig_inside(h) * (double)RIG_PART;
	}
	for (int i = r->phase; i < r->n; i += RIG_PHASES)
		if (r->hosts[i].up)
			rig_step(r, i);
	r->phase = (r->phase + 1) % RIG_PHASES;
}

static inline void rig_periods(struct rig *r, int n)
{
	for (int i = 0; i < n * RIG_PHASES; i++)
		rig_part(r);
}

/* Return the largest relative error of a host's window against its share. */
static inline double rig_off(const struct rig *r)
{
	double windows = 0, shares = 0, most = 0;

	for (int i = 0; i < r->n; i++) {
		windows += r->hosts[i].up ? r->hosts[i].window : 0;
		shares += r->hosts[i].up ? r->hosts[i].vm.shares : 0;
	}
	for (int i = 0; i < r->n; i++) {
		double part = windows * r->hosts[i].vm.shares / shares;

		if (r->hosts[i].up)
			most = fmax(most, fabs(r->hosts[i].window - part) / part);
	}
	return most;
}

#endif
