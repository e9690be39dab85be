/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shaper: keeps the shares of a policy's services on the links of this machine, in its network namespace.
 *
 * The shares themselves are kept by the kernel (tree.h); the shaper sets them, and tells the classifier once a second that it
 * is alive. If it does not for SHAPE_STALE, or ends, the kernel keeps the static policy: mins, maxes and weights of the
 * machine. device_restore removes it.
 */
#pragma once

#include "serve/shape/device.h"

#define SHAPER_STATE  "/run/weir-shape"
#define SHAPER_SOCKET "unix:/run/weir-shape/api.sock"
#define SHAPER_SSH    22

#define SHAPER_DIGEST 65 /* as planning_digest writes it */

struct shaper_options {
	char digest[SHAPER_DIGEST]; /* of the policy's text */
	const char *state;          /* folder */
	struct device_guard guard;
	uint16_t ssh;           /* a port of TCP that is not shaped; 0: none */
	const char *const *api; /* addresses; none: no API */
	size_t n_api;
	/* Read the policy again, at SIGHUP. */
	int (*reread)(void *arg, struct weir_policy **ret, char ret_digest[SHAPER_DIGEST],
		struct weir_err *err);
	void *reread_arg;
};

struct shaper;
/* Take over the devices of the policy, which belongs to the shaper from now on, also on error. On error all devices are as they
 * were. */
int shaper_new(struct weir_policy *p, const struct shaper_options *o, struct shaper **ret,
	struct weir_err *err);
/* Run until SIGTERM or SIGINT. 0 or a negative errno. `ready` is called once the shares hold. */
int shaper_run(struct shaper *s, void (*ready)(void *arg), void *arg);
/* The static policy stays in force. */
void shaper_free(struct shaper *s);

/* Say what this kernel and the policy's devices lack, one line at a time. p NULL: only the kernel. Nothing is changed. */
enum shaper_finding { SHAPER_FINE, SHAPER_NOTE, SHAPER_FAULT };
typedef void shaper_tell(
	void *arg, enum shaper_finding finding, const char *what, const char *text);
int shaper_check(const struct weir_policy *p, const struct device_guard *g, shaper_tell *tell,
	void *arg, struct weir_err *err);
