/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  Ours. PARDA (FAST 2009, §5.3.4) shows a stranger that leaves room; VMware's SIOC, its successor, raises an alarm
 *         and gives queue depth back.
 * LAW     L = s + (N + S) / C. The hosts' part of the capacity is N / (N + S); fair is n / (n + 1), with the stranger as
 *         one more host. N ≥ p · n / (n + 1) · (N + S) keeps the part p of that, and N + S = C (L − s).
 * SYMBOLS N, S slots inside, of the hosts and of a stranger; L latency; s latency of an idle array; C slots per unit of
 *         time; n hosts; p PARDA_STRANGER_KEEP.
 * METHOD  C is the inverse slope of a line through the last points (N, L), by least squares, where N has moved enough and
 *         the line fits. A latency that jumps while N did not begins a new load, and older points are dropped: without a
 *         stranger C is then unknown until N has moved, since the device may be another; with one C is kept, and S moves.
 *         The line of windows that the law takes down counts only where latency was well over the threshold: what the law
 *         corrects as it comes may be a device that gets slower. Where N has moved by much and such a latency by nothing,
 *         next to all of it is the stranger's, and C what the array was able to do before.
 *         Where no line is known the hosts draw one: they double their floor, wait until latency has followed, and go on
 *         until the last doubling has moved latency by RISE. Then N is of the order of S, and C is the slope of
 *         that doubling; where it follows N in full there is no stranger, and the first doubling shows it. They do so
 *         with windows at wmin and latency over the threshold, after LOW_STEPS, and again after AGAIN if that did not help;
 *         with less than the floor would be by what the array was able to do, after DOWN_STEPS; and at a start beside a
 *         latency over HALF of the threshold, since what the array can do alone has then never been seen. Beside a
 *         stranger that a line has shown they do so after VERIFY steps where the line says DOUBT of what the array was
 *         able to do, or less: the stranger may have grown while N moved.
 *         With only the hosts inside the floor is less than what they have, so that an error of C by 1 / MOST makes none.
 *         Peers that have vanished may only be cut off: what they had inside is no stranger's, and where it is enough for
 *         the latency nobody raises a floor to look.
 *         O(PARDA_STRANGER_POINTS) a step.
 * DIFFERS Two groups of hosts that do not hear each other, on one array, are each other's strangers. MOST keeps them from
 *         outbidding each other.
 * EXAMPLE Two hosts, C = 3200/s, S = 128: L is 40 ms for N = 0. The floor is 0.43 (N + S): N = 98, at 71 ms.
 */
#include "control/parda/stranger.h"
#include <math.h>

#define JUMP         1.15 /* of latency, from one step to the next while N did not move so: another load */
#define JUMP_HERE    1.4  /* … beside a stranger, down: that is gone */
#define STILL        1.05 /* … what N may have moved by */
#define SPREAD       1.35 /* of the most over the least N: less says nothing about a slope */
#define SPREAD_HERE  1.8  /* … beside a stranger, where N follows the noise of latency */
#define FITS         0.12 /* of the mean latency: deviation from the line; more is not one load */
#define MATTERS      0.1 /* of the mean latency: what the hosts' own part of it must have moved it by */
#define HIGH         1.25 /* of the threshold: latency was there, and windows went down for it */
#define FAR_SPREAD   2.0  /* where a line is flat: N has moved by so much, … */
#define FAR_OVER     1.3  /* … and latency is so far over the threshold */
#define POINTS_MIN   3    /* two are always a line */
#define OLD          8    /* steps after which a point is forgotten: the load is another by then */
#define CAPACITY_MAX 1.1  /* of what was done before: latencies that lag make slopes flat */
#define KNOWN        (1.0 / 32) /* of what is done, a step, in its mean */
#define LOADED       0.7        /* of the threshold, and as far above it: where it counts */
#define TOLD         0.3        /* of what is inside: a stranger with less is not told; … */
#define GONE         0.15       /* … and one that was told has gone */
#define AGREE        2          /* steps that it takes to tell */
#define CLEAR        0.5        /* of what is inside: then at once */
#define NEAR         0.95       /* of the threshold: below it latency is well, whoever is inside */
#define OVER         1.1        /* of the threshold: latency has not come down */
#define LOW          1.2        /* of the least windows: at their floor */
#define LOW_STEPS    2          /* at the floor before the floor is raised, … */
#define DOWN_STEPS   5          /* … with less than the floor would be, … */
#define AGAIN        15         /* … and at the floor though the array is known */
#define VERIFY       8    /* beside a stranger by a line, which may have grown while N moved */
#define DOUBT        0.75 /* of what was done before: a line that says less */
#define DOUBTS       5    /* times that the steps between two such probes double */
#define HALF         0.5  /* of the threshold: with less most of the array was free */
#define PROBE        2.0  /* times as much, … */
#define PROBE_MOST   12   /* … so many times */
#define HELD         2    /* steps until latency has followed */
#define SOON         0.25 /* of a period: with such a latency one step shows whether it moves at all */
#define FLAT         1.1  /* of the latency: it has not moved, and is not waited for */
#define RISE         1.3  /* of the latency: enough for a slope */
#define MOVED        1.3  /* of N: the hosts have taken what the floor allows */
#define MOST         0.5  /* of what is inside, for all hosts together */
#define IDLE_PART    0.25 /* of the threshold: most of an idle array's latency */

/* ---- the line */

struct line {
	double slope;   /* of latency over N */
	double spread;  /* the most N over the least */
	double highest; /* latency */
	double matters; /* part of the mean latency that N has moved it by */
};

/* A latency that moves by itself is another load of the array. More of it beside a stranger is the stranger's. */
static void drop_points(struct parda_stranger *s, double inside, double latency)
{
	const struct parda_stranger_point *last = &s->points[0];
	bool up = latency > last->latency * JUMP && inside < last->inside * STILL;
	bool down = latency * (s->here ? JUMP_HERE : JUMP) < last->latency &&
		    inside * STILL > last->inside;

	if (!s->n_points || !(up || down))
		return;
	s->n_points = 0;
	if (down) {
		s->here = false;
		s->agree = 0;
	}
	if (!s->here) {
		s->capacity = 0;
		s->verified = false;
	}
}

static void add_point(struct parda_stranger *s, double inside, double latency)
{
	double before = s->points[0].inside;
	bool still = inside < before * STILL && inside > before / STILL;

	drop_points(s, inside, latency);
	for (unsigned i = 0; i < s->n_points; i++)
		if (++s->points[i].age > OLD)
			s->n_points = i;
	if (!still || !s->n_points) {
		if (s->n_points < PARDA_STRANGER_POINTS)
			s->n_points++;
		for (unsigned i = s->n_points - 1; i > 0; i--)
			s->points[i] = s->points[i - 1];
	}
	s->points[0] = (struct parda_stranger_point){inside, latency, 0};
}

/* The line through the points. false: there are too few, N did not move, or they are of no one line. */
static bool draw(const struct parda_stranger *s, struct line *ret)
{
	double n = s->n_points, x = 0, y = 0, xx = 0, xy = 0, yy = 0, least = INFINITY, most = 0;
	double highest = 0;

	for (unsigned i = 0; i < s->n_points; i++) {
		highest = fmax(highest, s->points[i].latency);
		x += s->points[i].inside / n;
		y += s->points[i].latency / n;
		least = fmin(least, s->points[i].inside);
		most = fmax(most, s->points[i].inside);
	}
	for (unsigned i = 0; i < s->n_points; i++) {
		double dx = s->points[i].inside - x, dy = s->points[i].latency - y;

		xx += dx * dx;
		xy += dx * dy;
		yy += dy * dy;
	}
	if (s->n_points < POINTS_MIN || most < (s->here ? SPREAD_HERE : SPREAD) * least)
		return false;
	*ret = (struct line){.slope = xy / xx,
		.spread = most / least,
		.highest = highest,
		.matters = xy / xx * (most - least) / y};
	return (yy - ret->slope * xy) / n < FITS * FITS * y * y;
}

/* C by the line. A flatter one than the array was ever able to is that of latencies that lag behind; and one that does not
 * move at all, while N does and latency is far over the threshold, says that next to all of it is a stranger's. 0: not known. */
static double capacity_of(const struct parda_stranger *s, const struct parda_stranger_seen *seen,
	const struct line *l)
{
	double most = s->known > 0 ? s->known * CAPACITY_MAX : INFINITY;

	if (!s->here && !(l->highest > HIGH * seen->threshold))
		return 0; /* what the law corrects as it comes may as well be a device that gets slower */
	if (l->matters > MATTERS)
		return fmin(1 / l->slope, most);
	if (l->spread > FAR_SPREAD && seen->latency > FAR_OVER * seen->threshold)
		return s->known * CAPACITY_MAX;
	return 0;
}

/* The latency of the array when it is idle. */
static double idle_latency(const struct parda_stranger *s, const struct parda_stranger_seen *seen)
{
	return fmin(s->least, seen->threshold * IDLE_PART);
}

/* What the hosts do per unit of time. */
static double done_by_hosts(const struct parda_stranger *s, const struct parda_stranger_seen *seen)
{
	return seen->inside / fmax(seen->latency - idle_latency(s, seen), seen->latency / 2);
}

static void learn(struct parda_stranger *s, const struct parda_stranger_seen *seen)
{
	double done, capacity;
	struct line line;

	if (s->least <= 0 || seen->latency < s->least)
		s->least = seen->latency;
	s->sure |= seen->at_work || seen->latency < HALF * seen->threshold;
	done = done_by_hosts(s, seen);
	if (s->sure && !s->here && seen->latency > LOADED * seen->threshold &&
		seen->latency < seen->threshold / LOADED)
		s->known += (done - s->known) * fmax(KNOWN, 1.0 / ++s->knowing);
	add_point(s, seen->inside, seen->latency);
	if (s->probing || (s->here && s->verified) || !draw(s, &line))
		return;
	capacity = capacity_of(s, seen, &line);
	if (capacity > 0) {
		s->capacity = fmax(capacity, done);
		s->verified = false;
	}
}

/* ---- what it means */

/* Slots inside, the stranger's with them. */
static double all_inside(
	const struct parda_stranger *s, const struct parda_stranger_seen *seen, double capacity)
{
	return fmax(seen->inside, capacity * (seen->latency - idle_latency(s, seen)));
}

static double part_kept(const struct parda_stranger_seen *seen)
{
	return fmin(PARDA_STRANGER_KEEP * seen->hosts / (seen->hosts + 1.0), MOST);
}

/* Then latency may lag behind N. */
static bool grows(const struct parda_stranger *s)
{
	return s->n_points > 1 && s->points[0].inside > s->points[1].inside;
}

static void judge(struct parda_stranger *s, const struct parda_stranger_seen *seen)
{
	double all = all_inside(s, seen, s->capacity);
	double of_stranger = fmax(0, all - seen->inside - seen->vanished);
	bool was = s->here;

	if (s->here)
		s->here = of_stranger > GONE * all;
	else if (of_stranger > TOLD * all && seen->latency > NEAR * seen->threshold)
		s->here = ++s->agree >= AGREE || (of_stranger > CLEAR * all && !grows(s));
	else
		s->agree = 0;
	if (was && !s->here)
		s->agree = 0;
	s->requests = s->here ? of_stranger : 0;
	/* What it was able to do before, it is not now. */
	if (!s->here && s->capacity > 0 && seen->latency < seen->threshold / LOADED)
		s->known = fmin(s->known, s->capacity);
	if (s->here)
		s->floor = part_kept(seen) * (all - seen->vanished) / seen->shares;
	else if (!s->agree)
		s->floor = 0;
}

/* ---- when no line is known */

static struct parda_stranger_point point_of(const struct parda_stranger_seen *seen)
{
	return (struct parda_stranger_point){seen->inside, seen->latency, 0};
}

static void raise(struct parda_stranger *s, const struct parda_stranger_seen *seen)
{
	s->from = point_of(seen);
	s->held = 0;
	s->floor = fmax(s->floor, PROBE * seen->inside / seen->shares);
}

/* Whether a stranger, as a line has shown it, may be another: the array was able to do much more, and may be still. */
static bool doubtful(const struct parda_stranger *s, const struct parda_stranger_seen *seen)
{
	return !s->verified && s->capacity < DOUBT * s->known &&
	       seen->latency > OVER * seen->threshold && seen->latency < SOON * seen->period;
}

/* Steps of the same after which the floor is raised to draw a line; 0: there is no reason to. */
static unsigned patience(const struct parda_stranger *s, const struct parda_stranger_seen *seen)
{
	bool less = seen->inside + seen->vanished < part_kept(seen) * all_inside(s, seen, s->known);
	bool at_least = seen->windows <= LOW * seen->wmin * seen->hosts &&
			seen->latency > OVER * seen->threshold && (less || !(seen->vanished > 0));
	bool down = less && seen->latency > NEAR * seen->threshold;
	bool unsure = !s->sure && seen->latency > HALF * seen->threshold;

	if (s->here)
		return doubtful(s, seen) ? VERIFY << s->doubts : 0;
	if (s->capacity > 0)
		return !at_least ? 0 : doubtful(s, seen) ? VERIFY << s->doubts : AGAIN;
	return at_least || unsure ? LOW_STEPS : down ? DOWN_STEPS : 0;
}

static void look_low(struct parda_stranger *s, const struct parda_stranger_seen *seen)
{
	unsigned steps = patience(s, seen);

	s->low = steps ? s->low + 1 : 0;
	if (!steps || s->low < steps)
		return;
	s->probing = PROBE_MOST;
	s->base = point_of(seen);
	raise(s, seen);
}

/* N and L have moved since. Where L has hardly, C is no less than what comes out. Where it is much less than what the array
 * was able to do, the stranger may have grown meanwhile, and it is done again, more and more seldom. */
static void conclude(struct parda_stranger *s, const struct parda_stranger_seen *seen,
	const struct parda_stranger_point *since)
{
	double rise = fmax(seen->latency - since->latency, (FLAT - 1) * since->latency);

	s->capacity = fmax((seen->inside - since->inside) / rise, done_by_hosts(s, seen));
	s->sure = true;
	s->agree = AGREE; /* this is no chance */
	s->verified = s->capacity >= DOUBT * s->known;
	if (!s->verified) {
		s->doubts += s->doubts < DOUBTS;
		return;
	}
	s->doubts = 0;
	s->known = s->capacity;
	s->knowing = (unsigned)(1 / KNOWN);
}

/* A step of the probe; true: it goes on. */
static bool probe(struct parda_stranger *s, const struct parda_stranger_seen *seen)
{
	double rise = seen->latency / s->from.latency;
	bool moved = seen->inside > MOVED * s->from.inside;

	s->held++;
	if (rise * JUMP_HERE < 1) { /* it has gone meanwhile */
		s->probing = 0;
	} else if (s->held < HELD + (unsigned)(2 * seen->latency / seen->period) &&
		   !(moved && rise < FLAT && seen->latency < SOON * seen->period)) {
		return true;
	} else if (moved && rise < RISE && s->probing > 1) {
		s->probing--;
		raise(s, seen);
		return true;
	} else {
		s->probing = 0;
		if (moved && rise >= RISE)
			conclude(s, seen, &s->from);
		else if (seen->inside > MOVED * s->base.inside)
			conclude(s, seen, &s->base); /* the hosts cannot take more */
	}
	s->low = 0;
	s->n_points = 0;
	return false;
}

void parda_stranger_step(struct parda_stranger *s, const struct parda_stranger_seen *seen)
{
	if (!(seen->latency > 0) || !(seen->inside > 0) || !(seen->shares > 0) || !seen->hosts) {
		*s = (struct parda_stranger){.known = s->known,
			.knowing = s->knowing,
			.least = s->least,
			.sure = s->sure};
		return;
	}
	learn(s, seen);
	if (!s->probing)
		look_low(s, seen);
	else if (!probe(s, seen) && !s->here)
		s->floor = 0;
	if (!s->probing)
		judge(s, seen);
}
