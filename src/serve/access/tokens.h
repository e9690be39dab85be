/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tokens: the file of the tokens of an API, each with a name, a role and an end.
 *
 * A token is 32 random bytes in base64. The file has the SHA-256 of each and never a token: as tokens are random, no slower hash
 * is needed. The file is JSON, a list of
 *
 *   {"name": "prometheus", "role": "read", "hash": "9f86…", "made": 1763580000, "end": 1766172000}
 *
 * with times in seconds since 1970, and end 0: none. Any process that may write the file may change it: changes are made one at a
 * time, and each replaces the file. A gateway notices a change at the next request. A damaged file, or one that all users may
 * write, has no tokens.
 */
#pragma once

#include <weir/err.h>
#include "policy/policy.h"
#include <stdint.h>

#define TOKENS_NAME   65 /* bytes of a name, with the NUL */
#define TOKENS_SECRET 64 /* bytes of a token, with the NUL */
#define TOKENS_HASH   32
#define TOKENS_MOST   1000

struct tokens_entry {
	char name[TOKENS_NAME];
	enum policy_role role;
	int64_t made, end; /* s since 1970; end 0: none */
	unsigned char hash[TOKENS_HASH];
};

struct tokens_list { /* zero it */
	struct tokens_entry *all;
	size_t n;
};
void tokens_list_free(struct tokens_list *l);

/* Parse the text of a file. 0, -ENOMEM, or -EINVAL with a message. */
int tokens_parse(const char *text, size_t len, struct tokens_list *ret, struct weir_err *err);
/* Read a file; none is an empty list. 0, or a negative errno with a message. */
int tokens_read(const char *path, struct tokens_list *ret, struct weir_err *err);
/* Add a token, and get it. -EEXIST: there is one of that name; -EINVAL: the name; or as tokens_read. */
int tokens_add(const char *path, const char *name, enum policy_role role, int64_t end,
	char ret_secret[TOKENS_SECRET], struct weir_err *err);
int tokens_remove(const char *path, const char *name, struct weir_err *err); /* -ENOENT */

void tokens_hash(const char *secret, unsigned char ret[TOKENS_HASH]);

/* ---- a server's view of the file; one thread */

struct tokens;
int tokens_open(const char *path, struct tokens **ret_tokens); /* 0 or -ENOMEM */
void tokens_close(struct tokens *t);                           /* NULL is fine */
/* Find the token with that hash, in constant time. -ENOENT: none; -ETIME: it has ended, *ret is set. */
int tokens_find(struct tokens *t, const unsigned char hash[TOKENS_HASH], int64_t now,
	struct tokens_entry *ret);
