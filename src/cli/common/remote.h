/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remote: client of a running gateway's API (weir-api(7)), by libcurl.
 *
 * Every verb that uses the API has the same three options; without them it uses the gateway of this
 * machine (http_socket).
 */
#pragma once

#include <weir/err.h>
#include "cli/common/verb.h"
#include <jansson.h>
#include <stddef.h>

/* The rows of a verb's table of options; its enum has SOCKET, URL, TOKEN, TLS in this order. */
#define REMOTE_ROWS                                                                                \
	[SOCKET] = {"socket", 0, "PATH",                                                           \
		"the gateway's API socket; else $WEIR_SOCKET or the usual one"},                   \
	[URL] = {"url", 0, "URL", "a gateway on another machine: http[s]://HOST:PORT"},            \
	[TOKEN] = {"token-file", 0, "FILE", "file with the token of its API"},                     \
	[TLS] = {"tls", 0, "DIR", "with --url: folder with ca-cert.pem, and perhaps client-*.pem"}

struct remote;
/*
 * Set up a client from the options (NULL: not given); it does not connect yet. Return -1, or the
 * exit status with the reason printed.
 */
int remote_open(const struct verb *v, const char *socket, const char *url, const char *token_file,
	const char *tls, struct remote **ret_remote);
/* The same from the values of REMOTE_ROWS: values + SOCKET. */
static inline int remote_of_options(
	const struct verb *v, const char *const *values, struct remote **ret_remote)
{
	return remote_open(v, values[0], values[1], values[2], values[3], ret_remote);
}
void remote_close(struct remote *r); /* NULL is fine */

/*
 * Send one request; path includes the query, escaped. Return 0 and the reply; or a negative errno
 * and a message: -ENOENT no gateway answers, -EACCES the token is wrong, -EINVAL the gateway
 * refused the request (400), -ENODATA (404), -EBUSY (409), -EPROTO anything else. A path that is NULL
 * is an error, out of memory.
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

/*
 * Return the path of a request: pairs of a text and a value, which is escaped ('/' stays); a pair
 * whose value is NULL is left out. NULL ends the list. malloc'ed; NULL: no memory.
 */
char *remote_path(const char *text, const char *value, ...) __attribute__((sentinel));

/*
 * Return the path of the status for a view (VIEW_PATH), of tenants whose path begins with `tenant`
 * (NULL: any); all: idle tenants too if there are more than 1,000. malloc'ed; NULL: no memory.
 */
char *remote_status(const char *tenant, bool all);

/* Print the strings of the reply's "notes" to standard output, one per line. */
void remote_notes(const json_t *reply);

/* Return the name of the user that makes a change, for the history: with sudo, that of the user of sudo. "": it has none. */
const char *remote_user(void);
