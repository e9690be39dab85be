/* SPDX-License-Identifier: BSD-3-Clause */
/* scenario-workload: the `workloads:` of a tenant. */
#include "base/no-memory.h"
#include "control/keys.h"
#include "sim/scenario/scenario.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The region without `region:`: large enough that random offsets on the disk models really seek. */
#define REGION_DEFAULT (UINT64_C(16) << 30)

static const char *const arrival_words[] = {"closed", "poisson", "hyper", "uniform", "bursts",
	"trace", NULL}; /* enum workload_arrivals */

#define AT(member)  KEY_AT(struct scenario_workload, member)
#define ANY(member) AT(member), .otherwise = 0
static const struct key workload_keys[] = {
	{"arrivals", KEY_WORD, AT(config.arrivals), .words = arrival_words},
	{"outstanding", KEY_WHOLE, AT(config.outstanding), 1, 1, 1 << 20},
	{"think", KEY_TIME, ANY(config.think)}, {"rate", KEY_IOPS, ANY(config.rate)},
	{"rate_end", KEY_IOPS, ANY(config.rate_end)}, {"ca2", KEY_NUMBER, ANY(config.ca2)},
	{"peak", KEY_IOPS, ANY(config.peak)}, {"burst", KEY_TIME, AT(config.burst), 1},
	{"on", KEY_TIME, ANY(config.on)}, {"off", KEY_TIME, ANY(config.off)},
	{"random_phases", KEY_FLAG, ANY(config.on_off_random)},
	{"start", KEY_TIME, ANY(config.start)}, {"stop", KEY_TIME, ANY(config.stop)},
	{"reads", KEY_NUMBER, AT(config.reads), 1, 0, 1},
	{"sequential", KEY_NUMBER, AT(config.sequential), 0, 0, 1},
	{"zipf", KEY_NUMBER, ANY(config.zipf)}, {"base", KEY_SIZE, ANY(config.base)},
	{"region", KEY_SIZE, AT(config.region), REGION_DEFAULT}, {"spread", KEY_SIZE, ANY(spread)},
	{"rate_most", KEY_IOPS, ANY(rate_most)},
	{"format", KEY_WORD, AT(format), TRACE_AUTO, .words = trace_format_names},
	{"skip_bad", KEY_FLAG, ANY(skip_bad)}, {"speed", KEY_NUMBER, ANY(config.speed)},
	{"loop", KEY_FLAG, ANY(config.loop)}, {"stopped", KEY_FLAG, ANY(stopped)}, {0}};
static const char *const more_keys[] = {"name", "size", "sizes", "trace", "traces", NULL};
_Static_assert(
	sizeof(enum workload_arrivals) == sizeof(int) && sizeof(enum trace_format) == sizeof(int),
	"KEY_WORD");

/* Refuse keys that have no meaning for this kind of arrivals: they would be ignored. */
static int check_kind(yamldoc_node map, enum workload_arrivals kind, struct weir_err *err)
{
#define OF(kind) (1u << WORKLOAD_##kind)
#define OPEN     (OF(POISSON) | OF(HYPER) | OF(UNIFORM) | OF(BURSTS))
	static const struct {
		const char *key;
		unsigned kinds;
		const char *named;
	} only[] = {{"outstanding", OF(CLOSED), "closed"}, {"think", OF(CLOSED), "closed"},
		{"rate", OPEN, "poisson, hyper, uniform or bursts"},
		{"rate_end", OPEN & ~OF(BURSTS), "poisson, hyper or uniform"},
		{"ca2", OF(HYPER) | OF(BURSTS), "hyper or bursts"}, {"peak", OF(BURSTS), "bursts"},
		{"burst", OF(BURSTS), "bursts"}, {"format", OF(TRACE), "trace"},
		{"skip_bad", OF(TRACE), "trace"}, {"speed", OF(TRACE), "trace"},
		{"loop", OF(TRACE), "trace"}, {"rate_most", OF(TRACE), "trace"}};
#undef OPEN
#undef OF

	for (size_t i = 0; i < sizeof(only) / sizeof(only[0]); i++) {
		yamldoc_node n = yamldoc_get(map, only[i].key);

		if (n.id && !(only[i].kinds & 1u << kind))
			return yamldoc_error(n, err,
				"only a %s workload has this key; this one is '%s'", only[i].named,
				arrival_words[kind]);
	}
	return 0;
}

/* Refuse a phase of 0: the model takes 0 and 0 as no phases, which is not what the file says. */
static int check_phases(yamldoc_node map, const struct workload_config *c, struct weir_err *err)
{
	yamldoc_node on = yamldoc_get(map, "on"), off = yamldoc_get(map, "off");

	if ((on.id && c->on == 0) || (off.id && c->off == 0))
		return yamldoc_error(on.id && c->on == 0 ? on : off, err,
			"on-off needs both phases, each > 0; leave both out for none");
	return 0;
}

static int check_arrivals(yamldoc_node map, struct workload_config *c, struct weir_err *err)
{
	int r = check_kind(map, c->arrivals, err);

	if (r)
		return r;
	if (c->arrivals != WORKLOAD_CLOSED)
		c->outstanding = 0;
	if (c->arrivals == WORKLOAD_HYPER && !yamldoc_get(map, "ca2").id)
		return yamldoc_error(yamldoc_get(map, "arrivals"), err, "hyper needs 'ca2'");
	if (c->arrivals == WORKLOAD_BURSTS &&
		!(yamldoc_get(map, "ca2").id && yamldoc_get(map, "peak").id))
		return yamldoc_error(
			yamldoc_get(map, "arrivals"), err, "bursts need 'ca2' and 'peak'");
	return check_phases(map, c, err);
}

static int read_one_size(
	yamldoc_node map, const char *key, struct workload_size *ret, struct weir_err *err)
{
	uint64_t bytes = 4096;
	int r = yamldoc_optional(yamldoc_size_of(map, key, &bytes, err));

	if (r)
		return r;
	if (bytes == 0 || bytes > UINT32_MAX)
		return yamldoc_error(yamldoc_get(map, key), err, "must be 1 B … 4 GiB");
	ret->bytes = (uint32_t)bytes;
	return 0;
}

static int read_sizes(yamldoc_node map, struct workload_config *c, struct weir_err *err)
{
	static const char *const keys[] = {"size", "share", NULL};
	yamldoc_node list = yamldoc_get(map, "sizes");
	size_t most = sizeof(c->sizes) / sizeof(c->sizes[0]);
	int r;

	if (!list.id) {
		c->n_sizes = 1;
		c->sizes[0].share = 1;
		return read_one_size(map, "size", &c->sizes[0], err);
	}
	if (yamldoc_get(map, "size").id)
		return yamldoc_error(list, err, "give 'size' or 'sizes', not both");
	if ((r = yamldoc_list(list, err)))
		return r;
	if (yamldoc_size(list) == 0 || yamldoc_size(list) > most)
		return yamldoc_error(list, err, "must have 1 … %zu entries", most);
	for (size_t i = 0; i < yamldoc_size(list); i++) {
		yamldoc_node entry = yamldoc_at(list, i);
		c->sizes[i].share = 1;
		if ((r = yamldoc_map(entry, keys, err)) ||
			(r = read_one_size(entry, "size", &c->sizes[i], err)) ||
			(r = yamldoc_optional(
				 yamldoc_count(entry, "share", &c->sizes[i].share, err))))
			return r;
	}
	c->n_sizes = (unsigned)yamldoc_size(list);
	return 0;
}

static int check_trace(yamldoc_node map, const struct scenario_workload *w, struct weir_err *err)
{
	if (w->trace_path && w->folder)
		return yamldoc_error(yamldoc_get(map, "traces"), err,
			"give 'trace', a file, or 'traces', a folder, not both");
	if (w->rate_most > 0 && !w->folder)
		return yamldoc_error(
			yamldoc_get(map, "rate_most"), err, "is for 'traces', a folder");
	if ((w->config.arrivals == WORKLOAD_TRACE) != (w->trace_path || w->folder))
		return yamldoc_error(yamldoc_get(map, w->trace_path ? "trace"
						      : w->folder   ? "traces"
								    : "arrivals"),
			err, "arrivals 'trace' and a 'trace:' file go together");
	return 0;
}

int scenario_workload_check(
	yamldoc_node map, const struct workload_config *config, struct weir_err *err)
{
	struct workload *made;
	struct weir_err why;
	int r = workload_new(config, 1, "check", &made, &why);

	if (r == -EINVAL)
		return scenario_refused(map, why.text, err);
	if (r)
		return weir_err_set(err, r, "%s", why.text);
	workload_free(made);
	return 0;
}

static int read_workload(
	yamldoc_node map, size_t index, struct scenario_workload *w, struct weir_err *err)
{
	static const char *const numbers[] = {"w1", "w2", "w3", "w4", "w5", "w6", "w7", "w8"};
	const char *names_of[KEYS_MOST];
	struct settings settings = {w, sizeof(*w)};
	int r;

	keys_default(workload_keys, w, sizeof(*w));
	keys_names(workload_keys, false, true, more_keys, names_of);
	if ((r = yamldoc_map(map, names_of, err)) ||
		(r = yamldoc_optional(yamldoc_string(map, "trace", &w->trace_path, err))) ||
		(r = yamldoc_optional(yamldoc_string(map, "traces", &w->folder, err))))
		return r;
	w->node = map;
	w->config.arrivals = w->trace_path || w->folder    ? WORKLOAD_TRACE
			     : yamldoc_get(map, "rate").id ? WORKLOAD_POISSON
							   : WORKLOAD_CLOSED;
	for (const struct key *k = workload_keys; k->name; k++)
		if ((r = yamldoc_optional(key_read(k, map, &settings, err))))
			return r;
	if (yamldoc_get(map, "name").id) {
		if ((r = scenario_name_read(map, &w->name, err)))
			return r;
	} else if (index < sizeof(numbers) / sizeof(numbers[0])) {
		w->name = numbers[index];
	} else {
		return yamldoc_error(map, err, "from the ninth on, a workload needs a 'name'");
	}
	if ((r = check_arrivals(map, &w->config, err)) || (r = read_sizes(map, &w->config, err)) ||
		(r = check_trace(map, w, err)))
		return r;
	/* A trace is checked when it is loaded. */
	return w->config.arrivals == WORKLOAD_TRACE ? 0
						    : scenario_workload_check(map, &w->config, err);
}

int scenario_workloads_read(
	yamldoc_node list, struct scenario_workload **ret, size_t *ret_n, struct weir_err *err)
{
	size_t n;
	struct scenario_workload *w;
	int r = yamldoc_list(list, err);

	if (r)
		return r;
	n = yamldoc_size(list);
	w = calloc(n ? n : 1, sizeof(*w));
	if (!w)
		return no_memory(err);
	for (size_t i = 0; i < n; i++) {
		r = read_workload(yamldoc_at(list, i), i, &w[i], err);
		for (size_t j = 0; j < i && r == 0; j++) {
			if (strcmp(w[i].name, w[j].name) == 0)
				r = yamldoc_error(yamldoc_at(list, i), err,
					"two workloads of this tenant are named '%s'", w[i].name);
		}
		if (r) {
			free(w);
			return r;
		}
	}
	*ret = w;
	*ret_n = n;
	return 0;
}

void scenario_workloads_free(struct scenario_workload *w, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (w[i].loaded && !w[i].folder)
			trace_free(&w[i].trace);
		for (uint32_t k = 0; k < w[i].n_traces; k++)
			trace_free(&w[i].traces[k]);
		free(w[i].traces);
	}
	free(w);
}

int scenario_workload_load(
	struct scenario_workload *w, scenario_read *read, void *arg, struct weir_err *err)
{
	struct weir_place at = yamldoc_place(yamldoc_get(w->node, "trace"));
	struct weir_err why = {{0}};
	char *text;
	size_t len;
	int r;

	if (!w->trace_path || w->loaded)
		return 0;
	r = read(w->trace_path, arg, &text, &len, &why);
	if (r)
		return weir_err_at(err, r, at, "%s", why.text);
	r = trace_read(text, len, w->trace_path, w->format, w->skip_bad, &w->trace, &why);
	free(text);
	if (r)
		return weir_err_at(err, r, at, "%s", why.text);
	w->loaded = true;
	w->config.trace = &w->trace;
	return scenario_workload_check(w->node, &w->config, err);
}
