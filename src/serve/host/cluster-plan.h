/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cluster-plan: a gateway's side of the plan that the cluster's controller sends (wire/lease.h, LEASE_PLAN).
 *
 * LAW     A plan with a higher number than the last one is fetched part by part, checked by its digest, and put in force as one
 *         from the API (serve/gateway/plan-put.c), if it fits this gateway's policy. Each answer to the controller says which plan the
 *         gateway has, and why it refused another. A refused one is tried again after a change of the policy. A controller that is
 *         lost, or has no plan, changes nothing.
 * LOST    The controller announces a plan again until it is answered, and each announcement asks for the next part.
 *
 * One thread: the gateway's main thread.
 */
#pragma once

#include "wire/lease.h"

struct gateway;
struct cluster_plan;

struct cluster_plan_config {
	struct gateway *gateway;
	/* Send an answer to the controller `to`, as in cluster_plan_hear; NULL: to all of them. */
	void (*tell)(void *arg, void *to, struct lease_message *m);
	void *arg;
};
int cluster_plan_new(
	const struct cluster_plan_config *config, struct cluster_plan **ret); /* or -ENOMEM */
void cluster_plan_free(struct cluster_plan *p); /* no change of a plan is under way */

/* A controller has sent a LEASE_PLAN. */
void cluster_plan_hear(struct cluster_plan *p, void *from, const struct lease_message *m);
void cluster_plan_lost(struct cluster_plan *p, const void *from); /* `from` is no longer used */
/* Another policy or plan is in force: tell it. */
void cluster_plan_policy(struct cluster_plan *p);
