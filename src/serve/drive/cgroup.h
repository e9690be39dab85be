/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cgroup: a driver (serve/drive/drive.h) for the limits of a block device by Linux control groups, version 2.
 *
 * Tenant `a/b` is the group ROOT/a/b; the groups are made by others, at any time. io.stat has what a group did, io.max is
 * its limit. The kernel limits reads and writes apart: a limit of both is divided by their parts of the group's requests in
 * the last step; each has a twentieth of it at least. It does not tell what waits.
 */
#pragma once

#include "serve/drive/drive.h"

extern const struct drive_ops drive_cgroup_ops; /* its driver is a struct drive_cgroup */

struct drive_cgroup {
	const char *root;   /* folder, as /sys/fs/cgroup/weir.slice */
	const char *device; /* as "8:0" */
	struct drive_cgroup_mix {
		uint64_t reads, writes; /* as of the last step */
		double part, told;      /* of reads; by which the limit is divided now */
	} * mix;                        /* by tenant; zeroed by the caller */
};
