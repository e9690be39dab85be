/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lessor: the controller of a cluster under pShift as a process: `weir control`.
 *
 * It listens for servers (lease-hub.h), passes their reports to the controller
 * (control/pshift/control.h) and sends its grants. Its state ends with the process: servers report
 * their holdings to the next controller (control/pshift/pshift.h), so nothing is stored on disk.
 *
 *   lessor.c         servers, buckets, messages, rounds
 *   lessor-policy.c  the policy, at the start and on SIGHUP
 *   lessor-api.c     the API: /v1/status, /metrics, /healthz
 *
 * One thread: the loop's.
 */
#ifndef WEIR_SERVE_HOST_LESSOR_H
#define WEIR_SERVE_HOST_LESSOR_H

#include <weir/err.h>
#include "policy/policy.h"

struct loop;
struct lessor;

struct lessor_options {
	const char *name;          /* of this controller; NULL: the machine's name */
	const char *const *listen; /* instead of the policy's; NULL: the policy's */
	size_t n_listen;
	const char *const *api; /* the same for the API; NULL and n_api 0: the policy's, or none */
	size_t n_api;
	const char *token_file; /* of an API on TCP; NULL: the policy's */
	/* Read the policy again, on SIGHUP; it is owned from then on. 0, or a negative errno with a
	 * message. */
	int (*reread)(void *arg, struct weir_policy **ret_policy, struct weir_err *err);
	void *reread_arg;
};

/* Takes the policy, also on failure. Listens when it returns. */
int lessor_new(struct weir_policy *p, const struct lessor_options *o, struct lessor **ret_lessor,
	struct weir_err *err);
/* The same inside a gateway: a server that may stand in for a controller (control/pshift/lead.c),
 * on the gateway's loop. The policy is borrowed until lessor_policy replaces it. rank: 1 … */
int lessor_stand_in(struct loop *loop, const struct weir_policy *p, const char *server,
	unsigned rank, const char *listen, struct lessor **ret_lessor, struct weir_err *err);
int lessor_policy(struct lessor *l, const struct weir_policy *p); /* 0 or -ENOMEM */
int lessor_run(struct lessor *l); /* until SIGTERM or SIGINT; 0 or a negative errno */
void lessor_free(struct lessor *l);

/* Check whether it could be controlled, without opening anything. 0 or -EINVAL with a message. */
int lessor_check(const struct weir_policy *p, struct weir_err *err);

#endif
