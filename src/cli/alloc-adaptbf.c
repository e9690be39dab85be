/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc-adaptbf: one period of AdapTBF: tokens, records and remainders of every job. */
#include "control/lend/law.h"
#include "base/arena.h"
#include "cli/alloc.h"
#include <errno.h>
#include <math.h>

static const char *const top_keys[] = {"rate", "period", "carry", "jobs", NULL};
static const char *const job_keys[] = {
	"name", "nodes", "demand", "previous", "record", "remainder", "reclaim", NULL};
/* The largest whole number up to which a double is exact. */
#define WHOLE 9007199254740992.0
static const struct alloc_range above_0 = {.most = 1e300, .above = true};
static const struct alloc_range any_demand = {.most = HUGE_VAL};
static const struct alloc_range whole = {.most = WHOLE};
static const struct alloc_range record = {.least = -WHOLE, .most = WHOLE};
static const struct alloc_range remainder_ = {.least = -1, .most = 1};
static const struct alloc_range fraction = {.most = 1};

struct jobs {
	struct arena memory;
	struct lend_jobs of;
	const char **names;
	double *nodes;
	uint32_t *weight;
	uint64_t *demand;
	struct lend_space space;
};

static void jobs_free(struct jobs *j)
{
	arena_free(&j->memory);
	lend_space_free(&j->space);
}

static int jobs_new(struct jobs *j, size_t n)
{
	struct arena *m = &j->memory;

	*j = (struct jobs){.of = {.n = n}};
	j->names = arena_take(m, n, sizeof(*j->names));
	j->nodes = arena_take(m, n, sizeof(*j->nodes));
	j->of.weight = j->weight = arena_take(m, n, sizeof(*j->weight));
	j->of.demand = j->demand = arena_take(m, n, sizeof(*j->demand));
	j->of.tokens = arena_take(m, n, sizeof(*j->of.tokens));
	j->of.record = arena_take(m, n, sizeof(*j->of.record));
	j->of.remainder = arena_take(m, n, sizeof(*j->of.remainder));
	j->of.reclaim = arena_take(m, n, sizeof(*j->of.reclaim));
	j->of.initial = arena_take(m, n, sizeof(*j->of.initial));
	return m->failed ? -ENOMEM : lend_space_grow(&j->space, n);
}

/* ---- input */

static int read_fixed(
	const struct alloc_at *at, const char *key, struct alloc_range range, int32_t *ret)
{
	double x;
	int r = alloc_number(at, key, range, &x);

	if (r == 0)
		*ret = (int32_t)lrint(x * (double)REMAINDER_ONE);
	return r == -ENOENT ? 0 : r;
}

static int read_job(const struct alloc_at *at, void *arg, size_t i)
{
	struct jobs *j = arg;
	double demand = 0;
	int r = alloc_keys(at, job_keys);

	j->of.tokens[i] = LEND_NEW;
	if (r || (r = alloc_name(at, &j->names[i])) ||
		(r = alloc_need(at, "nodes", above_0, &j->nodes[i])) ||
		(r = alloc_need(at, "demand", any_demand, &demand)) ||
		(r = alloc_absent_ok(alloc_whole(at, "previous", whole, &j->of.tokens[i]))) ||
		(r = alloc_absent_ok(alloc_whole(at, "record", record, &j->of.record[i]))) ||
		(r = read_fixed(at, "remainder", remainder_, &j->of.remainder[i])) ||
		(r = read_fixed(at, "reclaim", fraction, &j->of.reclaim[i])))
		return r;
	/* Demand beyond the tokens of any server makes no difference. */
	j->demand[i] = (uint64_t)ceil(fmin(demand, (double)LEND_TOKENS));
	if (j->of.reclaim[i] >= REMAINDER_ONE)
		return alloc_fail(at, "reclaim", "must be < 1");
	return 0;
}

/* Set the weights: whole numbers of nodes as they are, others scaled so that the largest is 2³¹. */
static void weigh(struct jobs *j)
{
	double most = 0, scale = 1;
	bool all_whole = true;

	for (size_t i = 0; i < j->of.n; i++) {
		most = fmax(most, j->nodes[i]);
		all_whole &= j->nodes[i] == floor(j->nodes[i]);
	}
	if (!all_whole || most > UINT32_MAX)
		scale = 0x1p31 / most;
	for (size_t i = 0; i < j->of.n; i++)
		j->weight[i] = (uint32_t)fmax(1, rint(j->nodes[i] * scale));
}

/* ---- output */

static double token(int64_t fixed)
{
	return (double)fixed / (double)REMAINDER_ONE;
}

static json_t *write_job(const struct jobs *j, size_t i)
{
	return json_pack("{s:s, s:I, s:I, s:f, s:I, s:f}", "name", j->names[i], "tokens",
		(json_int_t)j->of.tokens[i], "record", (json_int_t)j->of.record[i], "remainder",
		token(j->of.remainder[i]), "initial", (json_int_t)j->of.initial[i], "reclaim",
		token(j->of.reclaim[i]));
}

static int write_out(const struct jobs *j, int64_t tokens, int32_t carry,
	const struct lend_sums *sums, json_t **ret_out)
{
	json_t *list = json_array(), *out;

	for (size_t i = 0; i < j->of.n; i++)
		json_array_append_new(list, write_job(j, i));
	out = json_pack("{s:o, s:I, s:f, s:I, s:I, s:f}", "jobs", list, "tokens",
		(json_int_t)tokens, "carry", token(carry), "surplus", (json_int_t)sums->surplus,
		"reclaimed", (json_int_t)sums->reclaimed, "coefficient", token(sums->coefficient));
	if (!out || json_array_size(list) != j->of.n) {
		json_decref(out);
		return -ENOMEM;
	}
	*ret_out = out;
	return 0;
}

int alloc_adaptbf(json_t *in, json_t **ret_out, struct weir_err *err)
{
	struct alloc_at top = {"", in, err};
	struct lend_sums sums;
	double rate, period;
	int32_t carry = 0;
	int64_t tokens;
	struct jobs jobs;
	json_t *list;
	int r = alloc_keys(&top, top_keys);

	if (r || (r = alloc_need(&top, "rate", above_0, &rate)) ||
		(r = alloc_need(&top, "period", above_0, &period)) ||
		(r = read_fixed(&top, "carry", fraction, &carry)) ||
		(r = alloc_list(&top, "jobs", &list)))
		return r;
	if (!(rate * period < (double)LEND_TOKENS))
		return alloc_fail(&top, "rate", "a period must have fewer than 2^38 tokens");
	if (json_array_size(list) > LEND_JOBS)
		return alloc_fail(&top, "jobs", "must be at most %zu", LEND_JOBS);
	r = jobs_new(&jobs, json_array_size(list));
	if (r == 0)
		r = alloc_each(&top, "jobs", list, read_job, &jobs);
	if (r == 0) {
		weigh(&jobs);
		tokens = lend_tokens(rate, period, &carry);
		lend_allocate(&jobs.of, tokens, &jobs.space, &sums);
		r = write_out(&jobs, tokens, carry, &sums, ret_out);
	}
	jobs_free(&jobs);
	return r;
}
