/* SPDX-License-Identifier: BSD-3-Clause */
/* experiment-without: the counter-experiments of a file, and the runs that a claim needs. See
 * experiment.h. */
#include "sim/experiment/experiment-impl.h"
#include "base/no-memory.h"
#include "sim/scenario/scenario.h"
#include <errno.h>
#include <string.h>

/* ---- runs that a claim needs */

struct needs {
	const struct experiment *e;
	bool *runs;
	size_t before; /* definitions before this one count: each may use the earlier ones */
};

static void need_names(struct needs *n, const char *text);

static void need_name(const char *name, void *arg)
{
	struct needs *n = arg;
	const struct experiment *e = n->e;
	size_t len = strcspn(name, "."), before = n->before;

	for (size_t i = before; i-- > 0;)
		if (strcmp(e->defines[i].name, name) == 0) {
			n->before = i;
			need_names(n, e->defines[i].value);
			n->before = before;
			return;
		}
	for (size_t i = 0; i < e->n_runs; i++)
		n->runs[i] |= e->n_runs == 1 || (strlen(e->runs[i].name) == len &&
							strncmp(e->runs[i].name, name, len) == 0);
}

static void need_names(struct needs *n, const char *text)
{
	if (text)
		expr_names(text, need_name, n);
}

void experiment_needs(const struct experiment *e, const struct experiment_claim *c, bool *runs)
{
	struct needs n = {e, runs, e->n_defines};

	need_names(&n, c->value);
	need_names(&n, c->lo);
	need_names(&n, c->hi);
	need_names(&n, c->of);
}

/* ---- the file */

static const char *run_name(const struct experiment *e, size_t i)
{
	return e->runs[i].name;
}

static const char *claim_name(const struct experiment *e, size_t i)
{
	return e->claims[i].what;
}

/* Mark those of `n` names that a pattern of the list map[key] matches; a pattern without a match is
 * an error. */
static int mark_matches(struct experiment_reader *r, yamldoc_node map, const char *key, size_t n,
	const char *(*name)(const struct experiment *e, size_t i), bool *marks)
{
	yamldoc_node list = yamldoc_get(map, key);
	int code = yamldoc_list(list, r->err);

	for (size_t k = 0; code == 0 && k < yamldoc_size(list); k++) {
		const char *text = yamldoc_text(yamldoc_at(list, k)), *pattern;
		bool fits = false;

		if (!text)
			return yamldoc_error(list, r->err, "'%s' must list patterns", key);
		code = experiment_expand(r->e, text, r->x, &pattern, r->err);
		for (size_t i = 0; code == 0 && i < n; i++)
			if (scenario_fits(pattern, name(r->e, i)))
				marks[i] = fits = true;
		if (code == 0 && !fits)
			return yamldoc_error(yamldoc_at(list, k), r->err,
				"'%s' matches none of the %s", pattern,
				name == run_name ? "runs" : "claims");
	}
	return code;
}

/* Read the runs to change: those named, else all that the claims need. */
static int read_runs(struct experiment_reader *r, yamldoc_node map, struct experiment_without *w)
{
	struct experiment *e = r->e;
	bool *needed = experiment_keep(e, e->n_runs + 1), some = false;
	int code;

	if (!needed)
		return no_memory(r->err);
	for (size_t i = 0; i < e->n_claims; i++)
		if (w->claims[i])
			experiment_needs(e, &e->claims[i], needed);
	if (!yamldoc_get(map, "runs").id) {
		memcpy(w->runs, needed, e->n_runs);
	} else {
		code = mark_matches(r, map, "runs", e->n_runs, run_name, w->runs);
		if (code < 0)
			return code;
	}
	for (size_t i = 0; i < e->n_runs; i++) {
		some |= needed[i] && w->runs[i];
		if (w->runs[i] && e->runs[i].bench)
			return yamldoc_error(map, r->err,
				"run '%s' is a benchmark: it has nothing to set", e->runs[i].name);
	}
	return some ? 0
		    : yamldoc_error(map, r->err, "no claim of 'miss' needs a run that is changed");
}

static int read_counter(struct experiment_reader *r, yamldoc_node map, void *entry)
{
	static const char *const keys[] = {"mechanism", "set", "runs", "miss", "live", "for", NULL};
	struct experiment_without *w = entry;
	int code = yamldoc_map(map, keys, r->err);

	w->at = yamldoc_place(map);
	w->runs = experiment_keep(r->e, r->e->n_runs + 1);
	w->claims = experiment_keep(r->e, r->e->n_claims + 1);
	if (code == 0 && (!w->runs || !w->claims))
		return no_memory(r->err);
	if (code == 0)
		code = experiment_text_of(r, map, "mechanism", true, &w->mechanism);
	if (code == 0)
		code = experiment_sets(r, map, 0, &w->sets, &w->n_sets);
	if (code == 0 && !w->n_sets)
		return yamldoc_error(map, r->err, "'set' must switch the mechanism off");
	if (code == 0 && !yamldoc_get(map, "miss").id)
		return yamldoc_error(map, r->err, "'miss' must list claims");
	if (code == 0)
		code = mark_matches(r, map, "miss", r->e->n_claims, claim_name, w->claims);
	if (code == 0)
		code = read_runs(r, map, w);
	if (code == 0)
		code = yamldoc_optional(yamldoc_bool(map, "live", &w->live, r->err));
	if (code == 0 && w->live && !r->e->live)
		return yamldoc_error(map, r->err, "live: the experiment cannot run live");
	return code;
}

int experiment_read_without(struct experiment_reader *r, yamldoc_node root)
{
	struct experiment *e = r->e;
	void *list = NULL;
	int code;

	if (yamldoc_kind(yamldoc_get(root, "without")) == YAMLDOC_SCALAR)
		return experiment_text_of(r, root, "without", false, &e->no_mechanism);
	code = experiment_entries(
		r, root, "without", sizeof(*e->without), read_counter, &list, &e->n_without);
	e->without = list;
	return code;
}
