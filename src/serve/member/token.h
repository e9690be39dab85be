/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * token: the file by which a member finds its cluster: lines of a key, a colon and a value.
 *
 *   cluster: prod
 *   id: 6f1c…
 *   store: etcd:https://10.0.0.1:2379?prefix=weir/prod&ca=/etc/weir/ca.pem
 *
 * The store has the name and the id, too, under TOKEN_KEY: a member of another cluster is refused.
 */
#pragma once

#include "serve/store/wait.h"

#define TOKEN_KEY "cluster"

struct token {
	char *cluster, *id, *store;
};

void token_free(struct token *t); /* zeroed is fine */
/* Read the text of a file. 0, -ENOMEM, or -EINVAL with a message. */
int token_read(const char *text, const char *name, struct token *ret, struct weir_err *err);
char *token_write(const struct token *t);  /* malloc'ed; NULL: no memory */
char *token_record(const struct token *t); /* for the store: JSON; the same */
int token_new(const char *cluster, const char *store, struct token *ret, struct weir_err *err);
/* Check what a store of that name has under TOKEN_KEY. 0, or -EINVAL with a message. */
int token_check(const struct token *t, const char *store, const struct store_result *a,
	struct weir_err *err);
/* Open the store of a token, which must have its cluster. stale: as in store.h. 0, -EINVAL: it has none or another one; or an
 * error of the store. */
int token_open(const struct token *t, bool stale, struct store_wait *w, struct weir_err *err);
