/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/api/ledger-json.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- fields: where a number stands in a struct, and its name */

struct field {
	const char *name;
	size_t offset;
	enum { I64, I32, U64, U32 } of;
	bool later; /* an older ledger does not have it: 0 */
};

static const struct field state_fields[] = {
	{"carry", offsetof(struct adaptbf_state, carry), I32, false},
	{"tombstone", offsetof(struct adaptbf_state, tombstone), I64, false},
	{"written_off", offsetof(struct adaptbf_state, written_off), I64, false},
	{"forfeited", offsetof(struct adaptbf_state, forfeited), I64, false},
	{"aged", offsetof(struct adaptbf_state, aged), I64, true},
	{"aged_left", offsetof(struct adaptbf_state, aged_left), I64, true},
	{"steps", offsetof(struct adaptbf_state, steps), U64, false},
	{"period_tokens", offsetof(struct adaptbf_state, tokens), I64, false},
	{"surplus", offsetof(struct adaptbf_state, surplus), I64, false},
	{"reclaimed", offsetof(struct adaptbf_state, reclaimed), I64, false},
	{"active", offsetof(struct adaptbf_state, active), U32, false},
	{"known", offsetof(struct adaptbf_state, known), U32, false},
	{"left_out", offsetof(struct adaptbf_state, left_out), U32, false},
};

#define ACCOUNT(member) offsetof(struct adaptbf_account, member)
static const struct field job_fields[] = {
	{"weight", ACCOUNT(weight), U32, false},
	{"tokens", ACCOUNT(tokens), I64, false},
	{"initial", ACCOUNT(initial), I64, false},
	{"demand", ACCOUNT(demand), U64, false},
	{"record", ACCOUNT(record), I64, false},
	{"lent", ACCOUNT(ledger.lent), I64, false},
	{"borrowed", ACCOUNT(ledger.borrowed), I64, false},
	{"repaid", ACCOUNT(ledger.repaid), I64, false},
	{"regained", ACCOUNT(ledger.regained), I64, false},
	{"lost", ACCOUNT(ledger.lost), I64, false},
	{"spared", ACCOUNT(ledger.spared), I64, false},
	{"written_off", ACCOUNT(ledger.written_off), I64, true},
	{"forgiven", ACCOUNT(ledger.forgiven), I64, true},
	{"remainder", ACCOUNT(remainder), I32, false},
	{"reclaim", ACCOUNT(reclaim), I32, false},
};

static const struct field loan_fields[] = {
	{"amount", offsetof(struct adaptbf_loan, amount), I64, false},
	{"lent", offsetof(struct adaptbf_loan, lent), I64, false},
	{"written_off", offsetof(struct adaptbf_loan, written_off), I64, true},
};
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static json_int_t get(const void *of, const struct field *f)
{
	const char *at = (const char *)of + f->offset;

	switch (f->of) {
	case I64:
		return *(const int64_t *)(const void *)at;
	case I32:
		return *(const int32_t *)(const void *)at;
	case U64:
		return (json_int_t) * (const uint64_t *)(const void *)at;
	case U32:
		return *(const uint32_t *)(const void *)at;
	}
	return 0;
}

/* false: it does not fit. */
static bool set(void *of, const struct field *f, json_int_t v)
{
	char *at = (char *)of + f->offset;

	switch (f->of) {
	case I64:
		*(int64_t *)(void *)at = v;
		return true;
	case I32:
		*(int32_t *)(void *)at = (int32_t)v;
		return v >= INT32_MIN && v <= INT32_MAX;
	case U64:
		*(uint64_t *)(void *)at = (uint64_t)v;
		return v >= 0;
	case U32:
		*(uint32_t *)(void *)at = (uint32_t)v;
		return v >= 0 && v <= UINT32_MAX;
	}
	return false;
}

static void write_fields(json_t *j, const void *of, const struct field *fields, size_t n)
{
	for (size_t i = 0; i < n; i++)
		json_object_set_new(j, fields[i].name, json_integer(get(of, &fields[i])));
}

static bool read_fields(const json_t *j, void *of, const struct field *fields, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const json_t *v = json_object_get(j, fields[i].name);

		if (!v && fields[i].later)
			continue;
		if (!json_is_integer(v) || !set(of, &fields[i], json_integer_value(v)))
			return false;
	}
	return true;
}

/* ---- out */

const char *ledger_json_unit(enum weir_unit unit)
{
	return unit == WEIR_UNIT_BYTES ? "bytes" : "requests";
}

void ledger_json_state(json_t *to, const struct adaptbf_state *s)
{
	json_object_set_new(to, "rate", json_real(s->rate));
	json_object_set_new(to, "coefficient", json_real((double)s->coefficient / ADAPTBF_ONE));
	write_fields(to, s, state_fields, COUNT(state_fields));
}

void ledger_json_job(json_t *to, const struct adaptbf_account *a)
{
	json_object_set_new(to, "active", json_boolean(a->active));
	write_fields(to, a, job_fields, COUNT(job_fields));
}

static json_t *ago(weir_time at, weir_time then)
{
	return json_real((double)(at - then) / WEIR_SEC);
}

/* null: those who left. */
static json_t *name(const struct steward_image *i, uint64_t id)
{
	const char *text = steward_image_name(i, id);
	json_t *j = text ? json_string(text) : json_null();

	return j ? j : json_string("?"); /* a policy is UTF-8; this would be a fault of ours */
}

static json_t *job(const struct steward_image *i, const struct adaptbf_account *a)
{
	json_t *j = json_pack(
		"{s:o, s:o}", "tenant", name(i, a->id), "seen_ago_s", ago(i->at, a->seen));

	if (j)
		ledger_json_job(j, a);
	return j;
}

static json_t *loans(const struct steward_image *i, const struct adaptbf_loan *list, size_t n)
{
	json_t *all = json_array();

	for (size_t k = 0; all && k < n; k++) {
		const struct adaptbf_loan *l = &list[k];
		json_t *j = json_pack("{s:o, s:o, s:o, s:o}", "lender", name(i, l->lender),
			"borrower", name(i, l->borrower), "since_ago_s", ago(i->at, l->since),
			"last_ago_s", ago(i->at, l->last));

		if (j)
			write_fields(j, l, loan_fields, COUNT(loan_fields));
		json_array_append_new(all, j);
	}
	return all;
}

static json_t *one(const struct steward_image *i)
{
	json_t *jobs = json_array(), *j;

	for (size_t k = 0; k < i->n_jobs; k++)
		json_array_append_new(jobs, job(i, &i->jobs[k]));
	j = json_pack("{s:s, s:b, s:s, s:b, s:s, s:f}", "resource", i->resource, "on", i->on,
		"tokens", i->hold ? "hold" : "first", "learns", i->learns, "unit",
		ledger_json_unit(i->unit), "period_s", (double)i->period / WEIR_SEC);
	if (!j) {
		json_decref(jobs);
		return NULL;
	}
	ledger_json_state(j, &i->state);
	json_object_set_new(j, "jobs", jobs);
	json_object_set_new(j, "loans", loans(i, i->loans, i->n_loans));
	json_object_set_new(j, "repaid", loans(i, i->paid, i->n_paid));
	return j;
}

json_t *ledger_json(const struct steward_image *images, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		if (json_array_append_new(list, one(&images[i])) == 0)
			continue;
		json_decref(list);
		return NULL;
	}
	return list;
}

/* ---- in */

static bool read_ago(const json_t *j, const char *key, weir_time *ret)
{
	const json_t *v = json_object_get(j, key);
	double s = json_number_value(v);

	/* A thousand years are a mistake, and far from what overflows. */
	if (!json_is_number(v) || !(fabs(s) < 3e10))
		return false;
	*ret = -(weir_time)llround(s * WEIR_SEC / 1e3) * 1000;
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(**(char *const *const *)a, **(char *const *const *)b);
}

struct reading {
	struct steward_image *to;
	char ***sorted; /* pointers into to->names, by name */
};

/* Jobs are numbered from 1 in their order. */
static const char *read_jobs(const json_t *list, struct reading *r)
{
	struct steward_image *to = r->to;
	size_t n = json_array_size(list);

	if (!json_is_array(list))
		return "no list of jobs";
	to->jobs = calloc(n + 1, sizeof(*to->jobs));
	to->names = calloc(n + 1, sizeof(*to->names));
	r->sorted = calloc(n + 1, sizeof(*r->sorted));
	if (!to->jobs || !to->names || !r->sorted)
		return NULL;
	to->n_names = n + 1;
	for (size_t i = 0; i < n; i++) {
		const json_t *j = json_array_get(list, i);
		const char *text = json_string_value(json_object_get(j, "tenant"));
		struct adaptbf_account *a = &to->jobs[i];

		if (!text || !*text || !read_fields(j, a, job_fields, COUNT(job_fields)) ||
			!read_ago(j, "seen_ago_s", &a->seen))
			return "a job that is none";
		a->id = i + 1;
		to->names[i + 1] = strdup(text);
		r->sorted[i] = &to->names[i + 1];
		if (!to->names[i + 1])
			return NULL;
		to->n_jobs++;
	}
	qsort(r->sorted, n, sizeof(*r->sorted), by_name);
	for (size_t i = 1; i < n; i++)
		if (strcmp(*r->sorted[i - 1], *r->sorted[i]) == 0)
			return "a job that stands there twice";
	return "";
}

/* false: nobody is called so. A null is those who left. */
static bool read_name(const struct reading *r, const json_t *j, const char *key, uint64_t *ret)
{
	const json_t *v = json_object_get(j, key);
	char *text = (char *)(uintptr_t)json_string_value(v), **at = &text, ***found;

	*ret = 0;
	if (json_is_null(v))
		return true;
	found = text ? bsearch(&at, r->sorted, r->to->n_jobs, sizeof(*r->sorted), by_name) : NULL;
	if (found)
		*ret = (uint64_t)(*found - r->to->names);
	return found != NULL;
}

static const char *read_loans(
	const json_t *list, const struct reading *r, struct adaptbf_loan **ret, size_t *ret_n)
{
	size_t n = json_array_size(list);

	if (!json_is_array(list))
		return "no list of loans";
	*ret = calloc(n + 1, sizeof(**ret));
	if (!*ret)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		const json_t *j = json_array_get(list, i);
		struct adaptbf_loan *l = &(*ret)[i];

		if (!read_name(r, j, "lender", &l->lender) ||
			!read_name(r, j, "borrower", &l->borrower) ||
			!read_fields(j, l, loan_fields, COUNT(loan_fields)) ||
			!read_ago(j, "since_ago_s", &l->since) ||
			!read_ago(j, "last_ago_s", &l->last))
			return "a loan that is none";
	}
	*ret_n = n;
	return "";
}

/* "": well; NULL: out of memory; else what is wrong. */
static const char *read_one(const json_t *j, struct steward_image *to)
{
	const char *resource = json_string_value(json_object_get(j, "resource")), *why;
	const char *unit = json_string_value(json_object_get(j, "unit"));
	struct reading r = {.to = to};

	to->state.rate = json_number_value(json_object_get(j, "rate"));
	if (!resource || !(to->state.rate > 0) ||
		!read_fields(j, &to->state, state_fields, COUNT(state_fields)))
		return "a resource that is none";
	if (unit && strcmp(unit, ledger_json_unit(WEIR_UNIT_BYTES)) == 0)
		to->unit = WEIR_UNIT_BYTES; /* an older one has none: requests */
	to->resource = strdup(resource);
	if (!to->resource)
		return NULL;
	why = read_jobs(json_object_get(j, "jobs"), &r);
	if (why && !*why)
		why = read_loans(json_object_get(j, "loans"), &r, &to->loans, &to->n_loans);
	if (why && !*why)
		why = read_loans(json_object_get(j, "repaid"), &r, &to->paid, &to->n_paid);
	free(r.sorted);
	return why;
}

void ledger_json_free(struct steward_image *images, size_t n)
{
	for (size_t i = 0; i < n; i++)
		steward_image_free(&images[i]);
	free(images);
}

int ledger_json_read(
	const json_t *list, struct steward_image **ret_images, size_t *ret_n, const char **ret_why)
{
	size_t n = json_array_size(list);
	struct steward_image *images = calloc(n + 1, sizeof(*images));
	const char *why = "";

	if (!images)
		return -ENOMEM;
	if (!json_is_array(list))
		why = "no list of resources";
	for (size_t i = 0; why && !*why && i < n; i++)
		why = read_one(json_array_get(list, i), &images[i]);
	if (why && !*why) {
		*ret_images = images;
		*ret_n = n;
		return 0;
	}
	ledger_json_free(images, n);
	if (why)
		*ret_why = why;
	return why ? -EINVAL : -ENOMEM;
}
