/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * array: a storage array as hosts see it: one LUN over k disks behind one controller.
 *
 * SOURCE  Chen et al., "RAID: High-Performance, Reliable Secondary Storage" (ACM Computing Surveys
 *         1994), for the layout (left-symmetric) and the four disk IOs of a small write; PARDA
 *         (FAST 2009), Sections 4 and 5, for how such an array looks to its hosts. The figures and
 *         their derivation are in array-config.c.
 * LAW     array.h. With N IOs outstanding: below `active` throughput grows as the disks fill;
 *         above it throughput X is constant, and latency is N / X.
 * SYMBOLS k disks; a unit is `unit` bytes on one disk; a group shares one parity unit: k − 1 units
 *         of data (without parity: one unit). All addresses are bytes of the LUN.
 * METHOD  A host's IO is split at unit boundaries into disk IOs from a pool; the last to end
 *         completes it. An update of a group is a job: read old data and parity, then write both.
 *         A heap orders the disks by the end of the IO under their head: O(log k) per disk IO, plus
 *         the disk's choice among its window. No allocation after set-up: an IO that finds the pool
 *         empty keeps its slot and continues when another one ends. The port sends one IO after the
 *         other, so the finished IOs are a list in order.
 * DIFFERS from a real one: two controllers are one; the read cache holds only read-ahead and dirty
 *         data (the data sets are far larger than it); no reconstruct-writes.
 * EXAMPLE 10 disks of 336 random reads/s each: 128 outstanding are answered in 128 / 3360 = 38 ms.
 */
#include "model/array-parts.h"
#include <errno.h>
#include <stdlib.h>

/* ---- one IO to one disk */

void array_to_disk(struct array *a, weir_time t, uint32_t disk, struct device_io *op)
{
	struct spindle *s = &a->disks[disk];
	weir_time done = s->done;

	op->arrived = t;
	spindle_add(s, t, op);
	if (s->done != done)
		heap_move(&a->ends, a->place[disk], s->done, disk);
}

struct device_io *array_op_new(struct array *a, enum array_kind kind, void *user)
{
	struct device_io *op = a->free_ops;

	a->free_ops = op->next;
	op->source = kind;
	op->user = user;
	return op;
}

static void op_free(struct array *a, struct device_io *op)
{
	if (op->source == ARRAY_PIECE)
		a->free_pieces++;
	op->next = a->free_ops;
	a->free_ops = op;
}

uint32_t array_place_of(const struct array *a, uint64_t group, uint32_t i, uint64_t *ret_offset)
{
	uint32_t k = a->config.disks, parity;

	if (a->config.raid == ARRAY_RAID0) {
		*ret_offset = a->config.start + group / k * a->config.unit;
		return (uint32_t)(group % k);
	}
	*ret_offset = a->config.start + group * a->config.unit;
	parity = k - 1 - (uint32_t)(group % k);
	i += parity + 1; /* for the parity, this wraps around to itself */
	if (i >= k)
		i -= k;
	return i;
}

/* Read [from, to) of the unit `number` of the address space. */
static void read_unit(struct array *a, weir_time t, uint64_t number, uint64_t from, uint64_t to,
	struct device_io *op)
{
	uint64_t offset;
	uint32_t disk =
		array_place_of(a, number / a->units, (uint32_t)(number % a->units), &offset);

	op->op = 0;
	op->offset = offset + from;
	op->bytes = (uint32_t)(to - from);
	a->stats.disk_reads++;
	array_to_disk(a, t, disk, op);
}

/* ---- a host's IO, from slot to port */

uint64_t array_end_of(const struct array *a, const struct device_io *io)
{
	uint64_t end = io->offset + (io->bytes ? io->bytes : 1);

	return end < a->lun ? end : a->lun;
}

/* Free the slot of an IO whose data are ready, and send it through the port. */
static void complete_io(struct array *a, weir_time t, struct device_io *io)
{
	a->inside--;
	if (t < a->port)
		t = a->port;
	t += a->config.cost + (weir_time)(io->bytes * a->ns_byte);
	if (io->op == 1)
		t += a->config.mirror;
	a->port = t;
	io->finished = t;
	iolist_append(&a->out, io);
}

/* scratch[0]: parts in progress, plus 1 while more are to come, plus MISSED; scratch[1]: the
 * address up to which the IO has been split. */
#define MISSED (UINT64_C(1) << 32) /* needed a disk IO of its own */

void array_part_done(struct array *a, weir_time t, struct device_io *io)
{
	if ((uint32_t)--io->scratch[0] == 0)
		complete_io(a, t, io);
}

/* Read ahead for a stream whose last IO ended at `end`. */
static void read_ahead(struct array *a, weir_time t, struct ahead_stream *s, uint64_t end)
{
	uint32_t unit = a->config.unit;
	uint32_t run = s->run - a->config.trigger; /* the longer the run, the more units */
	uint64_t first = end / unit, last = first + (run < a->config.ahead ? run : a->config.ahead);

	if (s->through > first && s->through <= last)
		first = s->through;
	for (uint64_t u = first; u < last && (u + 1) * unit <= a->lun; u++) {
		uint64_t from = u * unit < end ? end : u * unit;
		struct ahead_chunk *c = ahead_ask(s, u, from);

		if (!c)
			return;
		read_unit(a, t, u, from - u * unit, unit, array_op_new(a, ARRAY_CHUNK, c));
	}
}

/* Read one part: from a chunk, from a chunk being read, or from a disk. */
static void read_part(struct array *a, weir_time t, struct device_io *io, struct ahead_stream *s,
	uint64_t from, uint64_t to)
{
	uint64_t number = from / a->config.unit, base = number * a->config.unit;
	struct ahead_chunk *c = s ? ahead_find(s, number, from) : NULL;
	struct device_io *op;

	if (c && !c->pending)
		return;
	io->scratch[0]++;
	op = array_op_new(a, ARRAY_PIECE, io);
	a->free_pieces--;
	if (!c) {
		a->misses += !(io->scratch[0] & MISSED);
		io->scratch[0] |= MISSED;
		read_unit(a, t, number, from - base, to - base, op);
		return;
	}
	ahead_wait(c, op);
}

/* Return false if out of pieces; a later call continues. */
static bool read_parts(struct array *a, weir_time t, struct device_io *io, struct ahead_stream *s)
{
	uint64_t end = array_end_of(a, io);

	while (io->scratch[1] < end) {
		uint64_t from = io->scratch[1];
		uint64_t to = (from / a->config.unit + 1) * a->config.unit;

		if (!a->free_pieces)
			return false;
		if (to > end)
			to = end;
		read_part(a, t, io, s, from, to);
		io->scratch[1] = to;
	}
	array_part_done(a, t, io);
	return true;
}

/* ---- the controller */

static bool write_cached(struct array *a, weir_time t, struct device_io *io)
{
	if (!nvram_write(&a->cache, io->offset, array_end_of(a, io) - io->offset))
		return false;
	array_part_done(a, t, io);
	return true;
}

static void enter_read(struct array *a, weir_time t, struct device_io *io)
{
	struct ahead_stream *s = NULL;
	uint64_t end = array_end_of(a, io);

	a->stats.reads++;
	if (a->config.streams)
		s = ahead_follow(&a->ahead, io->offset, end - io->offset);
	if (a->config.cache && nvram_holds(&a->cache, io->offset, end - io->offset)) {
		array_part_done(a, t, io);
	} else if (a->stalled.first || !read_parts(a, t, io, s)) {
		iolist_append(&a->stalled, io);
	}
	if (s && !a->stalled.first)
		read_ahead(a, t, s, end);
}

static void enter_write(struct array *a, weir_time t, struct device_io *io)
{
	a->stats.writes++;
	if (a->config.streams)
		(void)ahead_follow(&a->ahead, io->offset, array_end_of(a, io) - io->offset);
	if (!a->config.cache) {
		if (a->stalled.first || !array_write_parts(a, t, io))
			iolist_append(&a->stalled, io);
	} else if (a->blocked.first || !write_cached(a, t, io)) {
		a->stats.blocked++;
		iolist_append(&a->blocked, io);
	}
}

static void enter_controller(struct array *a, weir_time t, struct device_io *io)
{
	a->inside++;
	io->scratch[0] = 1;
	io->scratch[1] = io->offset;
	if (io->op == 0)
		enter_read(a, t, io);
	else if (io->op == 1)
		enter_write(a, t, io);
	else
		array_part_done(a, t, io);
}

/* Start everything that the last event made possible. */
static void start_ready(struct array *a, weir_time t)
{
	while (a->stalled.first) {
		struct device_io *io = a->stalled.first, *next = io->next;

		if (!(io->op == 0 ? read_parts(a, t, io, NULL) : array_write_parts(a, t, io)))
			break;
		a->stalled.first = next;
	}
	while (a->blocked.first) {
		struct device_io *io = a->blocked.first, *next = io->next;

		if (!write_cached(a, t, io))
			break;
		a->blocked.first = next;
	}
	while (a->fifo.first && a->inside < a->config.active)
		enter_controller(a, t, iolist_take(&a->fifo));
	if (a->config.cache)
		array_destage(a, t);
}

static void array_submit(struct device *d, weir_time now, struct device_io *io)
{
	struct array *a = (struct array *)d;

	io->arrived = now;
	io->offset %= a->lun;
	iolist_append(&a->fifo, io);
	start_ready(a, now);
}

static weir_time array_next(const struct device *d)
{
	const struct array *a = (const struct array *)d;
	weir_time t = heap_min(&a->ends)->key;

	return a->out.first && a->out.first->finished < t ? a->out.first->finished : t;
}

static void chunk_came(struct array *a, weir_time t, struct ahead_chunk *c)
{
	struct device_io *op = ahead_come(&a->ahead, c), *next;

	for (; op; op = next) {
		next = op->next;
		array_part_done(a, t, op->user);
		op_free(a, op);
	}
}

static void disk_ended(struct array *a, uint32_t disk)
{
	struct device_io *op = spindle_take(&a->disks[disk]);
	weir_time t = op->finished;

	heap_move(&a->ends, a->place[disk], a->disks[disk].done, disk);
	op_free(a, op);
	if (op->source == ARRAY_PIECE)
		array_part_done(a, t, op->user);
	else if (op->source == ARRAY_CHUNK)
		chunk_came(a, t, op->user);
	else
		array_update_ended(a, t, op->user);
	start_ready(a, t);
}

static struct device_io *array_step(struct device *d, weir_time now)
{
	struct array *a = (struct array *)d;
	struct iolist done = {NULL, NULL};

	if (now == WEIR_NEVER)
		now--;
	while (heap_min(&a->ends)->key <= now)
		disk_ended(a, (uint32_t)heap_min(&a->ends)->value);
	while (a->out.first && a->out.first->finished <= now)
		iolist_append(&done, iolist_take(&a->out));
	return done.first;
}

static void array_free(struct device *d)
{
	struct array *a = (struct array *)d;

	heap_free(&a->ends);
	nvram_free(&a->cache);
	ahead_free(&a->ahead);
	free(a->place);
	free(a->disks);
	free(a->pool);
	free(a->jobs);
	free(a->ranges);
	free(a);
}

static double array_worked(const struct device *d)
{
	const struct array *a = (const struct array *)d;
	double all = 0;

	for (uint32_t i = 0; i < a->config.disks; i++)
		all += (double)a->disks[i].worked;
	return all / a->config.disks;
}

static const struct device_ops array_ops = {
	.name = "array",
	.submit = array_submit,
	.next = array_next,
	.step = array_step,
	.free = array_free,
	.worked = array_worked,
};

void array_stats(const struct device *d, struct array_stats *ret)
{
	const struct array *a = (const struct array *)d;

	*ret = a->stats;
	ret->read_hits = a->stats.reads - a->misses;
	ret->dirty = a->cache.dirty;
}

uint64_t array_size(const struct device *d)
{
	return ((const struct array *)d)->lun;
}

/* ---- set-up */

static int make_pools(struct array *a)
{
	const struct array_config *c = &a->config;
	/* A read of up to four units needs five pieces; larger reads take more as pieces become
	 * free. */
	size_t pieces = (size_t)c->active * 4 + 16, n;

	n = pieces + (size_t)c->streams * AHEAD_CHUNKS + (size_t)c->destage * (a->units + 1);
	a->pool = calloc(n, sizeof(*a->pool));
	a->jobs = calloc(c->destage, sizeof(*a->jobs));
	a->ranges = calloc((size_t)c->destage * a->units, sizeof(*a->ranges));
	if (!a->pool || !a->jobs || !a->ranges)
		return -ENOMEM;
	a->free_pieces = (uint32_t)pieces;
	for (size_t i = n; i-- > 0;) {
		a->pool[i].next = a->free_ops;
		a->free_ops = &a->pool[i];
	}
	for (size_t i = c->destage; i-- > 0;) {
		a->jobs[i].ranges = &a->ranges[i * a->units];
		a->jobs[i].next = a->free_jobs;
		a->free_jobs = &a->jobs[i];
	}
	return 0;
}

static int make_disks(struct array *a, struct rng *r)
{
	uint32_t k = a->config.disks;

	a->disks = calloc(k, sizeof(*a->disks));
	a->place = calloc(k, sizeof(*a->place));
	heap_init(&a->ends, a->place);
	if (!a->disks || !a->place || heap_reserve(&a->ends, k) < 0)
		return -ENOMEM;
	spindle_geometry_make(&a->geometry, &a->config.disk);
	for (uint32_t i = 0; i < k; i++) {
		spindle_init(&a->disks[i], &a->geometry, r);
		(void)heap_push(
			&a->ends, (struct heap_item){.key = WEIR_NEVER, .serial = i, .value = i});
	}
	return 0;
}

static int make_all(struct array *a, struct rng *r)
{
	const struct array_config *c = &a->config;
	uint64_t groups;

	a->units = c->raid == ARRAY_RAID5 ? c->disks - 1 : 1;
	a->group_bytes = (uint64_t)a->units * c->unit;
	a->lun = c->lun ? c->lun : array_data_bytes(c);
	a->ns_byte = 1e9 / c->bandwidth;
	groups = (a->lun + a->group_bytes - 1) / a->group_bytes;
	if (make_disks(a, r) < 0 || make_pools(a) < 0)
		return -ENOMEM;
	if (c->cache && nvram_init(&a->cache, groups, a->units, c->unit, c->cache) < 0)
		return -ENOMEM;
	return c->streams ? ahead_init(&a->ahead, c->streams, c->trigger) : 0;
}

int array_new(const struct array_config *config, uint64_t seed, const char *name,
	struct device **ret, struct weir_err *err)
{
	int error = array_check(config, err);
	struct array *a;
	struct rng r;

	if (error)
		return error;
	a = calloc(1, sizeof(*a));
	if (!a)
		return weir_err_set(err, -ENOMEM, "array: out of memory");
	a->device.ops = &array_ops;
	a->config = *config;
	rng_init(&r, seed, name);
	if (make_all(a, &r) < 0) {
		array_free(&a->device);
		return weir_err_set(err, -ENOMEM, "array: out of memory");
	}
	*ret = &a->device;
	return 0;
}
