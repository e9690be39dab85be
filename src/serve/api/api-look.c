/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api-look: answers about all tenants. The workers gather a snapshot while the main thread
 * continues (gateway_look); then the HTTP thread formats it while it is sent, some 64 KiB at a
 * time, so that neither its length nor a slow client delays anything, and nothing is formatted for
 * a client that has left.
 *
 * LIMITS   LOOKS at once; others wait until one of these is sent, or until its client is
 *          disconnected because it reads nothing. At 100,000 tenants of which 1,000 are active a
 *          look has some 4 MB.
 */
#include "base/container.h"
#include "serve/api/api-impl.h"
#include "serve/api/api-json.h"
#include "serve/snapshot/version.h"
#include "serve/store/json-text.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define LOOKS     4
#define MANY      1000 /* tenants: with active=auto, idle ones are omitted beyond this number */
#define LIMIT_MAX 1000000
#define TENANTS   64    /* written at once */
#define PIECE     16384 /* bytes of a text, the same */

enum kind { METRICS, STATUS, CLIENTS };

struct look {
	struct http_source source;
	struct look *next; /* that waits */
	struct api *api;
	struct api_call *call;
	struct loop_task ended;
	enum kind kind;
	/* the question */
	bool histograms, brief, active, active_auto;
	char *tenant, *after; /* NULL: absent */
	size_t limit;         /* 0: no */
	/* the answer */
	struct snapshot *snapshot;
	uint32_t *select; /* NULL: all tenants */
	size_t n_select, left_out;
	const char *next_page;
	struct metrics_cursor metrics;
	struct metrics_process process;
	struct api_status status;
};

static void start_next(struct api *a);

static void look_clear(struct look *k)
{
	api_status_end(&k->status);
	snapshot_free(k->snapshot);
	free(k->select);
	free(k->tenant);
	free(k->after);
	k->snapshot = NULL;
	k->select = NULL;
	k->tenant = k->after = NULL;
}

static void look_free(struct look *k)
{
	look_clear(k);
	free(k);
}

/* ---- which tenants */

static bool has_prefix(const struct look *k, size_t i)
{
	return !k->tenant ||
	       strncmp(snapshot_path(k->snapshot, i), k->tenant, strlen(k->tenant)) == 0;
}

static bool is_wanted(const struct look *k, size_t i)
{
	return (!k->active || k->snapshot->tenants[i]) && has_prefix(k, i);
}

static bool is_on_page(const struct look *k, size_t i, size_t from, size_t to)
{
	return i >= from && i < to && has_prefix(k, i);
}

/* Keep only the slos of the tenants that are shown; both lists have the policy's order. */
static void select_slos(struct look *k)
{
	struct snapshot *s = k->snapshot;
	size_t kept = 0, i = 0;

	for (size_t n = 0; n < s->n_slos; n++) {
		while (i < k->n_select && k->select[i] < s->slos[n].tenant)
			i++;
		if (i < k->n_select && k->select[i] == s->slos[n].tenant)
			s->slos[kept++] = s->slos[n];
	}
	s->n_slos = kept;
	for (size_t n = 0; n < kept; n++) /* the array has moved */
		if (s->tenants[s->slos[n].tenant])
			s->tenants[s->slos[n].tenant]->slo = &s->slos[n];
}

/* The same for the rows of controllers; to: after the last tenant of the page. Listed rows are
 * active by rules of their own. */
static void select_rows(const struct look *k, const struct facts_table *t, struct facts_rows *rows,
	size_t from, size_t to)
{
	size_t all = rows->n;

	rows->n = 0;
	for (size_t i = 0; i < all; i++) {
		const struct facts_row *row = facts_row(t, rows, i);

		if (is_on_page(k, row->tenant, from, to))
			memmove(facts_row(t, rows, rows->n++), row, t->size);
	}
}

static void select_facts(struct look *k, size_t from, size_t to)
{
	for (size_t i = 0; i < k->snapshot->n_resources; i++) {
		struct facts *f = &k->snapshot->resources[i].facts;

		for (size_t t = 0; f->kind && t < FACTS_TABLES; t++)
			if (f->kind->tables[t].tenants)
				select_rows(k, &f->kind->tables[t], &f->tables[t], from, to);
	}
}

/* Select the requested page. 0, -ENOENT: no tenant `after`, or -ENOMEM. */
static int select_tenants(struct look *k)
{
	const struct snapshot *s = k->snapshot;
	size_t limit = k->limit ? k->limit : SIZE_MAX, i = 0, from;

	k->active |= k->active_auto && s->n_tenants > MANY;
	if (!k->active && !k->tenant && !k->after && !k->limit)
		return 0;
	if (k->after) {
		int at = weir_policy_find(s->of->policy, k->after);

		if (at < 0)
			return -ENOENT;
		i = (size_t)at + 1;
	}
	from = i;
	k->select = calloc(s->n_tenants + 1, sizeof(*k->select));
	if (!k->select)
		return -ENOMEM;
	for (; i < s->n_tenants && k->n_select < limit; i++)
		if (is_wanted(k, i))
			k->select[k->n_select++] = (uint32_t)i;
	for (; i < s->n_tenants && k->n_select && !k->next_page; i++)
		if (is_wanted(k, i))
			k->next_page = snapshot_path(s, k->select[k->n_select - 1]);
	select_slos(k);
	select_facts(k, from, k->next_page ? k->select[k->n_select - 1] + 1 : s->n_tenants);
	for (i = 0; k->active && i < s->n_tenants; i++)
		k->left_out += !s->tenants[i] && has_prefix(k, i);
	return 0;
}

/* ---- the process */

static uint64_t count_entries(const char *folder)
{
	DIR *d = opendir(folder);
	uint64_t n = 0;

	if (!d)
		return 0;
	for (const struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static void look_at_process(struct metrics_process *p)
{
	struct rusage use;
	char text[128]; /* "SIZE RESIDENT …", in pages */
	const char *resident;
	FILE *f = fopen("/proc/self/statm", "re");

	*p = (struct metrics_process){
		.fds = count_entries("/proc/self/fd"), .threads = count_entries("/proc/self/task")};
	if (getrusage(RUSAGE_SELF, &use) == 0)
		p->cpu = (double)use.ru_utime.tv_sec + (double)use.ru_stime.tv_sec +
			 ((double)use.ru_utime.tv_usec + (double)use.ru_stime.tv_usec) / 1e6;
	if (f && fgets(text, sizeof(text), f) && (resident = strchr(text, ' ')))
		p->resident = strtoul(resident, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
	if (f)
		fclose(f);
}

/* ---- sent */

static bool look_more(struct http_source *source, FILE *to)
{
	struct look *k = container_of(source, struct look, source);

	return k->kind == METRICS ? metrics_more(&k->metrics, TENANTS, to)
				  : api_status_more(&k->status, TENANTS, to);
}

static void look_ended(struct loop_task *t)
{
	struct look *k = container_of(t, struct look, ended);
	struct api *a = k->api;

	look_free(k);
	a->n_looks--;
	start_next(a);
}

static void look_end(struct http_source *source)
{
	struct look *k = container_of(source, struct look, source);

	look_clear(k);
	k->ended.run = look_ended;
	loop_post(gateway_loop(k->api->gateway), &k->ended);
}

static void begin_reply(struct look *k, struct http_reply *r)
{
	int rc = select_tenants(k);

	if (rc == -ENOENT) {
		http_json_fail(r, 404, "after: there is no such tenant");
		return;
	}
	if (rc < 0)
		return;
	if (k->kind == CLIENTS) {
		http_json_give(r, 200, api_clients(k->snapshot, k->tenant));
		return;
	}
	k->source = (struct http_source){look_more, look_end};
	r->source = &k->source;
	r->status = 200;
	r->type = k->kind == METRICS ? HTTP_PROM : HTTP_JSON;
	if (k->kind == METRICS)
		look_at_process(&k->process);
	k->metrics = (struct metrics_cursor){.snapshot = k->snapshot,
		.process = &k->process,
		.select = k->select,
		.n_select = k->n_select};
	k->status = (struct api_status){.snapshot = k->snapshot,
		.select = k->select,
		.n_select = k->n_select,
		.histograms = k->histograms,
		.brief = k->brief,
		.left_out = k->left_out,
		.next = k->next_page};
}

/* Take the snapshot; NULL: there will be none. */
static void looked(void *arg, struct snapshot *s)
{
	struct look *k = arg;
	struct api_call *call = k->call;
	struct http_reply r = {0};

	k->snapshot = s;
	if (s)
		begin_reply(k, &r);
	if (!s)
		look_free(k); /* the API is gone, too */
	else if (!r.source)
		look_end(&k->source);
	api_answer(call, &r);
}

/* ---- asked for */

static void start_next(struct api *a)
{
	unsigned n = 0;

	while (a->waiting && a->n_looks < LOOKS) {
		struct look *k = a->waiting;
		struct http_reply none = {0};

		a->waiting = k->next;
		if (!a->waiting)
			a->waiting_end = &a->waiting;
		a->n_looks++;
		if (gateway_look(a->gateway, k->kind == CLIENTS ? k->tenant : NULL, looked, k) == 0)
			continue;
		a->n_looks--;
		api_answer(k->call, &none);
		look_free(k);
	}
	for (const struct look *k = a->waiting; k; k = k->next)
		n++;
	atomic_store_explicit(&a->crowd, n, memory_order_relaxed);
}

static int copy_query(const struct http_request *q, const char *key, char **to)
{
	const char *value = http_query(q, key);

	*to = value && *value ? strdup(value) : NULL;
	return value && *value && !*to ? -ENOMEM : 0;
}

/* Return what is wrong with the question, or NULL. */
static const char *read_question(const struct http_request *q, struct look *k)
{
	const char *limit = http_query(q, "limit"), *active = http_query(q, "active");
	struct weir_err err;
	int64_t n;

	k->histograms = api_flag(q, "histograms");
	k->brief = api_flag(q, "brief");
	k->active_auto = active && strcmp(active, "auto") == 0;
	k->active = !k->active_auto && api_flag(q, "active");
	if (limit && (weir_units_int(limit, &n, &err) < 0 || n < 1 || n > LIMIT_MAX))
		return "limit: must be a whole number from 1 to 1000000";
	k->limit = limit ? (size_t)n : 0;
	if (copy_query(q, "tenant", &k->tenant) < 0 || copy_query(q, "after", &k->after) < 0)
		return "out of memory";
	return NULL;
}

static void ask(struct api *a, enum kind kind, struct http_request *q, struct http_reply *ret)
{
	struct look *k = calloc(1, sizeof(*k));
	const char *wrong = k ? read_question(q, k) : NULL;

	if (!k || wrong) {
		if (wrong)
			http_json_fail(ret, 400, wrong);
		if (k)
			look_free(k);
		return;
	}
	k->api = a;
	k->call = api_keep(q);
	k->kind = kind;
	*(a->waiting ? a->waiting_end : &a->waiting) = k;
	a->waiting_end = &k->next;
	start_next(a);
}

void api_looks_stop(struct api *a)
{
	struct http_reply none = {0};

	while (a->waiting) {
		struct look *k = a->waiting;

		a->waiting = k->next;
		api_answer(k->call, &none);
		look_free(k);
	}
}

void api_get_metrics(struct api *a, struct http_request *q, struct http_reply *ret)
{
	ask(a, METRICS, q, ret);
}

void api_get_status(struct api *a, struct http_request *q, struct http_reply *ret)
{
	ask(a, STATUS, q, ret);
}

void api_get_clients(struct api *a, struct http_request *q, struct http_reply *ret)
{
	ask(a, CLIENTS, q, ret);
}

/* ---- the policy */

struct text { /* GET /v1/policy */
	struct http_source source;
	struct gateway_version *version;
	json_t *first, *last; /* members before the texts, and behind them */
	struct policy_show show;
	bool table, json; /* shown; else the texts themselves */
	const char *at;   /* in a text; NULL: before the first */
	bool tenants;     /* it belongs to the tenants' file */
};

static void text_end(struct http_source *source)
{
	struct text *t = container_of(source, struct text, source);

	gateway_version_drop(t->version);
	json_decref(t->first);
	json_decref(t->last);
	free(t);
}

static bool next_text(struct text *t, FILE *to)
{
	const char *more = t->version->policy->tenants_text;

	if (!t->at) {
		fputc('{', to);
		show_write_members(json_incref(t->first), to);
		fputs(", \"text\": \"", to);
		t->at = t->version->text;
		return true;
	}
	if (!t->tenants && more) {
		fputs("\", \"tenants_text\": \"", to);
		t->tenants = true;
		t->at = more;
		return true;
	}
	fputs("\", ", to);
	show_write_members(json_incref(t->last), to);
	fputs("}\n", to);
	return false;
}

static bool text_more(struct http_source *source, FILE *to)
{
	struct text *t = container_of(source, struct text, source);
	size_t n = t->at ? strnlen(t->at, PIECE) : 0;

	if (n == 0)
		return next_text(t, to);
	json_text_escape(t->at, n, to);
	t->at += n;
	return true;
}

static void write_changed(const struct text *t, FILE *to)
{
	const json_t *list = json_object_get(t->last, "overrides"), *o;
	size_t i;

	fprintf(to, "\nPolicy version %lld.%s\n",
		(long long)json_integer_value(json_object_get(t->first, "version")),
		json_array_size(list) ? " Changed by weir set:" : "");
	json_array_foreach(list, i, o)
	{
		fprintf(to, "  %s %s\n", json_string_value(json_object_get(o, "key")),
			json_string_value(json_object_get(o, "value")));
	}
}

static bool show_more(struct http_source *source, FILE *to)
{
	struct text *t = container_of(source, struct text, source);

	if ((t->json ? policy_show_json : policy_show_table)(&t->show, TENANTS, to))
		return true;
	if (t->table)
		write_changed(t, to);
	return false;
}

static json_t *overrides_json(struct api *a)
{
	json_t *list = json_array();
	const char *key, *value;

	for (size_t i = 0; gateway_override(a->gateway, i, &key, &value); i++)
		json_array_append_new(list, json_pack("{s:s, s:s}", "key", key, "value", value));
	return list;
}

void api_get_policy(struct api *a, struct http_request *q, struct http_reply *ret)
{
	const char *show = http_query(q, "show");
	struct text *t = calloc(1, sizeof(*t));
	char here[PATH_MAX]; /* where a relative name starts */
	struct gateway_version *v;

	if (!t)
		return;
	v = t->version = gateway_version_hold(gateway_in_force(a->gateway));
	t->table = show && strcmp(show, "table") == 0;
	t->json = show && strcmp(show, "json") == 0;
	t->first = json_pack("{s:o, s:b, s:s, s:s}", "version",
		json_integer((json_int_t)gateway_version(a->gateway)), "enforce",
		v->policy->enforce, "name", v->name, "folder",
		getcwd(here, sizeof(here)) ? here : "/");
	t->last = json_pack("{s:o}", "overrides", overrides_json(a));
	t->show = (struct policy_show){v->policy, v->bounds, v->of_parent, v->of_all, &v->show, 0};
	t->source = (struct http_source){t->table || t->json ? show_more : text_more, text_end};
	if (!t->first || !t->last) {
		text_end(&t->source);
	} else if (show && !t->table && !t->json) {
		text_end(&t->source);
		http_json_fail(ret, 400, "show: may be table or json");
	} else {
		ret->source = &t->source;
		ret->status = 200;
		ret->type = t->table ? NULL : HTTP_JSON;
	}
}
