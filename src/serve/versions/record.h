/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record: one version of a policy as it is stored, without its text: JSON of some hundred bytes.
 *
 *   {"number": 42, "id": "…", "when": 1763580000.1, "user": "anna", "member": "node7", "message": "double db's minimum",
 *    "kind": "apply", "base": 41, "name": "/etc/weir/policy.yaml", "tenants": 0, "pieces": [["ab12…", 3120]],
 *    "set": [{"key": "db.max", "value": "5k iops", "until": 1763583600}]}
 */
#pragma once

#include "serve/versions/pieces.h"
#include <stdbool.h>
#include <stdint.h>

#define RECORD_ID      33  /* bytes of an id, with its NUL */
#define RECORD_MESSAGE 400 /* bytes of a message, at most; of a user or member 100 */
#define RECORD_SETS    1000

struct record_set { /* a value that `weir set` changed */
	char *key, *value;
	double until; /* s since 1970; 0: no end */
};

/* Return true if the value has ended; now: s since 1970. */
static inline bool record_ended(const struct record_set *s, double now)
{
	return s->until > 0 && s->until <= now;
}

struct record {
	uint64_t number;    /* from 1 on */
	char id[RECORD_ID]; /* random: no other has it */
	double when;        /* s since 1970 */
	char *user, *member, *message;
	char *kind;    /* "apply", "set", "rollback" */
	uint64_t base; /* the version before it; 0: none */
	char *name;    /* of the policy's file */
	size_t tenants; /* the last bytes of the text are the file of tenants that the policy names */
	struct piece *pieces; /* of the text, in order */
	size_t n_pieces;
	struct record_set *sets;
	size_t n_sets;
	uint64_t revision; /* of the store; not in the text */
};

void record_free(struct record *r);                             /* its members; all zero is fine */
int record_copy(const struct record *from, struct record *ret); /* 0 or -ENOMEM */
int record_new_id(struct record *r);
/* Add a value, or replace that of its key; value NULL: remove it. 0, -ENOMEM; -ENOENT: there is none; -E2BIG: too many. */
int record_set(struct record *r, const char *key, const char *value, double until);
/* Replace a text by a copy; NULL: "". 0 or -ENOMEM. */
int record_text(char **to, const char *from);
/* Take over the values that were set, the text, or both, of another version. 0 or -ENOMEM. */
int record_take(struct record *to, const struct record *from, bool sets, bool text);
/* Forget its number and content: the id, the time and the texts about the change stay. */
void record_clear(struct record *r);
/* malloc'ed; NULL: no memory. */
char *record_write(const struct record *r);
/* 0, -ENOMEM, or -EPROTO: no such record. */
int record_read(const char *text, size_t n, struct record *ret);
size_t record_length(const struct record *r); /* bytes of its text */
