/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * disk: one spindle as a device. The laws are in spindle.c.
 */
#include "model/disk.h"
#include "model/iolist.h"
#include <errno.h>
#include <stdlib.h>

struct disk {
	struct device device;
	struct spindle_geometry geometry;
	struct spindle spindle;
	struct iolist quick; /* flush and trim, in order of `finished` */
};

struct disk_config disk_defaults(void)
{
	return (struct disk_config){.spindle = spindle_defaults()};
}

static void disk_submit(struct device *d, weir_time now, struct device_io *io)
{
	struct disk *k = (struct disk *)d;

	io->arrived = now;
	if (io->op <= 1) {
		io->offset %= k->geometry.config.capacity;
		spindle_add(&k->spindle, now, io);
		return;
	}
	io->busy = k->geometry.config.overhead;
	io->finished = now + io->busy;
	iolist_append(&k->quick, io);
}

static weir_time disk_next(const struct device *d)
{
	const struct disk *k = (const struct disk *)d;

	if (k->quick.first && k->quick.first->finished < k->spindle.done)
		return k->quick.first->finished;
	return k->spindle.done;
}

static struct device_io *end_first(struct disk *k)
{
	if (k->quick.first && k->quick.first->finished < k->spindle.done)
		return iolist_take(&k->quick);
	return spindle_take(&k->spindle);
}

static struct device_io *disk_step(struct device *d, weir_time now)
{
	struct iolist done = {NULL, NULL};

	if (now == WEIR_NEVER)
		now--;
	while (disk_next(d) <= now)
		iolist_append(&done, end_first((struct disk *)d));
	return done.first;
}

static void disk_free(struct device *d)
{
	free(d);
}

static double disk_worked(const struct device *d)
{
	return (double)((const struct disk *)d)->spindle.worked;
}

static const struct device_ops disk_ops = {
	.name = "disk",
	.submit = disk_submit,
	.next = disk_next,
	.step = disk_step,
	.free = disk_free,
	.tells_busy = true,
	.worked = disk_worked,
};

int disk_new(const struct disk_config *config, uint64_t seed, const char *name, struct device **ret,
	struct weir_err *err)
{
	struct disk *k;
	struct rng r;
	int error = spindle_check(&config->spindle, err);

	if (error)
		return error;
	k = calloc(1, sizeof(*k));
	if (!k)
		return weir_err_set(err, -ENOMEM, "disk: out of memory");
	k->device.ops = &disk_ops;
	rng_init(&r, seed, name);
	spindle_geometry_make(&k->geometry, &config->spindle);
	spindle_init(&k->spindle, &k->geometry, &r);
	*ret = &k->device;
	return 0;
}
