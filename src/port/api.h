/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api: the gateway as HTTP, for people with curl, for Prometheus, and for weir's own verbs. The manual
 * is weir-api(7).
 *
 *   api.c         routes, and those that change something
 *   api-status.c  what was measured as JSON
 *   metrics.c     what was measured as Prometheus has it
 */
#ifndef WEIR_PORT_API_H
#define WEIR_PORT_API_H

#include "base/err.h"
#include "port/snapshot.h"
#include <jansson.h>
#include <stdio.h>
#include <sys/types.h>

struct gateway;
struct api;

struct api_options {                  /* zero: the default */
	const char *const *addresses; /* "unix:…", "tcp:…" (needs token_file) */
	size_t n_addresses;
	const int *sockets; /* from systemd; taken over */
	size_t n_sockets;
	const char *token_file;
	mode_t mode; /* of unix sockets; 0: 0660 */
};
/* After gateway_new, before gateway_run; main thread. Without addresses and sockets it is where
 * http_socket says; if that cannot be had (in use by another gateway, say) and nothing else is said
 * about it, it is logged and the gateway has no API: 0 and *ret_api NULL. api_stop before gateway_free; NULL is fine. */
int api_start(
	struct gateway *g, const struct api_options *o, struct api **ret_api, struct weir_err *err);
void api_stop(struct api *a);

/* ---- pure: a snapshot in words */

struct metrics_process { /* of the whole process, from the system */
	double cpu;      /* seconds */
	uint64_t resident, fds, threads;
};
/* The text exposition format of Prometheus, version 0.0.4. p: may be NULL. */
void metrics_write(const struct snapshot *s, const struct metrics_process *p, FILE *to);

/* weir-api(7), GET /v1/status and /v1/clients. histograms: with the buckets of each tenant's latency,
 * so that two looks can be subtracted. NULL: no memory. */
json_t *api_status(const struct snapshot *s, bool histograms);
json_t *api_clients(const struct snapshot *s);

#endif
