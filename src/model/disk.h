/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * disk: one spindle as a device.
 *
 * Reads and writes are mechanical (spindle.h): seek by distance, rotation as a function of time,
 * transfer by zone, and a track buffer that makes it cheap to continue the last stream. Flush and
 * trim cost the command overhead and do not queue. Offsets beyond the capacity wrap around.
 */
#pragma once

#include "model/spindle.h"

struct disk_config {
	struct spindle_config spindle;
};

struct disk_config disk_defaults(void); /* spindle_defaults() */

/* Create a disk. Only the platter's start angle is random: one draw of the stream (seed, name).
 * Return 0; -EINVAL with a message that names the field; -ENOMEM. */
int disk_new(const struct disk_config *config, uint64_t seed, const char *name, struct device **ret,
	struct weir_err *err);
