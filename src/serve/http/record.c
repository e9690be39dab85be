/* SPDX-License-Identifier: BSD-3-Clause */
/* http-record: each change that was asked for, with its author, its origin and its result. */
#include "serve/http/impl.h"
#include "serve/http/json.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#define SAID 200 /* bytes of a body that are recorded as they are */

void http_record_from(const struct connection *k, char to[HTTP_FROM_MAX])
{
	const struct sockaddr_in *four = (const void *)&k->from;
	const struct sockaddr_in6 *six = (const void *)&k->from;
	bool is_six = k->from.ss_family == AF_INET6;
	char host[INET6_ADDRSTRLEN] = "";

	inet_ntop(k->from.ss_family, is_six ? (const void *)&six->sin6_addr : &four->sin_addr, host,
		sizeof(host));
	if (k->tcp)
		snprintf(to, HTTP_FROM_MAX, is_six ? "[%s]:%u" : "%s:%u", host,
			ntohs(is_six ? six->sin6_port : four->sin_port));
	else
		snprintf(to, HTTP_FROM_MAX, "unix");
}

static void record_text(json_t *record, const char *key, const char *text)
{
	json_t *j = json_string(text);

	json_object_set_new(record, key, j ? j : json_string("(not UTF-8)"));
}

json_t *http_record_begin(const struct connection *k, struct MHD_Connection *c, const char *method,
	const char *path, const struct http_admission *a)
{
	char from[HTTP_FROM_MAX];
	json_t *record, *query;

	if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 || !a->route)
		return NULL;
	record = json_object();
	http_record_from(k, from);
	record_text(record, "who", a->who.name);
	record_text(record, "by", a->who.by);
	record_text(record, "role", policy_role_name(a->who.role));
	record_text(record, "from", from);
	record_text(record, "method", method);
	record_text(record, "path", path);
	query = json_object(); /* by itself: no key of it is taken for one of the record's */
	for (const char *const *key = a->route->keys; key && *key; key++) {
		const char *value = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, *key);

		if (value)
			record_text(query, *key, value);
	}
	if (json_object_size(query))
		json_object_set(record, "query", query);
	json_decref(query);
	return record;
}

static bool is_plain(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < ' ' && !strchr("\t\r\n", text[i] ? text[i] : 'x'))
			return false;
	return true;
}

void http_record_body(json_t *record, const char *body, size_t n)
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	char text[2 * crypto_hash_sha256_BYTES + 1];

	if (n && n <= SAID && is_plain(body, n)) {
		record_text(record, "body", body);
	} else if (n) {
		crypto_hash_sha256(hash, (const unsigned char *)body, n);
		sodium_bin2hex(text, sizeof(text), hash, sizeof(hash));
		json_object_set_new(record, "bytes", json_integer((json_int_t)n));
		record_text(record, "sha256", text);
	}
}

void http_record_end(struct http *h, json_t **record, const struct http_reply *r)
{
	json_t *reply, *error;

	if (!*record)
		return;
	json_object_set_new(*record, "status", json_integer(r->status ? r->status : 500));
	reply = r->status >= 400 && r->body && r->type && strcmp(r->type, HTTP_JSON) == 0
			? json_loadb(r->body, r->length, 0, NULL)
			: NULL;
	error = json_object_get(reply, "error");
	if (error)
		json_object_set(*record, "error", error);
	json_decref(reply);
	audit_put(h->audit, *record);
	*record = NULL;
}
