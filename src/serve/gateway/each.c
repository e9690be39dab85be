/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * METHOD  The table has one entry per tenant that a template made, or shall make: its sender, and when a client last used it.
 *         A handshake that ends and finds no tenant adds an entry, asks for a refresh and waits; all that ask before the refresh
 *         begins are made by one. A client whose tenant cannot be made (the refresh failed) shares the template's
 *         `others`, and so does one that a change of the policy gave a template for the first time, until the next look.
 *         A look, at most every LOOK, walks the clients of each resource: it keeps the entries that are in use, wants tenants
 *         for clients in `others` that should have one, and asks for a refresh when an entry has expired. An entry whose
 *         tenant a change is removing counts as missing: its client waits for the next refresh.
 * COST    A look: a few ns per client. A refresh: O(tenants), aside.
 */
#include "serve/gateway/each.h"
#include "base/array.h"
#include "base/container.h"
#include "policy/by-size.h"
#include "policy/impl.h"
#include "policy/index.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_LEAST (100 * WEIR_MS)
#define LOOK       (10 * WEIR_SEC)
#define SOON       (10 * WEIR_MS)
#define SAY_AGAIN  (60 * WEIR_SEC) /* between two events of a template that has max_tenants */

struct entry {
	char *path;          /* of its tenant */
	char *texts;         /* memory of who */
	struct weir_who who; /* the first sender */
	uint64_t number;     /* in the order of arrival */
	weir_time used;
	bool made;    /* the version in force has it */
	bool min_off; /* its min does not fit */
	bool leaving; /* a change is removing it */
	bool failed;  /* the change that should have made it failed */
};

struct gateway_each_table {
	struct gateway *gateway;
	struct loop_timer timer;
	struct entry **all; /* by path */
	size_t n, room;
	uint64_t numbers;
	weir_time said_full;
	weir_time said_taken;
	bool wants; /* of this look: a refresh */
};

/* ---- senders */

/* Return true if the sender's export was removed. */
static bool is_gone(const struct weir_policy *p, const struct weir_who *who)
{
	return !policy_whole(p) && who->export_ && policy_index_export(p, who->export_) < 0;
}

static size_t size_of(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

static const char *append_text(char **to, const char *text)
{
	size_t n = size_of(text);

	if (!text)
		return NULL;
	memcpy(*to, text, n);
	*to += n;
	return *to - n;
}

/* Copy a sender into one piece of memory. */
static char *copy_who(const struct weir_who *from, struct weir_who *ret)
{
	char *texts = malloc(size_of(from->export_) + size_of(from->client) + size_of(from->uid) +
			     size_of(from->tls) + 1),
	     *at = texts;

	if (!texts)
		return NULL;
	*ret = (struct weir_who){.export_ = append_text(&at, from->export_),
		.client = append_text(&at, from->client),
		.uid = append_text(&at, from->uid),
		.tls = append_text(&at, from->tls)};
	return texts;
}

/* ---- the table */

static size_t place_of(const struct gateway_each_table *t, const char *path)
{
	size_t from = 0, to = t->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (strcmp(t->all[middle]->path, path) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static struct entry *find(const struct gateway_each_table *t, const char *path)
{
	size_t at = place_of(t, path);

	return at < t->n && strcmp(t->all[at]->path, path) == 0 ? t->all[at] : NULL;
}

static void free_entry(struct entry *e)
{
	free(e->path);
	free(e->texts);
	free(e);
}

/* Return the entry of that path, made if there is none; NULL: no memory. */
static struct entry *want(
	struct gateway_each_table *t, const char *path, const struct weir_who *who)
{
	struct entry *e = find(t, path);
	size_t at = place_of(t, path);

	if (e || array_grow(&t->all, &t->room, t->n + 1) < 0 || !(e = calloc(1, sizeof(*e))))
		return e;
	e->path = strdup(path);
	e->texts = copy_who(who, &e->who);
	if (!e->path || !e->texts) {
		free_entry(e);
		return NULL;
	}
	e->number = t->numbers++;
	memmove(t->all + at + 1, t->all + at, (t->n++ - at) * sizeof(*t->all));
	t->all[at] = e;
	return e;
}

/* Write the path of the tenant that the template at `of` would make. */
static bool path_for(const struct weir_policy *p, int of, const struct weir_who *who,
	char ret[POLICY_DEPTH_MAX * 64])
{
	char name[POLICY_EACH_NAME];

	return policy_each_name(p->tenants[of].each, who, name) &&
	       snprintf(ret, POLICY_DEPTH_MAX * 64, "%s/%s", p->tenants[of].path, name) <
		       POLICY_DEPTH_MAX * 64;
}

/* ---- a client comes */

/* Say why a client shares `others`, unless the same was said lately: there are too many tenants, or its name is that of another. */
static void say_others(struct gateway_each_table *t, const struct weir_policy *p, int others,
	const struct weir_who *who)
{
	int of = p->tenants[others].parent;
	const struct weir_tenant *above = &p->tenants[of];
	bool full = above->each->n_made >= above->each->max_tenants;
	char most[24], path[POLICY_DEPTH_MAX * 64];
	weir_time now = loop_clock(), *said = full ? &t->said_full : &t->said_taken;

	if ((*said && now - *said < SAY_AGAIN) ||
		(!full && (!path_for(p, of, who, path) || weir_policy_find(p, path) < 0)))
		return;
	*said = now;
	if (full)
		log_event(LOG_LEVEL_WARNING, "max-tenants", "tenant", above->path, "max_tenants",
			log_number(most, above->each->max_tenants), "export", who->export_,
			"client", who->client, "now", "it shares 'others'", NULL);
	else
		log_event(LOG_LEVEL_WARNING, "tenant-name-taken", "tenant", path, "export",
			who->export_, "client", who->client, "why",
			"the template makes the same name for others of its clients", "now",
			"it shares 'others'", NULL);
}

int gateway_admit(struct gateway *g, const struct weir_who *who)
{
	struct gateway_each_table *t = g->each;
	const struct weir_policy *p = g->policy;
	int of, i = policy_each_match(p, who, &of);
	char path[POLICY_DEPTH_MAX * 64];
	struct entry *e;

	if (!t || (i >= 0 && !p->tenants[i].made)) {
		if (t && i >= 0 && p->tenants[i].others)
			say_others(t, p, i, who);
		return 0;
	}
	if (i < 0 && (i != -EAGAIN || !path_for(p, of, who, path)))
		return 0;
	e = want(t, i >= 0 ? p->tenants[i].path : path, who);
	if (!e || e->failed)
		return 0;
	e->used = loop_clock();
	if (i >= 0 && !e->leaving)
		return 0;
	if (!e->leaving)
		gateway_refresh(g);
	return -EAGAIN;
}

/* ---- a change */

static bool has_expired(const struct gateway *g, const struct entry *e, weir_time now)
{
	int i = e->made ? weir_policy_find(g->policy, e->path) : -1;
	int above = i >= 0 ? g->policy->tenants[i].parent : -1;

	return above >= 0 && g->policy->tenants[above].each &&
	       now - e->used >= g->policy->tenants[above].each->expire_after;
}

static int by_number(const void *a, const void *b)
{
	const struct entry *const *x = a, *const *y = b;

	return (*x)->number < (*y)->number ? -1 : (*x)->number > (*y)->number;
}

void gateway_instances_free(struct gateway_instances *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->all[i].texts);
	free(list->all);
	*list = (struct gateway_instances){0};
}

int gateway_each_copy(struct gateway *g, struct gateway_instances *ret)
{
	struct gateway_each_table *t = g->each;
	size_t n = t ? t->n : 0;
	struct entry **order = calloc(n + 1, sizeof(*order));
	struct gateway_instances list = {calloc(n + 1, sizeof(*list.all)), 0, loop_clock()};
	bool good = order && list.all;

	for (size_t i = 0; good && i < n; i++) {
		order[i] = t->all[i];
		order[i]->leaving = has_expired(g, order[i], list.at);
	}
	if (good)
		qsort(order, n, sizeof(*order), by_number);
	for (size_t i = 0; good && i < n; i++) {
		struct policy_instance *to = &list.all[list.n];

		if (order[i]->leaving)
			continue;
		to->texts = copy_who(&order[i]->who, &to->who);
		good = to->texts;
		list.n += good;
	}
	free(order);
	if (!good) {
		gateway_instances_free(&list);
		return -ENOMEM;
	}
	*ret = list;
	return 0;
}

static void say_min(const struct weir_tenant *t)
{
	log_event(LOG_LEVEL_WARNING, "min-off", "tenant", t->path, "why", t->min_off, "now",
		"it has its weight only", NULL);
}

/* The list has the senders of all entries but those that were leaving or came later. */
void gateway_each_entered(struct gateway *g, const struct gateway_instances *list)
{
	struct gateway_each_table *t = g->each;
	const struct weir_policy *p = g->policy;
	bool again = false;
	size_t kept = 0;

	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++)
		t->all[i]->made = t->all[i]->failed = false;
	for (size_t i = 0; i < list->n; i++) { /* under another policy it may have another path */
		const struct policy_instance *from = &list->all[i];
		const struct weir_tenant *of = from->tenant >= 0 ? &p->tenants[from->tenant] : NULL;
		struct entry *e = of ? want(t, of->path, &from->who) : NULL;

		if (!e)
			continue;
		if (of->min_off && !e->min_off)
			say_min(of);
		e->min_off = of->min_off;
		e->used = e->used ? e->used : list->at;
		e->made = true;
	}
	for (size_t i = 0; i < t->n; i++) {
		struct entry *e = t->all[i];
		bool late = e->used > list->at; /* wanted since */

		e->leaving = false;
		again |= late && !e->made;
		if (e->made || late)
			t->all[kept++] = e;
		else
			free_entry(e);
	}
	t->n = kept;
	if (again)
		gateway_refresh(g);
	loop_set(g->loop, &t->timer, loop_clock() + SOON);
	front_known(g->door);
}

void gateway_each_failed(struct gateway *g, bool refresh)
{
	struct gateway_each_table *t = g->each;

	for (size_t i = 0; t && i < t->n; i++) {
		t->all[i]->leaving = false;
		t->all[i]->failed |= refresh && !t->all[i]->made;
	}
	if (t)
		front_known(g->door);
}

/* ---- limits by size */

struct sizes {
	struct gateway *gateway;
	const struct weir_policy *policy;
	const struct gateway_volumes *fresh;
};

static uint64_t export_size(void *arg, const char *name)
{
	const struct sizes *s = arg;

	return gateway_export_size(s->gateway, s->policy, s->fresh, name);
}

int gateway_each_limits(struct gateway *g, struct weir_policy *p,
	const struct gateway_volumes *fresh, const struct gateway_instances *list, bool strict)
{
	struct sizes s = {g, p, fresh};

	policy_size_resolve(p, export_size, &s);
	return policy_each_fit(p, list->all, list->n, g->policy, strict);
}

int gateway_each_make(struct weir_policy *p, struct gateway_instances *list)
{
	for (size_t i = 0; i < list->n; i++)
		list->all[i].gone = is_gone(p, &list->all[i].who);
	return policy_each_expand(p, list->all, list->n);
}

void gateway_each_size(struct gateway *g)
{
	if (g->each && policy_size_used(g->policy))
		gateway_refresh(g);
}

/* ---- a look */

static void look_at(void *arg, const struct weir_policy *p, const struct weir_who *who, int tenant)
{
	struct gateway_each_table *t = arg;
	char path[POLICY_DEPTH_MAX * 64];
	struct entry *e = NULL;
	int of;

	if (p->tenants[tenant].made)
		e = find(t, p->tenants[tenant].path);
	else if (p->tenants[tenant].others && !is_gone(p, who) &&
		 policy_each_match(p, who, &of) == -EAGAIN && path_for(p, of, who, path))
		e = want(t, path, who);
	if (!e)
		return;
	e->used = loop_clock();
	t->wants |= !e->made && !e->failed;
}

static int look_there(void *arg, struct gateway_resource *r)
{
	resource_tenants(r->resource, look_at, arg);
	return 0;
}

static weir_time shortest(const struct weir_policy *p)
{
	weir_time least = WEIR_NEVER;

	for (size_t i = 0; i < p->n_tenants; i++)
		if (p->tenants[i].each && p->tenants[i].each->expire_after / 8 < least)
			least = p->tenants[i].each->expire_after / 8;
	return least;
}

static void due(struct loop_timer *timer, weir_time now)
{
	struct gateway_each_table *t = container_of(timer, struct gateway_each_table, timer);
	struct gateway *g = t->gateway;
	weir_time period = shortest(g->policy);

	if (period == WEIR_NEVER)
		return;     /* no templates: gateway_each_entered sets it again */
	if (g->switching) { /* resources have other tenants than the gateway, for a moment */
		loop_set(g->loop, timer, now + SOON);
		return;
	}
	t->wants = false;
	gateway_each(g, look_there, t, NULL);
	for (size_t i = 0; i < t->n && !t->wants; i++)
		t->wants = has_expired(g, t->all[i], now);
	if (t->wants)
		gateway_refresh(g);
	period = period > LOOK ? LOOK : period < LOOK_LEAST ? LOOK_LEAST : period;
	loop_set(g->loop, timer, now + period);
}

int gateway_each_start(struct gateway *g)
{
	struct gateway_each_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->gateway = g;
	t->timer.due = due;
	g->each = t;
	return loop_set(g->loop, &t->timer, loop_clock() + LOOK_LEAST);
}

void gateway_each_stop(struct gateway *g)
{
	struct gateway_each_table *t = g->each;

	if (!t)
		return;
	loop_set(g->loop, &t->timer, WEIR_NEVER);
	for (size_t i = 0; i < t->n; i++)
		free_entry(t->all[i]);
	free(t->all);
	free(t);
	g->each = NULL;
}
