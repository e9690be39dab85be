/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remote: client of a running gateway's API (weir-api(7)), by libcurl.
 *
 * Every verb that uses the API has the same three options; without them it uses the gateway of this
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
		"url", 0, "URL", "a gateway on another machine: http://HOST:PORT"                  \
	}
#define REMOTE_TOKEN                                                                               \
	{                                                                                          \
		"token-file", 0, "FILE", "with --url: file with the token of its API"              \
	}

struct remote;
/*
 * Set up a client from the options (NULL: not given); it does not connect yet. Return -1, or the
 * exit status with the reason printed.
 */
int remote_open(const struct verb *v, const char *socket, const char *url, const char *token_file,
	struct remote **ret_remote);
void remote_close(struct remote *r);             /* NULL is fine */
const char *remote_name(const struct remote *r); /* for messages: the socket's path or the URL */

/*
 * Send one request; path includes the query, escaped. Return 0 and the reply; or a negative errno
 * and a message: -ENOENT no gateway answers, -EACCES the token is wrong, -EINVAL the gateway
 * refused the request (400), -ENODATA (404), -EBUSY (409), -EPROTO anything else.
 */
int remote_try(struct remote *r, const char *method, const char *path, const char *body, size_t len,
	json_t **ret_json, struct weir_err *err);
/*
 * The same for a verb: return -1 and the reply, or the exit status with the reason printed: 2 if
 * the request was wrong (-EINVAL, -ENODATA), else 1.
 */
int remote_ask(struct remote *r, const char *method, const char *path, const char *body, size_t len,
	json_t **ret_json);

/*
 * Send a GET and write its reply to `to` as it arrives, of any length. Return -1, or the exit
 * status.
 */
int remote_print(struct remote *r, const char *path, FILE *to);

/* Return the text escaped for a path or a query's value ('/' stays), malloc'ed; NULL: no memory. */
char *remote_escape(const char *text);

/*
 * Return the path of the status for a view (VIEW_PATH), of tenants whose path begins with `tenant`
 * (NULL: any); all: idle tenants too if there are more than 1,000. malloc'ed; NULL: no memory.
 */
char *remote_status(const char *tenant, bool all);

/* Print the strings of the reply's "notes" to standard output, one per line. */
void remote_notes(const json_t *reply);

#endif
