/* SPDX-License-Identifier: BSD-3-Clause */
/* store-rig: requests to a store that wait for their answers, and a follower that keeps all it sees. */
#pragma once

#include "base/container.h"
#include "serve/store/store.h"
#include "test.h"

struct answer { /* keys are copies */
	int rc;
	struct store_result result;
	struct {
		char key[64], value[64];
		uint64_t created, changed;
	} keys[32];
	struct weir_err err;
	struct loop *loop; /* stopped by the answer */
	bool done;
};

static void answer_keys(struct answer *a, const struct store_result *r)
{
	for (size_t i = 0; i < r->n && i < 32; i++) {
		snprintf(a->keys[i].key, sizeof(a->keys[i].key), "%s", r->keys[i].key);
		snprintf(a->keys[i].value, sizeof(a->keys[i].value), "%.*s", (int)r->keys[i].length,
			(const char *)r->keys[i].value);
		a->keys[i].created = r->keys[i].created;
		a->keys[i].changed = r->keys[i].changed;
	}
}

static void answered(void *arg, int rc, const struct store_result *r, const struct weir_err *err)
{
	struct answer *a = arg;

	a->rc = rc;
	a->done = true;
	if (rc == 0) {
		a->result = *r;
		a->result.keys = NULL;
		answer_keys(a, r);
	} else {
		a->err = *err;
	}
	loop_stop(a->loop);
}

static inline struct answer ask(struct loop *l, struct store *s, struct store_request q)
{
	struct answer a = {.loop = l};

	store_ask(s, &q, answered, &a);
	while (!a.done)
		CHECK_INT(loop_run(l), 0);
	return a;
}

/* Put a text, on a condition. */
static inline struct answer put_if(
	struct loop *l, struct store *s, const char *key, const char *value, uint64_t changed)
{
	struct store_condition c = {.key = key, .changed = changed};
	struct store_change p = {.key = key, .value = value, .length = strlen(value)};

	return ask(l, s,
		(struct store_request){.kind = STORE_TXN,
			.conditions = &c,
			.n_conditions = 1,
			.changes = &p,
			.n_changes = 1});
}

static inline struct answer put(
	struct loop *l, struct store *s, const char *key, const char *value, uint64_t lease)
{
	struct store_change p = {
		.key = key, .value = value, .length = strlen(value), .lease = lease};
	struct answer a =
		ask(l, s, (struct store_request){.kind = STORE_TXN, .changes = &p, .n_changes = 1});

	CHECK_STR(a.err.text, "");
	CHECK_INT(a.rc, 0);
	CHECK(a.result.held);
	return a;
}

static inline struct answer removed(struct loop *l, struct store *s, const char *key)
{
	struct store_change p = {.key = key, .remove = true};

	return ask(l, s, (struct store_request){.kind = STORE_TXN, .changes = &p, .n_changes = 1});
}

static inline struct answer list(struct loop *l, struct store *s, const char *prefix)
{
	return ask(l, s, (struct store_request){.kind = STORE_LIST, .prefix = prefix});
}

struct diary { /* of a follower */
	struct store_follow follow;
	struct loop *loop;
	char text[4096];   /* "fresh a=1 b=2; b=3; -a; " */
	const char *until; /* stop the loop when it has this */
	int troubles;
	uint64_t revision;
};

static void diary_seen(struct store_follow *f, bool fresh, const struct store_event *e, size_t n,
	uint64_t revision)
{
	struct diary *d = container_of(f, struct diary, follow);
	size_t len = strlen(d->text);

	len += (size_t)snprintf(d->text + len, sizeof(d->text) - len, "%s", fresh ? "fresh " : "");
	for (size_t i = 0; i < n; i++)
		len += (size_t)snprintf(d->text + len, sizeof(d->text) - len, "%s%s%s%.*s ",
			e[i].removed ? "-" : "", e[i].key.key, e[i].removed ? "" : "=",
			e[i].removed ? 0 : (int)e[i].key.length, (const char *)e[i].key.value);
	snprintf(d->text + len, sizeof(d->text) - len, "; ");
	d->revision = revision;
	if (d->until && strstr(d->text, d->until))
		loop_stop(d->loop);
}

static void diary_trouble(struct store_follow *f, const char *why)
{
	struct diary *d = container_of(f, struct diary, follow);

	d->troubles += why != NULL;
	if (!d->until)
		loop_stop(d->loop);
}

static inline void diary_start(struct diary *d, struct loop *l, struct store *s, const char *prefix)
{
	*d = (struct diary){.loop = l};
	d->follow = (struct store_follow){
		.prefix = prefix, .seen = diary_seen, .trouble = diary_trouble};
	store_follow(s, &d->follow);
}

/* Run the loop until the diary has the text. */
static inline void diary_until(struct diary *d, const char *text)
{
	d->until = text;
	while (!strstr(d->text, text))
		CHECK_INT(loop_run(d->loop), 0);
	d->until = "";
}
