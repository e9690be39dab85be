/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/no-memory.h"
#include "cli/common/remote.h"
#include "cli/common/files.h"
#include "serve/http/http.h"
#include "base/array.h"
#include <curl/curl.h>
#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REPLY_MAX  ((size_t)256 << 20) /* bytes: a thousand tenants' histograms many times over */
#define CONNECT_MS 5000L
#define WHOLE_MS   30000L /* including an apply over many threads */

struct remote {
	const struct verb *verb;
	CURL *curl;
	char *socket;          /* path; NULL: use url */
	char *url;             /* without the path */
	char *ca, *cert, *key; /* files for https; NULL: the system's, none */
	struct curl_slist *headers;
};

struct reply {
	CURL *curl;
	FILE *to; /* NULL: keep all of the reply; else only the text of an error */
	char *text;
	size_t n, room;
};

/* ---- open */

static int read_token(struct remote *r, const char *file)
{
	struct weir_err err;
	char *text, *header = NULL;
	size_t len;

	if (files_read(file, 4096, &text, &len, &err) < 0)
		return opts_fail(r->verb, "%s", err.text);
	text[strcspn(text, "\r\n")] = 0;
	if (asprintf(&header, "Authorization: Bearer %s", text) >= 0) {
		r->headers = curl_slist_append(r->headers, header);
		explicit_bzero(header, strlen(header));
		free(header);
	}
	explicit_bzero(text, len);
	free(text);
	return -1;
}

static int set_address(struct remote *r, const char *socket, const char *url)
{
	char address[HTTP_SOCKET_MAX];

	if (url) {
		size_t n = strlen(url);

		if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
			return opts_fail(r->verb, "--url: '%s' is not like http://HOST:PORT", url);
		while (n && url[n - 1] == '/')
			n--;
		r->url = strndup(url, n);
		return r->url ? -1 : opts_no_memory(r->verb);
	}
	if (!socket) {
		http_socket(false, address);
		socket = address;
	}
	r->socket = strdup(strncmp(socket, "unix:", 5) == 0 ? socket + 5 : socket);
	r->url = strdup("http://localhost");
	return r->socket && r->url ? -1 : opts_no_memory(r->verb);
}

/* The names of libnbd and QEMU. A folder may lack the client's own. */
static int set_tls(struct remote *r, const char *folder)
{
	if (asprintf(&r->ca, "%s/ca-cert.pem", folder) < 0 ||
		asprintf(&r->cert, "%s/client-cert.pem", folder) < 0 ||
		asprintf(&r->key, "%s/client-key.pem", folder) < 0)
		return opts_no_memory(r->verb);
	if (access(r->ca, R_OK) < 0)
		return opts_fail(r->verb, "%s: %s", r->ca, strerror(errno));
	if (access(r->cert, F_OK) < 0 && errno == ENOENT) {
		free(r->cert);
		r->cert = NULL;
	}
	return -1;
}

int remote_open(const struct verb *v, const char *socket, const char *url, const char *token_file,
	const char *tls, struct remote **ret_remote)
{
	struct remote *r;
	int status;

	if (socket && url)
		return opts_fail(v, "--socket or --url, not both");
	if (tls && (!url || strncmp(url, "https://", 8) != 0))
		return opts_fail(v, "--tls goes with --url https://HOST:PORT");
	r = calloc(1, sizeof(*r));
	if (!r)
		return opts_no_memory(v);
	r->verb = v;
	r->curl = curl_easy_init();
	status = r->curl ? set_address(r, socket, url) : opts_fail(v, "libcurl does not start");
	if (status < 0 && token_file)
		status = read_token(r, token_file);
	if (status < 0 && tls)
		status = set_tls(r, tls);
	if (status >= 0)
		remote_close(r);
	else
		*ret_remote = r;
	return status;
}

void remote_close(struct remote *r)
{
	if (!r)
		return;
	if (r->curl)
		curl_easy_cleanup(r->curl);
	curl_slist_free_all(r->headers);
	free(r->socket);
	free(r->url);
	free(r->ca);
	free(r->cert);
	free(r->key);
	free(r);
}

/* For messages: the socket's path or the URL. */
static const char *remote_name(const struct remote *r)
{
	return r->socket ? r->socket : r->url;
}

/* ---- requests */

static size_t append_reply(char *data, size_t size, size_t n, void *arg)
{
	struct reply *to = arg;
	long status = 0;

	n *= size;
	curl_easy_getinfo(to->curl, CURLINFO_RESPONSE_CODE, &status);
	if (to->to && status == 200)
		return fwrite(data, 1, n, to->to);
	if (n > REPLY_MAX - to->n)
		return 0;
	if (array_grow(&to->text, &to->room, to->n + n + 1) < 0)
		return 0;
	memcpy(to->text + to->n, data, n);
	to->n += n;
	to->text[to->n] = 0;
	return n;
}

static int unreachable(const struct remote *r, CURLcode code, struct weir_err *err)
{
	long why = 0; /* errno */

	curl_easy_getinfo(r->curl, CURLINFO_OS_ERRNO, &why);
	if (code == CURLE_COULDNT_CONNECT && r->socket && (why == EACCES || why == EPERM))
		return weir_err_set(err, -EACCES, "%s: %s", r->socket, strerror((int)why));
	if (code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_WEIRD_SERVER_REPLY) /* not HTTP */
		return weir_err_set(
			err, -EPROTO, "%s: not the answer of a gateway", remote_name(r));
	if (code == CURLE_PEER_FAILED_VERIFICATION)
		return weir_err_set(err, -EACCES, "%s: its certificate is not trusted (--tls): %s",
			r->url, curl_easy_strerror(code));
	if (code == CURLE_COULDNT_CONNECT && r->socket)
		return weir_err_set(err, -ENOENT,
			"no gateway answers at %s (is weir serve running?)", r->socket);
	if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST)
		return weir_err_set(err, -ENOENT, "no gateway answers at %s: %s", r->url,
			curl_easy_strerror(code));
	return weir_err_set(err, -EPROTO, "%s: %s", remote_name(r), curl_easy_strerror(code));
}

static int refused(const struct remote *r, long status, const json_t *j, struct weir_err *err)
{
	const char *why = json_string_value(json_object_get(j, "error"));
	int code = status == 400 || status == 413   ? -EINVAL
		   : status == 404                  ? -ENODATA
		   : status == 409                  ? -EBUSY
		   : status == 401 || status == 403 ? -EACCES
						    : -EPROTO;

	if (status == 401)
		return weir_err_set(err, code, "%s: %s (--token-file)", remote_name(r),
			why ? why : "the token is missing or wrong");
	if (why)
		return weir_err_set(err, code, "%s", why);
	if (status == 413)
		return weir_err_set(err, code,
			"too large for the gateway's API; change its policy file and send it "
			"SIGHUP");
	return weir_err_set(err, code, "%s: HTTP status %ld", remote_name(r), status);
}

static void prepare_request(struct remote *r, const char *url, const char *method, const char *body,
	size_t len, struct reply *reply)
{
	CURL *c = r->curl;

	curl_easy_reset(c); /* keeps the connection */
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L); /* ".." in a name is part of the name */
	if (r->socket) {
		curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, r->socket);
		curl_easy_setopt(c, CURLOPT_PROXY, "");
	}
	if (r->ca)
		curl_easy_setopt(c, CURLOPT_CAINFO, r->ca);
	if (r->cert) {
		curl_easy_setopt(c, CURLOPT_SSLCERT, r->cert);
		curl_easy_setopt(c, CURLOPT_SSLKEY, r->key);
	}
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, r->headers);
	curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, method);
	if (body) {
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, body);
		curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
	}
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, append_reply);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, reply);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, WHOLE_MS);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
}

/* Send a request; its reply is written to reply->to, or parsed into *ret_json. */
static int send_request(struct remote *r, const char *method, const char *path, const char *body,
	size_t len, struct reply *reply, json_t **ret_json, struct weir_err *err)
{
	json_t *j = NULL;
	long status = 0;
	char *url;
	int rc = 0;
	CURLcode code;

	if (!path || asprintf(&url, "%s%s", r->url, path) < 0)
		return no_memory(err);
	reply->curl = r->curl;
	prepare_request(r, url, method, body, len, reply);
	code = curl_easy_perform(r->curl);
	curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &status);
	free(url);
	if (reply->text)
		j = json_loadb(reply->text, reply->n, JSON_DISABLE_EOF_CHECK, NULL);
	free(reply->text);
	if (code == CURLE_WRITE_ERROR && reply->to && ferror(reply->to))
		rc = weir_err_set(err, -EIO, "cannot write: %s", strerror(errno));
	else if (code != CURLE_OK)
		rc = unreachable(r, code, err);
	else if (status != 200)
		rc = refused(r, status, j, err);
	else if (!j && !reply->to)
		rc = weir_err_set(err, -EPROTO, "%s: not the answer of a gateway", remote_name(r));
	if (rc == 0 && ret_json)
		*ret_json = j;
	else
		json_decref(j);
	return rc;
}

int remote_try(struct remote *r, const char *method, const char *path, const char *body, size_t len,
	json_t **ret_json, struct weir_err *err)
{
	struct reply reply = {0};

	return send_request(r, method, path, body, len, &reply, ret_json, err);
}

/* Print why a request failed; return the exit status, or -1 if it did not. */
static int exit_status(const struct remote *r, int rc, const struct weir_err *err)
{
	if (rc == 0)
		return -1;
	opts_fail(r->verb, "%s", err->text);
	return rc == -EINVAL || rc == -ENODATA ? 2 : 1;
}

int remote_ask(struct remote *r, const char *method, const char *path, const char *body, size_t len,
	json_t **ret_json)
{
	struct weir_err err;

	return exit_status(r, remote_try(r, method, path, body, len, ret_json, &err), &err);
}

int remote_print(struct remote *r, const char *path, FILE *to)
{
	struct reply reply = {.to = to};
	struct weir_err err;

	return exit_status(r, send_request(r, "GET", path, NULL, 0, &reply, NULL, &err), &err);
}

/* ---- paths */

static void put_escaped(FILE *f, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "-_.~/";

	for (; *text; text++)
		fprintf(f, strchr(plain, *text) ? "%c" : "%%%02X", (unsigned char)*text);
}

char *remote_path(const char *text, const char *value, ...)
{
	char *path = NULL;
	size_t len;
	FILE *f = open_memstream(&path, &len);
	va_list args;

	if (!f)
		return NULL;
	va_start(args, value);
	while (text) {
		if (value) {
			fputs(text, f);
			put_escaped(f, value);
		}
		text = va_arg(args, const char *);
		value = text ? va_arg(args, const char *) : NULL;
	}
	va_end(args);
	return fclose(f) == 0 ? path : NULL;
}

char *remote_status(const char *tenant, bool all)
{
	return remote_path("/v1/status?histograms=1&brief=1", "", "&active=auto", all ? NULL : "",
		"&tenant=", tenant && *tenant ? tenant : NULL, NULL);
}

void remote_notes(const json_t *reply)
{
	const json_t *notes = json_object_get(reply, "notes");

	for (size_t i = 0; i < json_array_size(notes); i++)
		printf("%s\n", json_string_value(json_array_get(notes, i)));
}

const char *remote_user(void)
{
	const char *name = getenv("SUDO_USER");
	const struct passwd *p = name && geteuid() == 0 ? NULL : getpwuid(geteuid());

	return p ? p->pw_name : name ? name : "";
}
