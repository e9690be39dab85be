/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric-host: the fabric's broker (control/parley/fabric.h) as a part of `weir control`: it listens for the leaders of racks.
 *
 * Leaders connect as servers of a cluster do (lease-hub.h), and report the usage of their racks. Each period it divides, and tells each
 * leader the limits of its rack. A rack whose leader is not heard goes on as fabric.h says. Nothing is kept: after a restart the
 * racks report again, and until then their last limits hold.
 *
 * One thread: the loop's.
 */
#pragma once

#include "policy/policy.h"
#include <weir/err.h>
#include <jansson.h>
#include <stdio.h>

struct loop;
struct fabric_host;

struct fabric_host_config {
	struct loop *loop;
	const char *name; /* of this broker; borrowed */
	const struct weir_policy
		*policy;    /* with network.fabric; borrowed until fabric_host_policy */
	const char *listen; /* NULL: the policy's address; borrowed */
};
int fabric_host_new(
	const struct fabric_host_config *c, struct fabric_host **ret, struct weir_err *err);
void fabric_host_free(struct fabric_host *h); /* NULL is allowed */
/* Divide by another policy from the next period on. Its address and key are those of before. */
int fabric_host_policy(struct fabric_host *h, const struct weir_policy *p, struct weir_err *err);
const char *fabric_host_address(const struct fabric_host *h); /* on which it listens */

json_t *fabric_host_json(const struct fabric_host *h);
void fabric_host_metrics(const struct fabric_host *h, FILE *to);
