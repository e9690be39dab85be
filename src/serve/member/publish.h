/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * publish: the state of a member in the store, kept there by a lease.
 *
 * Only the newest state is written; a state that could not be is written again when the store answers.
 */
#pragma once

#include "serve/versions/record.h"
#include "serve/store/store.h"

struct publish;

#define PUBLISH_MEMBERS "members/"
#define PUBLISH_KNOWN   "known/"

int publish_start(struct loop *l, struct store *s, const char *name, const char *local,
	struct publish **ret_publish, struct weir_err *err);
/* r: the version in force; fault: why `wanted`, a newer one, is not; NULL: none. */
void publish_version(struct publish *p, const struct record *r, uint64_t wanted, const char *fault);
/* Before store_close. The lease is not revoked: a restart within its time takes it over. NULL is fine. */
void publish_stop(struct publish *p);
