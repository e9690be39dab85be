/* SPDX-License-Identifier: BSD-3-Clause */
/* versions: versions in a store: kept as they were made, one after the other, within bounds. */
#include "../store/etcd-rig.h"
#include "serve/versions/versions.h"
#include "serve/store/store-impl.h"

static struct loop *loop;
static struct store *store;

/* ---- calls that wait */

struct put {
	int rc;
	struct record record;
	struct weir_err err;
	bool done;
};

static void put_done(void *arg, int rc, const struct record *r, const struct weir_err *err)
{
	struct put *p = arg;

	*p = (struct put){.rc = rc, .done = true};
	if (r)
		CHECK_INT(record_copy(r, &p->record), 0);
	if (rc < 0)
		p->err = *err;
	loop_stop(loop);
}

static void until(const bool *done)
{
	while (!*done)
		CHECK_INT(loop_run(loop), 0);
}

static struct put put(struct versions_request q)
{
	struct put p = {0};

	versions_put(store, &q, put_done, &p);
	until(&p.done);
	return p;
}

static uint64_t apply(const char *text, uint64_t base)
{
	struct put p = put((struct versions_request){.text = text,
		.length = strlen(text),
		.name = "p.yaml",
		.user = "anna",
		.message = "why",
		.base = base});
	uint64_t number = p.record.number;

	if (p.rc < 0 && p.rc != -EBUSY)
		FAIL("%s", p.err.text);
	record_free(&p.record);
	return p.rc < 0 ? 0 : number;
}

struct read {
	int rc;
	struct versions_text v;
	struct weir_err err;
	bool done;
};

static void read_done(void *arg, int rc, struct versions_text *v, const struct weir_err *err)
{
	struct read *r = arg;

	*r = (struct read){.rc = rc, .done = true};
	if (rc == 0)
		r->v = *v;
	else
		r->err = *err;
	loop_stop(loop);
}

static struct read read_one(uint64_t number, const struct versions_text *have)
{
	struct read r = {0};

	versions_read(store, number, have, false, read_done, &r);
	until(&r.done);
	return r;
}

static void check_text(uint64_t number, const char *text)
{
	struct read r = read_one(number, NULL);

	if (r.rc < 0)
		FAIL("%s", r.err.text);
	CHECK_STR(r.v.text, text);
	versions_text_free(&r.v);
}

struct count {
	size_t n;
	uint64_t first;
	bool done;
};

static void list_done(void *arg, int rc, const struct record *list, size_t n, bool more,
	const struct weir_err *err)
{
	struct count *c = arg;

	CHECK_INT(rc, 0);
	*c = (struct count){n, n ? list[0].number : 0, true};
	loop_stop(loop);
}

static struct count versions(void)
{
	struct count c = {0};

	versions_list(store, 0, 1000, false, list_done, &c);
	until(&c.done);
	return c;
}

static void names_done(void *arg, int rc, const struct store_result *r, const struct weir_err *err)
{
	struct count *c = arg;

	CHECK_INT(rc, 0);
	*c = (struct count){r->n, 0, true};
	loop_stop(loop);
}

static size_t pieces(void)
{
	struct store_request q = {
		.kind = STORE_LIST, .prefix = "policy/c/", .names = true, .limit = 10000};
	struct count c = {0};

	store_ask(store, &q, names_done, &c);
	until(&c.done);
	return c.n;
}

/* ---- tests */

static void keeps_versions(void)
{
	struct read r = read_one(0, NULL);

	CHECK_INT(r.rc, -ENOENT);
	CHECK(strstr(r.err.text, "there is no policy in"));
	CHECK_INT(apply("one", 0), 1);
	CHECK_INT(apply("two", 1), 2);
	check_text(1, "one");
	check_text(2, "two");
	check_text(0, "two");
	r = read_one(2, NULL);
	CHECK_STR(r.v.record.user, "anna");
	CHECK_STR(r.v.record.message, "why");
	CHECK_STR(r.v.record.kind, "apply");
	CHECK_INT(r.v.record.base, 1);
	CHECK(r.v.record.when > 1e9);
	versions_text_free(&r.v);
	CHECK_INT(read_one(3, NULL).rc, -ENOENT);
	CHECK_INT(versions().n, 2);
}

static void refuses_another_base(void)
{
	struct put p = put((struct versions_request){.text = "x", .length = 1, .base = 1});

	CHECK_INT(p.rc, -EBUSY);
	CHECK_INT(p.record.number, 2);
	CHECK_STR(p.err.text, "version 2 was stored meanwhile by anna: why; nothing was changed");
	record_free(&p.record);
	check_text(0, "two");
}

/* Two at once: one is made, the other is told of it. */
static void one_of_two(void)
{
	struct versions_request q = {.text = "a", .length = 1, .user = "bob"};
	struct put a = {0}, b = {0};
	uint64_t before = versions().n;

	versions_put(store, &q, put_done, &a);
	q.text = "b";
	versions_put(store, &q, put_done, &b);
	until(&a.done);
	until(&b.done);
	CHECK((a.rc == 0) != (b.rc == 0));
	CHECK_INT(a.rc + b.rc, -EBUSY);
	CHECK_INT(a.record.number, b.record.number);
	CHECK_INT(versions().n, before + 1);
	check_text(0, a.rc == 0 ? "a" : "b");
	record_free(&a.record);
	record_free(&b.record);
}

/* Values that are set at once are both set. */
static void sets_merge(void)
{
	struct versions_request q = {
		.kind = VERSIONS_SET, .key = "db.max", .value = "5k iops", .until = 2e9};
	struct put a = {0}, b = {0};
	struct read r;

	versions_put(store, &q, put_done, &a);
	q.key = "db.min";
	q.value = "1k iops";
	q.until = 0;
	versions_put(store, &q, put_done, &b);
	until(&a.done);
	until(&b.done);
	CHECK_INT(a.rc, 0);
	CHECK_INT(b.rc, 0);
	record_free(&a.record);
	record_free(&b.record);
	r = read_one(0, NULL);
	CHECK_INT(r.v.record.n_sets, 2);
	CHECK_STR(r.v.record.kind, "set");
	CHECK(r.v.record.sets[0].until == 2e9 || r.v.record.sets[1].until == 2e9);
	CHECK(strlen(r.v.text) == 1);
	versions_text_free(&r.v);
	q.value = NULL;
	a = put(q);
	CHECK_INT(a.rc, 0);
	CHECK_INT(a.record.n_sets, 1);
	record_free(&a.record);
	a = put(q);
	CHECK_INT(a.rc, -ENOENT);
	CHECK_STR(a.err.text, "db.min was not set");
}

static void rolls_back(void)
{
	struct put p = put((struct versions_request){.kind = VERSIONS_ROLLBACK, .from = 1});

	CHECK_INT(p.rc, 0);
	CHECK_STR(p.record.kind, "rollback");
	CHECK_STR(p.record.name, "p.yaml");
	CHECK_INT(p.record.n_sets, 0);
	check_text(0, "one");
	record_free(&p.record);
	CHECK_INT(
		put((struct versions_request){.kind = VERSIONS_ROLLBACK, .from = 99}).rc, -ENOENT);
}

static char *large_text(size_t n)
{
	char *text = malloc(n + 64);
	uint64_t x = 1;

	for (size_t i = 0; i < n; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		text[i] = (char)('a' + (x >> 60));
	}
	text[n] = 0;
	return text;
}

/* A line in the middle of a large text changes a piece or two. */
static void shares_pieces(void)
{
	size_t n = 3 << 20, before = pieces(), first;
	char *text = large_text(n);
	uint64_t number = apply(text, 0);
	struct read r, again;

	first = pieces() - before;
	CHECK(first >= 6);
	memmove(text + n / 2 + 5, text + n / 2, n - n / 2 + 1);
	memcpy(text + n / 2, "LINE\n", 5);
	CHECK_INT(apply(text, 0), number + 1);
	CHECK(pieces() - before - first <= 3);
	r = read_one(number, NULL);
	again = read_one(number + 1, &r.v);
	CHECK_INT(again.rc, 0);
	CHECK(strcmp(again.v.text, text) == 0);
	versions_text_free(&again.v);
	versions_text_free(&r.v);
	free(text);
}

static void notices_damage(void)
{
	struct read r;
	struct store_change c = {.value = "damaged", .length = 7};
	struct store_request q = {.kind = STORE_TXN, .changes = &c, .n_changes = 1};
	char key[VERSIONS_KEY];
	struct count n = {0};

	CHECK(apply("precious", 0) > 0);
	r = read_one(0, NULL);
	versions_piece_key(r.v.record.pieces[0].digest, key);
	versions_text_free(&r.v);
	c.key = key;
	store_ask(store, &q, names_done, &n);
	until(&n.done);
	r = read_one(0, NULL);
	CHECK_INT(r.rc, -EPROTO);
	CHECK(strstr(r.err.text, "a piece of its text is damaged"));
	c.remove = true;
	n.done = false;
	store_ask(store, &q, names_done, &n);
	until(&n.done);
	CHECK(strstr(read_one(0, NULL).err.text, "a piece of its text is missing"));
	CHECK(apply("precious", 0) > 0); /* it is stored again */
	check_text(0, "precious");
}

static void keeps_within_bounds(void)
{
	char text[32];
	uint64_t number = 0;

	for (int i = 0; i < 40; i++) {
		struct put p;

		snprintf(text, sizeof(text), "text %d", i);
		p = put((struct versions_request){.text = text, .length = strlen(text), .most = 8});
		CHECK_INT(p.rc, 0);
		number = p.record.number;
		record_free(&p.record);
		CHECK(versions().n <= 10 || i < 2);
	}
	CHECK(versions().n >= 8);
	CHECK(versions().first > number - 11);
	CHECK(pieces() <= 10);
	check_text(number, "text 39");
	check_text(number - 7, "text 32");
	CHECK_INT(read_one(number - 20, NULL).rc, -ENOENT);
}

/* ---- a commit without an answer */

static const struct store_ops *real;
static bool lose_request;

struct lost {
	store_done *done;
	void *arg;
};

static void lost_done(void *arg, int rc, const struct store_result *r, const struct weir_err *err)
{
	struct lost *l = arg;
	struct weir_err none;

	weir_err_set(&none, -ETIMEDOUT, "store not reached: no answer");
	l->done(l->arg, -ETIMEDOUT, NULL, &none);
	free(l);
}

/* The first transaction on the head loses its answer, or is lost itself. */
static void ask_lossy(struct store *s, const struct store_request *q, store_done *done, void *arg)
{
	struct lost *l;

	if (q->kind != STORE_TXN || !q->n_conditions) {
		real->ask(s, q, done, arg);
		return;
	}
	s->ops = real;
	l = malloc(sizeof(*l));
	*l = (struct lost){done, arg};
	if (lose_request)
		lost_done(l, 0, NULL, NULL);
	else
		real->ask(s, q, lost_done, l);
}

static void finds_out_after_silence(void)
{
	struct store_ops lossy = *store->ops;
	uint64_t before = versions().n;
	struct put p;

	real = store->ops;
	lossy.ask = ask_lossy;
	store->ops = &lossy;
	CHECK(apply("answer lost", 0) > 0);
	CHECK_INT(versions().n, before + 1);
	lose_request = true;
	store->ops = &lossy;
	p = put((struct versions_request){.text = "all lost", .length = 8});
	CHECK_INT(p.rc, -EAGAIN);
	CHECK(strstr(p.err.text, "the version was not stored"));
	CHECK_INT(versions().n, before + 1);
	lose_request = false;
}

static void run_all(const char *name)
{
	struct weir_err err;

	if (store_open(loop, name, &store, &err) < 0)
		FAIL("%s", err.text);
	RUN(keeps_versions);
	RUN(refuses_another_base);
	RUN(one_of_two);
	RUN(sets_merge);
	RUN(rolls_back);
	RUN(shares_pieces);
	RUN(notices_damage);
	RUN(finds_out_after_silence);
	RUN(keeps_within_bounds);
	store_close(store);
	loop_stop(loop);
	loop_run(loop);
}

int main(void)
{
	char folder[] = "/tmp/weir-history-XXXXXX", name[128];
	struct etcd_rig rig;

	CHECK_INT(loop_new(&loop), 0);
	CHECK(mkdtemp(folder) != NULL);
	snprintf(name, sizeof(name), "sqlite:%s", folder);
	run_all(name);
	rig_remove(folder);
	rig_start(&rig);
	snprintf(name, sizeof(name), "etcd:%s?prefix=test", rig.client);
	run_all(name);
	rig_stop(&rig);
	loop_free(loop);
	return 0;
}
