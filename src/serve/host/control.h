/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control: the controller of a cluster as a process: `weir control`.
 *
 * It listens for servers (lease-hub), hands their reports to the controller (control/cluster.h) and
 * carries its grants back. It keeps no tokens on disk: servers report what they hold to the next
 * controller. The plan is kept by the servers, and by the controller if the policy has a state folder.
 *
 * Where the policy has `network.fabric`, it is the fabric's broker (fabric-host.h), too, or that alone if there is no cluster.
 *
 *   control.c         servers, buckets, messages, rounds
 *   control-policy.c  what the policy says, at the start and on SIGHUP
 *   control-plan.c    the cluster's plan, to the servers
 *   control-join.c    tenants and election by a cluster's store
 *   control-api.c     what can be asked: /v1/status, /v1/plan, /metrics, /healthz
 *
 * One thread: the loop's.
 */
#pragma once

#include <weir/err.h>
#include "policy/policy.h"

struct loop;
struct control;
struct versions_text;

struct control_options {
	const char *name;          /* of this controller; NULL: what the machine is called */
	const char *const *listen; /* instead of the policy's; NULL: the policy's */
	size_t n_listen;
	const char *const *api; /* the same of the API; NULL and n_api 0: the policy's, or none */
	size_t n_api;
	const char *token_file; /* of an API on TCP; NULL: the policy's */
	/* Reads the policy again, on SIGHUP: both are its own from then on. 0, or a negative errno and why. */
	int (*reread)(
		void *arg, struct weir_policy **ret_policy, char **ret_text, struct weir_err *err);
	void *reread_arg;
	/* For plans; all borrowed but the text, which is its own: the policy's text and file, and how files beside it are read. */
	char *text;
	const char *file;
	weir_policy_reader *reader;
	void *reader_arg;
	const struct control_join *
		join; /* NULL: it is not of a cluster in a store. Borrowed until control_new returns */
};

struct control_join {
	const char *store, *local;     /* the text of its own file */
	unsigned lease;                /* s, of the leader; 0: 5 */
	struct versions_text *version; /* the one with which the policy was made; taken */
};

/* The policy is its own from now on, also when this fails. Listens when it returns. */
int control_new(struct weir_policy *p, const struct control_options *o,
	struct control **ret_control, struct weir_err *err);
/* The same inside a gateway: a server that may stand in for a controller (control/cluster.h), on the gateway's loop. The
 * policy and its bounds (weir_policy_bounds) are borrowed until control_policy gives others. rank: 1 … */
int control_stand_in(struct loop *loop, const struct weir_policy *p,
	const struct weir_bounds *bounds, const char *server, unsigned rank, const char *listen,
	struct control **ret_control, struct weir_err *err);
/* Begin to read another policy, in steps of the loop; those of before are in force until all is read. 0 or -ENOMEM. */
int control_policy(
	struct control *l, const struct weir_policy *p, const struct weir_bounds *bounds);
int control_run(struct control *l); /* until SIGTERM or SIGINT; 0 or a negative errno */
void control_free(struct control *l);

/* Could it be controlled, as far as can be told without opening anything? 0 or -EINVAL and why. */
int control_check(const struct weir_policy *p, struct weir_err *err);
