/* SPDX-License-Identifier: BSD-3-Clause */
/* Every kind of store does the same: one test over all of them. */
#include "etcd-rig.h"
#include "store-rig.h"

static struct loop *loop;
static struct store *store;
static char name[256];

static void reopen(void)
{
	struct weir_err err = {""};

	store_close(store);
	if (store_open(loop, name, &store, &err) < 0)
		FAIL("%s", err.text);
}

static void lists_by_prefix(void)
{
	struct answer a = list(loop, store, "list/"), b;
	struct store_request q = {.kind = STORE_LIST, .prefix = "list/", .limit = 2};

	CHECK_INT(a.rc, 0);
	CHECK_INT(a.result.n, 0);
	CHECK(a.result.revision > 0);
	put(loop, store, "list/b", "2", 0);
	put(loop, store, "list/a", "1", 0);
	put(loop, store, "list/c/d", "3", 0);
	put(loop, store, "listless", "4", 0);
	put(loop, store, "lisu", "5", 0);
	a = list(loop, store, "list/");
	CHECK_INT(a.result.n, 3);
	CHECK_STR(a.keys[0].key, "list/a");
	CHECK_STR(a.keys[1].value, "2");
	CHECK_STR(a.keys[2].key, "list/c/d");
	CHECK(!a.result.more);
	a = ask(loop, store, q);
	CHECK_INT(a.result.n, 2);
	CHECK(a.result.more);
	q.after = "list/b";
	b = ask(loop, store, q);
	CHECK_INT(b.result.n, 1);
	CHECK_STR(b.keys[0].key, "list/c/d");
	CHECK(!b.result.more);
	q = (struct store_request){.kind = STORE_LIST, .prefix = "list/a", .exact = true};
	a = ask(loop, store, q);
	CHECK_INT(a.result.n, 1);
	CHECK_STR(a.keys[0].value, "1");
	q.prefix = "list/";
	CHECK_INT(ask(loop, store, q).result.n, 0);
	q = (struct store_request){
		.kind = STORE_LIST, .prefix = "list/", .names = true, .stale = true};
	a = ask(loop, store, q);
	CHECK_INT(a.result.n, 3);
	CHECK_STR(a.keys[0].value, "");
}

static void changes_on_conditions(void)
{
	struct answer a = put_if(loop, store, "if/x", "1", 0), b;
	struct store_condition both[] = {
		{.key = "if/x", .exists = true}, {.key = "if/y", .exists = true}};
	struct store_change two[] = {{.key = "if/x", .value = "9", .length = 1},
		{.key = "if/z", .value = "9", .length = 1}};
	struct store_request q = {.kind = STORE_TXN,
		.conditions = both,
		.n_conditions = 2,
		.changes = two,
		.n_changes = 2};

	CHECK(a.result.held);
	b = put_if(loop, store, "if/x", "2", 0);
	CHECK_INT(b.rc, 0);
	CHECK(!b.result.held);
	b = put_if(loop, store, "if/x", "2", a.result.revision);
	CHECK(b.result.held);
	CHECK(b.result.revision > a.result.revision);
	CHECK(!put_if(loop, store, "if/x", "3", a.result.revision).result.held);
	CHECK(!ask(loop, store, q).result.held);
	a = list(loop, store, "if/");
	CHECK_INT(a.result.n, 1);
	CHECK_STR(a.keys[0].value, "2");
	CHECK(a.keys[0].created < a.keys[0].changed);
	CHECK_INT(a.keys[0].changed, b.result.revision);
	put(loop, store, "if/y", "1", 0);
	CHECK(ask(loop, store, q).result.held);
	CHECK_INT(list(loop, store, "if/").result.n, 3);
	CHECK(removed(loop, store, "if/x").result.held);
	CHECK(removed(loop, store, "if/x").result.held);
	CHECK(!ask(loop, store, q).result.held);
	CHECK_INT(list(loop, store, "if/").result.n, 2);
}

/* A value of all bytes, as large as a value may be, comes back as it was. */
static char *got;
static size_t got_n;

static void got_value(void *arg, int rc, const struct store_result *r, const struct weir_err *err)
{
	CHECK_INT(rc, 0);
	CHECK_INT(r->n, 1);
	got_n = r->keys[0].length;
	got = malloc(got_n);
	memcpy(got, r->keys[0].value, got_n);
	loop_stop(loop);
}

static void keeps_large_values(void)
{
	char *value = malloc(STORE_VALUE_MAX);
	struct store_change c = {.key = "large", .value = value, .length = STORE_VALUE_MAX};
	struct store_request q = {.kind = STORE_TXN, .changes = &c, .n_changes = 1};

	for (size_t i = 0; i < STORE_VALUE_MAX; i++)
		value[i] = (char)(i * 7 + i / 256);
	CHECK(ask(loop, store, q).result.held);
	q = (struct store_request){.kind = STORE_LIST, .prefix = "large", .exact = true};
	store_ask(store, &q, got_value, NULL);
	loop_run(loop);
	CHECK_INT(got_n, STORE_VALUE_MAX);
	CHECK(memcmp(got, value, got_n) == 0);
	free(got);
	free(value);
	removed(loop, store, "large");
}

static void follows(void)
{
	struct diary d, all;

	put(loop, store, "see/a", "1", 0);
	diary_start(&d, loop, store, "see/");
	diary_until(&d, "fresh see/a=1 ; ");
	put(loop, store, "see/b", "2", 0);
	put(loop, store, "unseen", "0", 0);
	diary_until(&d, "see/b=2 ");
	put(loop, store, "see/a", "3", 0);
	diary_until(&d, "see/a=3 ");
	removed(loop, store, "see/b");
	diary_until(&d, "-see/b ");
	CHECK(!strstr(d.text, "unseen"));
	CHECK(d.revision >= list(loop, store, "see/").keys[0].changed);
	diary_start(&all, loop, store, "see/");
	diary_until(&all, "fresh see/a=3 ; ");
	store_unfollow(&d.follow);
	put(loop, store, "see/c", "4", 0);
	diary_until(&all, "see/c=4 ");
	CHECK(!strstr(d.text, "see/c"));
	store_unfollow(&all.follow);
	store_unfollow(&all.follow);
}

/* Of many keys all pages are read. */
static void follows_many(void)
{
	struct diary d;
	char key[32];

	for (int i = 0; i < 250; i++) {
		snprintf(key, sizeof(key), "m/%03d", i);
		put(loop, store, key, "", 0);
	}
	diary_start(&d, loop, store, "m/");
	diary_until(&d, "m/249= ; ");
	CHECK(strstr(d.text, "fresh m/000= m/001= "));
	CHECK(!strstr(strstr(d.text, ";") + 1, "fresh"));
	store_unfollow(&d.follow);
}

static void leases_end(void)
{
	struct store_request q = {.kind = STORE_GRANT, .ttl = 1};
	struct answer a = ask(loop, store, q), b = ask(loop, store, q);
	struct diary d;
	weir_time begin, end;

	CHECK_INT(a.rc, 0);
	CHECK(a.result.lease > 0 && b.result.lease != a.result.lease);
	CHECK(a.result.ttl >= 1 && a.result.ttl < 10);
	put(loop, store, "lease/a", "1", a.result.lease);
	put(loop, store, "lease/b", "1", b.result.lease);
	diary_start(&d, loop, store, "lease/");
	diary_until(&d, "fresh lease/a=1 lease/b=1 ");
	begin = loop_clock();
	q = (struct store_request){.kind = STORE_KEEP, .lease = a.result.lease};
	CHECK_INT(ask(loop, store, q).rc, 0);
	CHECK(ask(loop, store, q).result.ttl >= 1);
	q.kind = STORE_REVOKE;
	CHECK_INT(ask(loop, store, q).rc, 0);
	diary_until(&d, "-lease/a ");
	CHECK(!strstr(d.text, "-lease/b "));
	diary_until(&d, "-lease/b ");
	end = loop_clock();
	CHECK(end - begin > 300 * WEIR_MS && end - begin < 10 * WEIR_SEC);
	CHECK_INT(list(loop, store, "lease/").result.n, 0);
	CHECK_INT(ask(loop, store, q).rc, -ENOENT);
	q.kind = STORE_KEEP;
	CHECK_INT(ask(loop, store, q).rc, -ENOENT);
	store_unfollow(&d.follow);
}

static void refuses_unknown_leases(void)
{
	struct store_change p = {.key = "none", .value = "", .lease = 12345};
	struct store_request q = {.kind = STORE_TXN, .changes = &p, .n_changes = 1};

	CHECK_INT(ask(loop, store, q).rc, -ENOENT);
	CHECK_INT(list(loop, store, "none").result.n, 0);
}

static void survives_reopening(void)
{
	struct answer a = put(loop, store, "stay", "here", 0), b;

	reopen();
	b = list(loop, store, "stay");
	CHECK_INT(b.result.n, 1);
	CHECK_STR(b.keys[0].value, "here");
	CHECK_INT(b.keys[0].changed, a.result.revision);
	CHECK(put(loop, store, "stay", "on", 0).result.revision > a.result.revision);
}

/* Two handles are as two processes. */
static void is_shared(void)
{
	struct store *other;
	struct diary d;
	struct weir_err err;

	CHECK_INT(store_open(loop, name, &other, &err), 0);
	diary_start(&d, loop, other, "both/");
	diary_until(&d, "fresh ; ");
	put(loop, store, "both/a", "1", 0);
	diary_until(&d, "both/a=1 ");
	put(loop, other, "both/a", "2", 0);
	CHECK_STR(list(loop, store, "both/").keys[0].value, "2");
	store_close(other);
}

/* Requests that are under way end with the store. */
static void closes_in_the_middle(void)
{
	struct store_request q = {.kind = STORE_LIST, .prefix = "x"};
	struct answer a = {.loop = loop}, b = {.loop = loop};
	struct diary d;

	diary_start(&d, loop, store, "close/");
	store_ask(store, &q, answered, &a);
	store_ask(store, &q, answered, &b);
	store_close(store);
	store = NULL;
	CHECK(a.done && b.done);
	CHECK_INT(a.rc, -ESHUTDOWN);
	loop_stop(loop);
	loop_run(loop);
	reopen();
}

static void run_all(const char *which)
{
	snprintf(name, sizeof(name), "%s", which);
	reopen();
	RUN(lists_by_prefix);
	RUN(changes_on_conditions);
	RUN(keeps_large_values);
	RUN(follows);
	RUN(follows_many);
	RUN(leases_end);
	RUN(refuses_unknown_leases);
	RUN(survives_reopening);
	RUN(is_shared);
	RUN(closes_in_the_middle);
	store_close(store);
	store = NULL;
	loop_stop(loop);
	loop_run(loop);
}

static void refuses_names(void)
{
	static const char *const wrong[][2] = {{"etcd", "'etcd' is no store"},
		{"zookeeper:x", "'zookeeper:x' is no store"},
		{"etcd:10.0.0.1:2379", "'10.0.0.1:2379' is not like https://HOST:2379"},
		{"etcd:http://x:1?prefx=a", "no option 'prefx' (did you mean 'prefix'?)"},
		{"etcd:http://x:1?prefix=a b", "prefix: must be"},
		{"etcd:http://x:1?user=a", "user and password-file go together"},
		{"etcd:http://x:1?user=a&password-file=/none/x", "/none/x: No such file"},
		{"etcd:https://x:1?cert=a", "cert and key go together"},
		{"etcd:http://x:1?timeout=1ms", "timeout: must be from 1s to 60s"},
		{"etcd:http://x:1?prefix", "'prefix' is not like prefix=weir/"},
		{"sqlite:", "needs a folder"}, {"sqlite:/none/x/y", "No such file"}};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct weir_err err = {""};
		struct store *s;

		CHECK(store_open(loop, wrong[i][0], &s, &err) < 0);
		if (!strstr(err.text, wrong[i][1]))
			FAIL("%s: %s", wrong[i][0], err.text);
	}
}

int main(void)
{
	char folder[] = "/tmp/weir-store-XXXXXX", which[128];
	struct etcd_rig rig;

	CHECK_INT(loop_new(&loop), 0);
	RUN(refuses_names);
	CHECK(mkdtemp(folder) != NULL);
	snprintf(which, sizeof(which), "sqlite:%s", folder);
	run_all(which);
	rig_remove(folder);
	rig_start(&rig);
	snprintf(which, sizeof(which), "etcd:http://127.0.0.1:1,%s?prefix=test", rig.client);
	run_all(which);
	rig_stop(&rig);
	loop_free(loop);
	return 0;
}
