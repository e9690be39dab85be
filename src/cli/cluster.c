/* SPDX-License-Identifier: BSD-3-Clause */
/* cluster: `weir cluster`, make a cluster in a store, and show its members. */
#include "cli/common/files.h"
#include "cli/common/verb.h"
#include "cli/view/table.h"
#include "control/elect/elect.h"
#include "serve/versions/versions.h"
#include "serve/member/publish.h"
#include "serve/store/wait.h"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern const struct verb verb_cluster;

#define MEMBERS 20000 /* that are listed, at most */

enum { STORE, NAME, JOIN, JSON, N_OPTIONS };
static const struct opt options[] = {
	[STORE] = {"store", 0, "STORE", "init: sqlite:FOLDER or etcd:URL,..."},
	[NAME] = {"name", 0, "NAME", "init: of the cluster"},
	[JOIN] = {"join", 0, "FILE", "status: the cluster's token; else $WEIR_CLUSTER"},
	[JSON] = {"json", 0, NULL, "status: JSON"},
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};
static const char *const subverbs[] = {"init", "status", NULL};

/* ---- calls that wait */

struct asking {
	struct store_wait wait;
	bool held, more;
	json_t *all; /* of a list: name: value, as JSON */
	char last[STORE_KEY_MAX];
	size_t skip;      /* of each key */
	uint64_t created; /* of the last key */
};

static void was_asked(void *arg, int rc, const struct store_result *r, const struct weir_err *err)
{
	struct asking *a = arg;

	a->held = rc == 0 && r->held;
	a->more = rc == 0 && r->more;
	for (size_t i = 0; rc == 0 && a->all && i < r->n; i++) {
		json_t *j = json_loadb(r->keys[i].value, r->keys[i].length, JSON_DECODE_ANY, NULL);

		snprintf(a->last, sizeof(a->last), "%s", r->keys[i].key);
		a->created = r->keys[i].created;
		json_object_set_new(a->all, r->keys[i].key + a->skip, j ? j : json_null());
	}
	store_wait_end(&a->wait, rc, err);
}

static int ask(struct asking *a, const struct store_request *q)
{
	store_ask(a->wait.store, q, was_asked, a);
	return store_wait(&a->wait);
}

/* Read all keys of a prefix, or one key, into an object; NULL: failed, with a->wait.err. */
static json_t *read_all(struct asking *a, const char *prefix, bool exact)
{
	struct store_request q = {
		.kind = STORE_LIST, .prefix = prefix, .exact = exact, .stale = true};
	json_t *all = a->all = json_object();
	int rc;

	a->skip = exact ? 0 : strlen(prefix);
	do {
		rc = ask(a, &q);
		q.after = a->last;
	} while (rc == 0 && a->more && json_object_size(all) < MEMBERS);
	a->all = NULL;
	if (rc == 0)
		return all;
	json_decref(all);
	return NULL;
}

/* Report that a store could not be opened. Return the exit status; -1: it was. */
static int opened(int rc, const struct weir_err *err)
{
	if (rc == 0)
		return -1;
	opts_fail(&verb_cluster, "%s", err->text);
	return rc == -EINVAL || rc == -EIO ? 2 : 1;
}

/* ---- init */

static int write_token(const struct token *t)
{
	char path[80], *text = token_write(t);
	int fd, status = -1;

	snprintf(path, sizeof(path), "%s.token", t->cluster);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		status = opts_fail(&verb_cluster, "%s: %s", path, strerror(errno));
	else if (!text || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fsync(fd) < 0)
		status = opts_fail(&verb_cluster, "%s: cannot be written", path);
	if (fd >= 0)
		close(fd);
	if (fd >= 0 && status >= 0)
		unlink(path);
	free(text);
	return status;
}

static int store_cluster(const struct token *t, struct asking *a)
{
	char *record = token_record(t);
	struct store_condition none = {.key = TOKEN_KEY};
	struct store_change c = {
		.key = TOKEN_KEY, .value = record, .length = record ? strlen(record) : 0};
	struct store_request q = {.kind = STORE_TXN,
		.conditions = &none,
		.n_conditions = 1,
		.changes = &c,
		.n_changes = 1};
	int status = -1;

	if (!record)
		return opts_no_memory(&verb_cluster);
	if (ask(a, &q) < 0)
		status = opts_fail(&verb_cluster, "%s", a->wait.err.text) - 1;
	else if (!a->held)
		status = opts_fail(&verb_cluster,
			"there is a cluster in %s already; another one needs another prefix=",
			store_name(a->wait.store));
	free(record);
	return status;
}

static int init(const char *store, const char *name)
{
	struct token t = {0};
	struct asking a = {0};
	struct weir_err err;
	int status;

	if (!store || !name)
		return opts_fail(&verb_cluster, "init needs --store and --name");
	if (token_new(name, store, &t, &err) < 0)
		return opts_fail(&verb_cluster, "%s", err.text);
	status = opened(store_wait_open(&a.wait, t.store, &err), &err);
	if (status < 0) {
		status = write_token(&t);
		if (status < 0) {
			status = store_cluster(&t, &a);
			if (status >= 0) {
				char path[80];

				snprintf(path, sizeof(path), "%s.token", t.cluster);
				unlink(path);
			}
		}
		store_wait_close(&a.wait);
	}
	if (status < 0) {
		printf("cluster %s is made; its token is in %s.token\n", t.cluster, t.cluster);
		printf("next: weir policy apply --store %s.token -m 'the first' FILE\n", t.cluster);
		printf("      weir serve --join %s.token --local FILE\n", t.cluster);
		status = 0;
	}
	token_free(&t);
	return status;
}

/* ---- status */

static const char *text_of(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "";
}

struct shown {                   /* what the store has about the cluster */
	json_t *head;            /* the newest version; NULL: none */
	json_t *known, *members; /* by name */
	json_t *known_c, *controllers;
	json_t *leader; /* NULL: none */
	json_int_t generation;
};

static void shown_free(struct shown *s)
{
	json_decref(s->head);
	json_decref(s->known);
	json_decref(s->members);
	json_decref(s->known_c);
	json_decref(s->controllers);
	json_decref(s->leader);
}

/* Read the only key of that name; NULL: there is none, or rc < 0. */
static json_t *read_one(struct asking *a, const char *key)
{
	json_t *all = read_all(a, key, true);
	json_t *j = json_incref(json_object_get(all, key));

	json_decref(all);
	return j;
}

static int read_leader(struct asking *a, struct shown *s)
{
	uint64_t created;
	json_t *offset;

	s->leader = read_one(a, ELECT_LEADER);
	created = a->created;
	if (a->wait.rc < 0 || !s->leader)
		return a->wait.rc;
	offset = read_one(a, ELECT_OFFSET);
	s->generation = (json_int_t)created + json_integer_value(offset);
	json_decref(offset);
	return a->wait.rc;
}

static int read_shown(struct asking *a, struct shown *s)
{
	struct {
		json_t **to;
		const char *prefix;
	} lists[] = {{&s->known, PUBLISH_KNOWN}, {&s->members, PUBLISH_MEMBERS},
		{&s->known_c, PUBLISH_KNOWN_CONTROL}, {&s->controllers, PUBLISH_CONTROLLERS}};
	int rc;

	s->head = read_one(a, VERSIONS_HEAD);
	rc = a->wait.rc;
	for (size_t i = 0; rc == 0 && i < sizeof(lists) / sizeof(*lists); i++) {
		*lists[i].to = read_all(a, lists[i].prefix, false);
		rc = a->wait.rc;
	}
	return rc == 0 ? read_leader(a, s) : rc;
}

/* Say how a member or controller is; newest: the version that it should have; leader: of controllers, "" for none. */
static void row(struct table *t, const char *name, const json_t *m, const json_t *newest,
	const char *leader)
{
	json_int_t version = json_integer_value(json_object_get(m, "version"));
	json_int_t head = json_integer_value(json_object_get(newest, "number"));
	const char *role = text_of(m, "state");

	if (leader && *role && strcmp(role, "standby") != 0 && strcmp(leader, name) != 0)
		role = "no longer elected";

	table_cell(t, "%s", name);
	if (!m) {
		table_cell(t, "-");
		table_cell(t, "away");
		return;
	}
	table_cell(t, "%lld", (long long)version);
	if (*text_of(m, "fault"))
		table_cell(t, "version %lld is not in force: %s",
			(long long)json_integer_value(json_object_get(m, "wanted")),
			text_of(m, "fault"));
	else if (version < head)
		table_cell(t, "%lld behind, for %.0f s", (long long)(head - version),
			(double)time(NULL) - json_real_value(json_object_get(newest, "when")));
	else
		table_cell(t, "%s", *role ? role : "ok");
}

static void show_list(const char *head, const json_t *known, const json_t *there,
	const json_t *newest, const char *leader)
{
	const char *const heads[] = {head, "VERSION", "STATE", NULL};
	struct table t;
	const char *name;
	const json_t *value;

	table_begin(&t, heads, 1 << 1);
	json_object_foreach((json_t *)known, name, value)
		row(&t, name, json_object_get(there, name), newest, leader);
	table_print(&t);
}

static void print_status(const struct token *token, const struct shown *s)
{
	printf("cluster %s, ", token->cluster);
	if (s->head)
		printf("newest version %lld: ",
			(long long)json_integer_value(json_object_get(s->head, "number")));
	table_put_text(s->head ? text_of(s->head, "message") : "no policy yet", stdout);
	putchar('\n');
	if (s->leader) {
		printf("leader ");
		table_put_text(text_of(s->leader, "name"), stdout);
		printf(", generation %lld\n", (long long)s->generation);
	} else if (json_object_size(s->known_c)) {
		puts("no leader: no controller is elected");
	}
	show_list("MEMBER", s->known, s->members, s->head, NULL);
	if (json_object_size(s->known_c))
		show_list("CONTROLLER", s->known_c, s->controllers, s->head,
			text_of(s->leader, "name"));
}

static void print_json(const struct token *token, const struct shown *s)
{
	json_t *leader = s->leader ? json_pack("{s:s, s:I}", "name", text_of(s->leader, "name"),
					     "generation", s->generation)
				   : json_null();
	json_t *all = json_pack("{s:s, s:O?, s:O, s:O, s:o, s:O, s:O}", "cluster", token->cluster,
		"newest", s->head, "known", s->known, "members", s->members, "leader", leader,
		"known_controllers", s->known_c, "controllers", s->controllers);

	json_dumpf(all, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(all);
}

static int show_status(const struct token *token, struct asking *a, bool json)
{
	struct shown s = {0};
	int rc = read_shown(a, &s);

	if (rc < 0)
		opts_fail(&verb_cluster, "%s", a->wait.err.text);
	else if (json)
		print_json(token, &s);
	else
		print_status(token, &s);
	shown_free(&s);
	return rc < 0;
}

static int status_of(const char *file, bool json)
{
	struct token t;
	struct asking a = {0};
	struct weir_err err;
	int status;

	file = file ? file : getenv("WEIR_CLUSTER");
	if (!file)
		return opts_fail(&verb_cluster, "status needs --join FILE, or $WEIR_CLUSTER");
	if (files_read_token(file, &t, &err) < 0)
		return opts_fail(&verb_cluster, "%s", err.text);
	status = opened(token_open(&t, true, &a.wait, &err), &err);
	if (status < 0) {
		status = show_status(&t, &a, json);
		store_wait_close(&a.wait);
	}
	token_free(&t);
	return status;
}

static int cluster_main(const char *const *values, char **operands, int n)
{
	bool is_init = n == 1 && strcmp(operands[0], "init") == 0;
	bool is_status = n == 1 && strcmp(operands[0], "status") == 0;

	if (!is_init && !is_status)
		return opts_fail(&verb_cluster, "needs init or status; see weir cluster --help");
	if (is_init && (values[JOIN] || values[JSON]))
		return opts_fail(
			&verb_cluster, "--%s goes with status", values[JOIN] ? "join" : "json");
	if (is_status && (values[STORE] || values[NAME]))
		return opts_fail(
			&verb_cluster, "--%s goes with init", values[STORE] ? "store" : "name");
	return is_init ? init(values[STORE], values[NAME]) : status_of(values[JOIN], values[JSON]);
}

const struct verb verb_cluster = {
	.name = "cluster",
	.summary = "make a cluster of gateways in a store, and show its members",
	.usage =
		"init --store STORE --name NAME\n       weir cluster status [--json] [--join FILE]",
	.options = options,
	.subverbs = subverbs,
	.run = cluster_main,
};
