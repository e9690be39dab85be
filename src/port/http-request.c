/* SPDX-License-Identifier: BSD-3-Clause */
/* http-request: one request: may it ask, its body, the handler's reply. */
#include "port/http-impl.h"
#include <errno.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOKEN_MIN 16 /* characters: 64 bits of hex; less can be tried out */

struct exchange { /* one request and its reply */
	struct connection *connection;
	char *body;
	size_t length, room;
};

/* ---- the token */

int http_token_read(struct http *h, const char *file, struct weir_err *err)
{
	FILE *f = fopen(file, "re");
	size_t n;

	if (!f)
		return weir_err_set(err, -errno, "%s: %s", file, strerror(errno));
	if (!fgets(h->token, sizeof(h->token), f))
		h->token[0] = 0;
	fclose(f);
	n = strcspn(h->token, "\r\n");
	memset(h->token + n, 0, sizeof(h->token) - n); /* all of it is compared */
	if (n < TOKEN_MIN || n >= HTTP_TOKEN_MAX)
		return weir_err_set(err, -EINVAL,
			"%s: a token is one line of %d to %d characters, not of %zu", file,
			TOKEN_MIN, HTTP_TOKEN_MAX - 1, n);
	return 0;
}

/* The time that it takes does not tell how much of it is right. */
static bool knows_token(const struct http *h, struct MHD_Connection *c)
{
	const char *says = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization");
	char given[HTTP_TOKEN_MAX + 1] = "";
	bool same;

	if (!says || strncasecmp(says, "Bearer ", 7) != 0)
		return false;
	says += 7;
	says += strspn(says, " ");
	snprintf(given, sizeof(given), "%s", says);
	same = strlen(given) == strlen(h->token);
	return gnutls_memcmp(given, h->token, sizeof(given) - 1) == 0 && same && h->token[0];
}

/* ---- one request */

const char *http_query(const struct http_request *q, const char *key)
{
	struct MHD_Connection *c = (struct MHD_Connection *)(uintptr_t)q->connection;
	const char *value = NULL;
	size_t n;

	if (MHD_lookup_connection_value_n(c, MHD_GET_ARGUMENT_KIND, key, strlen(key), &value, &n) !=
		MHD_YES)
		return NULL;
	return value ? value : "";
}

static enum MHD_Result answer(struct MHD_Connection *c, struct http_reply *r)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(r->body ? r->length : 0,
		r->body ? r->body : (void *)(uintptr_t) "",
		r->body ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
	enum MHD_Result done;

	if (!response) {
		free(r->body);
		return MHD_NO;
	}
	MHD_add_response_header(
		response, "Content-Type", r->type ? r->type : "text/plain; charset=utf-8");
	MHD_add_response_header(response, "Cache-Control", "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	if (r->status == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
	if (r->allow)
		MHD_add_response_header(response, "Allow", r->allow);
	done = MHD_queue_response(c, r->status ? r->status : 500, response);
	MHD_destroy_response(response);
	return done;
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned status, const char *why)
{
	struct http_reply r = {.status = status, .body = strdup(why)};

	r.length = r.body ? strlen(r.body) : 0;
	return answer(c, &r);
}

/* Before the body is read: may this client ask at all? */
static enum MHD_Result begin(struct http *h, struct MHD_Connection *c, const char *path,
	const char *method, void **state)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct connection *of = info ? info->socket_context : NULL;
	const char *length = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Length");
	bool health = strcmp(path, "/healthz") == 0 && strcmp(method, "GET") == 0;
	struct exchange *x;

	if (!of)
		return MHD_NO;
	of->since = loop_now(h->loop);
	if (of->tcp && !health && !knows_token(h, c))
		return refuse(c, MHD_HTTP_UNAUTHORIZED, "the token is missing or wrong\n");
	if (length && strtoull(length, NULL, 10) > HTTP_BODY_MAX)
		return refuse(c, MHD_HTTP_CONTENT_TOO_LARGE, "the body is over 16 MiB\n");
	x = calloc(1, sizeof(*x));
	if (!x)
		return MHD_NO;
	x->connection = of;
	*state = x;
	return MHD_YES;
}

/* MHD_NO closes the connection: of a body that says its length begin has refused what is too long. */
static enum MHD_Result take_body(struct exchange *x, const char *data, size_t n)
{
	if (n > HTTP_BODY_MAX - x->length)
		return MHD_NO;
	if (x->length + n + 1 > x->room) {
		size_t room = 2 * (x->length + n + 1);
		char *more = realloc(x->body, room);
		if (!more)
			return MHD_NO;
		x->body = more;
		x->room = room;
	}
	memcpy(x->body + x->length, data, n);
	x->length += n;
	x->body[x->length] = 0;
	return MHD_YES;
}

enum MHD_Result http_handle(void *arg, struct MHD_Connection *c, const char *path,
	const char *method, const char *version, const char *data, size_t *n, void **state)
{
	struct http *h = arg;
	struct exchange *x = *state;
	struct http_reply reply = {0};
	struct http_request q;

	if (!x)
		return begin(h, c, path, method, state);
	if (*n) {
		enum MHD_Result taken = take_body(x, data, *n);
		*n = 0;
		return taken;
	}
	q = (struct http_request){.method = method,
		.path = path,
		.body = x->body ? x->body : "",
		.length = x->length,
		.connection = c};
	h->handler(h->arg, &q, &reply);
	return answer(c, &reply);
}

void http_completed(
	void *arg, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why)
{
	struct http *h = arg;
	struct exchange *x = *state;

	if (!x)
		return;
	x->connection->since = loop_now(h->loop);
	free(x->body);
	free(x);
	*state = NULL;
}
