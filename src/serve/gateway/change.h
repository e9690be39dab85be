/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * change: from a requested change to a policy in force. For the files of the gateway.
 *
 *   serve/gateway/policy.c   makes the next version of the policy from a file's text and the
 *                            overrides
 *   serve/gateway/change-new.c  a requested change, from its arguments
 *   serve/gateway/refresh.c  requests one when a source of the policy has changed
 *   serve/gateway/change.c   puts it in force, without stopping anything
 */
#pragma once

#include "serve/loop/aside.h"
#include "serve/gateway/each.h"
#include "serve/gateway/impl.h"

enum gateway_change_kind {
	CHANGE_APPLY,
	CHANGE_SET,
	CHANGE_RELOAD,
	CHANGE_REFRESH,
	CHANGE_VOLUME,
	CHANGE_PLAN
};

struct gateway_draft { /* a version that is being made; zero it */
	struct weir_policy *base;
	struct gateway_version *version;
	int *was; /* policy_swap_map from the version in force */
	struct extras extras;
	uint64_t folders;            /* folders_version of its volumes */
	struct gateway_note refused; /* volumes that it should have; a line for each */
	struct gateway_override *overrides;
	size_t n_overrides;
	struct tls *tls;
	bool tls_set; /* tls replaces the gateway's, even by NULL */
	bool kept, kept_extras,
		kept_plan; /* the state folder has its overrides; its extras; its plan */
	struct gateway_volumes volumes;     /* opened, and not in force yet */
	struct gateway_listeners listeners; /* the same; none: unchanged */
	/* of its policy, in its order; NULL: not opened, or in force */
	struct gateway_resource **resources;
	size_t n_resources;
};

struct gateway_change {
	enum gateway_change_kind kind;
	/* apply, reload; plan: its file, NULL: none */
	char *text;
	size_t len, tenants_len; /* the last bytes of the text are the tenants' file */
	char *name;
	bool keep, dry;
	bool own; /* the operator's own file, which may name others */
	/* reload: with these values of `set` instead of those in force */
	bool follow;
	struct gateway_override *sets;
	size_t n_sets;
	/* plan: its number, 0: the next; of the cluster's controller: the digest of its tenants, else "" */
	uint64_t number;
	char tenants_digest[GATEWAY_DIGEST];
	/* set: */
	char *key, *value; /* value NULL: back to the file's value */
	/* refresh: */
	bool scan;   /* read all folders */
	bool forced; /* other sources than folders have changed */
	/* volume: */
	struct gateway_volume_request volume; /* strings are owned */
	/* set when it is made: a volume that must have no client; one that grows; NULL: none */
	const struct gateway_volume *idle;
	const struct gateway_volume *grows;
	char *gone; /* the path of its file, to be deleted; NULL: none */
	struct policy_file gone_file;
	struct policy_file made_file;
	char *made; /* the path of a file that was made for it, to be deleted if it fails; NULL: none */
	bool same; /* there is nothing to change */

	/* result */
	struct gateway_draft draft;
	struct gateway_note note;
	struct weir_err err;
	int rc;
	struct gateway_instances instances; /* senders that have tenants of templates */
	bool entered;                       /* it is in force */

	/* private to serve/gateway/change.c */
	struct gateway_change *next, **link; /* link: of those that wait for volumes */
	struct gateway *gateway;
	struct aside_job job;
	struct loop_task there, back;
	int stage;
	size_t resource; /* current resource of the draft's */
	uint8_t *states; /* by resource */
	int step_rc;     /* of that step */
	size_t leaving;  /* volumes that are not flushed and closed yet */
	struct loop_timer leave_timer;
	gateway_changed_fn *done;
	void *arg;
};

/* ---- serve/gateway/policy.c: any thread, while nothing else changes the policy in force */

/* Make c->draft and check everything that can be refused; store it in the state folder; set rc,
 * note, err. */
void gateway_draft_make(struct gateway *g, struct gateway_change *c);
/* The change failed: restore the state folder to the version in force. */
void gateway_draft_unkeep(struct gateway *g, struct gateway_draft *d);
void gateway_draft_free(struct gateway_draft *d);
/* Take the layers' members; what was opened for them is in ret. 0 or -ENOMEM. */
struct gateway_layers;
int gateway_draft_finish(
	const struct gateway *g, struct gateway_layers *v, struct gateway_draft *ret);
/* Exchange the gateway's own members with the draft's. */
void gateway_draft_exchange(struct gateway *g, struct gateway_draft *d);
/* Main thread: the draft is in every gate. Exchange it with the version in force. */
void gateway_draft_enter(struct gateway *g, struct gateway_change *c);

/* ---- serve/gateway/change.c */

/* End pending changes; the loop does not run. Return false if a thread still uses the policy. */
bool gateway_changes_stop(struct gateway *g);
