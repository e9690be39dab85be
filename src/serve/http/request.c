/* SPDX-License-Identifier: BSD-3-Clause */
/* http-request: one request: its body, the handler's reply, the record of a change. */
#include "base/field.h"
#include "serve/http/impl.h"
#include "serve/http/json.h"
#include "serve/loop/log.h"
#include "base/array.h"
#include "base/list.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 65536 /* bytes of a body generated at once */

struct exchange { /* one request and its reply */
	struct http *http;
	struct access_who who;
	const struct http_route *route;
	json_t *record; /* of a change; NULL: it is none, or recorded */
	struct connection *connection;
	struct MHD_Connection *of;
	char *body;
	size_t length, room;
	struct http_later *later; /* it waits for its reply */
	bool suspended;           /* until then */
	bool answered;            /* later, with `reply` */
	struct http_reply reply;
};

struct sending { /* a source being sent */
	struct http_source *source;
	struct connection *connection;
	FILE *to;
	char *text;
	size_t made, sent; /* in the block in `text` */
	bool end;
};

/* ---- one request */

const char *http_query(const struct http_request *q, const char *key)
{
	struct MHD_Connection *c = (struct MHD_Connection *)(uintptr_t)q->connection;
	const char *value = NULL;
	size_t n;

	if (MHD_lookup_connection_value_n(c, MHD_GET_ARGUMENT_KIND, key, strlen(key), &value, &n) !=
		MHD_YES)
		return NULL;
	if (value && strlen(value) != n)
		return NULL; /* contains %00: the text before it is not the value */
	return value ? value : "";
}

struct unknown {
	const char *const *keys;
	const char *found;
};

static enum MHD_Result check_key(
	void *arg, enum MHD_ValueKind kind, const char *key, const char *value)
{
	struct unknown *u = arg;

	if (field_index(u->keys, key) >= 0)
		return MHD_YES;
	u->found = key;
	return MHD_NO;
}

const char *http_query_unknown(const struct http_request *q, const char *const *keys)
{
	struct MHD_Connection *c = (struct MHD_Connection *)(uintptr_t)q->connection;
	struct unknown u = {.keys = keys};

	MHD_get_connection_values(c, MHD_GET_ARGUMENT_KIND, check_key, &u);
	return u.found;
}

/* ---- generated bodies */

static void stream_free(void *arg)
{
	struct sending *s = arg;

	s->source->end(s->source);
	if (s->to)
		fclose(s->to);
	free(s->text);
	free(s);
}

static void make_block(struct sending *s)
{
	rewind(s->to);
	while (!s->end && ftell(s->to) < BLOCK)
		s->end = !s->source->more(s->source, s->to);
	fflush(s->to);
	s->made = (size_t)ftell(s->to);
	s->sent = 0;
}

static ssize_t stream_read(void *arg, uint64_t at, char *to, size_t room)
{
	struct sending *s = arg;
	size_t n;

	s->connection->took = loop_now(s->connection->http->loop);
	if (s->sent == s->made && !s->end)
		make_block(s);
	n = s->made - s->sent;
	if (!n)
		return MHD_CONTENT_READER_END_OF_STREAM;
	n = n < room ? n : room;
	memcpy(to, s->text + s->sent, n);
	s->sent += n;
	return (ssize_t)n;
}

static struct MHD_Response *stream_response(struct http_source *source, struct connection *k)
{
	struct sending *s = calloc(1, sizeof(*s));
	struct MHD_Response *response = NULL;

	if (s && (s->to = open_memstream(&s->text, &s->made))) {
		s->source = source;
		s->connection = k;
		k->streams = true;
		k->took = loop_now(k->http->loop);
		response = MHD_create_response_from_callback(
			MHD_SIZE_UNKNOWN, BLOCK, stream_read, s, stream_free);
	}
	if (response)
		return response;
	source->end(source);
	if (s && s->to)
		fclose(s->to);
	if (s)
		free(s->text);
	free(s);
	return NULL;
}

/* ---- answers */

static void wipe(void *body)
{
	explicit_bzero(body, strlen(body));
	free(body);
}

static struct MHD_Response *body_response(struct http_reply *r)
{
	struct MHD_Response *response;

	if (r->body && r->secret)
		response = MHD_create_response_from_buffer_with_free_callback(
			r->length, r->body, wipe);
	else
		response = MHD_create_response_from_buffer(r->body ? r->length : 0,
			r->body ? r->body : (void *)(uintptr_t) "",
			r->body ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
	if (!response)
		free(r->body);
	return response;
}

/* k: the connection of the request; only needed for a source. */
static enum MHD_Result send_reply(
	struct MHD_Connection *c, struct connection *k, struct http_reply *r, bool close)
{
	struct MHD_Response *response =
		r->source ? stream_response(r->source, k) : body_response(r);
	enum MHD_Result done;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(
		response, "Content-Type", r->type ? r->type : "text/plain; charset=utf-8");
	MHD_add_response_header(response, "Cache-Control", "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	if (r->status == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
	if (r->status == MHD_HTTP_TOO_MANY_REQUESTS)
		MHD_add_response_header(response, "Retry-After", "1");
	if (r->allow)
		MHD_add_response_header(response, "Allow", r->allow);
	if (close)
		MHD_add_response_header(response, "Connection", "close");
	done = MHD_queue_response(c, r->status ? r->status : 500, response);
	MHD_destroy_response(response);
	return done;
}

static enum MHD_Result send_refusal(struct MHD_Connection *c, unsigned status, const char *why)
{
	struct http_reply r = {.status = status, .body = strdup(why)};
	bool close = status == MHD_HTTP_BAD_REQUEST || status == MHD_HTTP_NOT_IMPLEMENTED;

	r.length = r.body ? strlen(r.body) : 0;
	return send_reply(c, NULL, &r, close);
}

/* ---- the beginning */

static enum MHD_Result refuse_request(struct http *h, struct MHD_Connection *c,
	const struct connection *k, const char *method, const char *path,
	const struct http_admission *a)
{
	struct http_reply r = {0};
	char from[HTTP_FROM_MAX];
	json_t *record = a->status == 403 ? http_record_begin(k, c, method, path, a) : NULL;

	http_json_fail(&r, a->status, a->why.text);
	r.allow = a->allow[0] ? a->allow : NULL;
	http_record_end(h, &record, &r);
	http_record_from(k, from);
	if (a->status == 401 || a->status == 403 || a->status == 429)
		log_event(LOG_LEVEL_INFO, "api-refused", "from", from, "why", a->why.text, NULL);
	return send_reply(c, NULL, &r, a->status == 400);
}

static struct exchange *exchange_new(struct http *h, struct connection *k, struct MHD_Connection *c,
	const struct http_admission *a)
{
	struct exchange *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->http = h;
	x->of = c;
	x->connection = k;
	x->who = a->who;
	x->route = a->route;
	k->busy = true;
	k->streams = false;
	return x;
}

/* Check, before the body is read, whether this client may send the request. */
static enum MHD_Result begin_request(struct http *h, struct MHD_Connection *c, const char *path,
	const char *method, void **state)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct connection *of = info ? info->socket_context : NULL;
	const char *length = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Length");
	struct http_admission a;
	struct exchange *x;
	const char *why;
	unsigned refused;

	if (!of)
		return MHD_NO;
	http_admit(h, of, c, method, path, &a);
	refused = http_length_check(c, &why);
	if (refused)
		return send_refusal(c, refused, why);
	if (a.file)
		return http_file_send(c, a.file);
	if (a.status)
		return refuse_request(h, c, of, method, path, &a);
	if (length && strtoull(length, NULL, 10) > HTTP_BODY_MAX)
		return send_refusal(c, MHD_HTTP_CONTENT_TOO_LARGE, "the body is over 16 MiB\n");
	x = exchange_new(h, of, c, &a);
	if (!x)
		return MHD_NO;
	x->record = http_record_begin(of, c, method, path, &a);
	*state = x;
	return MHD_YES;
}

/* MHD_NO closes the connection: only for a chunked body, as begin_request refuses a Content-Length
 * that is too large. */
static enum MHD_Result append_body(struct exchange *x, const char *data, size_t n)
{
	if (n > HTTP_BODY_MAX - x->length)
		return MHD_NO;
	if (array_grow(&x->body, &x->room, x->length + n + 1) < 0)
		return MHD_NO;
	memcpy(x->body + x->length, data, n);
	x->length += n;
	x->body[x->length] = 0;
	return MHD_YES;
}

char *http_take_body(struct http_request *q)
{
	char *body = q->exchange->body;

	q->exchange->body = NULL;
	q->exchange->length = q->exchange->room = 0;
	return body;
}

/* ---- deferred replies */

/* Separate the request from its deferred reply. */
static void detach_later(struct http_later *l)
{
	list_remove(l);
	l->exchange->later = NULL;
	l->exchange = NULL;
}

struct http_later *http_defer(struct http_request *q)
{
	struct exchange *x = q->exchange;
	struct http_later *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->exchange = x;
	list_push(x->http->laters, l);
	x->later = l;
	return l;
}

static void reply_free(struct http_reply *r)
{
	if (r->source)
		r->source->end(r->source);
	free(r->body);
}

void http_answer(struct http_later *l, struct http_reply *r)
{
	struct exchange *x = l->exchange;

	if (x)
		detach_later(l);
	free(l);
	if (!x) {
		reply_free(r);
		return;
	}
	x->reply = *r;
	x->answered = true;
	if (!x->suspended) /* its handler answers at once; resuming would cancel the connection's next suspension */
		return;
	MHD_resume_connection(x->of);
	http_run_soon(x->http);
}

void http_drop_laters(struct http *h)
{
	h->ending = true;
	for (struct http_later *l = h->laters, *next; l; l = next) {
		struct exchange *x = l->exchange;

		next = l->next;
		detach_later(l); /* http_answer frees it */
		x->answered = true;
		x->reply = (struct http_reply){.status = MHD_HTTP_SERVICE_UNAVAILABLE};
		MHD_resume_connection(x->of);
	}
	if (h->plain.mhd)
		MHD_run(h->plain.mhd);
	if (h->secure.mhd)
		MHD_run(h->secure.mhd);
}

/* libmicrohttpd sends the last chunk of a generated body even in reply to HEAD, where a client takes it for the next
 * reply: send none. Return true if the connection must be closed, as the length is not known. */
static bool drop_source(struct http_reply *r, const char *method)
{
	if (!r->source || strcmp(method, "HEAD") != 0)
		return false;
	r->source->end(r->source);
	r->source = NULL;
	return true;
}

/* ---- callbacks of libmicrohttpd */

enum MHD_Result http_handle(void *arg, struct MHD_Connection *c, const char *path,
	const char *method, const char *version, const char *data, size_t *n, void **state)
{
	struct http *h = arg;
	struct exchange *x = *state;
	struct http_reply reply = {0};
	struct http_request q;

	if (!x)
		return begin_request(h, c, path, method, state);
	if (*n) {
		enum MHD_Result taken = append_body(x, data, *n);
		*n = 0;
		return taken;
	}
	if (h->ending && !x->answered) {
		x->reply = (struct http_reply){.status = MHD_HTTP_SERVICE_UNAVAILABLE};
	} else if (!x->answered) {
		q = (struct http_request){.method = method,
			.path = path,
			.body = x->body ? x->body : "",
			.length = x->length,
			.route = x->route,
			.who = &x->who,
			.connection = c,
			.exchange = x};
		if (x->record)
			http_record_body(x->record, q.body, q.length);
		if (!http_own_run(h, &q, &x->reply))
			h->handler(h->arg, &q, &x->reply);
		if (x->later) {
			x->suspended = true;
			MHD_suspend_connection(c);
			return MHD_YES;
		}
	}
	reply = x->reply;
	x->reply = (struct http_reply){0};
	http_record_end(h, &x->record, &reply);
	bool close = drop_source(&reply, method);

	return send_reply(c, x->connection, &reply, close);
}

void http_completed(
	void *arg, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why)
{
	struct http *h = arg;
	struct exchange *x = *state;

	if (!x)
		return;
	if (x->connection->proven)
		x->connection->since = loop_now(h->loop);
	x->connection->busy = false;
	if (x->later)
		detach_later(x->later);
	/* The client left before its reply; a change that it asked for may have been made. */
	http_record_end(h, &x->record, &x->reply);
	reply_free(&x->reply);
	free(x->body);
	free(x);
	*state = NULL;
}
