/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * publish: the state of a member, or of a controller, in the store, kept there by a lease.
 *
 * A name belongs to the instance that published under it first, as long as its lease lives: another one logs `name-taken`, publishes
 * nothing, and takes the name when it is free. Only the newest state is written; a state that could not be is written again when the store answers.
 */
#pragma once

#include "serve/versions/record.h"
#include "serve/store/store.h"
#include "serve/versions/pieces.h"

struct publish;

#define PUBLISH_MEMBERS       "members/"
#define PUBLISH_KNOWN         "known/"
#define PUBLISH_CONTROLLERS   "controllers/"
#define PUBLISH_KNOWN_CONTROL "known-controllers/"

struct publish_options { /* the first two are borrowed, the others copied */
	const char *members,
		*known;           /* prefixes of keys: its state, while it lives; that it joined */
	const char *name, *local; /* local: the text of its own file */
	const char *instance;     /* NULL: of a controller, whose name is not checked */
};

/* Get the instance of a member: the same after a restart, and another one of another member with its name. file: its own. */
void publish_instance(const char *file, char ret[PIECES_DIGEST]);
/* Check the state that is published under a name: 0, or -EINVAL with a message if it is that of another instance. */
int publish_check(const struct store_key *k, const char *instance, struct weir_err *err);
int publish_start(struct loop *l, struct store *s, const struct publish_options *o,
	struct publish **ret_publish, struct weir_err *err);
/* More about it, which is taken; published if it differs from the last. */
struct json_t;
void publish_facts(struct publish *p, struct json_t *facts);
/* r: the version in force; fault: why `wanted`, a newer one, is not; NULL: none. */
void publish_version(struct publish *p, const struct record *r, uint64_t wanted, const char *fault);
/* Before store_close. The lease is not revoked: a restart within its time takes it over. NULL is fine. */
void publish_stop(struct publish *p);
