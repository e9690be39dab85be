/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * METHOD  A request's time goes to the level of the work that was inside; those with the least inside are kept one by one, and so is
 *         the order in which requests end. Once in RENEW requests the law is fitted to all that (shadow-fit.c), which gives a
 *         curve of the time over the work inside.
 *         Classes share the curve. Each has two factors, for the part of the time in service and
 *         the part in queues.
 */
#include "control/shadow-impl.h"

#define RENEW       4096 /* requests between two fits; an eighth of them while there are few */
#define RECENT      (1.0 / 256)  /* least weight of a request in moving averages */
#define ORDER       (1.0 / 1024) /* the same, for the order in which requests end */
#define FIRST       10   /* overtaking all but one in so many requests counts as being first */
#define REORDER     1024 /* requests over which the largest overtaking is kept */
#define LEVEL_KEEP  4096 /* requests of a level after which old ones count half */
#define CLASS_TRUST 4.0  /* requests until a class counts as different from the others */
#define RATIO_MOST  8.0  /* a time counts as at most so many times the expected one */
#define BUSY        0.5  /* a device is busy if less than that part of a time is not queueing */
#define SURE        2.0  /* standard deviations of the range */
/* Of a single time, what is at least the device's, not the thread's. */
#define NET_LEAST 0.125

/* ---- observing */

static void add_level(struct shadow_level *l, const struct shadow_work *inside, double ns)
{
	l->n += 1;
	l->time += ns;
	l->inside.requests += inside->requests;
	l->inside.pages += inside->pages;
	if (l->n > LEVEL_KEEP) {
		l->n /= 2;
		l->time /= 2;
		l->inside.requests /= 2;
		l->inside.pages /= 2;
	}
}

static void add_light(struct shadow_device *d, const struct shadow_sample *s, double ns)
{
	bool delayed = s->finished.requests > s->inside.requests;
	struct shadow_light *most = &d->light[d->n_light];

	if (d->n_light < SHADOW_LIGHT) {
		d->n_light++;
	} else {
		/* Start at another one each time, so that equal ones are replaced in turn. */
		most = &d->light[d->next];
		for (unsigned i = 1; i < SHADOW_LIGHT; i++)
			if (d->light[(d->next + i) % SHADOW_LIGHT].inside.requests >
				most->inside.requests)
				most = &d->light[(d->next + i) % SHADOW_LIGHT];
		d->next = (d->next + 1) % SHADOW_LIGHT;
		if (s->inside.requests > most->inside.requests)
			return;
	}
	*most = (struct shadow_light){s->inside, delayed ? s->finished : s->inside, ns};
}

/* Parts that serve one queue, each for an exponential time, are equally likely to end next: among n
 * in service, a request that just began ends before the k-th of the others with probability
 * 1 - (1 - 1/n)^k. */
static void order(struct shadow_order *o, double inside, double finished)
{
	double others, may, first;

	if (o->n++ % REORDER == 0) {
		o->passed[1] = o->passed[0];
		o->passed[0] = 0;
	}
	o->passed[0] = fmax(o->passed[0], inside - finished);
	others = fmin(inside, 1 + shadow_overtook(o)) - 1; /* in service */
	if (others < 1)
		return;
	may = floor(others / FIRST) + 1; /* so many of them may end before */
	first = inside - finished > others - may + 0.5;
	o->first += ORDER * (first - o->first);
	o->random += ORDER * (1 - pow(1 - 1 / (others + 1), may) - o->random);
}

static void average(struct shadow_device *d, double own, double inside)
{
	double weight = fmax(1.0 / (double)d->learned, RECENT);

	d->own += weight * (own - d->own);
	d->own2 += weight * (own * own - d->own2);
	d->inside += weight * (inside - d->inside);
	d->inside2 += weight * (inside * inside - d->inside2);
}

/* ---- classes */

/* Return the part of a request's time that is not queueing. */
static double share_of(const struct shadow_device *d, double own, double work)
{
	return fmin(
		exp(shadow_point_at(d->curve, own).time - shadow_point_at(d->curve, work).time), 1);
}

static void add_ratio(struct shadow_ratio *r, double weight, double ratio)
{
	r->weight += weight;
	r->sum += weight * ratio;
	if (r->weight > SHADOW_LEVEL_MOST) {
		r->weight /= 2;
		r->sum /= 2;
	}
}

/* Return how much longer a class takes than all, from two averages. */
static double factor_of(const struct shadow_ratio *all, const struct shadow_ratio *c)
{
	double mean = all->weight > 0 ? all->sum / all->weight : 1;

	return (c->sum + CLASS_TRUST * mean) / (c->weight + CLASS_TRUST) / mean;
}

static double time_at(const struct shadow_device *d, unsigned class_, double own, double work)
{
	double share = share_of(d, own, work);

	return exp(shadow_point_at(d->curve, work).time) *
	       (share * factor_of(&d->all[0], &d->class_[class_][0]) +
		       (1 - share) * factor_of(&d->all[1], &d->class_[class_][1]));
}

static void compare(struct shadow_device *d, const struct shadow_sample *s, double ns)
{
	double own = shadow_work_of(d, &s->own), inside = shadow_work_of(d, &s->inside);
	double share = share_of(d, own, inside), ratio;
	float *r = &d->recent[d->at++ % SHADOW_RECENT];

	d->sum -= *r;
	*r = (float)fmin(ns / time_at(d, s->class_, own, inside), RATIO_MOST);
	d->sum += *r;
	ratio = fmin(ns / exp(shadow_point_at(d->curve, inside).time), RATIO_MOST);
	for (int i = 0; i < 2; i++) {
		add_ratio(&d->all[i], i ? 1 - share : share, ratio);
		add_ratio(&d->class_[s->class_][i], i ? 1 - share : share, ratio);
	}
}

/* ---- the interface */

void shadow_device_learn(struct shadow_device *d, const struct shadow_sample *s)
{
	double own = shadow_work_of(d, &s->own), inside = shadow_work_of(d, &s->inside);
	/* A level has sums: there, times shorter than the mean lateness cancel longer ones. */
	double net = (double)s->ns - s->late, ns = fmax(net, fmax(NET_LEAST * (double)s->ns, 1));

	order(&d->order, s->inside.requests, s->finished.requests);
	if (d->renewed)
		compare(d, s, ns);
	shadow_cost_learn(&d->cost, s->now, &s->own, d->renewed && share_of(d, own, inside) < BUSY);
	if (d->least <= 0 || ns < d->least)
		d->least = ns;
	d->learned++;
	add_light(d, s, ns);
	add_level(&d->level[(unsigned)shadow_place(inside)], &s->inside, net);
	average(d, own, inside);
	if (d->learned - d->renewed >= RENEW || d->learned - d->renewed > d->learned / 8)
		shadow_fit(d, &d->order);
}

bool shadow_device_expect(const struct shadow_device *d, unsigned class_,
	const struct shadow_work *own, const struct shadow_work *inside, struct shadow_time *ret)
{
	double of = shadow_work_of(d, own), work = shadow_work_of(d, inside), error;

	if (!d->renewed)
		return false;
	ret->mean = fmax(time_at(d, class_, of, work), 1);
	error = exp(SURE * shadow_point_at(d->curve, work).error) *
		shadow_cost_error(&d->cost, inside);
	ret->low = ret->mean / error;
	ret->high = ret->mean * error;
	return true;
}

weir_time shadow_device_draw(struct shadow_device *d, double mean)
{
	double ratio, all;

	if (d->at < SHADOW_RECENT || d->sum <= 0)
		return (weir_time)fmax(mean, 1000);
	/* Draw the ratios in turn: if one ratio were drawn until the next is learned, ratios that
	 * make times short would be drawn more often. */
	ratio = d->recent[d->drawn++ % SHADOW_RECENT];
	all = d->sum / SHADOW_RECENT;
	return (weir_time)fmax(mean * fmin(ratio / all, RATIO_MOST), 1000);
}
