/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * links: the plug for modules that connect the controllers of a gateway's resources with other hosts.
 *
 * serve/host has two, the peers of a controller (reports.h) and the controllers of a cluster (cluster.h). The options of a
 * gateway list those that it has. Functions are for the main thread unless stated otherwise, and any may be NULL.
 */
#pragma once

#include <weir/err.h>
#include "policy/policy.h"

struct gateway;
struct gateway_resource;
struct snapshot;

struct gateway_link {
	/* The back ends of the resources are open, and no worker runs yet. */
	int (*open)(struct gateway *g, struct weir_err *err);
	/* Workers run; the main loop does not. */
	int (*start)(struct gateway *g, struct weir_err *err);
	/* A resource was opened, and is not in force. Any thread; not before `open`. 0 or -ENOMEM. */
	int (*prepare)(struct gateway_resource *r);
	/* It is in force; it is removed from the policy in force; its thread has nothing of the link any more. */
	void (*join)(struct gateway_resource *r);
	void (*leave)(struct gateway_resource *r);
	void (*forget)(struct gateway_resource *r);
	/* Check that a policy may follow the one in force. -EINVAL: it needs a restart. Any thread. */
	int (*fits)(const struct gateway *g, const struct weir_policy *p, struct weir_err *err);
	/* Another policy is in force, in every resource. */
	void (*policy)(struct gateway *g);
	/* Close the connections and free. The main loop does not run, and may be run for a moment. */
	void (*stop)(struct gateway *g);
	/* Add the state of the link to a snapshot. */
	void (*look)(const struct gateway *g, struct snapshot *s);
};

/* Call a function of every link that has it. The first that fails ends the loop. */
int gateway_links_open(struct gateway *g, struct weir_err *err);
int gateway_links_start(struct gateway *g, struct weir_err *err);
int gateway_links_prepare(struct gateway_resource *r);
void gateway_links_join(struct gateway_resource *r);
void gateway_links_leave(struct gateway_resource *r);
void gateway_links_forget(struct gateway_resource *r);
int gateway_links_fit(const struct gateway *g, const struct weir_policy *p, struct weir_err *err);
void gateway_links_policy(struct gateway *g);
void gateway_links_stop(struct gateway *g);
void gateway_links_look(const struct gateway *g, struct snapshot *s);
