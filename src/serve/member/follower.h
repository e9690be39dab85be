/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * follower: follows the newest version in a store, has it put in force, and publishes that.
 *
 * A version that cannot be put in force leaves the one before it there, and the reason is published. While the store is away the
 * version in force stays; a copy in the state folder serves a start without the store. Of a version, values that were set end by
 * themselves: the version is put in force again then.
 */
#pragma once

#include <weir/policy.h>
#include "serve/loop/loop.h"
#include "serve/member/publish.h"
#include "serve/versions/versions.h"

struct follower;

struct follower_options { /* strings are copied */
	struct loop *loop;
	const char *store, *name, *local, *state; /* state NULL: no copy is kept */
	const char *members, *known, *instance;   /* publish.h */
	/* Put a version in force, then call follower_done, from the loop. */
	void (*put)(void *arg, const struct versions_text *v);
	void *arg;
};

/* v: the version that is in force already, taken. */
int follower_new(const struct follower_options *o, struct versions_text *v,
	struct follower **ret_follower, struct weir_err *err);
void follower_start(struct follower *f);
/* The loop does not run. Then follower_free. NULL is fine. */
void follower_stop(struct follower *f);
void follower_free(struct follower *f);

/* `put` is done: 0, or why the version is not in force; -ESHUTDOWN: neither. */
void follower_done(struct follower *f, int rc, const struct weir_err *err);
/* Return the text of the version that is put in force, or of the one that is; malloc'ed; NULL: no memory. Any thread. */
char *follower_text(struct follower *f);
/* A reader (weir_policy_reader; any thread) of the policy that has the follower's tenants: of `file`, to which it adds that they are
 * in MEMBER_TENANTS (member.h), of that, and of other files by another reader. */
struct follower_files {
	struct follower *follower;
	char *file;
	weir_policy_reader *reader;
	void *reader_arg;
};
int follower_read(void *arg /* struct follower_files */, const char *from, const char *name,
	char **ret_text, size_t *ret_len, struct weir_err *err);
const struct versions_text *follower_in_force(const struct follower *f);

struct store *follower_store(const struct follower *f);
struct publish *follower_publish(const struct follower *f);
const char *follower_name(const struct follower *f);
const char *follower_local(const struct follower *f);
