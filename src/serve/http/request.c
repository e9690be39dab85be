/* SPDX-License-Identifier: BSD-3-Clause */
/* http-request: one request: authorisation, its body, the handler's reply. */
#include "base/field.h"
#include "serve/http/impl.h"
#include "base/array.h"
#include "base/list.h"
#include <errno.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOKEN_MIN 16 /* characters: 64 bits of hex; a shorter one could be guessed */

#define BLOCK 65536 /* bytes of a body generated at once */

struct exchange { /* one request and its reply */
	struct http *http;
	struct connection *connection;
	struct MHD_Connection *of;
	char *body;
	size_t length, room;
	struct http_later *later; /* it waits for its reply */
	bool suspended;           /* until then */
	bool answered;            /* later, with `reply` */
	struct http_reply reply;
};

struct stream { /* a source being sent */
	struct http_source *source;
	struct connection *connection;
	FILE *to;
	char *text;
	size_t made, sent; /* in the block in `text` */
	bool end;
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
	memset(h->token + n, 0, sizeof(h->token) - n); /* the whole buffer is compared */
	if (n < TOKEN_MIN || n >= HTTP_TOKEN_MAX)
		return weir_err_set(err, -EINVAL,
			"%s: the token must be one line of %d to %d characters, not %zu", file,
			TOKEN_MIN, HTTP_TOKEN_MAX - 1, n);
	return 0;
}

/* Check the token in constant time. */
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
	struct stream *s = arg;

	s->source->end(s->source);
	if (s->to)
		fclose(s->to);
	free(s->text);
	free(s);
}

static void make_block(struct stream *s)
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
	struct stream *s = arg;
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
	struct stream *s = calloc(1, sizeof(*s));
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

static struct MHD_Response *body_response(struct http_reply *r)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(r->body ? r->length : 0,
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

/* ---- files */

static const struct http_file *find_file(const struct http *h, const char *path)
{
	for (size_t i = 0; i < h->n_files; i++)
		if (strcmp(h->files[i].path, path) == 0)
			return &h->files[i];
	return NULL;
}

/* The page may load its own files and ask its own server, nothing else, and no other page may frame it. */
#define FILE_POLICY                                                                                \
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src "    \
	"data:; "                                                                                  \
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/* Return true if the client takes gzip: it is in the list, and not with the weight 0. */
static bool takes_gzip(const char *list)
{
	for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',') {
		size_t n = strspn(at, " \t");
		const char *q;

		at += n;
		n = strcspn(at, ";, \t");
		if (n != 4 || strncasecmp(at, "gzip", n) != 0)
			continue;
		q = at + n + strspn(at + n, "; \t");
		return strncasecmp(q, "q=", 2) != 0 || strtod(q + 2, NULL) > 0;
	}
	return false;
}

static enum MHD_Result send_file(struct MHD_Connection *c, const struct http_file *f)
{
	const char *accepts =
		MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT_ENCODING);
	bool packed = takes_gzip(accepts);
	struct MHD_Response *r = MHD_create_response_from_buffer(packed ? f->n_packed : f->length,
		(void *)(uintptr_t)(packed ? f->packed : f->text), MHD_RESPMEM_PERSISTENT);
	enum MHD_Result done;

	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, "Content-Type", f->type);
	if (packed)
		MHD_add_response_header(r, "Content-Encoding", "gzip");
	MHD_add_response_header(r, "Vary", "Accept-Encoding");
	MHD_add_response_header(r, "Cache-Control", "no-cache");
	MHD_add_response_header(r, "Content-Security-Policy", FILE_POLICY);
	MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	done = MHD_queue_response(c, MHD_HTTP_OK, r);
	MHD_destroy_response(r);
	return done;
}

/* ---- lengths */

struct lengths {
	unsigned n;
	const char *wrong; /* NULL: nothing is */
};

static bool has_control(const char *text)
{
	for (; *text; text++)
		if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
			return true;
	return false;
}

static bool is_name(const char *text)
{
	return *text && !text[strspn(text, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
					   "ABCDEFGHIJKLMNOPQRSTUVWXYZ")];
}

static bool is_number(const char *text)
{
	return *text && !text[strspn(text, "0123456789")];
}

/* Return true if the name is not `says` but begins with it. */
static bool is_longer(const char *name, const char *says)
{
	return strncasecmp(name, says, strlen(says)) == 0 && name[strlen(says)];
}

/* A length that goes on in the next line ("Content-Length: 5", then " 0") is refused whatever the version of libmicrohttpd makes
 * of it: 0.9.75 appends the line to the name of the header, versions that read it as RFC 7230 says to the value, which is then
 * no number, or not "chunked"; others refuse it themselves. */
static enum MHD_Result count_length(
	void *arg, enum MHD_ValueKind kind, const char *key, const char *value)
{
	static const char length[] = "Content-Length", coding[] = "Transfer-Encoding";
	struct lengths *l = arg;

	l->n += strcasecmp(key, length) == 0 || strcasecmp(key, coding) == 0;
	if (!is_name(key)) /* a proxy may take a part of it */
		l->wrong = "the name of a header contains a space or another character that no "
			   "name has\n";
	else if (is_longer(key, length) || is_longer(key, coding))
		l->wrong = "a length is continued on the next line\n";
	else if (strcasecmp(key, length) == 0 && !(value && is_number(value)))
		l->wrong = "Content-Length must be a number\n";
	else if (value && has_control(value))
		l->wrong = "a header contains a control character\n";
	return MHD_YES;
}

/* Check that the end of the body is certain. If not, the connection must be closed: a proxy in front may have used the
 * other of two lengths, and split the requests differently. Return 0, or the status of the refusal. */
static unsigned check_length(struct MHD_Connection *c, const char **ret_why)
{
	const char *coding = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Transfer-Encoding");
	struct lengths l = {0};

	MHD_get_connection_values(c, MHD_HEADER_KIND, count_length, &l);
	if (l.wrong) {
		*ret_why = l.wrong;
		return MHD_HTTP_BAD_REQUEST;
	}
	if (l.n > 1) {
		*ret_why = "more than one Content-Length or Transfer-Encoding is given\n";
		return MHD_HTTP_BAD_REQUEST;
	}
	if (coding && strcasecmp(coding, "chunked") != 0) {
		*ret_why = "Transfer-Encoding must be chunked\n";
		return MHD_HTTP_NOT_IMPLEMENTED;
	}
	return 0;
}

/* Check, before the body is read, whether this client may send the request. */
static enum MHD_Result begin_request(struct http *h, struct MHD_Connection *c, const char *path,
	const char *method, void **state)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct connection *of = info ? info->socket_context : NULL;
	const char *length = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Length");
	bool health = strcmp(path, "/healthz") == 0 && strcmp(method, "GET") == 0;
	bool knows = of && (!of->tcp || knows_token(h, c));
	const struct http_file *file = find_file(h, path);
	bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
	struct exchange *x;
	const char *why;
	unsigned refused;

	if (!of)
		return MHD_NO;
	of->proven |= knows;
	/* an unauthenticated client's age counts from its arrival, whatever it sends */
	if (of->proven)
		of->since = loop_now(h->loop);
	refused = check_length(c, &why);
	if (refused)
		return send_refusal(c, refused, why);
	if (file && reads)
		return send_file(c, file);
	if (!knows && !health)
		return send_refusal(c, MHD_HTTP_UNAUTHORIZED, "the token is missing or wrong\n");
	if (file) {
		struct http_reply wrong = {
			.status = MHD_HTTP_METHOD_NOT_ALLOWED, .allow = "GET, HEAD"};

		return send_reply(c, NULL, &wrong, false);
	}
	if (length && strtoull(length, NULL, 10) > HTTP_BODY_MAX)
		return send_refusal(c, MHD_HTTP_CONTENT_TOO_LARGE, "the body is over 16 MiB\n");
	x = calloc(1, sizeof(*x));
	if (!x)
		return MHD_NO;
	x->http = h;
	x->of = c;
	x->connection = of;
	of->busy = true;
	of->streams = false;
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
	if (h->daemon)
		MHD_run(h->daemon);
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
			.connection = c,
			.exchange = x};
		h->handler(h->arg, &q, &x->reply);
		if (x->later) {
			x->suspended = true;
			MHD_suspend_connection(c);
			return MHD_YES;
		}
	}
	reply = x->reply;
	x->reply = (struct http_reply){0};
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
	reply_free(&x->reply);
	free(x->body);
	free(x);
	*state = NULL;
}
