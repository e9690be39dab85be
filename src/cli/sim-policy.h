/* SPDX-License-Identifier: BSD-3-Clause */
/* sim-policy: the scenario of `weir sim --policy FILE`. */
#pragma once

#include <weir/err.h>
#include <stddef.h>

struct sim_policy {
	const char *file;           /* the policy's */
	const char *duration;       /* NULL: 60s */
	const char *const *devices; /* "NAME=model:..."; "model:..." for the others */
	size_t n_devices;
	const char *const *loads; /* "TENANT[@RESOURCE]:KEY=VALUE,..." */
	size_t n_loads;
};

/* Write the scenario's text, malloc'ed, which names the policy's file relative to its folder. Return 0 or a negative errno with
 * a message. */
int sim_policy_text(const struct sim_policy *a, char **ret_text, struct weir_err *err);
