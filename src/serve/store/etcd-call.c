/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * etcd-call: one request, until a server of etcd has answered it.
 *
 * METHOD  A server that is not reached, or has no leader, is followed by the next; after the last a pause, until the patience
 *         ends. A transaction that may have reached a server is not sent again, since it may have been made: -ETIMEDOUT.
 *         A token that has ended is replaced once.
 */
#include "base/array.h"
#include "base/container.h"
#include "base/list.h"
#include "base/no-memory.h"
#include "serve/store/etcd-impl.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct etcd_call {
	struct fetch fetch;
	struct etcd_store *of;
	struct etcd_call *next, **link;
	enum store_kind kind;
	bool login, stale, brisk;
	bool renewed;     /* it has had a new token already */
	bool waiting;     /* for a token */
	bool unsure;      /* an attempt may have been done */
	bool old;         /* an answer was older than others before */
	const char *path; /* below /v3 */
	char *body, *url;
	size_t length;
	size_t server, tries; /* index of the server; since the last pause */
	weir_time until;
	uint64_t floor;
	struct loop_timer pause;
	char *text; /* of the answer */
	size_t n, room;
	store_done *done;
	void *arg;
	struct weir_err err;
	int rc;
};

static void call_try(struct etcd_call *c);

static void call_free(struct etcd_call *c)
{
	fetch_cancel(&c->fetch);
	loop_set(c->of->store.loop, &c->pause, WEIR_NEVER);
	list_remove(c);
	if (c->body && c->login)
		explicit_bzero(c->body, c->length);
	free(c->body);
	free(c->url);
	free(c->text);
	free(c);
}

/* ---- logging in */

static void logged_in(struct etcd_store *s, int rc, const struct weir_err *why)
{
	struct etcd_call *c = s->calls;

	s->login = NULL;
	while (c) {
		struct etcd_call *next = c->next;

		if (c->waiting && rc == 0) {
			c->waiting = false;
			call_try(c);
		} else if (c->waiting) {
			c->waiting = false;
			c->rc = rc;
			c->err = *why;
			loop_set(s->store.loop, &c->pause, loop_clock()); /* it ends there */
		}
		c = next;
	}
	etcd_watches_logged_in(s, rc < 0 ? why : NULL);
}

static int take_token(struct etcd_call *c, const json_t *root)
{
	const char *token = json_string_value(json_object_get(root, "token"));

	if (!token || strlen(token) > 1024 || strpbrk(token, "\r\n"))
		return weir_err_set(
			&c->err, -EPROTO, "%s: the answer has no token", c->of->urls[c->server]);
	free(c->of->token);
	c->of->token = strdup(token);
	return c->of->token ? 0 : no_memory(&c->err);
}

/* ---- the end */

static void end(struct etcd_call *c, int rc, const struct store_result *r)
{
	struct etcd_store *s = c->of;
	struct weir_err err = c->err;
	store_done *done = c->done;
	void *arg = c->arg;
	bool login = c->login;

	call_free(c);
	if (login)
		logged_in(s, rc, &err);
	else
		done(arg, rc, r, &err);
}

/* All servers were tried until the patience ended. */
static void give_up(struct etcd_call *c)
{
	struct weir_err last = c->err;
	int rc = c->unsure ? -ETIMEDOUT : c->rc == -EPROTO ? -EPROTO : -EAGAIN;

	if (c->old) { /* all servers agree: it was restored */
		c->of->highest = 0;
		etcd_watches_stale(c->of);
	}
	weir_err_set(&c->err, rc, "store not reached: %s", last.text);
	end(c, rc, NULL);
}

static void pause_due(struct loop_timer *t, weir_time now)
{
	struct etcd_call *c = container_of(t, struct etcd_call, pause);

	if (c->rc < 0 && c->rc != -EAGAIN && c->rc != -EPROTO && c->rc != -ETIMEDOUT)
		end(c, c->rc, NULL);
	else
		call_try(c);
}

/* This server did not do it, with c->rc and c->err: try the next, or give up. */
static void call_again(struct etcd_call *c)
{
	struct etcd_store *s = c->of;
	weir_time now = loop_clock(), wait = 0;

	etcd_next(s, c->server);
	if (++c->tries >= s->n_urls) {
		c->tries = 0;
		wait = ETCD_PAUSE;
	}
	if (now + wait >= c->until)
		give_up(c);
	else if (loop_set(s->store.loop, &c->pause, now + wait) < 0)
		give_up(c);
}

/* ---- answers */

static bool on_data(struct fetch *f, const char *bytes, size_t n)
{
	struct etcd_call *c = container_of(f, struct etcd_call, fetch);

	if (n > ETCD_BODY - c->n || array_grow(&c->text, &c->room, c->n + n) < 0)
		return false;
	memcpy(c->text + c->n, bytes, n);
	c->n += n;
	return true;
}

/* An answer that is an error. */
static void refused(struct etcd_call *c, unsigned status, const json_t *root)
{
	struct etcd_store *s = c->of;
	struct etcd_fault fault;

	etcd_json_fault(root, &fault);
	c->rc = etcd_fault(s, s->urls[c->server], status, &fault, &c->err);
	if (c->rc == -EACCES && s->user && !c->login && !c->renewed &&
		!strstr(fault.text, "permission denied")) {
		c->renewed = true;
		free(s->token);
		s->token = NULL;
		call_try(c);
	} else if (c->rc == -ETIMEDOUT && c->kind == STORE_TXN && !c->login) {
		end(c, c->rc, NULL);
	} else if (c->rc == -ETIMEDOUT || c->rc == -EAGAIN || c->rc == -EPROTO) {
		call_again(c);
	} else {
		end(c, c->rc, NULL);
	}
}

static void answered(struct etcd_call *c, const json_t *root)
{
	struct etcd_store *s = c->of;
	const char *url = s->urls[c->server];
	struct etcd_answer a = {0};

	if (c->login) {
		end(c, take_token(c, root), NULL);
		return;
	}
	c->rc = etcd_json_answer(s->space, c->kind, root, &a);
	if (c->rc == -EPROTO)
		weir_err_set(&c->err, c->rc, "%s: not the answer of etcd's API, version 3", url);
	else if (c->rc == 0)
		c->rc = etcd_check(s, &a, url, c->stale ? 0 : c->floor, &c->err);
	c->old |= c->rc == -EPROTO && a.n + a.result.revision > 0 && a.cluster == s->cluster;
	c->unsure |= c->rc == -EPROTO && c->kind == STORE_TXN;
	if (c->rc == 0 && c->kind == STORE_KEEP && !a.result.ttl)
		c->rc = weir_err_set(&c->err, -ENOENT, "the lease has ended");
	if (c->rc == -EPROTO && !c->unsure)
		call_again(c);
	else if (c->rc == -EPROTO)
		give_up(c);
	else
		end(c, c->rc, &a.result);
	etcd_answer_free(&a);
}

static void fetched(struct fetch *f, int rc, unsigned status, const char *text)
{
	struct etcd_call *c = container_of(f, struct etcd_call, fetch);
	json_t *root =
		rc == 0 && c->text ? json_loadb(c->text, c->n, JSON_DISABLE_EOF_CHECK, NULL) : NULL;

	if (rc < 0) {
		c->rc = rc == -ENOTCONN ? -EAGAIN : rc;
		c->unsure |= rc != -ENOTCONN && rc != -EACCES && c->kind == STORE_TXN && !c->login;
		weir_err_set(&c->err, c->rc, "%s: %s", c->of->urls[c->server], text);
		if (c->unsure)
			give_up(c);
		else
			call_again(c);
	} else if (status != 200) {
		refused(c, status, root);
	} else {
		answered(c, root);
	}
	json_decref(root);
}

/* ---- attempts */

static void call_try(struct etcd_call *c)
{
	struct etcd_store *s = c->of;
	weir_time left = c->until - loop_clock();
	weir_time attempt = c->brisk ? ETCD_BRISK : ETCD_ATTEMPT;

	if (s->user && !s->token && !c->login) {
		c->waiting = true;
		etcd_log_in(s);
		return;
	}
	c->server = s->at;
	c->n = 0;
	free(c->url);
	if (asprintf(&c->url, "%s/v3%s", s->reach[c->server], c->path) < 0)
		c->url = NULL;
	c->fetch.url = c->url;
	c->fetch.authorization = c->login ? NULL : s->token;
	c->fetch.body = c->body;
	c->fetch.length = c->length;
	c->fetch.connect = ETCD_CONNECT;
	c->fetch.whole = left < WEIR_MS ? WEIR_MS : left < attempt ? left : attempt;
	c->fetch.tls = &s->tls;
	c->fetch.once = c->kind == STORE_TXN && !c->login;
	c->fetch.data = on_data;
	c->fetch.done = fetched;
	if (c->url && fetch_start(s->fetcher, &c->fetch) == 0)
		return;
	c->rc = no_memory(&c->err);
	loop_set(s->store.loop, &c->pause, loop_clock());
}

/* Take the body; without memory end later, from the loop. */
static void call_start(struct etcd_call *c)
{
	struct etcd_store *s = c->of;

	list_push(s->calls, c);
	c->until = loop_clock() + s->patience;
	c->floor = s->highest;
	c->pause.due = pause_due;
	if (c->body)
		call_try(c);
	else
		c->rc = no_memory(&c->err);
	if (c->rc < 0)
		loop_set(s->store.loop, &c->pause, loop_clock());
}

void etcd_log_in(struct etcd_store *s)
{
	struct etcd_call *c = s->login ? NULL : calloc(1, sizeof(*c));

	if (!c)
		return; /* without memory: the calls end by their patience */
	s->login = c;
	c->of = s;
	c->login = true;
	c->path = "/auth/authenticate";
	etcd_json_login(s->user, s->password, &c->body, &c->length);
	call_start(c);
}

void etcd_ask(struct store *store, const struct store_request *q, store_done *done, void *arg)
{
	struct etcd_call *c = calloc(1, sizeof(*c));
	struct weir_err err;

	if (!c) {
		done(arg, no_memory(&err), NULL, &err);
		return;
	}
	c->of = container_of(store, struct etcd_store, store);
	c->kind = q->kind;
	c->stale = q->stale;
	c->brisk = q->brisk;
	c->done = done;
	c->arg = arg;
	etcd_json_request(c->of->space, q, &c->path, &c->body, &c->length);
	call_start(c);
}

void etcd_calls_end(struct etcd_store *s)
{
	while (s->calls) {
		struct etcd_call *c = s->calls;

		c->done = c->login ? NULL : c->done;
		weir_err_set(&c->err, -ESHUTDOWN, "the store was closed");
		if (c->login)
			call_free(c);
		else
			end(c, -ESHUTDOWN, NULL);
	}
	s->login = NULL;
}
