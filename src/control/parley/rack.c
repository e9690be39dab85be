/* SPDX-License-Identifier: BSD-3-Clause */
/* METHOD  Usage of all machines is kept as [machine][direction][service]. Ids are sorted, and found by halving. */
#include "control/parley/rack.h"
#include "control/parley/machine.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REPEAT 2    /* rounds in which a service that moved is reported */
#define TURN   32   /* rounds in which all are */
#define LEAST  32   /* of those whose turn it is, at least */
#define LIGHT  1e-6 /* of the link: a service that uses less uses nothing */
#define CARRY  1.1  /* of a machine's rate: clocks of two machines differ */
#define NEARLY (1 - 1e-6)

struct said { /* of a service, about this machine */
	double usage[RACK_DIRS];
	unsigned repeat, idle; /* rounds: to be said for; with nothing used */
};

struct limit {
	double rate;
	weir_time until;
};

struct rack {
	size_t n, machines, own;
	double link[RACK_DIRS], nic;
	struct parley_broker *broker[RACK_DIRS];
	struct parley_service *services[RACK_DIRS];
	uint32_t *ids;   /* by service */
	uint32_t *order; /* services by their ids */
	double *usage;   /* see METHOD */
	double *max;     /* by direction and service: in force in the last division */
	struct limit *fabric;
	weir_time *heard; /* by machine; 0: never */
	struct said *said;
	size_t turn; /* the service from which the next report's turn begins */
	uint64_t unknown;
};

static double *usage_of(const struct rack *r, size_t machine, int dir)
{
	return r->usage + (machine * RACK_DIRS + (size_t)dir) * r->n;
}

/* ---- ids */

static int compare_ids(const void *a, const void *b, void *ids)
{
	uint32_t x = ((const uint32_t *)ids)[*(const uint32_t *)a],
		 y = ((const uint32_t *)ids)[*(const uint32_t *)b];

	return x < y ? -1 : x > y;
}

static int sort_ids(struct rack *r)
{
	for (size_t i = 0; i < r->n; i++)
		r->order[i] = (uint32_t)i;
	qsort_r(r->order, r->n, sizeof(*r->order), compare_ids, r->ids);
	for (size_t i = 1; i < r->n; i++)
		if (r->ids[r->order[i - 1]] == r->ids[r->order[i]])
			return -EEXIST;
	return 0;
}

size_t rack_find(const struct rack *r, uint32_t id)
{
	size_t from = 0, to = r->n;

	while (from < to) {
		size_t mid = (from + to) / 2;

		if (r->ids[r->order[mid]] < id)
			from = mid + 1;
		else
			to = mid;
	}
	return from < r->n && r->ids[r->order[from]] == id ? r->order[from] : r->n;
}

/* ---- from start to end */

static int make(struct rack *r, const struct rack_config *c)
{
	size_t n = c->n_services;
	int e = 0;

	r->ids = calloc(2 * n + 1, sizeof(*r->ids));
	r->usage = calloc((c->machines + 1) * RACK_DIRS * n + 1, sizeof(*r->usage));
	r->fabric = calloc(RACK_DIRS * n + 1, sizeof(*r->fabric));
	r->heard = calloc(c->machines + 1, sizeof(*r->heard));
	r->said = calloc(n + 1, sizeof(*r->said));
	if (!r->ids || !r->usage || !r->fabric || !r->heard || !r->said)
		return -ENOMEM;
	r->order = r->ids + n;
	r->max = r->usage + c->machines * RACK_DIRS * n;
	memcpy(r->ids, c->ids, n * sizeof(*r->ids));
	for (size_t i = 0; i < n; i++)
		r->said[i].idle = RACK_IDLE;
	for (int d = 0; e == 0 && d < RACK_DIRS; d++) {
		r->link[d] = c->link[d];
		r->services[d] = calloc(n + 1, sizeof(*r->services[d]));
		if (!r->services[d])
			return -ENOMEM;
		memcpy(r->services[d], c->services[d], n * sizeof(*r->services[d]));
		e = parley_broker_new(c->services[d], n, c->machines, PARLEY_RACK, &r->broker[d]);
	}
	return e ? e : sort_ids(r);
}

int rack_new(const struct rack_config *c, struct rack **ret)
{
	struct rack *r = calloc(1, sizeof(*r));
	int e;

	if (!r)
		return -ENOMEM;
	*r = (struct rack){
		.n = c->n_services, .machines = c->machines, .own = c->own, .nic = c->nic};
	e = make(r, c);
	if (e) {
		rack_free(r);
		return e;
	}
	*ret = r;
	return 0;
}

void rack_free(struct rack *r)
{
	if (!r)
		return;
	for (int d = 0; d < RACK_DIRS; d++) {
		parley_broker_free(r->broker[d]);
		free(r->services[d]);
	}
	free(r->ids);
	free(r->usage);
	free(r->fabric);
	free(r->heard);
	free(r->said);
	free(r);
}

void rack_adopt(struct rack *r, const struct rack *from)
{
	for (size_t i = 0; i < r->n; i++) {
		size_t at = rack_find(from, r->ids[i]);

		if (at == from->n)
			continue;
		r->said[i] = from->said[at];
		for (int d = 0; d < RACK_DIRS; d++) {
			r->fabric[(size_t)d * r->n + i] = from->fabric[(size_t)d * from->n + at];
			for (size_t m = 0; m < r->machines; m++)
				usage_of(r, m, d)[i] = usage_of(from, m, d)[at];
		}
	}
	memcpy(r->heard, from->heard, r->machines * sizeof(*r->heard));
	r->unknown = from->unknown;
}

/* ---- reports */

static bool is_due(const struct rack *r, size_t service)
{
	return r->said[service].repeat > 0;
}

/* Note what a service uses now, and whether the others must be told. */
static void note(struct rack *r, size_t service)
{
	struct said *s = &r->said[service];
	double now[RACK_DIRS];
	bool moved = false, used = false;

	for (int d = 0; d < RACK_DIRS; d++) {
		now[d] = usage_of(r, r->own, d)[service];
		moved = moved || usage_moved(now[d], s->usage[d]);
		used = used || now[d] > 0;
	}
	s->idle = used ? 0 : s->idle + (s->idle < RACK_IDLE);
	if (!moved)
		return;
	memcpy(s->usage, now, sizeof(now));
	s->repeat = REPEAT;
}

static uint64_t word_of(const struct rack *r, size_t service)
{
	const struct said *s = &r->said[service];

	return usage_pack(&(struct usage){r->ids[service], s->usage[RACK_DOWN], s->usage[RACK_UP]});
}

size_t rack_report(
	struct rack *r, const double *const usage[RACK_DIRS], weir_time now, uint64_t *ret)
{
	size_t n = 0, most = r->n / TURN > LEAST ? r->n / TURN : LEAST;

	for (size_t i = 0; i < r->n; i++) {
		for (int d = 0; d < RACK_DIRS; d++)
			usage_of(r, r->own, d)[i] =
				usage[d][i] < LIGHT * r->link[d] ? 0 : usage_rounded(usage[d][i]);
		note(r, i);
		if (is_due(r, i))
			ret[n++] = word_of(r, i);
	}
	most += n;
	for (size_t i = 0; i < r->n && n < most; i++) {
		size_t at = r->turn++ % r->n;

		if (!is_due(r, at) && r->said[at].idle < RACK_IDLE)
			ret[n++] = word_of(r, at);
	}
	for (size_t i = 0; i < r->n; i++)
		r->said[i].repeat -= is_due(r, i);
	/* The others divide by the usage that was reported: a smaller move was not reported. */
	for (size_t i = 0; i < r->n; i++)
		for (int d = 0; d < RACK_DIRS; d++)
			usage_of(r, r->own, d)[i] = r->said[i].usage[d];
	r->heard[r->own] = now;
	return n;
}

static bool claims(const struct rack *r, size_t machine)
{
	for (int d = 0; d < RACK_DIRS; d++) {
		double sum = 0;

		for (size_t i = 0; i < r->n; i++)
			sum += usage_of(r, machine, d)[i];
		if (sum > CARRY * r->nic)
			return true;
	}
	return false;
}

enum rack_heard rack_hear(
	struct rack *r, size_t machine, const uint64_t *words, size_t n, weir_time now)
{
	for (size_t k = 0; k < n; k++) {
		struct usage u = usage_unpack(words[k]);

		if (u.in > CARRY * r->nic || u.out > CARRY * r->nic)
			return RACK_CLAIMS;
	}
	for (size_t k = 0; k < n; k++) {
		struct usage u = usage_unpack(words[k]);
		size_t at = rack_find(r, u.service);

		if (at == r->n) {
			r->unknown++;
			continue;
		}
		usage_of(r, machine, RACK_DOWN)[at] = u.in;
		usage_of(r, machine, RACK_UP)[at] = u.out;
	}
	r->heard[machine] = now;
	return claims(r, machine) ? RACK_CLAIMS : RACK_TAKEN;
}

uint64_t rack_unknown(const struct rack *r)
{
	return r->unknown;
}

bool rack_alive(const struct rack *r, size_t machine, weir_time now)
{
	return r->heard[machine] && now - r->heard[machine] <= PARLEY_RACK;
}

/* ---- divisions */

void rack_fabric(struct rack *r, int dir, size_t service, double limit, weir_time until)
{
	r->fabric[(size_t)dir * r->n + service] = (struct limit){limit, until};
}

static void set_bounds(struct rack *r, int d, weir_time now)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct parley_service *s = &r->services[d][i];
		const struct limit *f = &r->fabric[(size_t)d * r->n + i];
		double max = f->until > now && f->rate < s->max ? f->rate : s->max;

		r->max[(size_t)d * r->n + i] = max;
		parley_broker_set(r->broker[d], i, s->min < max ? s->min : max, max, s->weight);
	}
}

void rack_step(struct rack *r, weir_time now, bool ret_scaled[RACK_DIRS])
{
	for (size_t m = 0; m < r->machines; m++)
		if (r->heard[m] &&
			!claims(r, m)) /* a lie is not used: the last usage before it counts */
			for (int d = 0; d < RACK_DIRS; d++)
				parley_broker_hear(r->broker[d], m, usage_of(r, m, d), r->heard[m]);
	for (int d = 0; d < RACK_DIRS; d++) {
		set_bounds(r, d, now);
		ret_scaled[d] = parley_broker_step(r->broker[d], r->link[d], now);
	}
}

double rack_cap(const struct rack *r, int dir, size_t service)
{
	return parley_broker_cap(r->broker[dir], r->own, service);
}

double rack_rate(const struct rack *r, int dir, size_t service)
{
	return parley_broker_rate(r->broker[dir], service);
}

double rack_usage(const struct rack *r, int dir, size_t service)
{
	double sum = 0;

	for (size_t m = 0; m < r->machines; m++)
		sum += usage_of(r, m, dir)[service];
	return sum;
}

enum rack_bound rack_bound(const struct rack *r, int dir, size_t service)
{
	for (int at = (int)service; at >= 0; at = r->services[dir][at].parent) {
		double max = r->max[(size_t)dir * r->n + (size_t)at];

		if (!(rack_rate(r, dir, (size_t)at) >= NEARLY * max))
			continue;
		return max < r->services[dir][at].max ? RACK_BOUND_FABRIC : RACK_BOUND_MAX;
	}
	return RACK_BOUND_LINK;
}
