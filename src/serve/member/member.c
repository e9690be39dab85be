/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * member: a follower whose versions are put in force at a gateway.
 *
 * METHOD  A change of the gateway reads its tenants from the version that the follower offers; SIGHUP reads those in force.
 */
#include "serve/member/member.h"
#include "base/no-memory.h"
#include "serve/gateway/gateway.h"
#include "serve/member/follower.h"
#include "serve/member/member-impl.h"
#include "serve/store/state.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct member {
	struct gateway *gateway;
	struct follower *follower;
	struct follower_files files;
};

static void changed(void *arg, int rc, const struct gateway_note *note, const struct weir_err *err)
{
	follower_done(((struct member *)arg)->follower, rc, err);
}

/* Put a version in force, with the values that were set and have not ended. */
static void put_version(void *arg, const struct versions_text *v)
{
	struct member *m = arg;
	const struct record *r = &v->record;
	struct gateway_override *list = calloc(r->n_sets + 1, sizeof(*list));
	struct gateway_change *c = NULL;
	struct weir_err err;
	size_t n = 0;

	for (size_t i = 0; list && i < r->n_sets; i++)
		if (!record_ended(&r->sets[i], loop_date()))
			list[n++] = (struct gateway_override){r->sets[i].key, r->sets[i].value};
	if (list)
		c = gateway_change_follow(list, n);
	free(list);
	if (c) {
		gateway_change_start(m->gateway, c, changed, m);
	} else {
		no_memory(&err);
		changed(m, -ENOMEM, NULL, &err);
	}
}

int member_start(struct gateway *g, const struct member_options *o, struct versions_text *v,
	struct member **ret_member, struct weir_err *err)
{
	struct member *m = calloc(1, sizeof(*m));
	struct follower_options f = {.loop = gateway_loop(g),
		.store = o->token->store,
		.name = o->name,
		.local = o->local,
		.state = o->state,
		.members = PUBLISH_MEMBERS,
		.known = PUBLISH_KNOWN,
		.put = put_version,
		.arg = m};
	int rc;

	if (!m || !(m->files.file = strdup(o->file))) {
		versions_text_free(v);
		free(m);
		return no_memory(err);
	}
	m->gateway = g;
	m->files.reader = o->reader;
	m->files.reader_arg = o->reader_arg;
	rc = follower_new(&f, v, &m->follower, err);
	m->files.follower = m->follower;
	if (rc < 0) {
		member_free(m);
		return rc;
	}
	gateway_reader(g, follower_read, &m->files);
	follower_start(m->follower);
	*ret_member = m;
	return 0;
}

void member_stop(struct member *m)
{
	if (m)
		follower_stop(m->follower);
}

void member_free(struct member *m)
{
	if (!m)
		return;
	follower_free(m->follower);
	free(m->files.file);
	free(m);
}

void member_put(
	struct member *m, const struct versions_request *q, versions_put_done *done, void *arg)
{
	struct versions_request mine = *q;

	mine.member = follower_name(m->follower);
	versions_put(follower_store(m->follower), &mine, done, arg);
}

const char *member_local(const struct member *m)
{
	return follower_local(m->follower);
}
