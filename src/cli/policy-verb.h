/* SPDX-License-Identifier: BSD-3-Clause */
/* policy-verb: shared by the files of `weir policy`. */
#pragma once

#include "policy/policy.h"
#include "serve/show/policy-show.h"
#include "cli/common/verb.h"
#include "serve/versions/record.h"

extern const struct verb verb_policy;

struct policy_change { /* options of a change */
	bool keep, dry;
	const char *message; /* NULL: none */
	uint64_t base;       /* the version that it is made from; 0: not stated */
};

/* A policy's text; the file that it names for its tenants is sent after it: a gateway opens no file that a client names. */
struct policy_sent {
	char *text;
	size_t len, tenants; /* tenants: the last of these bytes */
};

/* All return the exit status. */

/* policy-live.c: for a running gateway; `at`: as in remote_of_options. store: the store's name instead, or NULL. */
int policy_apply(
	const char *const *at, const char *store, const char *file, const struct policy_change *c);
int policy_show_live(const char *const *at, bool json);
int policy_history_live(const char *const *at, size_t most, bool json);

/* policy-store.c: versions in a store. */
int policy_store_apply(const char *store, const struct policy_sent *sent, const char *name,
	const struct policy_change *c);
int policy_store_rollback(const char *store, uint64_t number, const struct policy_change *c);
int policy_store_history(const char *store, size_t most, bool json);
void policy_show_version(const struct record *r); /* a line */
int policy_store_diff(const char *store, uint64_t a, uint64_t b);
int policy_store_export(const char *store, uint64_t number); /* 0: the newest */

/* policy-keys.c: print the settings of a controller, or of all (NULL). Return the exit status. */
int policy_keys_show(const char *name, bool pod);
