/* SPDX-License-Identifier: BSD-3-Clause */
/* former: the file of what a device had before the shaper came (serve/shape/device.h). */
#pragma once

#include "serve/shape/device.h"

struct former {
	uint32_t segments;
	bool clsact;          /* there was one */
	struct tc_queue root; /* handle 0: the kernel's default */
};
/* -ENOENT: there is no file. -EINVAL: it is not one of state. */
int former_read(
	const struct device_state *s, const char *device, struct former *ret, struct weir_err *err);
int former_write(const struct device_state *s, const char *device, const struct former *state,
	struct weir_err *err);
void former_remove(const struct device_state *s, const char *device);
/* The kernel's number of this boot is in each file: state of before a restart of the machine is no state. */
