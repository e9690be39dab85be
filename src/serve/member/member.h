/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * member: a gateway whose tenants are a cluster's, from a store.
 *
 * Its own file states devices and listeners, and no tenants. It follows the newest version in the store, puts it in force, and
 * publishes what it has:
 *
 *   members/NAME   while it lives: {"name", "version", "id", "fault", "wanted", "local", "weir", "capacities", "instance", "host",
 *                  "process"}; the instance tells members apart that were given the same name
 *   known/NAME     since it joined for the first time
 *
 * A version that cannot be put in force leaves the one before it there, and the reason is published as "fault". While the store is
 * away the version in force stays; a copy in the state folder serves a start without the store.
 */
#pragma once

#include <weir/policy.h>
#include "serve/versions/versions.h"
#include "serve/member/token.h"

struct gateway;
struct member;

#define MEMBER_TTL 10 /* s, of its lease */

struct member_options {            /* strings are copied */
	const struct token *token; /* its store, and the cluster that must be there */
	const char *name;          /* of the member, unique in the cluster */
	const char *file;          /* its own policy file */
	const char *local;         /* the text of that */
	const char *state;         /* folder; NULL: no copy is kept */
	bool bare; /* no gateway, or a check: values that were set are not written to the state folder */
	weir_policy_reader *reader; /* reads the file again with SIGHUP, and those that it names */
	void *reader_arg;
};

/* Read the version to start with: of the store, or its copy. The store has `wait` to answer. Runs a loop of its own. -ENOENT: there is
 * none; or an error of the store, if there is no copy either. */
int member_first(const struct member_options *o, weir_time wait, struct versions_text *ret,
	struct weir_err *err);

/* Follow the store from the gateway's loop; v: the version that it was started with, taken. Before gateway_run. The store and the
 * local file are opened here, and read again with SIGHUP. */
int member_start(struct gateway *g, const struct member_options *o, struct versions_text *v,
	struct member **ret_member, struct weir_err *err);
/* The loop does not run; before gateway_free. NULL is fine. */
void member_stop(struct member *m);
void member_free(struct member *m); /* after gateway_free */

/* Make the text of a member's whole policy: its own, which names `tenants`. malloc'ed; NULL: no memory. */
char *member_text(const char *local);

/* The text of the member's own file, as it was at the start; for a dry run. */
const char *member_local(const struct member *m);
/* List the last versions, in order, as versions_list. */
void member_list(struct member *m, size_t most, versions_list_done *done, void *arg);
/* Store a change that came through this member's API; then as versions_put. */
void member_put(
	struct member *m, const struct versions_request *q, versions_put_done *done, void *arg);
