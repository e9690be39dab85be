/* SPDX-License-Identifier: BSD-3-Clause */
/* scenario-workload: the `workloads:` of a tenant. */
#include "base/no-memory.h"
#include "sim/scenario/scenario.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The region without `region:`: large enough that random offsets on the disk models really seek. */
#define REGION_DEFAULT (UINT64_C(16) << 30)

static const char *const workload_keys[] = {"name", "arrivals", "outstanding", "think", "rate",
	"rate_end", "ca2", "on", "off", "random_phases", "start", "stop", "size", "sizes", "reads",
	"sequential", "zipf", "base", "region", "spread", "trace", "format", "skip_bad", "speed",
	"loop", "stopped", "traces", "rate_most", NULL};
static const char *const arrival_words[] = {
	"closed", "poisson", "hyper", "uniform", "trace", NULL}; /* enum workload_arrivals */

/* An absent key leaves *ret unchanged. */
static int read_share(yamldoc_node map, const char *key, double *ret, struct weir_err *err)
{
	int r = yamldoc_count(map, key, ret, err);

	if (r == 0 && *ret > 1)
		return yamldoc_error(yamldoc_get(map, key), err, "must be 0 … 1");
	return yamldoc_optional(r);
}

static int read_iops(yamldoc_node map, const char *key, double *ret, struct weir_err *err)
{
	struct weir_rate rate;
	int r = yamldoc_rate(map, key, &rate, err);

	if (r)
		return yamldoc_optional(r);
	if (rate.unit != WEIR_UNIT_REQUESTS)
		return yamldoc_error(yamldoc_get(map, key), err,
			"a workload's rate is in iops, as in '100 iops'");
	*ret = rate.per_second;
	return 0;
}

/* Refuse keys that have no meaning for this kind of arrivals: they would be ignored. */
static int check_kind(yamldoc_node map, enum workload_arrivals kind, struct weir_err *err)
{
#define OF(kind) (1u << WORKLOAD_##kind)
#define OPEN     (OF(POISSON) | OF(HYPER) | OF(UNIFORM))
	static const struct {
		const char *key;
		unsigned kinds;
		const char *named;
	} only[] = {{"outstanding", OF(CLOSED), "closed"}, {"think", OF(CLOSED), "closed"},
		{"rate", OPEN, "poisson, hyper or uniform"},
		{"rate_end", OPEN, "poisson, hyper or uniform"}, {"ca2", OF(HYPER), "hyper"},
		{"format", OF(TRACE), "trace"}, {"skip_bad", OF(TRACE), "trace"},
		{"speed", OF(TRACE), "trace"}, {"loop", OF(TRACE), "trace"},
		{"rate_most", OF(TRACE), "trace"}};
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

static int read_arrivals(yamldoc_node map, struct workload_config *c, struct weir_err *err)
{
	int64_t outstanding = 1;
	bool trace = yamldoc_get(map, "trace").id || yamldoc_get(map, "traces").id;
	int kind = trace                         ? WORKLOAD_TRACE
		   : yamldoc_get(map, "rate").id ? WORKLOAD_POISSON
						 : WORKLOAD_CLOSED;
	int r = 0;

	if ((r = yamldoc_optional(yamldoc_choice(map, "arrivals", arrival_words, &kind, err))) ||
		(r = yamldoc_optional(
			 yamldoc_int(map, "outstanding", 1, 1 << 20, &outstanding, err))) ||
		(r = yamldoc_optional(yamldoc_time(map, "think", &c->think, err))) ||
		(r = read_iops(map, "rate", &c->rate, err)) ||
		(r = read_iops(map, "rate_end", &c->rate_end, err)) ||
		(r = yamldoc_optional(yamldoc_count(map, "ca2", &c->ca2, err))) ||
		(r = yamldoc_optional(yamldoc_time(map, "on", &c->on, err))) ||
		(r = yamldoc_optional(yamldoc_time(map, "off", &c->off, err))) ||
		(r = yamldoc_optional(
			 yamldoc_bool(map, "random_phases", &c->on_off_random, err))) ||
		(r = yamldoc_optional(yamldoc_time(map, "start", &c->start, err))) ||
		(r = yamldoc_optional(yamldoc_time(map, "stop", &c->stop, err))))
		return r;
	c->arrivals = (enum workload_arrivals)kind;
	c->outstanding = kind == WORKLOAD_CLOSED ? (uint32_t)outstanding : 0;
	if ((r = check_kind(map, c->arrivals, err)))
		return r;
	if (kind == WORKLOAD_HYPER && !yamldoc_get(map, "ca2").id)
		return yamldoc_error(yamldoc_get(map, "arrivals"), err, "hyper needs 'ca2'");
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

static int read_place(yamldoc_node map, struct scenario_workload *w, struct weir_err *err)
{
	struct workload_config *c = &w->config;
	int r;

	c->reads = 1;
	c->region = REGION_DEFAULT;
	if ((r = read_share(map, "reads", &c->reads, err)) ||
		(r = read_share(map, "sequential", &c->sequential, err)) ||
		(r = yamldoc_optional(yamldoc_count(map, "zipf", &c->zipf, err))) ||
		(r = yamldoc_optional(yamldoc_size_of(map, "base", &c->base, err))) ||
		(r = yamldoc_optional(yamldoc_size_of(map, "region", &c->region, err))) ||
		(r = yamldoc_optional(yamldoc_size_of(map, "spread", &w->spread, err))))
		return r;
	return 0;
}

static int read_trace(yamldoc_node map, struct scenario_workload *w, struct weir_err *err)
{
	int format = TRACE_AUTO, r;

	if ((r = yamldoc_optional(yamldoc_string(map, "trace", &w->trace_path, err))) ||
		(r = yamldoc_optional(yamldoc_string(map, "traces", &w->folder, err))) ||
		(r = read_iops(map, "rate_most", &w->rate_most, err)) ||
		(r = yamldoc_optional(
			 yamldoc_choice(map, "format", trace_format_names, &format, err))) ||
		(r = yamldoc_optional(yamldoc_bool(map, "skip_bad", &w->skip_bad, err))) ||
		(r = yamldoc_optional(yamldoc_count(map, "speed", &w->config.speed, err))) ||
		(r = yamldoc_optional(yamldoc_bool(map, "loop", &w->config.loop, err))))
		return r;
	w->format = (enum trace_format)format;
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

/* Report errors of the model itself here, where the place is known. */
static int try_workload(yamldoc_node map, const struct scenario_workload *w, struct weir_err *err)
{
	struct workload *made;
	struct weir_err why;
	int r;

	if (w->config.arrivals == WORKLOAD_TRACE)
		return 0; /* checked when the trace is loaded */
	r = workload_new(&w->config, 1, "check", &made, &why);
	if (r == -EINVAL)
		return scenario_refused(map, why.text, err);
	if (r == 0)
		workload_free(made);
	return r;
}

static int read_workload(
	yamldoc_node map, size_t index, struct scenario_workload *w, struct weir_err *err)
{
	static const char *const numbers[] = {"w1", "w2", "w3", "w4", "w5", "w6", "w7", "w8"};
	int r;

	if ((r = yamldoc_map(map, workload_keys, err)))
		return r;
	w->node = map;
	if (yamldoc_get(map, "name").id) {
		if ((r = scenario_name_read(map, &w->name, err)))
			return r;
	} else if (index < sizeof(numbers) / sizeof(numbers[0])) {
		w->name = numbers[index];
	} else {
		return yamldoc_error(map, err, "from the ninth on, a workload needs a 'name'");
	}
	if ((r = read_arrivals(map, &w->config, err)) || (r = read_sizes(map, &w->config, err)) ||
		(r = read_place(map, w, err)) || (r = read_trace(map, w, err)) ||
		(r = yamldoc_optional(yamldoc_bool(map, "stopped", &w->stopped, err))))
		return r;
	return try_workload(map, w, err);
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
	struct workload *made;
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
	r = workload_new(&w->config, 1, "check", &made, &why);
	if (r == -EINVAL)
		return scenario_refused(w->node, why.text, err);
	if (r)
		return weir_err_set(err, r, "%s", why.text);
	workload_free(made);
	return 0;
}
