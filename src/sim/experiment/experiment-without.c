/* SPDX-License-Identifier: BSD-3-Clause */
/* experiment-without: the counter-experiments of a file, and the runs that a claim needs. See
 * experiment.h. */
#include "sim/experiment/experiment-impl.h"
#include "sim/scenario/scenario.h"
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
static void mark_matches(struct experiment_reader *r, yamldoc_node map, const char *key, size_t n,
	const char *(*name)(const struct experiment *e, size_t i), bool *marks)
{
	yamldoc_node list = yamldoc_get(map, key);

	if (!r->code)
		r->code = yamldoc_list(list, r->err);
	for (size_t k = 0; !r->code && k < yamldoc_size(list); k++) {
		const char *pattern = experiment_expand(r, yamldoc_text(yamldoc_at(list, k)));
		bool fits = false;

		if (!pattern)
			experiment_refuse(r, list, "'%s' must list patterns", key);
		for (size_t i = 0; pattern && i < n; i++)
			if (scenario_fits(pattern, name(r->e, i)))
				marks[i] = fits = true;
		if (!fits)
			experiment_refuse(r, yamldoc_at(list, k), "'%s' matches none of the %s",
				pattern, name == run_name ? "runs" : "claims");
	}
}

/* Read the runs to change: those named, else all that the claims need. */
static void read_runs(struct experiment_reader *r, yamldoc_node map, struct experiment_without *w)
{
	struct experiment *e = r->e;
	bool *needed = experiment_keep(r, e->n_runs + 1, 1), some = false;

	if (!needed)
		return;
	for (size_t i = 0; i < e->n_claims; i++)
		if (w->claims[i])
			experiment_needs(e, &e->claims[i], needed);
	if (!yamldoc_get(map, "runs").id)
		memcpy(w->runs, needed, e->n_runs);
	else
		mark_matches(r, map, "runs", e->n_runs, run_name, w->runs);
	for (size_t i = 0; i < e->n_runs; i++)
		some |= needed[i] && w->runs[i];
	if (!some)
		experiment_refuse(r, map, "no claim of 'miss' needs a run that is changed");
}

static void read_counter(struct experiment_reader *r, yamldoc_node map, void *entry)
{
	static const struct experiment_field fields[] = {
		{"mechanism", EXPERIMENT_NEED, offsetof(struct experiment_without, mechanism)},
		{"live", EXPERIMENT_FLAG, offsetof(struct experiment_without, live)},
		{"set", EXPERIMENT_PART, 0}, {"runs", EXPERIMENT_PART, 0},
		{"miss", EXPERIMENT_PART, 0}, {"for", EXPERIMENT_PART, 0},
		{NULL, EXPERIMENT_PART, 0}};
	struct experiment_without *w = entry;

	w->at = experiment_place(r, map);
	w->runs = experiment_keep(r, r->e->n_runs + 1, 1);
	w->claims = experiment_keep(r, r->e->n_claims + 1, 1);
	experiment_fields(r, map, fields, w);
	w->sets = experiment_sets(r, map, 0, &w->n_sets);
	if (!w->n_sets)
		experiment_refuse(r, map, "'set' must switch the mechanism off");
	if (!yamldoc_get(map, "miss").id)
		experiment_refuse(r, map, "'miss' must list claims");
	mark_matches(r, map, "miss", r->e->n_claims, claim_name, w->claims);
	read_runs(r, map, w);
	if (w->live && !r->e->live)
		experiment_refuse(r, map, "live: the experiment cannot run live");
}

void experiment_read_without(struct experiment_reader *r, yamldoc_node root)
{
	struct experiment *e = r->e;

	if (yamldoc_kind(yamldoc_get(root, "without")) == YAMLDOC_SCALAR)
		e->no_mechanism = experiment_text_of(r, root, "without", EXPERIMENT_TEXT);
	else
		e->without = experiment_entries(
			r, root, "without", sizeof(*e->without), read_counter, &e->n_without);
}
