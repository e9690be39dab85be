/* SPDX-License-Identifier: BSD-3-Clause */
/* succeed: the process that replaces another one. handover.h has the steps; the main loop does not run yet. */
#include "base/container.h"
#include "serve/gateway/handover.h"
#include "serve/gateway/impl.h"
#include "serve/gateway/succeed.h"
#include "serve/handover/pass.h"
#include "serve/handover/store.h"
#include "serve/loop/inherit.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT 180000 /* ms, for each answer: longer than the other process waits for anything */

#define MADE (10 * WEIR_SEC) /* for tenants of templates */

struct succession {
	int sock; /* to the other process; -1: it has ended */
	/* its offer; or all that was in the store, with its descriptors */
	struct record_map map;
	struct record_in in;
	struct record_fds fds;
	struct loop_timer made; /* until the tenants of templates are made */
	struct gateway *gateway;
	weir_time made_by;
};

/* -EPIPE: it has ended, as one that gives up says so. */
static int answer(
	struct succession *s, const char *word, struct pass_message *m, struct weir_err *err)
{
	int rc = pass_recv(s->sock, WAIT, m);

	if (rc < 0)
		return weir_err_set(err, rc, "cannot replace the running process: %s",
			rc == -EPIPE ? "it has ended" : strerror(-rc));
	if (strcmp(m->word, word) == 0 && m->memfd >= 0)
		return 0;
	rc = weir_err_set(err, -EBUSY, "cannot replace the running process: %s",
		strcmp(m->word, "refused") == 0 ? m->text : "it does not keep to the protocol");
	pass_message_free(m);
	return rc;
}

static int read_inherited(const struct record_in *all)
{
	struct record_in in = *all, part;
	const char *name;
	int rc = 0;

	while (rc == 0 && record_section(&in, &name, &part))
		if (strcmp(name, "inherit") == 0)
			rc = handover_get_inherited(&part);
	return rc == 0 && in.bad ? -EBADMSG : rc;
}

/* The offer stays mapped until its senders are read. */
static int read_offer(struct succession *s, struct pass_message *m, struct weir_err *err)
{
	int rc;

	s->in.fds = &m->fds;
	rc = record_open(m->memfd, &s->map, &s->in, err);
	if (rc < 0)
		return rc;
	rc = read_inherited(&s->in);
	s->in.fds = NULL;
	return rc < 0 ? weir_err_set(err, rc, "the record of the hand-over is damaged") : 0;
}

static int ask(struct succession *s, struct weir_err *err)
{
	struct pass_message m;
	int rc = pass_send(s->sock, "replace", WEIR_VERSION, -1, NULL);

	if (rc < 0)
		return weir_err_set(
			err, rc, "cannot replace the running process: %s", strerror(-rc));
	rc = answer(s, "offer", &m, err);
	if (rc < 0)
		return rc;
	rc = read_offer(s, &m, err);
	pass_message_free(&m);
	return rc;
}

int succession_begin(const char *state, struct succession **ret, struct weir_err *err)
{
	struct succession *s;
	int sock, rc = pass_connect(state, &sock);

	*ret = NULL;
	if (rc == -ENOENT)
		return 0;
	if (rc < 0)
		return weir_err_set(err, rc, "%s/replace.sock: %s", state, strerror(-rc));
	s = calloc(1, sizeof(*s));
	if (!s) {
		close(sock);
		return weir_err_set(err, -ENOMEM, "out of memory");
	}
	s->sock = sock;
	inherit_keep_names(true);
	rc = ask(s, err);
	if (rc == 0) {
		*ret = s;
		return 0;
	}
	succession_fail(s, err->text);
	if (rc != -EPIPE && rc != -ECONNRESET)
		return rc;
	inherit_keep_names(false);
	log_event(LOG_LEVEL_WARNING, "took-over-nothing", "why", "the process before has ended",
		NULL);
	return 0; /* and this one starts as usual */
}

/* Find the record among the descriptors. */
static int open_stored(struct succession *s, struct weir_err *err)
{
	int rc = weir_err_set(err, -ENOENT, "it has no record");

	for (size_t i = 0; rc < 0 && i < s->fds.n; i++)
		if (fcntl(s->fds.all[i].fd, F_GET_SEALS) > 0) {
			s->in.fds = &s->fds;
			rc = record_open(s->fds.all[i].fd, &s->map, &s->in, err);
		}
	if (rc == 0) {
		rc = read_inherited(&s->in);
		if (rc < 0)
			weir_err_set(err, rc, "it is damaged");
	}
	return rc;
}

static void free_succession(struct succession *s)
{
	if (s->sock >= 0)
		close(s->sock);
	record_unmap(&s->map);
	record_fds_close(&s->fds);
	free(s);
}

void succession_restart(struct record_fds *stored, struct succession **ret)
{
	struct succession *s = calloc(1, sizeof(*s));
	struct weir_err err = {"out of memory"};

	*ret = NULL;
	if (s) {
		s->sock = -1;
		s->fds = *stored;
		inherit_keep_names(true);
		if (open_stored(s, &err) == 0) {
			*ret = s;
			return;
		}
		free_succession(s);
	} else {
		record_fds_close(stored);
	}
	/* All of it is closed before this process listens at the same addresses. */
	inherit_keep_names(false);
	inherit_end();
	store_clear();
	log_event(LOG_LEVEL_ERROR, "store-refused", "why", err.text, "then",
		"clients have to connect again", NULL);
}

void succession_fail(struct succession *s, const char *why)
{
	if (!s)
		return;
	if (s->sock >= 0)
		pass_send(s->sock, "failed", why, -1, NULL);
	free_succession(s);
	inherit_end();
}

/* Without the process before there is no other one that could go on with a client. */
static int take_opened(struct succession *s, struct gateway *g, struct record_map *map,
	struct record_in *in, struct weir_err *err)
{
	struct handover_taken t;
	int rc = handover_take(g, in, s->sock >= 0, &t, err);

	if (rc == 0 && !record_mark(map, RECORD_TAKEN)) {
		handover_drop(g, &t);
		rc = weir_err_set(err, -ESTALE, "the running process took its state back");
	}
	if (rc == 0)
		handover_start(g, &t);
	return rc;
}

static int take_record(
	struct succession *s, struct gateway *g, struct pass_message *m, struct weir_err *err)
{
	struct record_map map = {0};
	struct record_in in = {.fds = &m->fds};
	int rc = record_open(m->memfd, &map, &in, err);

	if (rc < 0)
		return rc;
	rc = take_opened(s, g, &map, &in, err);
	record_unmap(&map);
	return rc;
}

static void look_if_made(struct loop_timer *t, weir_time now)
{
	struct succession *s = container_of(t, struct succession, made);

	if (!s->gateway->changes || now >= s->made_by)
		loop_stop(s->gateway->loop);
	else
		loop_set(s->gateway->loop, t, now + WEIR_MS);
}

/* Make the tenants of templates that clients have, else they would share the template's `others` for a while. Nothing else happens
 * on the loop: no client is accepted. */
static void make_tenants(struct succession *s, struct gateway *g)
{
	struct record_in in = s->in, part;
	const char *name;
	bool wanted = false;

	while (record_section(&in, &name, &part))
		if (strcmp(name, "senders") == 0)
			wanted |= handover_get_senders(g, &part);
	if (!wanted)
		return;
	s->gateway = g;
	s->made.due = look_if_made;
	s->made_by = loop_clock() + MADE;
	gateway_accept(g, false);
	if (loop_set(g->loop, &s->made, loop_clock()) == 0)
		loop_run(g->loop);
	gateway_accept(g, true);
}

static int hand_over(struct succession *s, struct gateway *g, struct weir_err *err)
{
	struct pass_message m;
	int rc = pass_send(s->sock, "ready", NULL, -1, NULL);

	if (rc < 0)
		return weir_err_set(
			err, rc, "cannot replace the running process: %s", strerror(-rc));
	rc = answer(s, "state", &m, err);
	if (rc < 0)
		return rc;
	rc = take_record(s, g, &m, err);
	pass_message_free(&m);
	if (rc == 0)
		pass_send(s->sock, "taken", NULL, -1, NULL);
	return rc;
}

int succession_end(struct succession *s, struct gateway *g, struct weir_err *err)
{
	bool stored = s->sock < 0;
	int rc;

	make_tenants(s, g);
	rc = stored ? take_opened(s, g, &s->map, &s->in, err) : hand_over(s, g, err);

	if (rc == -EPIPE) /* its clients are lost, and reconnect */
		log_event(LOG_LEVEL_WARNING, "took-over-nothing", "why",
			"the process before has ended", NULL);
	else if (rc < 0)
		return rc;
	free_succession(s);
	inherit_keep_names(false);
	inherit_end();
	if (stored)
		store_clear();
	gateway_replace_start(g);
	return 0;
}
