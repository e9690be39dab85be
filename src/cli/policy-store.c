/* SPDX-License-Identifier: BSD-3-Clause */
/* policy-store: `weir policy apply`, `history`, `diff`, `rollback` and `export` with a store. */
#include "base/no-memory.h"
#include "cli/policy-verb.h"
#include "cli/common/files.h"
#include "cli/common/remote.h"
#include "cli/view/table.h"
#include "serve/member/content.h"
#include "serve/member/publish.h"
#include "serve/store/wait.h"
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- calls that wait */

struct policy_store {
	struct store_wait wait;
	bool stale; /* the newest as a store without a majority has it */
	/* of the call */
	struct record record;
	struct versions_text text;
	struct record *list;
	size_t n;
	bool more;
};

static void was_put(void *arg, int rc, const struct record *r, const struct weir_err *err)
{
	struct policy_store *s = arg;

	record_free(&s->record);
	if (r && record_copy(r, &s->record) < 0 && rc == 0)
		rc = no_memory(&s->wait.err), err = &s->wait.err;
	store_wait_end(&s->wait, rc, err);
}

static void was_read(void *arg, int rc, struct versions_text *v, const struct weir_err *err)
{
	struct policy_store *s = arg;

	if (rc == 0)
		s->text = *v;
	store_wait_end(&s->wait, rc, err);
}

static void was_listed(void *arg, int rc, const struct record *list, size_t n, bool more,
	const struct weir_err *err)
{
	struct policy_store *s = arg;

	s->list = rc == 0 ? calloc(n + 1, sizeof(*list)) : NULL;
	s->more = more;
	for (s->n = 0; s->list && s->n < n; s->n++)
		if (record_copy(&list[s->n], &s->list[s->n]) < 0)
			break;
	store_wait_end(&s->wait, rc, err);
}

static int read_version(struct policy_store *s, uint64_t number, const struct versions_text *have,
	struct versions_text *ret)
{
	int rc;

	s->text = (struct versions_text){0};
	/* a version that exists never changes; which is the newest must be known for sure before a change */
	versions_read(s->wait.store, number, have, number || s->stale, was_read, s);
	rc = store_wait(&s->wait);
	*ret = s->text;
	return rc;
}

/* Open the store of that name, or of the cluster whose token is in a file of that name. */
static int open_it(const char *name, bool stale, struct policy_store *s)
{
	bool is_name = strchr(name, ':') || access(name, F_OK) < 0;
	struct token t = {0};
	struct weir_err err;
	int rc;

	*s = (struct policy_store){.stale = stale};
	rc = is_name ? store_wait_open(&s->wait, name, &err) : files_read_token(name, &t, &err);
	if (rc == 0 && !is_name)
		rc = token_open(&t, stale, &s->wait, &err);
	token_free(&t);
	if (rc == 0)
		return -1;
	opts_fail(&verb_policy, "--store: %s", err.text);
	return is_name || rc == -EINVAL || rc == -EIO ? 2 : 1;
}

/* The same for a verb that only reads: an older state will do, and it must not make an embedded store. */
static int open_existing(const char *name, struct policy_store *s)
{
	if (!store_made(name))
		return opts_fail(&verb_policy, "there is no policy in %s yet", name);
	return open_it(name, true, s);
}

static void close_it(struct policy_store *s)
{
	store_wait_close(&s->wait);
	record_free(&s->record);
}

static int failed(const struct policy_store *s, int rc)
{
	opts_fail(&verb_policy, "%s", s->wait.err.text);
	return rc == -EINVAL || rc == -ENOENT ? 2 : 1;
}

/* ---- words */

static void show_differences(
	const struct versions_text *from, const struct versions_text *to, size_t most, FILE *f)
{
	struct gateway_note note = {0};

	content_differences(from, to, &note);
	for (size_t i = 0; i < note.n && i < most; i++) {
		fputs("  ", f);
		table_put_text(note.lines[i], f);
		fputc('\n', f);
	}
	if (note.n > most)
		fprintf(f, "  and %zu more\n", note.n - most);
	gateway_note_free(&note);
}

static void fill_origin(struct versions_request *q, char host[256], const char *message)
{
	if (gethostname(host, 256) < 0)
		host[0] = 0;
	host[255] = 0;
	q->user = remote_user();
	q->member = host;
	q->message = message;
}

static void show_when(double when, FILE *f)
{
	time_t t = (time_t)when;
	struct tm tm;
	char text[32];

	if (!localtime_r(&t, &tm) || !strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
		text[0] = 0;
	fputs(text, f);
}

void policy_show_version(const struct record *r)
{
	printf("%llu  ", (unsigned long long)r->number);
	show_when(r->when, stdout);
	printf("  ");
	table_put_text(*r->user ? r->user : "?", stdout);
	if (*r->member) {
		putchar('@');
		table_put_text(r->member, stdout);
	}
	printf("  %s", r->kind);
	if (*r->message) {
		printf("  ");
		table_put_text(r->message, stdout);
	}
	putchar('\n');
}

/* ---- apply */

static int check_text(const char *text, size_t n, size_t tenants, const char *name)
{
	static struct weir_policy_remarks remarks;
	struct weir_policy *p;

	if (content_parse(text, n, tenants, name, &p, &remarks) < 0) {
		for (size_t i = 0; i < remarks.n_errors && i < WEIR_POLICY_REMARKS; i++)
			fprintf(stderr, "%s\n", remarks.errors[i].text);
		return 2;
	}
	for (size_t i = 0; i < remarks.n_warnings && i < WEIR_POLICY_REMARKS; i++)
		fprintf(stderr, "%s (warning)\n", remarks.warnings[i].text);
	weir_policy_free(p);
	return -1;
}

/* ---- the members of a cluster */

struct members {
	struct policy_store *s;
	const struct versions_request *q;
	char last[STORE_KEY_MAX];
	size_t wrong;
	double mins, capacity; /* requests a second: of all tenants, of all servers of a cluster */
	bool cluster;
};

static double mins_of(const struct weir_policy *p)
{
	double all = 0;

	for (size_t i = 0; i < p->n_tenants; i++)
		for (unsigned k = 0; p->tenants[i].first_child < 0 && k < p->tenants[i].n_min; k++)
			if (p->tenants[i].min[k].unit == WEIR_UNIT_REQUESTS)
				all += p->tenants[i].min[k].rate;
	return all;
}

/* Compare the mins with what the member has measured. A stated capacity was checked with its file. */
static void check_capacities(
	struct members *m, const char *name, const struct weir_policy *p, const json_t *capacities)
{
	const char *resource;
	json_t *value;

	m->mins = mins_of(p);
	m->cluster |= p->cluster.n_servers > 0;
	json_object_foreach((json_t *)capacities, resource, value)
	{
		double can = json_number_value(value);

		m->capacity += can;
		if (!p->cluster.n_servers && can < m->mins)
			fprintf(stderr,
				"member %s: '%s' did %.0f requests a second, and the mins need "
				"%.0f (warning)\n",
				name, resource, can, m->mins);
	}
}

/* Check the policy of a member with the new tenants. */
static void check_member(struct members *m, const struct store_key *k)
{
	static struct weir_policy_remarks remarks;
	json_t *j = json_loadb(k->value, k->length, 0, NULL);
	const char *local = json_string_value(json_object_get(j, "local"));
	const char *name = k->key + strlen(PUBLISH_MEMBERS);
	struct weir_policy *p;

	if (local && content_parse_at(local, "its own file", m->q->text, m->q->length, m->q->name,
			     &p, &remarks) == 0) {
		check_capacities(m, name, p, json_object_get(j, "capacities"));
		weir_policy_free(p);
	} else if (local) {
		m->wrong++;
		fprintf(stderr, "member %s: %s\n", name, remarks.errors[0].text);
	}
	json_decref(j);
}

static void members_came(
	void *arg, int rc, const struct store_result *r, const struct weir_err *err)
{
	struct members *m = arg;

	for (size_t i = 0; rc == 0 && i < r->n; i++) {
		check_member(m, &r->keys[i]);
		snprintf(m->last, sizeof(m->last), "%s", r->keys[i].key);
	}
	m->s->more = rc == 0 && r->more;
	store_wait_end(&m->s->wait, rc, err);
}

/* Return -1, or the exit status. */
static int check_members(struct policy_store *s, const struct versions_request *q)
{
	struct members m = {.s = s, .q = q};
	struct store_request ask = {.kind = STORE_LIST, .prefix = PUBLISH_MEMBERS};
	int rc;

	if (q->tenants || !content_is_list(q->text, q->length))
		return -1;
	do {
		store_ask(s->wait.store, &ask, members_came, &m);
		rc = store_wait(&s->wait);
		ask.after = m.last;
	} while (rc == 0 && s->more);
	if (rc < 0)
		return failed(s, rc);
	if (m.cluster && m.capacity > 0 && m.mins > m.capacity)
		fprintf(stderr,
			"the servers did %.0f requests a second together, and the mins need %.0f "
			"(warning)\n",
			m.capacity, m.mins);
	return m.wrong ? opts_fail(&verb_policy,
				 "%zu member%s could not put this in force; nothing was changed",
				 m.wrong, m.wrong == 1 ? "" : "s")
		       : -1;
}

/* Another version was stored meanwhile: show what it changed. */
static int show_conflict(struct policy_store *s, uint64_t base)
{
	struct versions_text was = {0}, is = {0};
	struct weir_err why = s->wait.err;

	opts_fail(&verb_policy, "%s", why.text);
	if (base && s->record.number > base && read_version(s, base, NULL, &was) == 0 &&
		read_version(s, s->record.number, &was, &is) == 0) {
		fprintf(stderr, "from version %llu to %llu:\n", (unsigned long long)base,
			(unsigned long long)is.record.number);
		show_differences(&was, &is, 100, stderr);
	}
	versions_text_free(&was);
	versions_text_free(&is);
	return 1;
}

static int put_version(struct policy_store *s, struct versions_request *q, const char *message)
{
	struct versions_text was = {0}, is = {0};
	char host[256];
	int rc = read_version(s, 0, NULL, &was), status = 0;

	if (rc < 0 && rc != -ENOENT)
		return failed(s, rc);
	if (!q->base)
		q->base = was.record.number;
	fill_origin(q, host, message);
	versions_put(s->wait.store, q, was_put, s);
	rc = store_wait(&s->wait);
	if (rc == -EBUSY) {
		status = show_conflict(s, q->base);
	} else if (rc < 0) {
		status = failed(s, rc);
	} else {
		uint64_t number = s->record.number;

		if (was.text && read_version(s, number, &was, &is) == 0)
			show_differences(&was, &is, 100, stdout);
		printf("version %llu is stored\n", (unsigned long long)number);
	}
	versions_text_free(&was);
	versions_text_free(&is);
	return status;
}

static int dry_run(struct policy_store *s, const struct versions_request *q)
{
	struct versions_text was = {0}, is = {.text = (char *)q->text};
	int rc = read_version(s, 0, NULL, &was);

	if (rc < 0 && rc != -ENOENT)
		return failed(s, rc);
	is.record.name = (char *)q->name;
	is.record.tenants = q->tenants;
	if (rc == 0 && pieces_cut(q->text, q->length, &is.record.pieces, &is.record.n_pieces) == 0)
		show_differences(&was, &is, 100, stdout);
	free(is.record.pieces);
	versions_text_free(&was);
	printf("nothing was changed (--dry-run)\n");
	return 0;
}

int policy_store_apply(const char *store, const struct policy_sent *sent, const char *name,
	const struct policy_change *c)
{
	struct versions_request q = {.kind = VERSIONS_APPLY,
		.text = sent->text,
		.length = sent->len,
		.tenants = sent->tenants,
		.name = name,
		.keep = c->keep,
		.base = c->base};
	struct policy_store s;
	int status = check_text(sent->text, sent->len, sent->tenants, name);

	if (status < 0)
		status = open_it(store, false, &s);
	if (status >= 0)
		return status;
	status = check_members(&s, &q);
	if (status < 0)
		status = c->dry ? dry_run(&s, &q) : put_version(&s, &q, c->message);
	close_it(&s);
	return status;
}

int policy_store_rollback(const char *store, uint64_t number, const struct policy_change *c)
{
	struct versions_request q = {.kind = VERSIONS_ROLLBACK, .from = number, .base = c->base};
	char message[64];
	struct policy_store s;
	int status = open_it(store, false, &s);

	if (status >= 0)
		return status;
	snprintf(message, sizeof(message), "back to version %llu", (unsigned long long)number);
	status = put_version(&s, &q, c->message ? c->message : message);
	close_it(&s);
	return status;
}

/* ---- history */

/* Show the versions of a list, newest first, with their differences. */
static void show_list(struct policy_store *s, struct record *list, size_t n, size_t most)
{
	struct versions_text to = {0}, from = {0};

	for (size_t i = n; i-- > 0 && n - i <= most;) {
		if (!to.text || to.record.number != list[i].number) {
			versions_text_free(&to);
			read_version(s, list[i].number, NULL, &to);
		}
		policy_show_version(&list[i]);
		if (list[i].base && to.text && read_version(s, list[i].base, &to, &from) == 0)
			show_differences(&from, &to, 5, stdout);
		versions_text_free(&to);
		to = from;
		from = (struct versions_text){0};
	}
	versions_text_free(&to);
}

static void put_json(const struct record *r, bool first)
{
	char *text = record_write(r);

	printf("%s%s", first ? "" : ",\n ", text ? text : "null");
	free(text);
}

/* List from a number on, page by page, all to JSON; or keep the last page. */
int policy_store_history(const char *store, size_t most, bool json)
{
	struct versions_text head = {0};
	struct policy_store s;
	uint64_t from = 1;
	bool first = true;
	int status = open_existing(store, &s), rc;

	if (status >= 0)
		return status;
	rc = read_version(&s, 0, NULL, &head);
	if (rc == 0 && !json && head.record.number > most)
		from = head.record.number - most + 1;
	versions_text_free(&head);
	if (json)
		printf("[");
	for (s.more = rc == 0; rc == 0 && s.more;) {
		versions_list(s.wait.store, from, json ? 100 : most, true, was_listed, &s);
		rc = store_wait(&s.wait);
		if (rc == 0 && !json)
			show_list(&s, s.list, s.n, most);
		for (size_t i = 0; rc == 0 && i < s.n; i++) {
			if (json)
				put_json(&s.list[i], first);
			first = false;
			from = s.list[i].number + 1;
			record_free(&s.list[i]);
		}
		free(s.list);
		if (!json)
			break;
	}
	if (json)
		printf("]\n");
	status = rc < 0 ? failed(&s, rc) : 0;
	close_it(&s);
	return status;
}

int policy_store_diff(const char *store, uint64_t a, uint64_t b)
{
	struct versions_text from = {0}, to = {0};
	struct policy_store s;
	int status = open_existing(store, &s), rc;

	if (status >= 0)
		return status;
	rc = read_version(&s, a, NULL, &from);
	if (rc == 0)
		rc = read_version(&s, b, &from, &to);
	if (rc == 0)
		show_differences(&from, &to, 100, stdout);
	status = rc < 0 ? failed(&s, rc) : 0;
	versions_text_free(&from);
	versions_text_free(&to);
	close_it(&s);
	return status;
}

int policy_store_export(const char *store, uint64_t number)
{
	struct versions_text v = {0};
	struct policy_store s;
	int status = open_existing(store, &s), rc;

	if (status >= 0)
		return status;
	rc = read_version(&s, number, NULL, &v);
	if (rc == 0)
		fwrite(v.text, 1, record_length(&v.record), stdout);
	status = rc < 0 ? failed(&s, rc) : 0;
	versions_text_free(&v);
	close_it(&s);
	return status;
}
