/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  Our own. PARDA (FAST 2009, §5.3.4) shows a stranger that leaves room; VMware's SIOC, its
 *         successor, raises an alarm and gives queue depth back.
 * LAW     L = s + (N + S) / C. The hosts' part of the capacity is N / (N + S); fair is n / (n + 1),
 *         with the stranger as one more host. N ≥ p · n / (n + 1) · (N + S) keeps the part p of
 *         that, and N + S = C (L − s).
 * SYMBOLS N, S slots inside, of the hosts and of a stranger; L latency; s latency of an idle array;
 *         C slots per unit of time; n hosts; p PARDA_STRANGER_KEEP.
 * METHOD  C is the inverse slope of a line through the last points (N, L), by least squares, if N
 *         has moved enough and the line fits. A latency that jumps while N did not, or above the
 *         line, begins a new load, and older points are dropped: without a stranger C is then
 *         unknown until N has moved, since the device may have changed; with one C is kept, and S
 *         moves. Steps in which the hosts' own bursts move N and L are skipped, and no stranger is
 *         looked for in as many steps after them as there are points. The line of windows that the
 *         law lowers counts only if latency was well over the threshold: a rise that the law
 *         corrects as it comes may be a device that gets slower. If N has moved far
 *         and such a latency not at all, next to all of it is the stranger's, and C is the array's
 *         earlier capacity.
 *         If no line is known the hosts draw one: they double their floor, wait until latency has
 *         followed, and continue until the last doubling has moved latency by RISE. Then N is of
 *         the order of S, and C is the slope of that doubling; if latency follows N in full there
 *         is no stranger, and the first doubling shows it. They do so with windows at wmin and
 *         latency over the threshold, after LOW_STEPS, and again after AGAIN if that did not help;
 *         with less than the floor at the array's earlier capacity, after DOWN_STEPS; and at a
 *         start beside a latency over HALF of the threshold, since the array's own capacity has
 *         then never been observed. Beside a stranger found by a line they do so after VERIFY steps
 *         if the line gives DOUBT of the array's earlier capacity, or less: the stranger may have
 *         grown while N moved.
 *         With only the hosts inside the floor is less than their slots, so that an error of C by
 *         1 / MOST causes no floor. Peers that have vanished may only be cut off: their requests
 *         inside are no stranger's, and if these explain the latency no host raises its floor to
 *         test. O(PARDA_STRANGER_POINTS) a step.
 * DIFFERS Two groups of hosts that do not hear each other, on one array, are each other's
 *         strangers. MOST keeps them from outbidding each other.
 * EXAMPLE Two hosts, C = 3200/s, S = 128: L is 40 ms for N = 0. The floor is 0.43 (N + S): N = 98,
 *         at 71 ms.
 */
#include "control/parda/stranger.h"
#include <math.h>

/* times the latency of the last step, while N did not move so: another load */
#define JUMP        1.15
#define JUMP_HERE   1.4  /* … beside a stranger, down: the stranger is gone */
#define STILL       1.05 /* … by how much N may have moved */
#define SPREAD      1.35 /* most over least N: less gives no slope */
#define SPREAD_HERE 1.8  /* … beside a stranger, where N follows the noise of latency */
/* part of the mean latency: deviation from the line; more is not one load */
#define FITS 0.12
/* part of the mean latency by which the hosts' own requests must have moved it */
#define MATTERS      0.1
#define HIGH         1.25 /* times the threshold: latency was there, and windows went down for it */
#define FAR_SPREAD   2.0  /* for a flat line: N has moved by so much, … */
#define FAR_OVER     1.3  /* … and latency is so far over the threshold */
#define POINTS_MIN   3    /* two are always a line */
#define OLD          8    /* steps after which a point is forgotten: the load is another by then */
#define CAPACITY_MAX 1.1  /* times the earlier rate: latencies that lag make slopes flat */
#define KNOWN        (1.0 / 32) /* weight of a step in the mean rate */
#define LOADED       0.7        /* times the threshold, and as far above it: where it counts */
/* part of the requests inside: a smaller stranger is not reported; … */
#define TOLD  0.3
#define GONE  0.15 /* … and a reported one has gone */
#define AGREE 2    /* steps until it is reported */
#define CLEAR 0.5  /* part of the requests inside: then at once */
/* times the threshold: below it latency is fine, whatever is inside */
#define NEAR       0.95
#define OVER       1.1  /* times the threshold: latency has not come down */
#define LOW        1.2  /* of the least windows: at their floor */
#define LOW_STEPS  2    /* at the floor before the floor is raised, … */
#define DOWN_STEPS 5    /* … with less than the floor would be, … */
#define AGAIN      15   /* … and at the floor though the array is known */
#define VERIFY     8    /* beside a stranger by a line, which may have grown while N moved */
#define DOUBT      0.75 /* times the earlier rate: a line below that */
#define DOUBTS     5    /* times that the steps between two such probes double */
#define HALF       0.5  /* times the threshold: with less most of the array was free */
#define PROBE      2.0  /* times as much, … */
#define PROBE_MOST 12   /* … so many times */
#define HELD       2    /* steps until latency has followed */
/* part of a period: with such a latency one step shows whether it moves at all */
#define SOON      0.25
#define FLAT      1.1  /* times the latency: it has not moved, do not wait for it */
#define RISE      1.3  /* of the latency: enough for a slope */
#define MOVED     1.3  /* times N: the hosts have taken the slots of the floor */
#define MOST      0.5  /* part of the requests inside, for all hosts together */
#define IDLE_PART 0.25 /* of the threshold: most of an idle array's latency */

/* ---- the line */

struct line {
	double slope;   /* of latency over N */
	double spread;  /* the most N over the least */
	double highest; /* latency */
	double matters; /* part of the mean latency by which N has moved it */
};

/* Drop points when latency moves by itself: that is another load of the array. Beside a stranger, a
 * rise is the stranger's. */
static void drop_points(struct parda_stranger *s, double inside, double latency)
{
	const struct parda_stranger_point *last = &s->points[0];
	bool up = latency > last->latency * JUMP && inside < last->inside * STILL;
	bool off = !s->here && s->capacity > 0 &&
		   latency > JUMP * (last->latency + (inside - last->inside) / s->capacity);
	bool down = latency * (s->here ? JUMP_HERE : JUMP) < last->latency &&
		    inside * STILL > last->inside;

	if (!s->n_points || !(up || down || off))
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

/* Fit the line through the points. Return false if there are too few, N did not move, or they do
 * not fit one line. */
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

/* Return C by the line. A line flatter than the array's earlier capacity is one of lagging
 * latencies; and one that does not move at all, while N does and latency is far over the threshold,
 * means that next to all of it is a stranger's. 0: not known. */
static double capacity_of(const struct parda_stranger *s, const struct parda_stranger_seen *seen,
	const struct line *l)
{
	double most = s->known > 0 ? s->known * CAPACITY_MAX : INFINITY;

	/* a rise that the law corrects as it comes may be a device that gets slower */
	if (!s->here && !(l->highest > HIGH * seen->threshold))
		return 0;
	if (l->matters > MATTERS)
		return fmin(1 / l->slope, most);
	if (l->spread > FAR_SPREAD && seen->latency > FAR_OVER * seen->threshold)
		return s->known * CAPACITY_MAX;
	return 0;
}

/* Return the latency of the idle array. */
static double idle_latency(const struct parda_stranger *s, const struct parda_stranger_seen *seen)
{
	return fmin(s->least, seen->threshold * IDLE_PART);
}

/* Return the hosts' rate per unit of time. */
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

/* Return the slots inside, including the stranger's. */
static double all_inside(
	const struct parda_stranger *s, const struct parda_stranger_seen *seen, double capacity)
{
	return fmax(seen->inside, capacity * (seen->latency - idle_latency(s, seen)));
}

static double part_kept(const struct parda_stranger_seen *seen)
{
	return fmin(PARDA_STRANGER_KEEP * seen->hosts / (seen->hosts + 1.0), MOST);
}

/* Return true if N grows: then latency may lag behind. */
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
	/* The array no longer has its earlier capacity. */
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

/* Return true if the size of a stranger found by a line is doubtful: the array's earlier capacity
 * was much larger, and may still be. */
static bool doubtful(const struct parda_stranger *s, const struct parda_stranger_seen *seen)
{
	return !s->verified && s->capacity < DOUBT * s->known &&
	       seen->latency > OVER * seen->threshold && seen->latency < SOON * seen->period;
}

/* Return the number of such steps after which the floor is raised to draw a line; 0: no reason
 * to. */
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

/* Conclude a probe: N and L have moved since. If L has hardly moved, C is at least the result. If C
 * is much less than the earlier capacity, the stranger may have grown meanwhile, and the probe is
 * repeated, ever more rarely. */
static void conclude(struct parda_stranger *s, const struct parda_stranger_seen *seen,
	const struct parda_stranger_point *since)
{
	double rise = fmax(seen->latency - since->latency, (FLAT - 1) * since->latency);

	s->capacity = fmax((seen->inside - since->inside) / rise, done_by_hosts(s, seen));
	s->sure = true;
	s->agree = AGREE; /* not by chance */
	s->verified = s->capacity >= DOUBT * s->known;
	if (!s->verified) {
		s->doubts += s->doubts < DOUBTS;
		return;
	}
	s->doubts = 0;
	s->known = s->capacity;
	s->knowing = (unsigned)(1 / KNOWN);
}

/* Run a step of the probe. Return true if it continues. */
static bool probe(struct parda_stranger *s, const struct parda_stranger_seen *seen)
{
	double rise = seen->latency / s->from.latency;
	bool moved = seen->inside > MOVED * s->from.inside;

	s->held++;
	if (rise * JUMP_HERE < 1) { /* the stranger has gone meanwhile */
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

void parda_stranger_skip(struct parda_stranger *s)
{
	s->n_points = 0;
	s->probing = s->low = 0;
	s->restless = PARDA_STRANGER_POINTS;
	if (s->here && ++s->skipped <= OLD)
		return;
	s->here = false;
	s->agree = s->skipped = 0;
	s->capacity = s->requests = s->floor = 0;
	s->verified = false;
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
	s->skipped = 0;
	learn(s, seen);
	if (s->restless && !s->here) {
		s->restless--;
		return;
	}
	if (!s->probing)
		look_low(s, seen);
	else if (!probe(s, seen) && !s->here)
		s->floor = 0;
	if (!s->probing)
		judge(s, seen);
}

double parda_stranger_requests(
	const struct parda_stranger *s, const struct parda_stranger_seen *seen, double floor)
{
	if (s->here)
		return s->requests;
	return fmax(0, floor * seen->shares / part_kept(seen) - seen->inside);
}
