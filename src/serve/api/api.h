/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api: the gateway's HTTP API, for people with curl, for Prometheus, and for weir's own verbs. The
 * manual is weir-api(7).
 *
 *   api.c         routes; the policy and overrides
 *   api-call.c    the HTTP thread, and the main thread
 *   api-look.c    answers that are gathered first and then sent piece by piece
 *   api-record.c  recordings
 *   api-history.c the past
 *   api-status.c  measurements as JSON; api-resource.c: those of resources
 *   metrics.c     measurements for Prometheus
 */
#pragma once

#include <weir/err.h>
#include "serve/snapshot/snapshot.h"
#include <jansson.h>
#include <stdio.h>
#include <sys/types.h>

struct gateway;
struct member;
struct api;

struct api_options {                  /* zero: the default */
	const char *const *addresses; /* "unix:…", "tcp:…" (needs token_file) */
	size_t n_addresses;
	const int *sockets; /* from systemd; taken over */
	size_t n_sockets;
	const char *token_file;
	mode_t mode;            /* of unix sockets; 0: 0660 */
	const char *recordings; /* folder; NULL: nothing can be recorded */
	const char *state;      /* folder for the history; NULL: a restart loses it */
	struct member
		*member; /* of a cluster, in whose store changes of the policy are; NULL: none */
};
/* Start the API after gateway_new, before gateway_run; main thread. Without addresses and sockets
 * it listens at http_socket; if that is not available (e.g. in use by another gateway) and nothing
 * else is configured, a message is logged and the gateway has no API: 0 and *ret_api NULL. api_stop
 * before gateway_free; NULL is fine. */
int api_start(
	struct gateway *g, const struct api_options *o, struct api **ret_api, struct weir_err *err);
void api_stop(struct api *a);

/* ---- pure: a snapshot in words, a few tenants at a time */

struct metrics_process { /* of the whole process, from the system */
	double cpu;      /* seconds */
	uint64_t resident, fds, threads;
};
/* The text exposition format of Prometheus, version 0.0.4. */
struct metrics_cursor { /* zero members that are not set */
	const struct snapshot *snapshot;
	const struct metrics_process *process; /* may be NULL */
	const uint32_t *select;                /* the tenants that are shown; NULL: all */
	size_t n_select;
	/* progress */
	bool begun;
	size_t part, family, at;
};
/* Write the lines of about so many tenants, or rows of controllers. Return true if there is
 * more. */
bool metrics_more(struct metrics_cursor *c, size_t tenants, FILE *to);

/* weir-api(7), GET /v1/status. */
struct api_status {
	const struct snapshot *snapshot;
	const uint32_t *select; /* as above */
	size_t n_select;
	/* with the buckets of each tenant's latency, so that two snapshots can be subtracted */
	bool histograms;
	bool brief;       /* of idle tenants only path, weight and share */
	size_t left_out;  /* number of idle tenants that were omitted */
	const char *next; /* path: more tenants follow the selected ones; NULL: none */
	/* progress; zero it */
	bool listed; /* all tenants are written */
	size_t at, resource, part, table, row;
	char *idle; /* end of an idle tenant's object; api_status_end frees it */
};
/* returns true if there is more */
bool api_status_more(struct api_status *s, size_t tenants, FILE *to);
void api_status_end(struct api_status *s);

/* GET /v1/clients; tenant: only clients whose tenant's path begins with it (NULL: all). NULL: no
 * memory. */
json_t *api_clients(const struct snapshot *s, const char *tenant);
