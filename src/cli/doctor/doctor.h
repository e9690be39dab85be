/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doctor: shared by the files of `weir doctor`.
 *
 *   doctor.c    the verb: what is looked at, and the report
 *   machine.c   this machine: io_uring, limits, clock, memory, links
 *   storage.c   files and devices of a policy, its sockets and folders
 *   policy.c    the policy's own warnings
 *   gateway.c   a running gateway, by its API
 *   store.c     the store of a cluster
 *
 * A check only looks: it opens files read-only, takes no lock, and binds no address. It reports one finding for each problem,
 * or one DOCTOR_OK with the fact that it saw.
 */
#pragma once

#include <weir/err.h>
#include "cli/common/remote.h"
#include "policy/policy.h"
#include <stddef.h>

enum doctor_level {     /* worst first, as in the report */
	DOCTOR_ERROR,   /* will not work */
	DOCTOR_WARNING, /* works, but less well than the user may expect */
	DOCTOR_NOTE,
	DOCTOR_OK,
};

struct doctor_finding {
	enum doctor_level level;
	char *subject; /* "io_uring", "resource 'ssd'" */
	char *text;    /* the fact */
	char *advice;  /* NULL: nothing is to be done */
};

struct doctor {
	struct doctor_finding *findings;
	size_t n, room;
	bool no_memory;                   /* a finding was lost */
	const struct weir_policy *policy; /* NULL: none was given, or it has errors */
	bool served; /* a gateway answers: the policy's files and sockets may be in use by it */
};

/* Add a finding; advice may be NULL. */
void doctor_say(struct doctor *d, enum doctor_level level, const char *subject, const char *advice,
	const char *fmt, ...) __attribute__((format(printf, 5, 6)));

void doctor_machine(struct doctor *d);
void doctor_storage(struct doctor *d);
/* Read the policy and report its remarks. Return it, or NULL. */
struct weir_policy *doctor_policy(struct doctor *d, const char *path);
/* asked: the options name the gateway, so that it is an error if it does not answer. */
void doctor_gateway(struct doctor *d, struct remote *r, bool asked);
void doctor_store(struct doctor *d, const char *name);
