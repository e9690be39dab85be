/* SPDX-License-Identifier: BSD-3-Clause */
/* place: `weir plan --place`, on which of N equal servers each trace of a folder fits. */
#include "cli/plan/plan.h"
#include "cli/trace/rows.h"
#include "cli/view/table.h"
#include "plan/place.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct placement {
	const struct planning_options *o;
	struct weir_policy *policy;
	struct planning_stage stage;
	struct plan_stage server;
	struct weir_tenant slo; /* of traces that no tenant names; percentile 0: none */
	struct trace_rows rows;
	int failed; /* -ENOMEM */
	/* by trace */
	uint32_t n;
	size_t *row;
	const struct weir_tenant **has; /* the slo */
	struct place_workload *several, *single;
	uint32_t *server_of, *single_on;
	uint32_t needed, needed_single;
	uint32_t needed_same; /* by several pairs, for the traces that one pair serves */
};

static bool is_placed(const struct placement *p, uint32_t i, uint32_t servers)
{
	return p->server_of[i] < servers;
}

/* ---- input */

/* Read an slo as it stands in a policy. */
static int read_slo(const char *word, struct weir_tenant *ret)
{
	json_t *j = json_pack("{s:[{s:s,s:s}],s:[{s:s,s:s}]}", "resources", "name", "r", "back",
		"memory:1M", "tenants", "name", "t", "slo", word);
	struct weir_policy_remarks *remarks = calloc(1, sizeof(*remarks));
	char *text = j ? json_dumps(j, 0) : NULL;
	struct weir_policy *policy;
	int status = 0;

	json_decref(j);
	if (!text || !remarks)
		status = opts_no_memory(&verb_plan);
	else if (weir_policy_parse_all(text, strlen(text), "slo", NULL, NULL, &policy, remarks) < 0)
		status = opts_fail(&verb_plan, "--slo: %s", remarks->errors[0].text);
	if (status == 0) {
		*ret = (struct weir_tenant){.slo_percentile = policy->tenants[0].slo_percentile,
			.slo_latency = policy->tenants[0].slo_latency,
			.slo_ops = policy->tenants[0].slo_ops,
			.slo_window = policy->tenants[0].slo_window};
		weir_policy_free(policy);
	}
	free(text);
	free(remarks);
	return status;
}

static int read_server(struct placement *p)
{
	const struct policy_text *from = &p->o->policy;
	struct weir_policy_remarks *remarks = calloc(1, sizeof(*remarks));
	struct weir_err err;
	int rc = remarks ? weir_policy_parse_all(from->text, from->len, from->name,
				   p->o->policy_reader, p->o->policy_arg, &p->policy, remarks)
			 : -ENOMEM;

	for (size_t i = 0; remarks && i < remarks->n_errors && i < WEIR_POLICY_REMARKS; i++)
		fprintf(stderr, "%s\n", remarks->errors[i].text);
	free(remarks);
	if (rc < 0)
		return 2;
	if (!p->policy->n_resources)
		return opts_fail(&verb_plan, "--place: the policy has no resource");
	rc = planning_resource(p->o, &p->policy->resources[0], &p->stage, &p->server, &err);
	if (rc < 0)
		fprintf(stderr, "%s\n", err.text);
	return rc < 0 ? 2 : 0;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Return the tenant whose slo a trace has: one that names the file, or that of --slo. */
static const struct weir_tenant *slo_of(const struct placement *p, const char *file)
{
	for (size_t i = 0; i < p->policy->n_tenants; i++) {
		const struct weir_tenant *t = &p->policy->tenants[i];

		if (t->slo_percentile > 0 && t->planned && t->planned->trace &&
			strcmp(last_part(t->planned->trace), last_part(file)) == 0)
			return t;
	}
	return &p->slo;
}

static void reduce(void *arg, size_t row, const struct trace *t)
{
	struct placement *p = arg;
	struct meister_arrival *arrivals = calloc(t->n, sizeof(*arrivals));
	uint32_t i = p->n++;

	p->row[i] = row;
	p->has[i] = slo_of(p, p->rows.row[row].name);
	p->several[i].slo = p->single[i].slo = (double)p->has[i]->slo_latency * 1e-9;
	if (arrivals)
		planning_arrivals(&p->stage.estimate, t, arrivals);
	if (!arrivals ||
		plan_hop_of(arrivals, t->n, p->o->pairs, p->server.rate, &p->several[i].hop) < 0 ||
		plan_hop_single(
			arrivals, t->n, p->single[i].slo, p->server.rate, &p->single[i].hop) < 0)
		p->failed = -ENOMEM;
	free(arrivals);
}

static int read_traces(struct placement *p, char *folder)
{
	size_t n;

	if (trace_rows_find(&folder, 1, &p->rows) < 0)
		return opts_no_memory(&verb_plan);
	n = p->rows.n + 1;
	p->row = calloc(n, sizeof(*p->row));
	p->has = calloc(n, sizeof(*p->has));
	p->several = calloc(n, sizeof(*p->several));
	p->single = calloc(n, sizeof(*p->single));
	p->server_of = calloc(n, sizeof(*p->server_of));
	p->single_on = calloc(n, sizeof(*p->single_on));
	if (!p->row || !p->has || !p->several || !p->single || !p->server_of || !p->single_on)
		return opts_no_memory(&verb_plan);
	trace_rows_read(&p->rows, &(struct trace_request){.format = TRACE_AUTO}, reduce, p);
	if (p->failed)
		return opts_no_memory(&verb_plan);
	for (size_t i = 0; i < p->rows.n; i++)
		if (p->rows.row[i].failed && !p->rows.row[i].alien)
			return opts_fail(&verb_plan, "--place: %s: %s", p->rows.row[i].name,
				p->rows.row[i].why);
	for (uint32_t i = 0; i < p->n; i++)
		if (!(p->has[i]->slo_percentile > 0))
			return opts_fail(&verb_plan,
				"--place: %s: no tenant of the policy names it, and there is no "
				"--slo",
				p->rows.row[p->row[i]].name);
	return p->n ? 0 : opts_fail(&verb_plan, "--place: %s has no trace", folder);
}

/* ---- output */

static const char *name_of(const struct placement *p, uint32_t i)
{
	return p->rows.row[p->row[i]].name + trace_rows_prefix(&p->rows);
}

static uint32_t not_alone(const uint32_t *on, uint32_t n)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += on[i] == PLACE_NONE;
	return sum;
}

static int print_json(const struct placement *p, uint32_t servers, bool all)
{
	json_t *traces = json_array();
	json_t *out = json_pack("{s:b,s:I,s:I,s:{s:I,s:I,s:I},s:o}", "fits", all, "servers",
		(json_int_t)servers, "needed", (json_int_t)p->needed, "one_pair", "needed",
		(json_int_t)p->needed_single, "several", (json_int_t)p->needed_same, "not_alone",
		(json_int_t)not_alone(p->single_on, p->n), "traces", traces);
	int bad = !out;

	for (uint32_t i = 0; !bad && i < p->n; i++) {
		const struct weir_tenant *t = p->has[i];

		bad = json_array_append_new(
			traces, json_pack("{s:s,s:{s:f,s:f},s:f,s:o,s:b}", "name", name_of(p, i),
					"slo", "percentile", t->slo_percentile, "latency",
					p->several[i].slo, "load", p->several[i].hop.load, "server",
					is_placed(p, i, servers)
						? json_integer((json_int_t)p->server_of[i] + 1)
						: json_null(),
					"alone", p->server_of[i] != PLACE_NONE));
	}
	bad = bad || json_dumpf(out, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(15)) < 0;
	putchar('\n');
	json_decref(out);
	return bad ? opts_no_memory(&verb_plan) : 0;
}

static void print_rows(const struct placement *p, uint32_t servers)
{
	static const char *const heads[] = {"server", "trace", "slo", "load", NULL};
	char slo[POLICY_SLO_TEXT];
	struct table t;

	table_begin(&t, heads, 9);
	for (uint32_t s = 0; s < servers; s++)
		for (uint32_t i = 0; i < p->n; i++)
			if (p->server_of[i] == s) {
				table_cell(&t, "%u", s + 1);
				table_cell(&t, "%s", name_of(p, i));
				table_cell(&t, "%s", policy_plan_show_slo(p->has[i], slo));
				table_cell(&t, "%.3g %%", 100 * p->several[i].hop.load);
			}
	table_end(&t, stdout);
}

static void print_text(const struct placement *p, uint32_t servers)
{
	uint32_t alone = not_alone(p->single_on, p->n);

	print_rows(p, servers < p->needed ? servers : p->needed);
	for (uint32_t i = 0; i < p->n; i++)
		if (!is_placed(p, i, servers)) {
			fputs("does not fit: ", stdout);
			table_put_text(name_of(p, i), stdout);
			puts(p->server_of[i] == PLACE_NONE ? ", which misses its slo even alone"
							   : "");
		}
	printf("%u of %u traces need %u server%s.\n", p->n - not_alone(p->server_of, p->n), p->n,
		p->needed, p->needed == 1 ? "" : "s");
	printf("With one token bucket a trace, %u of them need %u server%s; with several, those "
	       "need "
	       "%u.\n",
		p->n - alone, p->needed_single, p->needed_single == 1 ? "" : "s", p->needed_same);
}

/* ---- all of it */

/* Place those traces that meet their slo alone with one pair: one pair may need fewer servers only since it serves fewer traces. */
static int place_same(struct placement *p)
{
	struct place_workload *w = calloc(p->n + 1, sizeof(*w));
	uint32_t *on = calloc(p->n + 1, sizeof(*on)), n = 0;
	int rc = w && on ? 0 : -ENOMEM;

	for (uint32_t i = 0; rc == 0 && i < p->n; i++)
		if (p->single_on[i] != PLACE_NONE)
			w[n++] = p->several[i];
	if (rc == 0)
		rc = place_first_fit(&p->server, w, n, on, &p->needed_same);
	free(w);
	free(on);
	return rc;
}

static int place_all(struct placement *p, uint32_t servers, bool json)
{
	bool all = true;
	int status = 0;

	if (place_first_fit(&p->server, p->several, p->n, p->server_of, &p->needed) < 0 ||
		place_first_fit(&p->server, p->single, p->n, p->single_on, &p->needed_single) < 0 ||
		place_same(p) < 0)
		return opts_no_memory(&verb_plan);
	for (uint32_t i = 0; i < p->n; i++)
		all = all && is_placed(p, i, servers);
	if (json)
		status = print_json(p, servers, all);
	else
		print_text(p, servers);
	return status ? status : !all;
}

int plan_place(const struct planning_options *o, const char *folder, uint32_t servers,
	const char *slo, bool json)
{
	struct placement p = {.o = o};
	char *path = strdup(folder);
	int status = path ? 0 : opts_no_memory(&verb_plan);

	if (status == 0 && slo)
		status = read_slo(slo, &p.slo);
	if (status == 0)
		status = read_server(&p);
	if (status == 0)
		status = read_traces(&p, path);
	if (status == 0)
		status = place_all(&p, servers, json);
	trace_rows_free(&p.rows);
	weir_policy_free(p.policy);
	free(p.row);
	free(p.has);
	free(p.several);
	free(p.single);
	free(p.server_of);
	free(p.single_on);
	free(path);
	return status;
}
