/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/array.h"
#include "base/no-memory.h"
#include "serve/gateway/each.h"
#include "serve/gateway/handover.h"
#include "serve/gateway/impl.h"
#include "serve/gateway/ledger.h"
#include "serve/loop/inherit.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* ---- sockets and files */

static void put_one(void *arg, const char *address, int fd)
{
	struct record_out *o = arg;

	record_put_text(o, address ? address : "");
	record_put_fd(o, fd);
}

void handover_put_inherited(struct record_out *o)
{
	size_t begun = record_begin(o, "inherit");

	inherit_each(put_one, o);
	record_end(o, begun);
}

int handover_get_inherited(struct record_in *in)
{
	while (in->at < in->end && !in->bad) {
		const char *address = record_get_text(in);
		int fd = record_get_fd(in);

		if (in->bad && fd >= 0)
			close(fd);
		else if (fd >= 0)
			inherit_put(*address ? address : NULL, fd);
	}
	return in->bad ? -EBADMSG : 0;
}

/* ---- senders that have tenants of templates: the other process makes these tenants before it takes the clients */

static void put_sender(
	void *arg, const struct weir_policy *p, const struct weir_who *who, int tenant)
{
	struct record_out *o = arg;

	if (!p->tenants[tenant].made)
		return;
	record_put_text(o, who->export_ ? who->export_ : "");
	record_put_text(o, who->client ? who->client : "");
	record_put_text(o, who->uid ? who->uid : "");
}

static int put_senders(void *arg, struct gateway_resource *r)
{
	resource_tenants(r->resource, put_sender, arg);
	return 0;
}

void handover_put_senders(struct gateway *g, struct record_out *o)
{
	size_t begun = record_begin(o, "senders");

	gateway_all(g, put_senders, o);
	record_end(o, begun);
}

static const char *or_null(const char *text)
{
	return *text ? text : NULL;
}

bool handover_get_senders(struct gateway *g, struct record_in *in)
{
	bool wanted = false;

	while (in->at < in->end && !in->bad) {
		const char *export_ = record_get_text(in), *client = record_get_text(in);
		const char *uid = record_get_text(in);
		struct weir_who who = {
			.export_ = export_, .client = or_null(client), .uid = or_null(uid)};

		wanted |= !in->bad && gateway_admit(g, &who) == -EAGAIN;
	}
	return wanted;
}

/* ---- the parts of a resource: each is written and read on its thread */

struct handover_part { /* of one resource, as it was read */
	struct gateway_resource *resource;
	struct record_in in;
	struct record_in levels;
	struct front_taken *clients;
	bool bypassed;
	bool whole; /* front_take */
};

static void keep_levels(struct gateway_resource *r, struct record_out *o)
{
	resource_keep(r->resource, o);
}

static void keep_clients(struct gateway_resource *r, struct record_out *o)
{
	front_keep(r->worker->front, r->resource, o);
}

static void keep_bypass(struct gateway_resource *r, struct record_out *o)
{
	record_put(o, r->bypassed);
}

/* The gate gets its levels when it is to start: they are filled for the time until then. */
static int take_levels(struct handover_part *p, struct record_in *in)
{
	p->levels = *in;
	return 0;
}

static int take_clients(struct handover_part *p, struct record_in *in)
{
	if (p->clients)
		return -EBADMSG;
	return front_take(
		p->resource->worker->front, p->resource->resource, in, p->whole, &p->clients);
}

static int take_bypass(struct handover_part *p, struct record_in *in)
{
	p->bypassed = record_get_most(in, 1);
	return in->bad ? -EBADMSG : 0;
}

static const struct plug {
	const char *name; /* of the section */
	void (*keep)(struct gateway_resource *r, struct record_out *o);
	int (*take)(struct handover_part *p, struct record_in *in);
} plugs[] = {
	{"levels", keep_levels, take_levels},
	{"bypass", keep_bypass, take_bypass},
	{"clients", keep_clients, take_clients},
};
#define N_PLUGS (sizeof(plugs) / sizeof(*plugs))

static int keep_resource(void *arg, struct gateway_resource *r)
{
	struct record_out *o = arg;
	size_t whole = record_begin(o, "resource");

	record_put_text(o, r->name);
	for (size_t i = 0; i < N_PLUGS; i++) {
		size_t begun = record_begin(o, plugs[i].name);

		plugs[i].keep(r, o);
		record_end(o, begun);
	}
	record_end(o, whole);
	return 0;
}

void handover_keep(struct gateway *g, weir_time began, struct record_out *o)
{
	size_t begun = record_begin(o, "pause");

	record_put(o, (uint64_t)began);
	record_put(o, (uint64_t)loop_clock());
	record_end(o, begun);
	begun = record_begin(o, "ledger");
	gateway_ledger_keep(g, o);
	record_end(o, begun);
	gateway_all(g, keep_resource, o);
}

/* ---- reading */

static struct handover_part *part_of(
	const struct handover_taken *t, const struct gateway_resource *r)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->parts[i].resource == r)
			return &t->parts[i];
	return NULL;
}

static int take_resource(void *arg, struct gateway_resource *r)
{
	struct handover_part *p = part_of(arg, r);
	struct record_in part;
	const char *name;
	int rc = 0;

	while (p && rc == 0 && record_section(&p->in, &name, &part))
		for (size_t i = 0; rc == 0 && i < N_PLUGS; i++)
			if (strcmp(plugs[i].name, name) == 0)
				rc = plugs[i].take(p, &part);
	return rc == 0 && p && p->in.bad ? -EBADMSG : rc;
}

static int get_part(struct gateway *g, struct record_in *in, struct handover_taken *t)
{
	const char *name = record_get_text(in);
	struct gateway_resource *r = gateway_resource(g, name);

	if (in->bad || (r && part_of(t, r)))
		return -EBADMSG;
	if (!r) {
		log_event(LOG_LEVEL_WARNING, "resource-gone", "resource", name, "why",
			"the policy lacks it: its clients are disconnected", NULL);
		return 0;
	}
	if (array_grow(&t->parts, &t->room, t->n + 1) < 0)
		return -ENOMEM;
	t->parts[t->n++] = (struct handover_part){.resource = r, .in = *in, .whole = t->whole};
	return 0;
}

static void get_pause(struct record_in *in, struct handover_taken *t)
{
	t->began = (weir_time)record_get(in);
	t->quiet = (weir_time)record_get(in);
}

int handover_take(struct gateway *g, struct record_in *in, bool whole, struct handover_taken *ret,
	struct weir_err *err)
{
	struct record_in part;
	const char *name;
	int rc = 0;

	*ret = (struct handover_taken){.began = loop_clock(), .whole = whole};
	while (rc == 0 && record_section(in, &name, &part)) {
		if (strcmp(name, "pause") == 0)
			get_pause(&part, ret);
		else if (strcmp(name, "ledger") == 0)
			ret->ledger = part;
		else if (strcmp(name, "resource") == 0)
			rc = get_part(g, &part, ret);
	}
	if (rc == 0 && in->bad)
		rc = -EBADMSG;
	if (rc == 0)
		rc = gateway_all(g, take_resource, ret);
	if (rc == 0)
		return 0;
	handover_drop(g, ret);
	if (rc == -EAGAIN)
		return weir_err_set(err, rc, "the storage of a client is not reached");
	return rc == -ENOMEM ? no_memory(err)
			     : weir_err_set(err, rc, "the record of the hand-over is damaged");
}

static int drop_there(void *arg, struct gateway_resource *r)
{
	struct handover_part *p = part_of(arg, r);

	if (p)
		front_taken_free(p->clients);
	return 0;
}

void handover_drop(struct gateway *g, struct handover_taken *t)
{
	gateway_all(g, drop_there, t);
	free(t->parts);
	*t = (struct handover_taken){0};
}

static int start_there(void *arg, struct gateway_resource *r)
{
	struct handover_part *p = part_of(arg, r);

	if (p && p->levels.at && resource_take(r->resource, &p->levels) < 0)
		log_event(LOG_LEVEL_ERROR, "levels-lost", "resource", r->name, NULL);
	if (p && p->clients)
		front_taken_start(p->clients);
	return 0;
}

static void say(const struct handover_taken *t)
{
	char pause[24], inside[24];

	log_event(LOG_LEVEL_INFO, "took-over", "pause_ms",
		log_number(pause, (double)(loop_clock() - t->began) / WEIR_MS), "inside_ms",
		log_number(inside, (double)(t->quiet - t->began) / WEIR_MS), NULL);
}

void handover_start(struct gateway *g, struct handover_taken *t)
{
	struct weir_err err;
	uint32_t released;

	gateway_divide_spent(g);
	if (t->ledger.at && gateway_ledger_take(g, &t->ledger) < 0)
		log_event(LOG_LEVEL_ERROR, "ledger-lost", "why", "it cannot be read", NULL);
	for (size_t i = 0; i < t->n; i++) {
		const char *name = t->parts[i].resource->name;

		if (t->parts[i].bypassed && gateway_bypass(g, name, true, &released, &err) < 0)
			log_event(LOG_LEVEL_ERROR, "bypass-lost", "resource", name, NULL);
	}
	gateway_all(g, start_there, t);
	say(t);
	free(t->parts);
	*t = (struct handover_taken){0};
}
