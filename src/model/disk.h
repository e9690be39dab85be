/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * disk: one spindle behind the device plug.
 *
 * Reads and writes are mechanical (spindle.h): seek by distance, rotation as a function of time,
 * transfer by zone, a track buffer that makes the continuation of the last stream cheap. Flush and
 * trim cost the command overhead and do not queue. Offsets beyond the capacity wrap around.
 */
#ifndef WEIR_MODEL_DISK_H
#define WEIR_MODEL_DISK_H

#include "model/spindle.h"

struct disk_config {
	struct spindle_config spindle;
};

struct disk_config disk_defaults(void); /* spindle_defaults() */

/* The platter's start angle is the only random thing: one draw of the stream (seed, name).
 * 0; -EINVAL with a message that names the field; -ENOMEM. */
int disk_new(const struct disk_config *config, uint64_t seed, const char *name, struct device **ret,
	struct weir_err *err);

#endif
