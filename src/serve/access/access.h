/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * access: which client of an API has which role.
 *
 * A client proves itself by a token; else by a certificate that the policy gives a role; else, on a unix socket, by its user and
 * groups. A role is read, operate or admin (policy/policy.h); each route of an API states the role that it needs (http/route.h).
 *
 *   tokens    with names, roles and ends (tokens.h), and one without a name, which is admin
 *   audit     the record of changes
 *   throttle  what an address may ask for before it has proven anything
 *
 * Everything but access_new is called from one thread.
 */
#pragma once

#include <weir/err.h>
#include "policy/policy.h"
#include "serve/access/tokens.h"
#include "serve/loop/tls.h"
#include <stdbool.h>

struct access;

struct access_config {          /* zero: a unix peer is admin, none else has a role */
	const char *token_file; /* the first line is the token of an admin; NULL: none */
	const struct policy_access *policy; /* may be NULL */
	const char *state; /* folder; has the tokens if the policy names no file. NULL: none */
};
/* Files are read, and users and groups looked up. 0; -EINVAL, -ENOENT or another errno with a message. */
int access_new(const struct access_config *c, struct access **ret_access, struct weir_err *err);
void access_free(struct access *a); /* NULL is fine */
/* Check the files of tokens only. 0, or the error of access_new. */
int access_check(const struct access_config *c, struct weir_err *err);

/* Return true if a client by TCP can have a role. */
bool access_takes_tcp(const struct access *a);
bool access_has_tls(const struct access *a);
/* Return the credentials of the server, from files that are read again when they change; tls_free. NULL: none. */
struct tls *access_tls(struct access *a);
const char *access_tokens_file(const struct access *a); /* NULL: none */

struct access_who {
	enum policy_role role;
	char name[TOKENS_NAME + 20]; /* "anna", "uid 1000", "" */
	const char *by;              /* "token", "certificate", "unix"; "none" */
};

/* Get the user of a connection on a unix socket, and its role. */
void access_unix(const struct access *a, int fd, struct access_who *ret);
/* Get the client that a verified certificate names; without a rule for it the role is none. */
void access_cert(const struct access *a, const char *name, struct access_who *ret);
/* Get the client of a token, "Bearer …". 0, or -EACCES and the reason. */
int access_token(
	struct access *a, const char *header, struct access_who *ret, struct weir_err *err);
