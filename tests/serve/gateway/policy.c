/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy: apply, set and reload at a gateway without clients: all or nothing, values kept across a
 * restart, messages about them; and the state file, whole, damaged or impossible.
 */
#include "policy/override/override.h"
#include "serve/gateway/look.h"
#include "serve/gateway/impl.h"
#include "serve/store/state.h"
#include "serve/loop/log.h"
#include "test.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/weir-policy-XXXXXX", address[64], state[64], file[80];
static const char *const addresses[] = {address};

#define RESOURCES                                                                                  \
	"resources:\n"                                                                             \
	"  - {name: one, back: \"memory:16M\"}\n"                                                  \
	"  - {name: two, back: \"memory:8M\"}\n"
#define FIRST                                                                                      \
	RESOURCES "tenants:\n"                                                                     \
		  "  - {name: a, weight: 3, max: 4k iops, match: {export: one}}\n"                 \
		  "  - {name: b, match: {export: two}}\n"
#define SECOND                                                                                     \
	RESOURCES "tenants:\n"                                                                     \
		  "  - {name: a, weight: 5, max: 4k iops, match: {export: one}}\n"                 \
		  "  - {name: c, match: {export: two}}\n"

static void put_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0);
	CHECK_INT(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static struct gateway *start(const char *text, bool keeps)
{
	struct gateway_options o = {.memory = 64 << 20,
		.listen = addresses,
		.n_listen = 1,
		.state = keeps ? state : NULL};
	struct weir_policy *p;
	struct gateway *g;
	struct weir_err err;

	if (weir_policy_parse(text, strlen(text), file, &p, &err) < 0 ||
		gateway_new(p, text, file, &o, &g, &err) < 0)
		FAIL("%s", err.text);
	return g;
}

static void says(const struct gateway_note *n, const char *what)
{
	for (size_t i = 0; i < n->n; i++)
		if (strstr(n->lines[i], what))
			return;
	for (size_t i = 0; i < n->n; i++)
		fprintf(stderr, "  %s\n", n->lines[i]);
	FAIL("no message \"%s\"", what);
}

static void is(struct gateway *g, const char *key, const char *value)
{
	char text[POLICY_OVERRIDE_TEXT];

	CHECK_INT(policy_override_show(gateway_policy(g), key, text), 0);
	CHECK_STR(text, value);
}

struct waiting { /* waits for so many changes */
	struct gateway *gateway;
	int n, rc;
	struct gateway_note *note; /* NULL: not wanted; so is err */
	struct weir_err *err;
};

static void changed(void *arg, int rc, const struct gateway_note *note, const struct weir_err *err)
{
	struct waiting *w = arg;

	w->rc = rc;
	if (w->err)
		*w->err = *err;
	if (w->note && rc == 0) {
		*w->note = (struct gateway_note){
			.lines = calloc(note->n + 1, sizeof(char *)), .n = note->n};
		for (size_t i = 0; i < note->n; i++)
			w->note->lines[i] = strdup(note->lines[i]);
	}
	if (--w->n == 0)
		loop_stop(gateway_loop(w->gateway));
}

static int change(struct gateway *g, struct gateway_change *c, struct gateway_note *note,
	struct weir_err *err)
{
	struct waiting w = {g, 1, 0, note, err};

	CHECK(c);
	gateway_change_start(g, c, changed, &w);
	CHECK_INT(loop_run(gateway_loop(g)), 0);
	return w.rc;
}

static int apply(struct gateway *g, const char *text, bool keep, bool dry,
	struct gateway_note *note, struct weir_err *err)
{
	return change(g, gateway_change_apply(strdup(text), strlen(text), 0, "next", keep, dry),
		note, err);
}

static int set(struct gateway *g, const char *key, const char *value, struct gateway_note *note,
	struct weir_err *err)
{
	return change(g, gateway_change_set(key, value), note, err);
}

static int reload(struct gateway *g, struct weir_err *err)
{
	return change(g, gateway_change_reload(), NULL, err);
}

static void test_apply(void)
{
	struct gateway *g = start(FIRST, false);
	struct gateway_note note;
	struct weir_err err;
	struct snapshot *s;

	CHECK_INT(apply(g, SECOND, false, true, &note, &err), 0);
	says(&note, "a.weight: 3 -> 5");
	says(&note, "b: no longer a tenant");
	says(&note, "c: a new tenant");
	gateway_note_free(&note);
	CHECK_INT(g->version, 1); /* only reported */
	is(g, "a.weight", "3");
	CHECK_INT(apply(g, SECOND, false, false, NULL, &err), 0);
	CHECK_INT(g->version, 2);
	is(g, "a.weight", "5");
	CHECK_STR(gateway_policy_text(g), SECOND);
	s = look_at(g);
	CHECK_INT(s->version, 2);
	CHECK_STR(snapshot_path(s, 1), "c");
	snapshot_free(s);
	gateway_free(g);
}

static void refuses(struct gateway *g, const char *text, const char *why)
{
	struct gateway_note note = {NULL, 7};
	struct weir_err err;

	CHECK_INT(apply(g, text, false, false, &note, &err), -EINVAL);
	if (!strstr(err.text, why))
		FAIL("\"%s\" does not say \"%s\"", err.text, why);
	CHECK_INT(note.n, 7);
	CHECK_INT(g->version, 1);
	CHECK_STR(gateway_policy_text(g), FIRST);
	is(g, "a.weight", "3");
}

static void test_bad_changes_nothing(void)
{
	struct gateway *g = start(FIRST, false);

	refuses(g, "tenants: [{name: a, wieght: 3}]",
		"next:1:21: tenants[0]: unknown key 'wieght'");
	refuses(g, "tenants: [", "next:");
	refuses(g, RESOURCES "tenants: [{name: a, min: 2k iops, max: 1k iops}]", "below its min");
	refuses(g, RESOURCES "exports: [{name: e, resource: one, offset: 20 MiB}]", "beyond");
	refuses(g, RESOURCES "tenants: [{name: a}, {name: b}]",
		"next:4:11: every client would be refused");
	refuses(g, RESOURCES "tls: {cert: /no/such.pem, key: /no/such.key}",
		"tls: other files than before");
	refuses(g, RESOURCES "tenants: /tmp/secret", "only the gateway's own policy file");
	refuses(g, "tenants: [{name: a, match: {export: x}}]", "no resources");
	refuses(g, RESOURCES "  - {name: three, back: \"file:/no/such\"}\n",
		"only the gateway's own policy file");
	refuses(g, RESOURCES "  - {name: three, back: \"memory:9000000T\"}\n",
		"next:4:5: resource 'three'");
	gateway_free(g);
}

/* ---- resources */

static void changes(struct gateway *g, const char *text, size_t n)
{
	struct gateway_note note = {0};
	struct weir_err err = {""};

	if (apply(g, text, false, false, &note, &err) != 0)
		FAIL("%s", err.text);
	gateway_note_free(&note);
	CHECK_INT(g->n_resources, n);
	for (size_t i = 0; i < n; i++)
		CHECK_STR(g->resources[i]->name, g->policy->resources[i].name);
	CHECK(!g->resources_leaving); /* no request was inside */
}

/* A resource that stays is the same one, wherever the policy has it. */
static void test_resources(void)
{
	struct gateway *g = start(FIRST, false);
	const struct gateway_resource *one = gateway_resource(g, "one");
	const struct gateway_resource *two = gateway_resource(g, "two");

	changes(g, RESOURCES "  - {name: three, back: \"memory:1M\"}\n", 3);
	CHECK(g->resources[0] == one && g->resources[1] == two);
	changes(g,
		"resources: [{name: three, back: \"memory:1M\"}, {name: two, back: \"memory:8M\"}]",
		2);
	CHECK(g->resources[1] == two);
	changes(g, "resources: [{name: two, back: \"memory:8M\", cost: bytes}]", 1);
	CHECK(g->resources[0]->number == 4); /* another cost is another gate */
	for (int i = 0; i < 20; i++) {
		changes(g, RESOURCES, 2);
		changes(g, "resources: [{name: two, back: \"memory:9M\"}]", 1);
		CHECK_INT(g->resources[0]->size, 9 << 20);
	}
	gateway_free(g);
}

static void test_no_tenants(void)
{
	struct gateway *g = start(RESOURCES, false);
	struct weir_who who = {.export_ = "one"};
	struct front_place place;

	CHECK_INT(gateway_find(g, &who, &place), 0);
	CHECK_INT(apply(g, RESOURCES "# nothing\n", false, false, NULL, NULL), 0);
	CHECK_INT(gateway_find(g, &who, &place), 0);
	gateway_free(g);
}

static void test_set(void)
{
	struct gateway *g = start(FIRST, false);
	struct gateway_note note;
	const char *key, *value;
	struct weir_err err;

	CHECK_INT(set(g, "a.max", "5k iops", &note, &err), 0);
	says(&note, "a.max: 4k iops -> 5k iops");
	says(&note, "not kept across a restart");
	gateway_note_free(&note);
	CHECK_INT(g->version, 2);
	is(g, "a.max", "5k iops");
	CHECK(gateway_override(g, 0, &key, &value));
	CHECK_STR(key, "a.max");
	CHECK_STR(value, "5k iops");
	CHECK_INT(set(g, "a.max", "6k iops", NULL, &err), 0); /* replaced */
	CHECK(!gateway_override(g, 1, &key, &value));
	CHECK_INT(set(g, "a.max", "6k", NULL, &err), -EINVAL);
	CHECK_INT(set(g, "x.max", "6k iops", NULL, &err), -ENOENT);
	CHECK_INT(set(g, "a.min", "9k iops", NULL, &err), -EINVAL);
	CHECK(strstr(err.text, "below its min"));
	CHECK_INT(set(g, "b.max", NULL, NULL, &err), -ENOENT);
	CHECK_INT(g->version, 3);
	is(g, "a.max", "6k iops");
	CHECK_INT(set(g, "a.max", NULL, NULL, &err), 0); /* back */
	is(g, "a.max", "4k iops");
	CHECK(!gateway_override(g, 0, &key, &value));
	gateway_free(g);
}

static void test_apply_undoes(void)
{
	struct gateway *g = start(FIRST, false);
	struct gateway_note note;
	struct weir_err err;

	CHECK_INT(set(g, "a.max", "5k iops", NULL, &err), 0);
	CHECK_INT(set(g, "a.weight", "5", NULL, &err), 0);
	CHECK_INT(set(g, "b.weight", "7", NULL, &err), 0);
	CHECK_INT(apply(g, SECOND, false, true, &note, &err), 0);
	says(&note, "a.max 5k iops, which was set, is undone: 4k iops");
	says(&note, "b.weight 7, which was set, is removed");
	for (size_t i = 0; i < note.n; i++) /* which SECOND has itself */
		CHECK(!strstr(note.lines[i], "a.weight 5, which was set"));
	gateway_note_free(&note);
	is(g, "a.max", "5k iops");
	CHECK_INT(apply(g, SECOND, true, false, &note, &err), 0);
	says(&note, "b.weight 7, which was set, is dropped: next has no tenant, resource or "
		    "template for it");
	gateway_note_free(&note);
	is(g, "a.max", "5k iops");
	CHECK_INT(g->n_overrides, 2);
	CHECK_INT(apply(g, SECOND, false, false, NULL, &err), 0);
	is(g, "a.max", "4k iops");
	CHECK_INT(g->n_overrides, 0);
	gateway_free(g);
}

/* A policy that is right by itself may not fit with a value that was set, which the message names. */
static void test_apply_names_set(void)
{
	static const char policy[] =
		"resources: [{name: r, back: \"memory:1M\", capacity: 1k iops}]\n"
		"tenants:\n"
		"  - {name: a, match: {export: one}}\n"
		"  - {name: b, min: 700 iops, match: {export: two}}\n";
	struct gateway *g = start(FIRST, false);
	struct weir_err err;

	CHECK_INT(set(g, "a.min", "600 iops", NULL, &err), 0);
	CHECK_INT(apply(g, policy, true, false, NULL, &err), -EINVAL);
	CHECK(strstr(err.text, "the mins add up to 1.3k iops"));
	CHECK(strstr(err.text, "; with what was set: a.min 600 iops"));
	CHECK_INT(apply(g, policy, false, false, NULL, &err), 0);
	gateway_free(g);
}

static void test_restart_keeps(void)
{
	struct gateway *g = start(FIRST, true);
	struct weir_err err;

	CHECK_INT(set(g, "a.max", "5k iops", NULL, &err), 0);
	CHECK_INT(set(g, "b.weight", "7", NULL, &err), 0);
	gateway_free(g);
	g = start(FIRST, true);
	is(g, "a.max", "5k iops");
	is(g, "b.weight", "7");
	CHECK_INT(g->version, 1);
	CHECK_INT(set(g, "a.max", NULL, NULL, &err), 0);
	gateway_free(g);
	g = start(SECOND, true); /* b is gone: its set values go, and the others stay */
	is(g, "a.max", "4k iops");
	CHECK_INT(g->n_overrides, 0);
	CHECK_INT(set(g, "a.max", "6k iops", NULL, &err), 0);
	CHECK_INT(apply(g, SECOND, false, false, NULL, &err), 0); /* undone in the file, too */
	gateway_free(g);
	g = start(SECOND, true);
	is(g, "a.max", "4k iops");
	gateway_free(g);
}

static void test_damaged(void)
{
	static const char *const bad[] = {"", "{\"set\": [{\"key\": \"a.max\"", "[]",
		"{\"set\": 3}", "{\"set\": [{\"key\": \"a.max\", \"value\": 3}]}",
		"\xff\xfe garbage"};
	char path[128], aside[128];

	snprintf(path, sizeof(path), "%s/set.json", state);
	snprintf(aside, sizeof(aside), "%s/set.json.damaged", state);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct gateway *g;

		put_file(path, bad[i]);
		unlink(aside);
		g = start(FIRST, true);
		is(g, "a.max", "4k iops");
		CHECK_INT(access(aside, F_OK), 0);
		CHECK(access(path, F_OK) != 0);
		gateway_free(g);
	}
	/* No file whose reader waits for a writer. */
	CHECK_INT(mkfifo(path, 0600), 0);
	struct gateway *beside = start(FIRST, true);

	is(beside, "a.max", "4k iops");
	gateway_free(beside);
	unlink(path);
	/* A value that was valid when it was set, and is not with this file. */
	put_file(path, "{\"set\": [{\"key\": \"a.max\", \"value\": \"6k iops\"},"
		       " {\"key\": \"b.min\", \"value\": \"lots\"},"
		       " {\"key\": \"b.weight\", \"value\": \"2\"}]}");
	struct gateway *g = start(FIRST, true);

	is(g, "a.max", "6k iops");
	is(g, "b.weight", "2");
	is(g, "b.min", "none");
	CHECK_INT(g->n_overrides, 2);
	gateway_free(g);
	unlink(path);
	unlink(aside);
}

/* The tenants' file may be sent with the policy; the gateway opens none for it. */
static void test_sent_tenants(void)
{
	static const char both[] = RESOURCES "tenants: tenants.yaml\n"
					     "- {name: x, match: {export: one}}\n"
					     "- {name: y, match: {export: two}}\n";
	size_t behind = strlen(both) - (size_t)(strstr(both, "- {name: x") - both);
	struct gateway *g = start(FIRST, false);
	struct waiting w = {.gateway = g, .n = 2};

	gateway_change_start(g,
		gateway_change_apply(strdup(both), strlen(both), behind, "next", false, false),
		changed, &w);
	/* Two at once: one after the other. */
	gateway_change_start(g, gateway_change_set("x.weight", "7"), changed, &w);
	CHECK_INT(loop_run(gateway_loop(g)), 0);
	CHECK_INT(w.rc, 0);
	CHECK_INT(g->version, 3);
	is(g, "x.weight", "7");
	CHECK_STR(gateway_policy(g)->tenants_text, strstr(both, "- {name: x"));
	CHECK_INT(strlen(gateway_policy_text(g)), strlen(both) - behind);
	/* One that is refused, and one that is still waiting when the gateway ends. */
	w.n = 1;
	gateway_change_start(g, gateway_change_set("x.weight", "no"), changed, &w);
	CHECK_INT(loop_run(gateway_loop(g)), 0);
	CHECK_INT(w.rc, -EINVAL);
	CHECK_INT(g->version, 3);
	w.n = 2;
	gateway_change_start(g, gateway_change_set("x.weight", "8"), changed, &w);
	gateway_change_start(g, gateway_change_set("x.weight", "9"), changed, &w);
	gateway_free(g);
	CHECK_INT(w.n, 0);
	CHECK_INT(w.rc, -ESHUTDOWN);
}

static void test_cannot_keep(void)
{
	struct gateway *g;
	struct weir_err err;

	put_file(state, "in the way of the folder");
	g = start(FIRST, true);
	CHECK(set(g, "a.max", "5k iops", NULL, &err) < 0);
	CHECK(strstr(err.text, "cannot write overrides"));
	is(g, "a.max", "4k iops"); /* nothing that would not survive a restart */
	CHECK_INT(g->version, 1);
	gateway_free(g);
	unlink(state);
}

static int read_file(void *arg, const char *from, const char *name, char **ret_text,
	size_t *ret_len, struct weir_err *err)
{
	FILE *f = fopen(name, "r");
	char *text;

	CHECK_STR(from, "");
	if (!f)
		return weir_err_set(err, -ENOENT, "%s: no such file", name);
	text = calloc(1, 4096);
	*ret_len = fread(text, 1, 4095, f);
	*ret_text = text;
	fclose(f);
	return 0;
}

static void test_reload(void)
{
	struct gateway *g = start(FIRST, false);
	struct weir_err err;

	CHECK_INT(reload(g, &err), -ENOTSUP);
	gateway_reader(g, read_file, NULL);
	CHECK_INT(reload(g, &err), -ENOENT);
	CHECK_INT(set(g, "a.max", "5k iops", NULL, &err), 0);
	CHECK_INT(apply(g, SECOND, true, false, NULL, &err), 0); /* under another name */
	put_file(file, FIRST);
	CHECK_INT(reload(g, &err), 0); /* the file of the start, not the applied one */
	is(g, "a.weight", "3");
	is(g, "a.max", "5k iops");
	CHECK_INT(g->version, 4);
	put_file(file, "tenants: [3]");
	CHECK_INT(reload(g, &err), -EINVAL);
	CHECK_INT(g->version, 4);
	gateway_free(g);
}

int main(void)
{
	char path[128];

	signal(SIGPIPE, SIG_IGN);
	log_open(LOG_LEVEL_ERROR, LOG_FORM_TEXT);
	CHECK(mkdtemp(folder));
	snprintf(address, sizeof(address), "unix:%s/s", folder);
	snprintf(state, sizeof(state), "%s/state", folder);
	snprintf(file, sizeof(file), "%s/weir.yaml", folder);
	RUN(test_apply);
	RUN(test_bad_changes_nothing);
	RUN(test_resources);
	RUN(test_no_tenants);
	RUN(test_set);
	RUN(test_apply_undoes);
	RUN(test_apply_names_set);
	RUN(test_sent_tenants);
	RUN(test_cannot_keep);
	RUN(test_restart_keeps);
	RUN(test_damaged);
	RUN(test_reload);
	snprintf(path, sizeof(path), "rm -r %s", folder);
	return system(path) == 0 ? 0 : 1;
}
