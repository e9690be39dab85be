/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * etcd: the store that several machines share: etcd, version 3, by the JSON gateway that every server of it has.
 *
 *   etcd.c        its name and options; what is wrong with an answer
 *   etcd-json.c   requests and answers as text
 *   etcd-call.c   one request, at one server after the other; logging in
 *   etcd-watch.c  a stream of changes
 *   fetch.c       HTTP
 */
#include "base/array.h"
#include "base/container.h"
#include "base/no-memory.h"
#include "serve/loop/log.h"
#include "serve/store/etcd-impl.h"
#include <weir/units.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE (6 * WEIR_SEC)
#define SPACE    "weir/"
#define SECRET   1024 /* bytes of a password */

/* ---- faults */

void etcd_next(struct etcd_store *s, size_t failed)
{
	if (s->at == failed)
		s->at = (s->at + 1) % s->n_urls;
}

int etcd_check(struct etcd_store *s, const struct etcd_answer *a, const char *url, uint64_t floor,
	struct weir_err *err)
{
	if (s->cluster && a->cluster != s->cluster)
		return weir_err_set(err, -EPROTO,
			"%s is a member of another cluster than the servers named before", url);
	if (a->result.revision && a->result.revision < floor)
		return weir_err_set(err, -EPROTO,
			"%s is at revision %llu, after %llu: was it restored from a backup?", url,
			(unsigned long long)a->result.revision, (unsigned long long)floor);
	s->cluster = a->cluster;
	if (a->result.revision > s->highest)
		s->highest = a->result.revision;
	return 0;
}

int etcd_fault(const struct etcd_store *s, const char *url, unsigned status,
	const struct etcd_fault *f, struct weir_err *err)
{
	enum {
		UNAUTHENTICATED = 16,
		DENIED = 7,
		NOT_FOUND = 5,
		EXHAUSTED = 8,
		INVALID = 3,
		PRECONDITION = 9,
		OUT_OF_RANGE = 11,
		UNAVAILABLE = 14
	};
	int rc = -ETIMEDOUT;

	if (f->code == 0)
		return weir_err_set(err, -EPROTO,
			"%s: HTTP status %u: not the answer of etcd's API, version 3", url, status);
	if (f->code == UNAUTHENTICATED || strstr(f->text, "user name is empty") ||
		strstr(f->text, "authentication failed"))
		rc = -EACCES;
	else if (f->code == DENIED)
		rc = -EACCES;
	else if (f->code == NOT_FOUND)
		rc = -ENOENT;
	else if (f->code == EXHAUSTED)
		rc = strstr(f->text, "space") ? -ENOSPC : -EAGAIN;
	else if (f->code == OUT_OF_RANGE)
		rc = -ESTALE;
	else if (f->code == INVALID || f->code == PRECONDITION)
		rc = -EINVAL;
	else if (f->code == UNAVAILABLE && strstr(f->text, "no leader"))
		rc = -EAGAIN;
	return weir_err_set(err, rc, "%s: %s%s", url, f->text,
		rc == -EACCES && !s->user ? " (the store has users: state user= and password-file=)"
					  : "");
}

/* ---- options */

static int read_secret(const char *path, char **ret, struct weir_err *err)
{
	char text[SECRET + 1];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, SECRET);

	if (n < 0)
		weir_err_set(err, -EINVAL, "%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return -EINVAL;
	text[n] = 0;
	text[strcspn(text, "\r\n")] = 0;
	*ret = strdup(text);
	explicit_bzero(text, sizeof(text));
	return *ret ? 0 : no_memory(err);
}

static int copy_option(char **to, const char *value, struct weir_err *err)
{
	free(*to);
	*to = strdup(value);
	return *to ? 0 : no_memory(err);
}

/* The space is a prefix of keys, and ends with a slash. */
static int set_space(struct etcd_store *s, const char *value, struct weir_err *err)
{
	size_t n = strlen(value);

	if (!n || n > 64 ||
		strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			      "0123456789-_./") != n)
		return weir_err_set(err, -EINVAL,
			"etcd: prefix: must be up to 64 letters, digits, '-', '_', '.' and '/'");
	free(s->space);
	if (asprintf(&s->space, "%s%s", value, value[n - 1] == '/' ? "" : "/") >= 0)
		return 0;
	s->space = NULL;
	return no_memory(err);
}

static int set_patience(struct etcd_store *s, const char *value, struct weir_err *err)
{
	weir_time t;

	if (weir_units_time(value, &t, err) < 0 || t < WEIR_SEC || t > 60 * WEIR_SEC)
		return weir_err_set(err, -EINVAL, "etcd: timeout: must be from 1s to 60s");
	s->patience = t;
	return 0;
}

static int set_option(
	struct etcd_store *s, const char *key, const char *value, struct weir_err *err)
{
	static const char *const keys[] = {
		"prefix", "ca", "cert", "key", "user", "password-file", "timeout", NULL};
	const char *near;

	if (strcmp(key, "prefix") == 0)
		return set_space(s, value, err);
	if (strcmp(key, "ca") == 0)
		return copy_option(&s->tls.ca, value, err);
	if (strcmp(key, "cert") == 0)
		return copy_option(&s->tls.cert, value, err);
	if (strcmp(key, "key") == 0)
		return copy_option(&s->tls.key, value, err);
	if (strcmp(key, "user") == 0)
		return copy_option(&s->user, value, err);
	if (strcmp(key, "password-file") == 0)
		return read_secret(value, &s->password, err);
	if (strcmp(key, "timeout") == 0)
		return set_patience(s, value, err);
	near = weir_err_near(key, keys);
	return weir_err_set(err, -EINVAL, "etcd: no option '%s'%s%s%s", key,
		near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

/* Split a text at separators, in place. NULL at the end. */
static char *cut(char **rest, char separator)
{
	char *part = *rest, *end = part ? strchr(part, separator) : NULL;

	if (end)
		*end++ = 0;
	*rest = end;
	return part;
}

/* Refuse a part of the name, which may be one of a password that was not escaped. */
static int refuse(struct weir_err *err, const char *part, const char *like)
{
	char *shown = store_shown(part);

	weir_err_set(err, -EINVAL, "etcd: '%s' is not like %s", shown ? shown : "", like);
	free(shown);
	return -EINVAL;
}

static int add_url(struct etcd_store *s, const char *url, struct weir_err *err)
{
	size_t n = strlen(url);
	char *whole, *shown;

	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		return refuse(err, url, "https://HOST:2379");
	while (n && url[n - 1] == '/')
		n--;
	whole = strndup(url, n);
	shown = whole ? store_shown(whole) : NULL;
	if (!shown || array_resize(&s->urls, s->n_urls + 1) < 0 ||
		array_resize(&s->reach, s->n_urls + 1) < 0) {
		free(whole);
		free(shown);
		return no_memory(err);
	}
	s->urls[s->n_urls] = shown;
	s->reach[s->n_urls++] = whole;
	return 0;
}

static int parse(struct etcd_store *s, char *text, struct weir_err *err)
{
	char *options = text, *urls = cut(&options, '?'), *part;
	int rc = 0;

	while (rc == 0 && (part = cut(&urls, ',')))
		rc = add_url(s, part, err);
	while (rc == 0 && (part = cut(&options, '&'))) {
		char *value = part, *key = cut(&value, '=');

		rc = value ? set_option(s, key, value, err) : refuse(err, key, "prefix=weir/");
	}
	if (rc == 0 && !s->user != !s->password)
		rc = weir_err_set(err, -EINVAL, "etcd: user and password-file go together");
	if (rc == 0 && !s->tls.cert != !s->tls.key)
		rc = weir_err_set(err, -EINVAL, "etcd: cert and key go together");
	return rc;
}

/* ---- open and close */

static void etcd_close(struct store *store)
{
	struct etcd_store *s = container_of(store, struct etcd_store, store);

	etcd_calls_end(s);
	fetcher_free(s->fetcher);
	for (size_t i = 0; i < s->n_urls; i++) {
		free(s->urls[i]);
		free(s->reach[i]);
	}
	free(s->urls);
	free(s->reach);
	free(s->space);
	free(s->tls.ca);
	free(s->tls.cert);
	free(s->tls.key);
	free(s->user);
	if (s->password)
		explicit_bzero(s->password, strlen(s->password));
	free(s->password);
	free(s->token);
	free(s);
}

static int etcd_open(
	struct loop *l, const char *rest, struct store **ret_store, struct weir_err *err)
{
	struct etcd_store *s = calloc(1, sizeof(*s));
	char *text = strdup(rest);
	int rc = s && text ? 0 : no_memory(err);

	if (rc == 0) {
		s->store = (struct store){.ops = &store_etcd_ops, .loop = l};
		s->patience = PATIENCE;
		s->space = strdup(SPACE);
		rc = s->space ? parse(s, text, err) : no_memory(err);
	}
	if (rc == 0 && fetcher_new(l, &s->fetcher) < 0)
		rc = no_memory(err);
	free(text);
	if (rc < 0 && s)
		etcd_close(&s->store);
	if (rc == 0)
		*ret_store = &s->store;
	return rc;
}

const struct store_ops store_etcd_ops = {
	.name = "etcd",
	.open = etcd_open,
	.close = etcd_close,
	.ask = etcd_ask,
	.watch = etcd_watch,
	.unwatch = etcd_unwatch,
};
