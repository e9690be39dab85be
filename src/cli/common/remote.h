/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remote: a running gateway, asked over its API (weir-api(7)), by libcurl.
 *
 * Every verb that asks has the same three options; where none is given it is the gateway of this
 * machine (http_socket).
 */
#ifndef WEIR_CLI_COMMON_REMOTE_H
#define WEIR_CLI_COMMON_REMOTE_H

#include <weir/err.h>
#include "cli/common/verb.h"
#include <jansson.h>
#include <stddef.h>

#define REMOTE_SOCKET                                                                              \
	{                                                                                          \
		"socket", 0, "PATH",                                                               \
			"the gateway's API socket; else $WEIR_SOCKET or the usual one"             \
	}
#define REMOTE_URL                                                                                 \
	{                                                                                          \
		"url", 0, "URL", "a gateway elsewhere: http://HOST:PORT"                           \
	}
#define REMOTE_TOKEN                                                                               \
	{                                                                                          \
		"token-file", 0, "FILE", "with --url: holds the token of its API"                  \
	}

struct remote;
/* What the options say (NULL: not given). -1, or the exit status with the reason printed. Connects to
 * nothing yet. */
int remote_open(const struct verb *v, const char *socket, const char *url, const char *token_file,
	struct remote **ret_remote);
void remote_close(struct remote *r);             /* NULL is fine */
const char *remote_name(const struct remote *r); /* for messages: the socket's path or the URL */

/* One request; path with its query, escaped. 0 and the reply; or a negative errno and why: -ENOENT
 * nobody answers, -EACCES the token, -EINVAL the gateway refused what was sent (400), -ENODATA (404),
 * -EBUSY (409), -EPROTO anything else. */
int remote_try(struct remote *r, const char *method, const char *path, const char *body, size_t len,
	json_t **ret_json, struct weir_err *err);
/* The same for a verb: -1 and the reply, or the exit status with the reason printed: 2 for what was
 * wrong in what was sent (-EINVAL, -ENODATA), else 1. */
int remote_ask(struct remote *r, const char *method, const char *path, const char *body, size_t len,
	json_t **ret_json);

/* A GET whose reply goes to `to` as it comes, however long it is. -1, or the exit status. */
int remote_print(struct remote *r, const char *path, FILE *to);

/* Escaped for a path or a query's value: '/' stays. malloc'ed; NULL: no memory. */
char *remote_escape(const char *text);

/* What a view is made of (VIEW_PATH), of tenants whose path begins with `tenant` (NULL: any); all: of more than
 * 1,000, idle ones too. malloc'ed; NULL: no memory. */
char *remote_status(const char *tenant, bool all);

/* The strings of the reply's "notes" to standard output, a line each. */
void remote_notes(const json_t *reply);

#endif
