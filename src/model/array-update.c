/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * array-update: write data and parity to an array's disks.
 *
 * LAW     An update of a group writes a range of each of its data units, and of the parity unit the
 *         hull of those ranges. In RAID-5 the old contents of all of them are read first, unless the
 *         whole group is written. So one small write is two reads and two writes.
 * METHOD  A job has at most two phases; each sends one IO per range to the disks, and the last one
 *         to end starts the next phase. Jobs come from the cache, in order of address around the
 *         LUN, or without a cache from the hosts' writes.
 */
#include "model/array-parts.h"
#include <math.h>

static void update_part(
	struct array *a, weir_time t, struct array_job *j, uint32_t i, struct nvram_range range)
{
	struct device_io *op = array_op_new(a, ARRAY_UPDATE, j);
	uint64_t offset;
	uint32_t disk = array_place_of(a, j->group, i, &offset);

	op->op = j->writing;
	op->offset = offset + range.from;
	op->bytes = range.to - range.from;
	if (j->writing)
		a->stats.update_writes++;
	else
		a->stats.update_reads++;
	j->pending++;
	array_to_disk(a, t, disk, op);
}

/* Read or write every range of the stripe, and the parity over all of them. */
static void update_phase(struct array *a, weir_time t, struct array_job *j)
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

static bool is_full_stripe(const struct array *a, const struct array_job *j)
{
	for (uint32_t i = 0; i < a->units; i++) {
		if (j->ranges[i].to - j->ranges[i].from < a->config.unit)
			return false;
	}
	return true;
}

static struct array_job *job_new(struct array *a)
{
	struct array_job *j = a->free_jobs;

	a->free_jobs = j->next;
	a->n_jobs++;
	j->pending = 0;
	return j;
}

static void job_start(struct array *a, weir_time t, struct array_job *j)
{
	j->writing = a->config.raid == ARRAY_RAID0;
	if (!j->writing && is_full_stripe(a, j)) {
		j->writing = true;
		a->stats.full_stripes++;
	}
	update_phase(a, t, j);
}

void array_update_ended(struct array *a, weir_time t, struct array_job *j)
{
	if (--j->pending)
		return;
	if (!j->writing) {
		j->writing = true;
		update_phase(a, t, j);
		return;
	}
	if (j->io)
		array_part_done(a, t, j->io);
	else
		nvram_release(&a->cache, j->bytes);
	j->next = a->free_jobs;
	a->free_jobs = j;
	a->n_jobs--;
}

/* Without a cache: one job per stripe. Return false if out of jobs. */
bool array_write_parts(struct array *a, weir_time t, struct device_io *io)
{
	uint64_t end = array_end_of(a, io);
	uint32_t unit = a->config.unit;

	while (io->scratch[1] < end) {
		uint64_t from = io->scratch[1], group = from / a->group_bytes;
		uint64_t to = (group + 1) * a->group_bytes;
		struct array_job *j;

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
	array_part_done(a, t, io);
	return true;
}

/* Destage stripes in proportion to the fill level above `low`; the most allowed while a write waits
 * (a write larger than the cache waits until it is empty). */
void array_destage(struct array *a, weir_time t)
{
	const struct array_config *c = &a->config;
	double over = (double)a->cache.dirty / (double)c->cache - c->low;
	uint32_t limit;

	if (over <= 0 && !a->blocked.first)
		return;
	limit = c->destage;
	if (!a->blocked.first && over < 1 - c->low)
		limit = (uint32_t)ceil(c->destage * over / (1 - c->low));
	while (a->n_jobs < limit && a->cache.n_dirty) {
		struct array_job *j = job_new(a);

		j->io = NULL;
		j->bytes = nvram_take(&a->cache, &j->group, j->ranges);
		job_start(a, t, j);
	}
}
