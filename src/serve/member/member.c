/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * member: a follower whose versions are put in force at a gateway.
 *
 * METHOD  A change of the gateway reads its tenants from the version that the follower offers; SIGHUP reads those in force.
 */
#include "serve/member/member.h"
#include "base/container.h"
#include "base/no-memory.h"
#include "serve/gateway/gateway.h"
#include "serve/member/follower.h"
#include "serve/member/member-impl.h"
#include "serve/store/state.h"
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define LOOK (10 * WEIR_SEC) /* between two looks at capacities */

struct member {
	struct gateway *gateway;
	struct follower *follower;
	struct follower_files files;
	struct loop_timer look;
	json_t *capacities; /* as published: requests a second, by resource */
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

/* ---- what its resources can do */

/* Return true if a capacity moved by more than a tenth: less is not worth a write to the store. */
static bool has_moved(const json_t *old, const json_t *new)
{
	const char *name;
	json_t *value;
	bool moved = json_object_size(old) != json_object_size(new);

	json_object_foreach((json_t *)new, name, value)
	{
		double is = json_number_value(value);
		double was = json_number_value(json_object_get(old, name));

		moved |= is > was * 1.1 || is < was * 0.9;
	}
	return moved;
}

static void looked(void *arg, struct snapshot *s)
{
	struct member *m = arg;
	json_t *all = s ? json_object() : NULL;

	for (size_t i = 0; all && i < s->n_resources; i++)
		if (s->resources[i].capacity[WEIR_UNIT_REQUESTS] > 0)
			json_object_set_new(all, s->resources[i].name,
				json_real(s->resources[i].capacity[WEIR_UNIT_REQUESTS]));
	snapshot_free(s);
	if (all && has_moved(m->capacities, all)) {
		json_decref(m->capacities);
		m->capacities = json_incref(all);
		publish_facts(follower_publish(m->follower), json_pack("{s:O}", "capacities", all));
	}
	json_decref(all);
}

static void look_due(struct loop_timer *t, weir_time now)
{
	struct member *m = container_of(t, struct member, look);

	gateway_look(m->gateway, NULL, looked, m);
	loop_set(gateway_loop(m->gateway), t, loop_clock() + LOOK);
}

/* ---- start and end */

int member_start(struct gateway *g, const struct member_options *o, struct versions_text *v,
	struct member **ret_member, struct weir_err *err)
{
	struct member *m = calloc(1, sizeof(*m));
	char instance[PIECES_DIGEST];
	struct follower_options f = {.loop = gateway_loop(g),
		.store = o->token->store,
		.name = o->name,
		.local = o->local,
		.state = o->state,
		.members = PUBLISH_MEMBERS,
		.known = PUBLISH_KNOWN,
		.instance = instance,
		.put = put_version,
		.arg = m};
	int rc;

	if (!m || !(m->files.file = strdup(o->file))) {
		versions_text_free(v);
		free(m);
		return no_memory(err);
	}
	publish_instance(o->file, instance);
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
	m->look.due = look_due;
	loop_set(gateway_loop(g), &m->look, loop_clock() + WEIR_SEC);
	*ret_member = m;
	return 0;
}

void member_stop(struct member *m)
{
	if (!m)
		return;
	loop_set(gateway_loop(m->gateway), &m->look, WEIR_NEVER);
	follower_stop(m->follower);
}

void member_free(struct member *m)
{
	if (!m)
		return;
	follower_free(m->follower);
	json_decref(m->capacities);
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

void member_list(struct member *m, size_t most, versions_list_done *done, void *arg)
{
	uint64_t newest = follower_in_force(m->follower)->record.number;

	versions_list(follower_store(m->follower), newest > most ? newest - most + 1 : 1, most,
		true, done, arg);
}

const char *member_local(const struct member *m)
{
	return follower_local(m->follower);
}
