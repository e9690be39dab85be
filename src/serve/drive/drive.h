/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drive: the plug for gates that are not ours, as limits of the kernel or of a file server.
 *
 * A driver is a table of functions: counters of tenants in, rules out. A drive is the site (control/controller.h) of one
 * resource of a policy in front of such a gate, so that every controller that limits tenants can drive it:
 *
 *   policy → controller → knobs → drive → rules → driver
 *            controller ← counters ← drive ← counters ← driver
 *
 * The knobs are those of a gate of ours through which no request passes: a tenant's max and the controller's rule are
 * its buckets. Its rule for the driver is the least rate of all of them. The driver gets the rules that changed since it
 * took them, once a step.
 *
 * ERRORS  Without counters there is no step: rules stay as they are. A rule that the driver did not take is given again at
 *         the next step. A bucket that only a gate of ours can have (a min, AdapTBF's `tokens: first`) is refused.
 *
 * Time is an argument: the caller has the clock and the timer. All calls come from one thread.
 */
#pragma once

#include "policy/policy.h"

struct drive_rule { /* of a tenant, a leaf or a group */
	size_t tenant;
	const char *path;
	double most[WEIR_LIMITS]; /* per second, by weir_limit_slot; INFINITY: no limit */
	double weight;            /* for a driver that has weights */
};

struct drive_count {              /* of a leaf, since any origin */
	uint64_t arrived, served; /* requests; a gate that counts one of them gives it for both */
	uint64_t bytes;           /* of the served ones */
	uint32_t queued;          /* requests that wait now; 0 with hides_queue */
	bool again;               /* the driver wants the rule of the tenant again */
};

struct drive_ops {
	const char *name;
	bool hides_queue; /* how many requests wait is not known */
	/* The counters of a leaf; a leaf that the gate does not know yet has none, *ret is 0. 0, or an error with a message. */
	int (*count)(void *driver, size_t tenant, const char *path, struct drive_count *ret,
		struct weir_err *err);
	/* Put a rule in force. 0; -EAGAIN: the gate does not know the tenant yet; or another error with a message. */
	int (*limit)(void *driver, const struct drive_rule *rule, struct weir_err *err);
};

struct drive;

/* Drive a gate for a resource of the policy, which has a controller. Both are borrowed. The driver has no rule before the
 * first step. 0, -EINVAL or -ENOTSUP with a message, or -ENOMEM. */
int drive_new(const struct weir_policy *policy, const struct weir_resource *resource,
	const struct drive_ops *ops, void *driver, struct drive **ret, struct weir_err *err);
/* The driver keeps its rules. */
void drive_free(struct drive *d);

/* Read counters, let the controller step if it is due, and give rules to the driver. *ret_next, always set: when to be
 * called again. 0, or the first error of the driver with a message; the drive goes on at the next step. */
int drive_step(struct drive *d, weir_time now, weir_time *ret_next, struct weir_err *err);

/* The controller's facts, of all tenants. */
void drive_look(struct drive *d, struct arena *memory, struct facts *ret);
