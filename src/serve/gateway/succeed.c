/* SPDX-License-Identifier: BSD-3-Clause */
/* succeed: the process that replaces another one. handover.h has the steps; the main loop does not run yet. */
#include "serve/gateway/handover.h"
#include "serve/gateway/impl.h"
#include "serve/gateway/succeed.h"
#include "serve/handover/pass.h"
#include "serve/loop/inherit.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT 180000 /* ms, for each answer: longer than the other process waits for anything */

struct succession {
	int sock;
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

static int read_offer(struct pass_message *m, struct weir_err *err)
{
	struct record_map map = {0};
	struct record_in in = {.fds = &m->fds}, part;
	const char *name;
	int rc = record_open(m->memfd, &map, &in, err);

	if (rc < 0)
		return rc;
	while (rc == 0 && record_section(&in, &name, &part))
		if (strcmp(name, "inherit") == 0)
			rc = handover_get_inherited(&part);
	if (rc == 0 && in.bad)
		rc = -EBADMSG;
	record_unmap(&map);
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
	rc = read_offer(&m, err);
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
	if (rc < 0) {
		succession_fail(s, err->text);
		return rc;
	}
	*ret = s;
	return 0;
}

void succession_fail(struct succession *s, const char *why)
{
	if (!s)
		return;
	pass_send(s->sock, "failed", why, -1, NULL);
	close(s->sock);
	inherit_end();
	free(s);
}

static int take_record(struct gateway *g, struct pass_message *m, struct weir_err *err)
{
	struct record_map map = {0};
	struct record_in in = {.fds = &m->fds};
	struct handover_taken t;
	int rc = record_open(m->memfd, &map, &in, err);

	if (rc < 0)
		return rc;
	rc = handover_take(g, &in, &t, err);
	if (rc == 0 && !record_mark(&map, RECORD_TAKEN)) {
		handover_drop(g, &t);
		rc = weir_err_set(err, -ESTALE, "the running process took its state back");
	}
	if (rc == 0)
		handover_start(g, &t);
	record_unmap(&map);
	return rc;
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
	rc = take_record(g, &m, err);
	pass_message_free(&m);
	if (rc == 0)
		pass_send(s->sock, "taken", NULL, -1, NULL);
	return rc;
}

int succession_end(struct succession *s, struct gateway *g, struct weir_err *err)
{
	int rc = hand_over(s, g, err);

	if (rc == -EPIPE) /* its clients are lost, and reconnect */
		log_event(LOG_LEVEL_WARNING, "took-over-nothing", "why",
			"the process before has ended", NULL);
	else if (rc < 0)
		return rc;
	close(s->sock);
	free(s);
	inherit_keep_names(false);
	inherit_end();
	gateway_replace_start(g);
	return 0;
}
