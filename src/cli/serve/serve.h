/* SPDX-License-Identifier: BSD-3-Clause */
/* serve: shared by the files of `weir serve`. */
#pragma once

#include <weir/err.h>
#include "policy/policy.h"
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct serve_policy {
	const char *name; /* the operand */
	char *text;       /* malloc'ed */
	struct weir_policy *policy;
	bool back_only; /* the operand is a back end's name: the text was made from it */
};

/*
 * Read the operand, a file or a back end's name; warnings go to standard error. Return 0 or a
 * negative errno; -EINVAL: the policy is wrong; else it could not be read. lab: keys for
 * experiments are accepted.
 */
int serve_policy_read(
	const char *operand, bool lab, struct serve_policy *ret, struct weir_err *err);
/* The SHA-256 by which a plan names the policy. */
void serve_policy_digest(const struct serve_policy *p, char ret[65]);
/* Check the names of back ends and peers. Errors have their place. */
int serve_policy_names(const struct weir_policy *p, struct weir_err *err);
/*
 * Return a file with a key, or a token, that is readable or writable by all users; NULL: none.
 * token: the file that an option names instead of the policy's, or NULL.
 */
const char *serve_policy_bare_secret(const struct weir_policy *p, const char *token);
/* Check that the policy could be served, as far as possible without opening anything. */
int serve_policy_check(const struct weir_policy *p, struct weir_err *err);
/* Print a hint for each resource that shares its disk or upstream with an earlier one. disks.c */
void serve_disks_hint(const struct weir_policy *p, FILE *to);
/* Name the disk of a device, through partitions and mapped devices: "disk sda"; or its file system. disks.c */
#define SERVE_DISK 600 /* bytes of a name: an address of NBD, or less */
void serve_disk_of(dev_t device, char ret[SERVE_DISK]);

/* ---- join.c: a member of a cluster */

struct serve_join; /* its token, and the version to start with */
struct gateway;
struct member;
/*
 * Read the token and the own file, and get the version from the cluster's store, or its copy in the folder `state` (NULL: the
 * file's). name NULL: the machine's. check: the name may be taken. Return 0, or a negative errno: -EINVAL: a file or the version is wrong.
 */
int serve_join_read(const char *token, const char *local, const char *name, const char *state,
	bool check, struct serve_join **ret_join, struct serve_policy *ret, struct weir_err *err);
/* The same for a controller; *ret_control is valid as long as the join. */
struct control_join;
int serve_join_control(const char *token, const char *local, struct serve_join **ret_join,
	struct control_join *ret_control, struct serve_policy *ret, struct weir_err *err);
int serve_join_start(struct serve_join *j, struct gateway *g, const char *state,
	struct member **ret_member, struct weir_err *err);
void serve_join_free(struct serve_join *j); /* NULL is fine */
