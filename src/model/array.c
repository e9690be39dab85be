/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * array: a storage array as its hosts see it.
 */
#include "model/array.h"
#include "base/heap.h"
#include "model/ahead.h"
#include "model/nvram.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum kind {     /* of an IO to a disk, in its `source` */
	PIECE,  /* part of a host's read; user: the host's IO */
	CHUNK,  /* read ahead; user: the chunk */
	UPDATE, /* part of a stripe's update; user: the job */
};

struct list {
	struct device_io *first, *last;
};

struct job {                  /* the update of one stripe (or of one unit, without parity) */
	struct device_io *io; /* whom to tell; NULL: destaged from the cache */
	struct job *next;     /* in the free list */
	uint64_t group, bytes;
	uint32_t pending; /* disk IOs under way */
	bool writing;     /* old data and parity are read */
	struct nvram_range *ranges;
};

struct array {
	struct device device;
	struct array_config config;
	struct spindle_geometry geometry;
	struct spindle *disks;
	struct heap ends; /* every disk, by its `done` */
	uint32_t *place;
	uint64_t lun;
	uint32_t units;       /* of data per group */
	uint64_t group_bytes; /* of data */
	struct list fifo;     /* waiting for a slot */
	uint32_t inside;      /* slots in use */
	struct list stalled;  /* in a slot, waiting for disk IOs or jobs to be free */
	struct list blocked;  /* writes in a slot, waiting for room in the cache */
	struct list out;      /* through the port, `finished` set */
	weir_time port;       /* free from then on */
	double ns_byte;       /* of the port */
	struct device_io *pool, *free_ops;
	uint32_t free_pieces; /* how many more pieces may be under way */
	struct job *jobs, *free_jobs;
	struct nvram_range *ranges;
	uint32_t n_jobs; /* under way */
	struct nvram cache;
	struct ahead ahead;
	struct array_stats stats;
	uint64_t misses; /* reads that needed a disk of their own */
};

static void append(struct list *l, struct device_io *io)
{
	io->next = NULL;
	if (l->last)
		l->last->next = io;
	else
		l->first = io;
	l->last = io;
}

static struct device_io *take(struct list *l)
{
	struct device_io *io = l->first;

	l->first = io->next;
	if (!l->first)
		l->last = NULL;
	return io;
}

/* ---- one IO to one disk */

static void to_disk(struct array *a, weir_time t, uint32_t disk, struct device_io *op)
{
	struct spindle *s = &a->disks[disk];
	weir_time done = s->done;

	op->arrived = t;
	spindle_add(s, t, op);
	if (s->done != done)
		heap_move(&a->ends, a->place[disk], s->done, disk);
}

static struct device_io *op_new(struct array *a, enum kind kind, void *user)
{
	struct device_io *op = a->free_ops;

	a->free_ops = op->next;
	op->source = kind;
	op->user = user;
	return op;
}

static void op_free(struct array *a, struct device_io *op)
{
	if (op->source == PIECE)
		a->free_pieces++;
	op->next = a->free_ops;
	a->free_ops = op;
}

/* The disk and the address on it of a group's data unit `i`; i = units: the parity. */
static uint32_t place_of(const struct array *a, uint64_t group, uint32_t i, uint64_t *ret_offset)
{
	uint32_t k = a->config.disks, parity;

	if (a->config.raid == ARRAY_RAID0) {
		*ret_offset = a->config.start + group / k * a->config.unit;
		return (uint32_t)(group % k);
	}
	*ret_offset = a->config.start + group * a->config.unit;
	parity = k - 1 - (uint32_t)(group % k);
	i += parity + 1; /* the parity's own i leads back to it */
	if (i >= k)
		i -= k;
	return i;
}

/* A read of [from, to) of the unit `number` of the address space. */
static void read_unit(struct array *a, weir_time t, uint64_t number, uint64_t from, uint64_t to,
	struct device_io *op)
{
	uint64_t offset;
	uint32_t disk = place_of(a, number / a->units, (uint32_t)(number % a->units), &offset);

	op->op = 0;
	op->offset = offset + from;
	op->bytes = (uint32_t)(to - from);
	a->stats.disk_reads++;
	to_disk(a, t, disk, op);
}

/* ---- a host's IO, from slot to port */

static uint64_t end_of(const struct array *a, const struct device_io *io)
{
	uint64_t end = io->offset + (io->bytes ? io->bytes : 1);

	return end < a->lun ? end : a->lun;
}

/* Its data are there: the slot is free, the port sends it off. */
static void complete(struct array *a, weir_time t, struct device_io *io)
{
	a->inside--;
	if (t < a->port)
		t = a->port;
	t += a->config.cost + (weir_time)(io->bytes * a->ns_byte);
	if (io->op == 1)
		t += a->config.mirror;
	a->port = t;
	io->finished = t;
	append(&a->out, io);
}

/* scratch[0]: parts under way, and 1 while there are more to come, and MISSED; scratch[1]: the
 * address up to which it has been taken apart. */
#define MISSED (UINT64_C(1) << 32) /* it needed a disk of its own */

static void part_done(struct array *a, weir_time t, struct device_io *io)
{
	if ((uint32_t)--io->scratch[0] == 0)
		complete(a, t, io);
}

/* Reads ahead of a stream whose last IO ended at `end`. */
static void read_ahead(struct array *a, weir_time t, struct ahead_stream *s, uint64_t end)
{
	uint32_t unit = a->config.unit;
	uint32_t run = s->run - a->config.trigger; /* so few in a row, so little in front */
	uint64_t first = end / unit, last = first + (run < a->config.ahead ? run : a->config.ahead);

	if (s->through > first && s->through <= last)
		first = s->through;
	for (uint64_t u = first; u < last && (u + 1) * unit <= a->lun; u++) {
		uint64_t from = u * unit < end ? end : u * unit;
		struct ahead_chunk *c = ahead_ask(s, u, from);

		if (!c)
			return;
		read_unit(a, t, u, from - u * unit, unit, op_new(a, CHUNK, c));
	}
}

/* One part of a read: from a chunk, a chunk on its way, or a disk. */
static void read_part(struct array *a, weir_time t, struct device_io *io, struct ahead_stream *s,
	uint64_t from, uint64_t to)
{
	uint64_t number = from / a->config.unit, base = number * a->config.unit;
	struct ahead_chunk *c = s ? ahead_find(s, number, from) : NULL;
	struct device_io *op;

	if (c && !c->pending)
		return;
	io->scratch[0]++;
	op = op_new(a, PIECE, io);
	a->free_pieces--;
	if (!c) {
		a->misses += !(io->scratch[0] & MISSED);
		io->scratch[0] |= MISSED;
		read_unit(a, t, number, from - base, to - base, op);
		return;
	}
	ahead_wait(c, op);
}

/* False when it ran out of pieces; called again later it goes on. */
static bool read_parts(struct array *a, weir_time t, struct device_io *io, struct ahead_stream *s)
{
	uint64_t end = end_of(a, io);

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
	part_done(a, t, io);
	return true;
}

/* ---- updates */

static void update_part(
	struct array *a, weir_time t, struct job *j, uint32_t i, struct nvram_range range)
{
	struct device_io *op = op_new(a, UPDATE, j);
	uint64_t offset;
	uint32_t disk = place_of(a, j->group, i, &offset);

	op->op = j->writing;
	op->offset = offset + range.from;
	op->bytes = range.to - range.from;
	if (j->writing)
		a->stats.update_writes++;
	else
		a->stats.update_reads++;
	j->pending++;
	to_disk(a, t, disk, op);
}

/* Reads or writes every range of the stripe, and the parity over all of them. */
static void update_phase(struct array *a, weir_time t, struct job *j)
{
	struct nvram_range parity = {UINT32_MAX, 0};

	for (uint32_t i = 0; i < a->units; i++) {
		struct nvram_range r = j->ranges[i];

		if (r.from == r.to)
			continue;
		update_part(a, t, j, i, r);
		if (r.from < parity.from)
			parity.from = r.from;
		if (r.to > parity.to)
			parity.to = r.to;
	}
	if (a->config.raid == ARRAY_RAID5)
		update_part(a, t, j, a->units, parity);
}

static bool whole(const struct array *a, const struct job *j)
{
	for (uint32_t i = 0; i < a->units; i++) {
		if (j->ranges[i].to - j->ranges[i].from < a->config.unit)
			return false;
	}
	return true;
}

static struct job *job_new(struct array *a)
{
	struct job *j = a->free_jobs;

	a->free_jobs = j->next;
	a->n_jobs++;
	j->pending = 0;
	return j;
}

static void job_start(struct array *a, weir_time t, struct job *j)
{
	j->writing = a->config.raid == ARRAY_RAID0;
	if (!j->writing && whole(a, j)) {
		j->writing = true;
		a->stats.full_stripes++;
	}
	update_phase(a, t, j);
}

static void job_part_done(struct array *a, weir_time t, struct job *j)
{
	if (--j->pending)
		return;
	if (!j->writing) {
		j->writing = true;
		update_phase(a, t, j);
		return;
	}
	if (j->io)
		part_done(a, t, j->io);
	else
		nvram_release(&a->cache, j->bytes);
	j->next = a->free_jobs;
	a->free_jobs = j;
	a->n_jobs--;
}

/* A write with no cache: one job per stripe. False when it ran out of jobs. */
static bool write_parts(struct array *a, weir_time t, struct device_io *io)
{
	uint64_t end = end_of(a, io);
	uint32_t unit = a->config.unit;

	while (io->scratch[1] < end) {
		uint64_t from = io->scratch[1], group = from / a->group_bytes;
		uint64_t to = (group + 1) * a->group_bytes;
		struct job *j;

		if (!a->free_jobs)
			return false;
		if (to > end)
			to = end;
		j = job_new(a);
		j->io = io;
		j->group = group;
		io->scratch[0]++;
		io->scratch[1] = to;
		from -= group * a->group_bytes;
		to -= group * a->group_bytes;
		for (uint32_t i = 0; i < a->units; i++) {
			uint64_t low = (uint64_t)i * unit, high = low + unit;

			low = from > low ? from : low;
			high = to < high ? to : high;
			j->ranges[i] = (struct nvram_range){0, 0};
			if (low < high)
				j->ranges[i] =
					(struct nvram_range){(uint32_t)(low - (uint64_t)i * unit),
						(uint32_t)(high - (uint64_t)i * unit)};
		}
		job_start(a, t, j);
	}
	part_done(a, t, io);
	return true;
}

/* As many stripes at once as the cache is full, from `low` on. */
static void destage(struct array *a, weir_time t)
{
	const struct array_config *c = &a->config;
	double over = (double)a->cache.dirty / (double)c->cache - c->low;
	uint32_t limit;

	if (over <= 0)
		return;
	limit = (uint32_t)ceil(c->destage * over / (1 - c->low));
	if (limit > c->destage)
		limit = c->destage;
	while (a->n_jobs < limit && a->cache.n_dirty) {
		struct job *j = job_new(a);

		j->io = NULL;
		j->bytes = nvram_take(&a->cache, &j->group, j->ranges);
		job_start(a, t, j);
	}
}

/* ---- the controller */

static bool write_cached(struct array *a, weir_time t, struct device_io *io)
{
	if (!nvram_write(&a->cache, io->offset, end_of(a, io) - io->offset))
		return false;
	part_done(a, t, io);
	return true;
}

static void enter_read(struct array *a, weir_time t, struct device_io *io)
{
	struct ahead_stream *s = NULL;
	uint64_t end = end_of(a, io);

	a->stats.reads++;
	if (a->config.streams)
		s = ahead_follow(&a->ahead, io->offset, end - io->offset);
	if (a->config.cache && nvram_holds(&a->cache, io->offset, end - io->offset)) {
		part_done(a, t, io);
	} else if (a->stalled.first || !read_parts(a, t, io, s)) {
		append(&a->stalled, io);
	}
	if (s && !a->stalled.first)
		read_ahead(a, t, s, end);
}

static void enter_write(struct array *a, weir_time t, struct device_io *io)
{
	a->stats.writes++;
	if (a->config.streams)
		(void)ahead_follow(&a->ahead, io->offset, end_of(a, io) - io->offset);
	if (!a->config.cache) {
		if (a->stalled.first || !write_parts(a, t, io))
			append(&a->stalled, io);
	} else if (a->blocked.first || !write_cached(a, t, io)) {
		a->stats.blocked++;
		append(&a->blocked, io);
	}
}

static void enter(struct array *a, weir_time t, struct device_io *io)
{
	a->inside++;
	io->scratch[0] = 1;
	io->scratch[1] = io->offset;
	if (io->op == 0)
		enter_read(a, t, io);
	else if (io->op == 1)
		enter_write(a, t, io);
	else
		part_done(a, t, io);
}

/* Everything that what just happened may have made possible. */
static void pump(struct array *a, weir_time t)
{
	while (a->stalled.first) {
		struct device_io *io = a->stalled.first, *next = io->next;

		if (!(io->op == 0 ? read_parts(a, t, io, NULL) : write_parts(a, t, io)))
			break;
		a->stalled.first = next;
		if (!next)
			a->stalled.last = NULL;
	}
	while (a->blocked.first) {
		struct device_io *io = a->blocked.first, *next = io->next;

		if (!write_cached(a, t, io))
			break;
		a->blocked.first = next;
		if (!next)
			a->blocked.last = NULL;
	}
	while (a->fifo.first && a->inside < a->config.active)
		enter(a, t, take(&a->fifo));
	if (a->config.cache)
		destage(a, t);
}

static void array_submit(struct device *d, weir_time now, struct device_io *io)
{
	struct array *a = (struct array *)d;

	io->arrived = now;
	io->offset %= a->lun;
	append(&a->fifo, io);
	pump(a, now);
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
		part_done(a, t, op->user);
		op_free(a, op);
	}
}

static void disk_ended(struct array *a, uint32_t disk)
{
	struct device_io *op = spindle_take(&a->disks[disk]);
	weir_time t = op->finished;

	heap_move(&a->ends, a->place[disk], a->disks[disk].done, disk);
	op_free(a, op);
	if (op->source == PIECE)
		part_done(a, t, op->user);
	else if (op->source == CHUNK)
		chunk_came(a, t, op->user);
	else
		job_part_done(a, t, op->user);
	pump(a, t);
}

static struct device_io *array_step(struct device *d, weir_time now)
{
	struct array *a = (struct array *)d;
	struct list done = {NULL, NULL};

	if (now == WEIR_NEVER)
		now--;
	while (heap_min(&a->ends)->key <= now)
		disk_ended(a, (uint32_t)heap_min(&a->ends)->value);
	while (a->out.first && a->out.first->finished <= now)
		append(&done, take(&a->out));
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

static const struct device_ops array_ops = {
	.name = "array",
	.submit = array_submit,
	.next = array_next,
	.step = array_step,
	.free = array_free,
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

struct array_config array_cx3(void)
{
	struct array_config c = {
		.disk = spindle_defaults(),
		.disks = 10,
		.raid = ARRAY_RAID5,
		.unit = 65536,
		.active = 48,
		.cost = 20 * WEIR_US,
		.mirror = 20 * WEIR_US,
		.bandwidth = 200e6,
		.streams = 32,
		.ahead = 8,
		.trigger = 4,
		.cache = 128 << 20,
		.low = 0.2,
		.destage = 32,
	};

	return c;
}

struct array_config array_cx3_small(void)
{
	struct array_config c = array_cx3();

	c.disks = 5;
	c.lun = 400000000000;
	return c;
}

struct array_config array_defaults(void)
{
	return array_cx3();
}

/* What the disks hold together, parity excluded. */
static uint64_t data_bytes(const struct array_config *c)
{
	uint64_t rows = c->disk.capacity > c->start ? (c->disk.capacity - c->start) / c->unit : 0;

	return rows * c->unit * (c->disks - (c->raid == ARRAY_RAID5));
}

static int check(const struct array_config *c, struct weir_err *err)
{
	int error = spindle_check(&c->disk, err);

	if (error)
		return error;
	if (c->raid != ARRAY_RAID0 && c->raid != ARRAY_RAID5)
		return weir_err_set(err, -EINVAL, "raid: must be 0 or 5");
	if (c->raid == ARRAY_RAID5 && (c->disks < 3 || c->disks > ARRAY_RAID5_DISKS))
		return weir_err_set(
			err, -EINVAL, "disks: RAID-5 needs between 3 and %d", ARRAY_RAID5_DISKS);
	if (c->disks < 1 || c->disks > 65536)
		return weir_err_set(err, -EINVAL, "disks: must be between 1 and 65536");
	if (c->unit < 4096 || c->unit % 4096 || c->unit > 1 << 24)
		return weir_err_set(
			err, -EINVAL, "unit: must be a multiple of 4 KiB, at most 16 MiB");
	if (!data_bytes(c) || c->lun > data_bytes(c))
		return weir_err_set(err, -EINVAL, "lun: larger than the disks after start");
	if (data_bytes(c) / c->unit > UINT64_C(1) << 30)
		return weir_err_set(err, -EINVAL, "unit: too small for so large an array");
	if (c->active < 1 || c->active > 1 << 20)
		return weir_err_set(err, -EINVAL, "active: must be between 1 and 1048576");
	if (c->cost < 0 || c->cost > WEIR_SEC || c->mirror < 0 || c->mirror > WEIR_SEC)
		return weir_err_set(err, -EINVAL, "cost, mirror: must be between 0 and 1 s");
	if (!(c->bandwidth > 0) || !isfinite(c->bandwidth))
		return weir_err_set(err, -EINVAL, "bandwidth: must be > 0");
	if (c->streams > 1024)
		return weir_err_set(err, -EINVAL, "streams: at most 1024");
	if (c->streams && (c->ahead < 1 || c->ahead > AHEAD_CHUNKS || c->trigger < 1))
		return weir_err_set(err, -EINVAL,
			"ahead, trigger: ahead must be between 1 and %d, trigger at least 1",
			AHEAD_CHUNKS);
	if (c->cache && c->cache < 1 << 20)
		return weir_err_set(err, -EINVAL, "cache: must be 0 or at least 1 MiB");
	if (!(c->low >= 0 && c->low < 1))
		return weir_err_set(err, -EINVAL, "low: must be at least 0 and below 1");
	if (c->destage < 1 || c->destage > 65536)
		return weir_err_set(err, -EINVAL, "destage: must be between 1 and 65536");
	return 0;
}

static int make_pools(struct array *a)
{
	const struct array_config *c = &a->config;
	/* A read of up to four units needs five pieces; larger ones take them in turns. */
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

static int make(struct array *a, struct rng *r)
{
	const struct array_config *c = &a->config;
	uint64_t groups;

	a->units = c->raid == ARRAY_RAID5 ? c->disks - 1 : 1;
	a->group_bytes = (uint64_t)a->units * c->unit;
	a->lun = c->lun ? c->lun : data_bytes(c);
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
	int error = check(config, err);
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
	if (make(a, &r) < 0) {
		array_free(&a->device);
		return weir_err_set(err, -ENOMEM, "array: out of memory");
	}
	*ret = &a->device;
	return 0;
}
