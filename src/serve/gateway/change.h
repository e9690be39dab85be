/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * change: from what a person wants changed to a policy in force. For gateway*.c.
 *
 *   serve/gateway/policy.c   makes the next version of the policy from a file's text and what `set` changed
 *   serve/gateway/change.c   puts it in force, while everything goes on
 */
#ifndef WEIR_SERVE_GATEWAY_CHANGE_H
#define WEIR_SERVE_GATEWAY_CHANGE_H

#include "serve/loop/aside.h"
#include "serve/gateway/impl.h"

enum gateway_change_kind { CHANGE_APPLY, CHANGE_SET, CHANGE_RELOAD };

struct gateway_draft { /* a version in the making; zero it */
	struct weir_policy *base;
	struct gateway_version *version;
	int *was; /* policy_swap_map from the version in force */
	struct gateway_override *overrides;
	size_t n_overrides;
	struct tls *tls;
	bool tls_set; /* tls replaces the gateway's, even by NULL */
	bool kept;    /* the state folder has its overrides */
};

struct gateway_change {
	enum gateway_change_kind kind;
	/* apply, reload: */
	char *text;
	size_t len, tenants_len; /* the last bytes of the text are those of the tenants' file */
	char *name;
	bool keep, dry;
	bool own; /* the operator's own file, which may name others */
	/* set: */
	char *key, *value; /* value NULL: back to what the file says */

	/* what came of it */
	struct gateway_draft draft;
	struct gateway_note note;
	struct weir_err err;
	int rc;

	/* serve/gateway/change.c's */
	struct gateway_change *next;
	struct gateway *gateway;
	struct aside_job job;
	struct loop_task there, back;
	int stage;
	size_t resource; /* whose turn it is */
	uint8_t *states; /* by resource */
	int step_rc;     /* of it */
	gateway_changed_fn *done;
	void *arg;
};

/* ---- serve/gateway/policy.c: any thread, while nothing else changes the policy in force */

/* Makes c->draft, all of it that can be refused, and keeps it in the state folder; sets rc, note, err. */
void gateway_draft_make(struct gateway *g, struct gateway_change *c);
/* It came to nothing: the state folder has again what is in force. */
void gateway_draft_unkeep(struct gateway *g, struct gateway_draft *d);
void gateway_draft_free(struct gateway_draft *d);
/* Main thread: the draft is in every gate. It is the gateway's now, and what was in force is in the draft. */
void gateway_draft_enter(struct gateway *g, struct gateway_change *c);

/* ---- serve/gateway/change.c */

/* Ends what is under way; the loop does not run. False: a thread still uses the policy. */
bool gateway_changes_stop(struct gateway *g);

#endif
