/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spindle: the mechanics of one disk, and the queue of its arm.
 *
 * SOURCE  Ruemmler and Wilkes, "An introduction to disk drive modeling" (IEEE Computer, 1994), for
 *         the shape of the model; Worthington, Ganger and Patt (SIGMETRICS 1994) for the orders.
 * LAW     service = overhead + seek(d) + rotation + transfer
 *         seek(d) = a + b √d up to a third of the stroke, linear in d beyond, through the three
 *                   figures of a data sheet; 0 for d = 0; + settle before a write
 *         rotation: the platter is at (t + phase) mod turn at every time t; the wait is the angle to
 *                   the IO's first byte, so it depends on when the seek ends
 *         transfer = bytes at the zone's rate, + skew at every track boundary; the tracks are laid
 *                   out with the same skew, so that a sequential transfer never misses a turn
 *         track buffer: after a read the head reads on until the next mechanical IO starts, at most
 *                   `segment` bytes beyond the request. A read inside the buffer costs its bytes at
 *                   the interface rate; one that continues it waits for the head to get there. An
 *                   IO elsewhere ends the reading: two alternating streams cost a seek each.
 * SYMBOLS d cylinders; t, turn, phase, angle ns; offsets and lengths bytes.
 * METHOD  The oldest `window` IOs are in slots, sorted by age; when the arm is free, the order
 *         considers all of them: O(window) per IO, one square root (SPTF: one per slot).
 * DIFFERS No head switches inside a cylinder (folded into skew), no write cache in the drive (arrays
 *         disable it), no defects.
 * EXAMPLE 15,000 rpm: turn 4 ms. 16 KiB at a third of the stroke: 3.5 + 2.0 (mean) + 0.15 = 5.65 ms.
 */
#include "model/spindle.h"
#include <errno.h>
#include <math.h>
#include <string.h>

/* Times are rounded to ns: a head this little past a byte counts as being at it. */
#define SLACK  (2 * WEIR_US)
#define SECTOR 512 /* the smallest transfer */

const char *const spindle_order_names[SPINDLE_ORDERS + 1] = {
	"fifo",
	"look",
	"clook",
	"sptf",
	NULL,
};

struct spindle_config spindle_defaults(void)
{
	return (struct spindle_config){
		.capacity = 146800000000,
		.rpm = 15000,
		.cylinders = 50000,
		.seek_track = 200 * WEIR_US,
		.seek_third = 3500 * WEIR_US,
		.seek_full = 7400 * WEIR_US,
		.settle = 400 * WEIR_US, /* data sheets: writes seek 0.4 to 0.5 ms longer */
		.skew = 300 * WEIR_US,   /* a head switch or a step to the next cylinder */
		.outer = 125e6,
		.inner = 75e6,
		.interface = 200e6, /* 2 Gbit/s Fibre Channel */
		.overhead = 100 * WEIR_US,
		.segment = 1 << 20, /* 16 MB of buffer, less the share of writes and code, over 8 */
		.order = SPINDLE_LOOK,
		.window = 8,
		.age = 0,
	};
}

struct spindle_config spindle_10k(void)
{
	struct spindle_config c = spindle_defaults();

	c.capacity = 300000000000;
	c.rpm = 10000;
	c.cylinders = 90000;
	c.seek_third = 4700 * WEIR_US;
	c.seek_full = 10000 * WEIR_US;
	c.settle = 500 * WEIR_US;
	c.outer = 90e6;
	c.inner = 50e6;
	return c;
}

static bool positive(double x)
{
	return x > 0 && isfinite(x);
}

static int check_time(const char *key, weir_time t, weir_time most, struct weir_err *err)
{
	if (t < 0)
		return weir_err_set(err, -EINVAL, "%s: must not be negative", key);
	return t > most ? weir_err_set(err, -EINVAL, "%s: must be at most 1 s", key) : 0;
}

static int check_times(const struct spindle_config *c, struct weir_err *err)
{
	int r;

	if ((r = check_time("seek_track", c->seek_track, WEIR_SEC, err)) ||
		(r = check_time("seek_third", c->seek_third, WEIR_SEC, err)) ||
		(r = check_time("seek_full", c->seek_full, WEIR_SEC, err)) ||
		(r = check_time("settle", c->settle, WEIR_SEC, err)) ||
		(r = check_time("skew", c->skew, WEIR_SEC, err)) ||
		(r = check_time("overhead", c->overhead, WEIR_SEC, err)) ||
		(r = check_time("age", c->age, WEIR_NEVER, err)))
		return r;
	if (c->seek_third < c->seek_track)
		return weir_err_set(err, -EINVAL,
			"seek_third, seek_track: seek_third must be at least seek_track");
	if (c->seek_full < c->seek_third)
		return weir_err_set(err, -EINVAL,
			"seek_full, seek_third: seek_full must be at least seek_third");
	return 0;
}

static int check_rate(const char *key, double rate, double rpm, struct weir_err *err)
{
	if (!positive(rate))
		return weir_err_set(err, -EINVAL, "%s: must be > 0", key);
	if (rpm > 0 && rate * 60 / rpm < SECTOR)
		return weir_err_set(
			err, -EINVAL, "%s, rpm: %s is less than a sector a turn", key, key);
	return 0;
}

int spindle_check(const struct spindle_config *c, struct weir_err *err)
{
	int r;

	if (c->cylinders < 48)
		return weir_err_set(err, -EINVAL, "cylinders: must be at least 48");
	if (c->capacity > (uint64_t)1 << 50)
		return weir_err_set(err, -EINVAL, "capacity_bytes: must be at most 1 PiB");
	if (c->capacity < (uint64_t)c->cylinders * SECTOR)
		return weir_err_set(err, -EINVAL,
			"capacity_bytes, cylinders: there must be 512 bytes a cylinder or more");
	if (!(c->rpm >= 60 && c->rpm <= 1e6))
		return weir_err_set(err, -EINVAL, "rpm: must be between 60 and 1000000");
	if ((r = check_times(c, err)) || (r = check_rate("outer", c->outer, c->rpm, err)) ||
		(r = check_rate("inner", c->inner, c->rpm, err)) ||
		(r = check_rate("interface", c->interface, 0, err)))
		return r;
	if ((unsigned)c->order >= SPINDLE_ORDERS)
		return weir_err_set(err, -EINVAL, "order: must be fifo, look, clook or sptf");
	if (c->window < 1 || c->window > SPINDLE_WINDOW)
		return weir_err_set(
			err, -EINVAL, "window: must be between 1 and %d", SPINDLE_WINDOW);
	return 0;
}

/* ---- geometry */

void spindle_geometry_make(struct spindle_geometry *g, const struct spindle_config *c)
{
	double turn_s = 60 / c->rpm, bytes = 0, third = c->cylinders / 3.0;
	double per_zone = (double)c->cylinders / SPINDLE_ZONES, tracks;
	uint64_t start = 0, first = 0;

	g->config = *c;
	g->turn = (weir_time)(turn_s * 1e9);
	g->short_b = (double)(c->seek_third - c->seek_track) / (sqrt(third) - 1);
	g->short_a = (double)c->seek_track - g->short_b;
	g->long_b = (double)(c->seek_full - c->seek_third) / (c->cylinders - third);
	g->long_a = (double)c->seek_third - g->long_b * third;
	for (int z = 0; z < SPINDLE_ZONES; z++) {
		double share = z / (double)(SPINDLE_ZONES - 1);
		double rate = c->outer + (c->inner - c->outer) * share;

		g->zones[z].track = (uint64_t)(rate * turn_s);
		g->zones[z].ns_in = (double)g->turn / (double)g->zones[z].track;
		bytes += per_zone * (double)g->zones[z].track;
	}
	g->tracks_per_cylinder = (double)c->capacity / bytes;
	tracks = per_zone * g->tracks_per_cylinder;
	for (int z = 0; z < SPINDLE_ZONES; z++) {
		uint64_t end = (uint64_t)(tracks * (z + 1)) + 1;

		g->zones[z].start = start;
		g->zones[z].first = first;
		start += (end - first) * g->zones[z].track;
		first = end;
	}
}

struct spindle_place spindle_locate(const struct spindle_geometry *g, uint64_t offset)
{
	struct spindle_place p = {0};
	const struct spindle_zone *z = g->zones;
	uint64_t track, in, cylinder;

	while (p.zone + 1 < SPINDLE_ZONES && offset >= z[1].start) {
		p.zone++;
		z++;
	}
	offset -= z->start;
	track = offset / z->track;
	in = offset - track * z->track;
	track += z->first;
	cylinder = (uint64_t)((double)track / g->tracks_per_cylinder);
	p.cylinder =
		(uint32_t)(cylinder < g->config.cylinders ? cylinder : g->config.cylinders - 1);
	p.angle =
		(uint32_t)(((uint64_t)((double)in * z->ns_in) + track * (uint64_t)g->config.skew) %
			   (uint64_t)g->turn);
	return p;
}

weir_time spindle_seek(const struct spindle_geometry *g, uint32_t from, uint32_t to)
{
	double d = from < to ? to - from : from - to;

	if (d < 1)
		return 0;
	if (3 * d <= g->config.cylinders)
		return (weir_time)(g->short_a + g->short_b * sqrt(d));
	return (weir_time)(g->long_a + g->long_b * d);
}

/* ---- the track buffer */

static uint64_t io_length(const struct device_io *io)
{
	return io->bytes < SECTOR ? SECTOR : io->bytes;
}

/* Return how far segment 0 reaches at `t`, as the head reads on. */
static uint64_t reached(const struct spindle *s, weir_time t)
{
	double more = (double)(t - s->read_at) * s->ahead_rate;
	uint64_t end = s->segments[0].end;

	if (s->limit <= end)
		return end;
	return more >= (double)(s->limit - end) ? s->limit : end + (uint64_t)more;
}

static void stop_reading(struct spindle *s, weir_time t)
{
	if (s->reading_on)
		s->segments[0].end = reached(s, t);
	s->reading_on = false;
}

/* If the track buffer holds the IO or is about to, set `done` and return true. */
static bool try_buffer(
	struct spindle *s, weir_time t, const struct device_io *io, weir_time overhead)
{
	const struct spindle_config *c = &s->g->config;
	uint64_t begin = io->offset, end = begin + io_length(io), have;
	weir_time out = t + overhead + (weir_time)((double)io_length(io) * 1e9 / c->interface);

	for (int i = s->reading_on; i < SPINDLE_SEGMENTS; i++) {
		if (begin >= s->segments[i].start && end <= s->segments[i].end) {
			s->done = out;
			return true;
		}
	}
	if (!s->reading_on || begin < s->segments[0].start)
		return false;
	have = reached(s, t);
	if (begin > have)
		return false;
	s->segments[0].end = have;
	s->read_at = t;
	if (s->limit < end + c->segment)
		s->limit = end + c->segment;
	if (end > c->segment && s->segments[0].start < end - c->segment)
		s->segments[0].start = end - c->segment;
	s->done = out;
	if (end > have) {
		/* Rounded up: the stream's next IO must not find a byte missing. */
		weir_time there = t + (weir_time)((double)(end - have) / s->ahead_rate) + 1;

		s->done = there > out ? there : out;
	}
	s->cylinder = spindle_locate(s->g, end - 1).cylinder;
	return true;
}

static void remember_segment(struct spindle *s, const struct device_io *io, double rate)
{
	uint64_t end = io->offset + io_length(io);

	memmove(&s->segments[1], &s->segments[0], sizeof(s->segments) - sizeof(s->segments[0]));
	s->segments[0].start = io->offset;
	s->segments[0].end = end;
	s->reading_on = true;
	s->read_at = s->done;
	s->ahead_rate = rate;
	s->limit = end + s->g->config.segment;
}

static void forget_segments(struct spindle *s, const struct device_io *io)
{
	uint64_t begin = io->offset, end = begin + io_length(io);

	for (int i = 0; i < SPINDLE_SEGMENTS; i++) {
		if (begin < s->segments[i].end && end > s->segments[i].start)
			s->segments[i].start = s->segments[i].end = 0;
	}
}

/* ---- the arm */

static weir_time rotation(const struct spindle *s, weir_time arrive, uint32_t angle)
{
	weir_time turn = s->g->turn;
	weir_time wait = (weir_time)angle - (arrive + s->phase) % turn;

	if (wait < 0)
		wait += turn;
	return wait > turn - SLACK ? 0 : wait;
}

/* Return the time of seek and rotation if the arm leaves for `slot` at `t`. */
static weir_time positioning(const struct spindle *s, weir_time t, const struct spindle_slot *slot)
{
	weir_time seek = spindle_seek(s->g, s->cylinder, slot->at.cylinder);

	if (slot->io->op == 1 && seek)
		seek += s->g->config.settle;
	return seek + rotation(s, t + seek, slot->at.angle);
}

static void access_media(
	struct spindle *s, weir_time t, const struct spindle_slot *slot, weir_time overhead)
{
	const struct spindle_geometry *g = s->g;
	const struct spindle_zone *z = &g->zones[slot->at.zone];
	const struct device_io *io = slot->io;
	uint64_t length = io_length(io), begin = (io->offset - z->start) % z->track;
	uint64_t crossed = (begin + length - 1) / z->track;
	double transfer = (double)length * z->ns_in;

	stop_reading(s, t);
	t += overhead;
	s->done = t + positioning(s, t, slot) + (weir_time)transfer +
		  (weir_time)crossed * g->config.skew;
	s->cylinder = slot->at.cylinder + (uint32_t)((double)crossed / g->tracks_per_cylinder);
	if (io->op == 1)
		forget_segments(s, io);
	else if (g->config.segment)
		remember_segment(s, io, (double)z->track / (double)(g->turn + g->config.skew));
}

/* ---- the order */

static bool is_before(const struct spindle_slot *a, const struct spindle_slot *b, bool up)
{
	if (a->at.cylinder != b->at.cylinder)
		return (a->at.cylinder < b->at.cylinder) == up;
	return a->io->offset < b->io->offset; /* inside a cylinder always with the rotation */
}

/* Return the nearest slot on one side of the arm (its own cylinder included), or -1. */
static int nearest(const struct spindle *s, bool up)
{
	int best = -1;

	for (int i = 0; i < (int)s->n; i++) {
		const struct spindle_slot *slot = &s->slots[i];

		if (slot->at.cylinder != s->cylinder && (slot->at.cylinder > s->cylinder) != up)
			continue;
		if (best < 0 || is_before(slot, &s->slots[best], up))
			best = i;
	}
	return best;
}

static int lowest(const struct spindle *s)
{
	int best = 0;

	for (int i = 1; i < (int)s->n; i++) {
		if (is_before(&s->slots[i], &s->slots[best], true))
			best = i;
	}
	return best;
}

static int shortest(const struct spindle *s, weir_time t)
{
	int best = 0;
	weir_time least = WEIR_NEVER;
	uint64_t have = s->reading_on ? reached(s, t) : 0;

	for (int i = 0; i < (int)s->n; i++) {
		const struct device_io *io = s->slots[i].io;
		weir_time cost;

		if (s->reading_on && io->op == 0 && io->offset <= have &&
			io->offset >= s->segments[0].start)
			return i;
		cost = positioning(s, t, &s->slots[i]);
		if (cost < least) {
			least = cost;
			best = i;
		}
	}
	return best;
}

static int choose_slot(struct spindle *s, weir_time t)
{
	const struct spindle_config *c = &s->g->config;
	int i;

	if (s->n == 1 || c->order == SPINDLE_FIFO)
		return 0;
	if (c->age && t - s->slots[0].io->arrived > c->age)
		return 0;
	if (c->order == SPINDLE_SPTF)
		return shortest(s, t);
	if (c->order == SPINDLE_CLOOK) {
		i = nearest(s, true);
		return i < 0 ? lowest(s) : i;
	}
	i = nearest(s, s->up);
	if (i >= 0)
		return i;
	s->up = !s->up;
	return nearest(s, s->up);
}

static void fill_slot(struct spindle *s)
{
	struct device_io *io = iolist_take(&s->beyond);

	s->slots[s->n].io = io;
	s->slots[s->n].at = spindle_locate(s->g, io->offset);
	s->n++;
}

static void start_next(struct spindle *s, weir_time t, weir_time overhead)
{
	int i = choose_slot(s, t);
	struct spindle_slot slot = s->slots[i];

	s->n--;
	memmove(&s->slots[i], &s->slots[i + 1], (s->n - (unsigned)i) * sizeof(slot));
	if (s->beyond.first)
		fill_slot(s);
	s->current = slot.io;
	if (slot.io->op != 0 || !try_buffer(s, t, slot.io, overhead))
		access_media(s, t, &slot, overhead);
	slot.io->busy = s->done - t;
	s->worked += slot.io->busy;
}

void spindle_init(struct spindle *s, const struct spindle_geometry *g, struct rng *r)
{
	memset(s, 0, sizeof(*s));
	s->g = g;
	s->done = WEIR_NEVER;
	s->up = true;
	s->phase = (weir_time)rng_below(r, (uint64_t)g->turn);
}

void spindle_add(struct spindle *s, weir_time now, struct device_io *io)
{
	iolist_append(&s->beyond, io);
	if (s->n < s->g->config.window)
		fill_slot(s);
	if (s->done == WEIR_NEVER)
		start_next(s, now, s->g->config.overhead);
}

struct device_io *spindle_take(struct spindle *s)
{
	struct device_io *io = s->current;
	weir_time t = s->done;

	io->finished = t;
	s->current = NULL;
	s->done = WEIR_NEVER;
	if (s->n)
		start_next(s, t, 0);
	return io;
}
