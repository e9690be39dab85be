/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * array-config: the predefined arrays, and the check of a configuration.
 *
 * array_cx3(): the 10-disk RAID-5 group of PARDA's CLARiiON CX3-40. The paper gives the number of
 * disks and the results; the rest is from data sheets of 2006, and three figures (marked *) were
 * fitted to the uncontrolled rows. tests/model/array.c checks the results, seeds 1 to 3.
 *
 *                     paper                             model
 *   Table 3           3360 IOPS at 37 ms                3343 at 38.3
 *     by host         780 / 900 / 890 / 790             764 / 905 / 908 / 766
 *   Table 4           3130 IOPS at 60 ms, 430 … 570     3220 at 59.6, 499 … 571
 *   Table 2, phase 1  4220 IOPS together                about 4100
 *   Table 5           3580 IOPS at 53 ms                about 3450 at 56
 *   Figure 5          8 … 177 MB/s                      7 … 194 MB/s
 *   Figure 7          85 IOPS a host at 376 … 470 ms    90 at 354 (array_cx3_small)
 *
 * disk       15,000 rpm, 3.5 ms average seek. 3360 IOPS from ten disks busy 94 % of the time are
 *            2.8 ms an IO; half a turn (2.0) and 16 KiB at 125 MB/s (0.13) leave 0.7 ms for the seek,
 *            the cost of short ordered seeks. Shortest positioning time first would yield half as
 *            much again.
 * capacity   73 GB (the paper does not say): four hosts' 80 GB are then an eighth of the stroke, and
 *            six hosts' seeks longer. Throughput falls by 3.7 % from four hosts to six; in the paper
 *            it falls by 7, more than longer seeks alone can explain.
 * order      LOOK: it passes the middle at even intervals and the ends at uneven ones, which is why
 *            the hosts placed in the middle get more. C-LOOK would treat all alike.
 * window *   16 in the drive: the middle hosts get 18 % more, at 8 they get 12; the paper's tables
 *            show 14 to 16.
 * active *   68 in the controller, about 7 a disk. With fewer, disks are idle while others queue
 *            (40: 3030 IOPS); with many more, the throughput still grows by 6 % from 96 to 192
 *            outstanding, so that PARDA's windows would cost throughput, which they do not
 *            (Figure 9). The excess waits in order, which is why even a sequential reader among
 *            random ones waits 20 ms and more (Table 2).
 * unit       64 KiB, the CLARiiON's element.
 * cost       20 µs an IO, 20 more to mirror a write: 50,000 and 25,000 IOPS from the cache.
 * bandwidth  200 MB/s, one 2 Gbit/s port: Figure 5 ends at 177.
 * ahead      half a MiB; four in a row make a stream, so that "30 % sequential" does not.
 * cache      128 MiB. A CX3-40 has more; the size only determines how long a burst is absorbed, and
 *            this one reaches its steady state in half a minute.
 * destage *  64 stripes at once when full: reads and destages then share the disks so that mixed
 *            workloads saturate them from the second host on (Figure 6).
 *
 * array_cx3_small(): five disks for Figure 7's 400 GB volume, so at least 100 GB each; 146 GB
 * drives of 10,000 rpm yield its 85 IOPS a host if the virtual disks are spread over the volume.
 */
#include "model/array-parts.h"
#include <errno.h>
#include <math.h>

struct array_config array_cx3(void)
{
	struct array_config c = {
		.disk = spindle_defaults(),
		.disks = 10,
		.raid = ARRAY_RAID5,
		.unit = 65536,
		.active = 68,
		.cost = 20 * WEIR_US,
		.mirror = 20 * WEIR_US,
		.bandwidth = 200e6,
		.streams = 32,
		.ahead = 8,
		.trigger = 4,
		.cache = 128 << 20,
		.low = 0.2,
		.destage = 64,
	};

	c.disk.capacity = 73400000000;
	c.disk.window = 16;
	return c;
}

struct array_config array_cx3_small(void)
{
	struct array_config c = array_cx3();

	c.disk = spindle_10k();
	c.disk.capacity = 146800000000;
	c.disk.window = 16;
	c.disks = 5;
	c.lun = 400000000000;
	return c;
}

uint64_t array_data_bytes(const struct array_config *c)
{
	uint64_t rows = c->disk.capacity > c->start ? (c->disk.capacity - c->start) / c->unit : 0;

	return rows * c->unit * (c->disks - (c->raid == ARRAY_RAID5));
}

int array_check(const struct array_config *c, struct weir_err *err)
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
	if (!array_data_bytes(c) || c->lun > array_data_bytes(c))
		return weir_err_set(err, -EINVAL,
			"lun, start, capacity: the lun is larger than the disks after start");
	if (array_data_bytes(c) / c->unit > UINT64_C(1) << 30)
		return weir_err_set(err, -EINVAL,
			"unit, capacity, disks: the unit is too small for so large an array");
	if (c->active < 1 || c->active > 1 << 20)
		return weir_err_set(err, -EINVAL, "active: must be between 1 and 1048576");
	if (c->cost < 0 || c->cost > WEIR_SEC)
		return weir_err_set(err, -EINVAL, "cost: must be between 0 and 1 s");
	if (c->mirror < 0 || c->mirror > WEIR_SEC)
		return weir_err_set(err, -EINVAL, "mirror: must be between 0 and 1 s");
	if (!(c->bandwidth > 0) || !isfinite(c->bandwidth))
		return weir_err_set(err, -EINVAL, "bandwidth: must be > 0");
	if (c->streams > 1024)
		return weir_err_set(err, -EINVAL, "streams: at most 1024");
	if (c->streams && (c->ahead < 1 || c->ahead > AHEAD_CHUNKS))
		return weir_err_set(err, -EINVAL, "ahead: must be between 1 and %d", AHEAD_CHUNKS);
	if (c->streams && c->trigger < 1)
		return weir_err_set(err, -EINVAL, "trigger: must be at least 1");
	if (c->cache && c->cache < 1 << 20)
		return weir_err_set(err, -EINVAL, "cache: must be 0 or at least 1 MiB");
	if (!(c->low >= 0 && c->low < 1))
		return weir_err_set(err, -EINVAL, "low: must be at least 0 and below 1");
	if (c->destage < 1 || c->destage > 65536)
		return weir_err_set(err, -EINVAL, "destage: must be between 1 and 65536");
	return 0;
}
