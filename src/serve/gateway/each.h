/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * each: the tenants that templates have made (policy/each.h): wanted by a client's handshake, made by a refresh, removed by
 * another when their last client has been gone for expire_after. Main thread, unless noted.
 */
#pragma once

#include "policy/each.h"
#include "serve/gateway/impl.h"

struct gateway_instances { /* of one change: copies, so that another thread may use them */
	struct policy_instance *all;
	size_t n;
	weir_time at; /* when they were copied */
};

int gateway_each_start(struct gateway *g); /* 0 or -ENOMEM */
void gateway_each_stop(struct gateway *g);

/* A change begins: copy the senders whose tenants the next version has; those of expired tenants are left out. 0 or
 * -ENOMEM. */
int gateway_each_copy(struct gateway *g, struct gateway_instances *ret);
void gateway_instances_free(struct gateway_instances *list);
/* The version that was made with the list is in force; or it is not (refresh: it was one, so that the tenants that it should have
 * made are not tried again at once). Clients that wait continue. */
void gateway_each_entered(struct gateway *g, const struct gateway_instances *list);
void gateway_each_failed(struct gateway *g, bool refresh);

/* Make the tenants of the list, but not those of exports that the policy lacks. 0 or -ENOMEM. */
int gateway_each_make(struct weir_policy *p, struct gateway_instances *list);
/* Put the limits by size and the mins that fit (policy_each_fit) into a policy that has the tenants of the list. `fresh`: volumes that are opened
 * and not in force yet, or NULL. Any thread while nothing else changes the policy in force. 0 or -ENOMEM. */
int gateway_each_limits(struct gateway *g, struct weir_policy *p,
	const struct gateway_volumes *fresh, const struct gateway_instances *list, bool strict);

/* A client is about to use the export that gateway_find found. 0; -EAGAIN: its tenant is being made, wait. */
int gateway_admit(struct gateway *g, const struct weir_who *who);

/* A size has changed: limits may follow. */
void gateway_each_size(struct gateway *g);
