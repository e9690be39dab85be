/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/ask.h"
#include "base/no-memory.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct asking {
	const struct planning_ask *ask;
	json_t *body, *traces;
	char *tenants; /* as text */
	struct planning_options o;
	struct planning_replay replay;
	struct estimate work;
	double error;
	bool remedies;
	struct weir_err *err;
};

static const char *const keys[] = {"admit_by", "alignments", "seed", "margin", "work", "inside",
	"pairs", "error", "remedies", "tenants", "traces", NULL};

/* A new tenant's trace is part of the body; the policy's files are read. */
static int read_named(void *arg, enum planning_file kind, const struct weir_tenant *of, bool is_new,
	struct weir_place at, const char *name, char **ret_text, size_t *ret_len,
	struct weir_err *err)
{
	const struct asking *q = arg;
	const json_t *text = is_new ? json_object_get(q->traces, name) : NULL;

	if (is_new && !text)
		return weir_err_set(err, -EINVAL, "'%s' is not in the body's traces", name);
	if (!is_new && !q->ask->reader)
		return weir_err_set(err, -EINVAL,
			"the policy in force is not that of the gateway's own file, and only that "
			"may name files");
	if (!is_new)
		return q->ask->reader(
			q->ask->reader_arg, at.file ? at.file : "", name, ret_text, ret_len, err);
	*ret_text = strdup(json_string_value(text));
	*ret_len = json_string_length(text);
	return *ret_text ? 0 : no_memory(err);
}

/* ---- the body */

static int whole(
	const struct asking *q, const char *key, json_int_t least, json_int_t most, json_int_t *ret)
{
	const json_t *v = json_object_get(q->body, key);

	if (v && (!json_is_integer(v) || json_integer_value(v) < least ||
			 json_integer_value(v) > most))
		return weir_err_set(q->err, -EINVAL, "%s: must be a number from %lld to %lld", key,
			(long long)least, (long long)most);
	*ret = v ? json_integer_value(v) : *ret;
	return 0;
}

/* Read a word that is one of a list; its index. */
static int word(const struct asking *q, const char *key, const char *const *words, int *ret)
{
	const json_t *v = json_object_get(q->body, key);
	int i = 0;

	while (v && words[i] && !(json_is_string(v) && strcmp(json_string_value(v), words[i]) == 0))
		i++;
	if (!words[i])
		return weir_err_set(q->err, -EINVAL, "%s: unknown word", key);
	*ret = v ? i : *ret;
	return 0;
}

static int read_numbers(struct asking *q)
{
	static const char *const ways[] = {"bound", "replay", NULL};
	json_int_t alignments = q->ask->admit ? 0 : REPLAY_ALIGNMENTS, seed = 1, pairs = PLAN_PAIRS;
	json_int_t margin = (json_int_t)round(100 * PLAN_MARGIN), error = -1;
	int way = 0, inside = 0;

	if (word(q, "admit_by", ways, &way) < 0)
		return -EINVAL;
	alignments = way ? REPLAY_ALIGNMENTS : alignments;
	if (whole(q, "alignments", way, 64, &alignments) < 0 ||
		whole(q, "seed", 0, INT64_MAX, &seed) < 0 ||
		whole(q, "pairs", 1, MEISTER_PAIRS, &pairs) < 0 ||
		whole(q, "margin", 0, 99, &margin) < 0 || whole(q, "error", 0, 1000, &error) < 0 ||
		word(q, "inside", planning_inside, &inside) < 0)
		return -EINVAL;
	q->replay = (struct planning_replay){.alignments = (unsigned)alignments,
		.seed = (uint64_t)seed,
		.judge = way,
		.margin = (double)margin / 100,
		.run = q->ask->run,
		.pool = q->ask->pool};
	q->error = (double)error / 100;
	q->o = (struct planning_options){.policy = q->ask->policy,
		.overrides = q->ask->overrides,
		.n_overrides = q->ask->n_overrides,
		.policy_reader = q->ask->reader,
		.policy_arg = q->ask->reader_arg,
		.read = read_named,
		.arg = q,
		.inside = inside,
		.error = error < 0 ? NULL : &q->error,
		.pairs = (size_t)pairs,
		.keep = alignments > 0,
		.base = q->ask->base};
	return 0;
}

static int read_tenants(struct asking *q)
{
	json_t *tenants = json_object_get(q->body, "tenants"), *v;
	const char *name;

	q->traces = json_object_get(q->body, "traces");
	if (!q->ask->admit)
		return tenants || q->traces ? weir_err_set(q->err, -EINVAL,
						      "tenants: only /v1/plan/admit has new ones")
					    : 0;
	if (!json_is_array(tenants) || !json_array_size(tenants))
		return weir_err_set(q->err, -EINVAL, "tenants: must be a list of new tenants");
	if (q->traces && !json_is_object(q->traces))
		return weir_err_set(q->err, -EINVAL, "traces: must be an object of texts by name");
	json_object_foreach(q->traces, name, v) if (!json_is_string(v)) return weir_err_set(
		q->err, -EINVAL, "traces: '%.64s' is not a text", name);
	q->tenants = json_dumps(tenants, 0);
	if (!q->tenants)
		return no_memory(q->err);
	q->o.admit = (struct policy_text){q->tenants, strlen(q->tenants), "tenants"};
	return 0;
}

static int read_body(struct asking *q, const char *body, size_t len)
{
	json_error_t where;
	const json_t *work, *v;
	const char *key;

	q->body = len ? json_loadb(body, len, JSON_REJECT_DUPLICATES, &where) : json_object();
	if (!q->body)
		return len ? weir_err_set(q->err, -EINVAL, "the body, line %d: %s", where.line,
				     where.text)
			   : no_memory(q->err);
	if (!json_is_object(q->body))
		return weir_err_set(q->err, -EINVAL, "the body must be an object");
	json_object_foreach(q->body, key, v)
	{
		size_t i = 0;

		while (keys[i] && strcmp(key, keys[i]) != 0)
			i++;
		if (!keys[i])
			return weir_err_set(q->err, -EINVAL, "no key '%.64s' here", key);
	}
	if (read_numbers(q) < 0 || read_tenants(q) < 0)
		return -EINVAL;
	q->remedies = json_is_true(json_object_get(q->body, "remedies"));
	work = json_object_get(q->body, "work");
	if (work && !json_is_string(work))
		return weir_err_set(q->err, -EINVAL, "work: must be as in \"100us+500MB/s\"");
	q->o.work = work ? &q->work : NULL;
	return work ? planning_work(json_string_value(work), &q->work, q->err) : 0;
}

/* ---- the answer */

static json_t *answer(const struct planning *p, bool with_remedies)
{
	struct planning_remedies remedies;
	json_t *out = NULL;

	if (!with_remedies || planning_feasible(p) || planning_limited(p))
		return planning_json(p, NULL);
	if (planning_remedies(p, &remedies) == 0)
		out = planning_json(p, &remedies);
	planning_remedies_free(&remedies);
	return out;
}

int planning_ask(const struct planning_ask *a, const char *body, size_t len,
	struct planning *ret_planning, json_t **ret_json, struct weir_err *err)
{
	struct asking q = {.ask = a, .err = err};
	struct planning p;
	json_t *out = NULL;
	int rc = read_body(&q, body, len);

	if (rc == 0)
		rc = planning_read(&q.o, &p, NULL, err);
	if (rc == 0) {
		if (q.replay.alignments && p.in.n_tenants)
			rc = planning_replay(&p, &q.replay, err);
		if (rc == 0 && !(out = answer(&p, q.remedies)))
			rc = no_memory(err);
		if (rc < 0)
			planning_free(&p);
	}
	json_decref(q.body);
	free(q.tenants);
	if (rc < 0)
		return rc;
	*ret_planning = p;
	*ret_json = out;
	return 0;
}
