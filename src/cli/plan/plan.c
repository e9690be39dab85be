/* SPDX-License-Identifier: BSD-3-Clause */
/* plan: `weir plan`, priorities and token buckets that keep latency SLOs, and whether they will hold. */
#include "cli/plan/plan.h"
#include "base/no-memory.h"
#include "cli/common/files.h"
#include "cli/common/remote.h"
#include "cli/plan/apply.h"
#include "serve/loop/parallel.h"
#include <weir/units.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	JSON,
	ADMIT,
	ADMIT_BY,
	ALIGNMENTS,
	SEED,
	MARGIN,
	ERROR,
	OUT,
	APPLY,
	BEST,
	WORK,
	INSIDE,
	PAIRS,
	PLACE,
	SERVERS,
	SLO,
	WATCH,
	EVERY,
	SOCKET,
	URL,
	TOKEN,
	TLS,
	N_OPTIONS
};
static const struct opt options[] = {
	[JSON] = {"json", 0, NULL, "JSON instead of a table"},
	[ADMIT] = {"admit", 0, "FILE", "would the tenants of FILE fit as well? All or none"},
	[ADMIT_BY] = {"admit-by", 0, "WAY", "judge slos by bound or by replay (bound)"},
	[ALIGNMENTS] = {"alignments", 0, "N", "random alignments of a replay, 0: no replay (4)"},
	[SEED] = {"seed", 0, "N", "of the alignments (1)"},
	[MARGIN] = {"margin", 0, "PERCENT", "of an slo that a replay must leave (60)"},
	[ERROR] = {"error", 0, "PERCENT",
		"by which requests may take longer than estimated (the profile's)"},
	[OUT] = {"out", 'o', "FILE", "write the plan to FILE, for a gateway"},
	[APPLY] = {"apply", 0, NULL, "put the plan in force in a running gateway"},
	[BEST] = {"best", 0, NULL, "--out, --apply: also if an slo is missed"},
	[WORK] = {"work", 0, "WORK",
		"of resources without a profile: 100us, 500MB/s, 100us+500MB/s"},
	[INSIDE] = {"inside", 0, "PERCENTILE", "time in the device: max, p99.9, p99 or p50 (max)"},
	[PAIRS] = {"pairs", 0, "N", "token buckets of a tenant at a stage (4)"},
	[PLACE] = {"place", 0, "FOLDER",
		"on which of --servers equal servers does each trace of FOLDER fit?"},
	[SERVERS] = {"servers", 0, "N", "--place: the number of servers"},
	[SLO] = {"slo", 0, "SLO", "--place: of each trace, as \"p99.9 < 10ms\""},
	[WATCH] = {"watch", 0, NULL, "plan again and again from a gateway's own record"},
	[EVERY] = {"every", 0, "TIME", "--watch: the time between two plans (5m)"},
	REMOTE_ROWS,
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};

/* ---- output */

/* Write the plan to a file, and send it to a gateway, as the options say. */
static int write_plan(const struct planning *p, const char *const *values)
{
	time_t now = time(NULL);
	struct tm tm;
	struct weir_err err;
	char made[32], *text;
	json_t *file;
	int status = 0;

	strftime(made, sizeof(made), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	file = planning_file(p, made);
	text = file ? json_dumps(file, JSON_INDENT(1) | JSON_REAL_PRECISION(15)) : NULL;
	json_decref(file);
	if (!text)
		return opts_no_memory(&verb_plan);
	if (values[OUT] && files_write(values[OUT], text, strlen(text), &err) < 0)
		status = opts_fail(&verb_plan, "%s", err.text);
	if (status == 0 && values[APPLY])
		status = plan_apply(values + SOCKET, text, strlen(text));
	free(text);
	return status;
}

static int print_json(const struct planning *p, const struct planning_remedies *r)
{
	json_t *out = planning_json(p, r);
	int bad = !out || json_dumpf(out, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(15)) < 0;

	putchar('\n');
	json_decref(out);
	return bad ? -ENOMEM : 0;
}

/* Say whether the tenants of --admit fit; all of them are known. */
static void answer(const struct planning *p)
{
	size_t n = p->policy->n_tenants - p->first_new, unknown = 0;

	for (size_t i = 0; i < p->n_unknown; i++)
		unknown += p->unknown[i] >= p->first_new;
	printf("%s: %zu new tenant%s %s\n", planning_feasible(p) ? "yes" : "no", n,
		n == 1 ? "" : "s",
		planning_feasible(p) ? "would fit, and every slo would hold"
				     : "would not fit beside the others");
	if (unknown)
		printf("%zu of them %s an slo without a trace, which is not judged.\n", unknown,
			unknown == 1 ? "has" : "have");
}

static int show_all(const struct planning *p, const char *const *values)
{
	struct planning_remedies remedies, *r = NULL;
	int rc = 0;

	if (!planning_feasible(p) && !planning_limited(p)) {
		rc = planning_remedies(p, &remedies);
		r = &remedies;
	}
	if (rc == 0 && values[ADMIT] && !values[JSON])
		answer(p);
	if (rc == 0)
		rc = values[JSON] ? print_json(p, r) : planning_show(p, r);
	if (r)
		planning_remedies_free(r);
	return rc < 0 ? opts_no_memory(&verb_plan) : 0;
}

/* ---- input */

/* Read a file beside that in which its name stands. */
static int read_named(void *arg, enum planning_file kind, const struct weir_tenant *of, bool is_new,
	struct weir_place at, const char *name, char **ret_text, size_t *ret_len,
	struct weir_err *err)
{
	const char *slash = at.file ? strrchr(at.file, '/') : NULL;
	char *path;
	int rc;

	if (asprintf(&path, "%.*s%s", name[0] != '/' && slash ? (int)(slash + 1 - at.file) : 0,
		    at.file ? at.file : "", name) < 0)
		return no_memory(err);
	rc = kind == PLANNING_TRACE ? files_read_trace(path, ret_text, ret_len, err)
				    : files_read(path, FILES_WRITTEN, ret_text, ret_len, err);
	free(path);
	return rc;
}

static int whole(const char *option, const char *word, int64_t least, int64_t most, int64_t *ret)
{
	struct weir_err err;

	if (!word)
		return 0;
	if (weir_units_int(word, ret, &err) < 0 || *ret < least || *ret > most)
		return opts_fail(&verb_plan, "--%s: '%s' is not a number from %lld to %lld", option,
			word, (long long)least, (long long)most);
	return 0;
}

struct asked {
	struct planning_options plan;
	struct planning_replay replay;
	struct estimate work;
	double error;
};

static int read_options(const char *const *values, struct asked *ret)
{
	int64_t pairs = PLAN_PAIRS, alignments = REPLAY_ALIGNMENTS, seed = 1;
	int64_t margin = (int64_t)round(100 * PLAN_MARGIN), error = 0;
	const char *by = values[ADMIT_BY], *inside = values[INSIDE];
	struct weir_err err;
	int at = 0;

	if (values[WORK] && planning_work(values[WORK], &ret->work, &err) < 0)
		return opts_fail(&verb_plan, "--work: %s", err.text);
	if (whole("pairs", values[PAIRS], 1, MEISTER_PAIRS, &pairs) ||
		whole("alignments", values[ALIGNMENTS], 0, 10000, &alignments) ||
		whole("seed", values[SEED], 0, INT64_MAX, &seed) ||
		whole("margin", values[MARGIN], 0, 99, &margin) ||
		whole("error", values[ERROR], 0, 1000, &error))
		return 2;
	if (by && strcmp(by, "bound") != 0 && strcmp(by, "replay") != 0)
		return opts_fail(&verb_plan, "--admit-by: '%s' is not bound or replay", by);
	ret->replay = (struct planning_replay){.alignments = (unsigned)alignments,
		.seed = (uint64_t)seed,
		.judge = by && strcmp(by, "replay") == 0,
		.margin = (double)margin / 100};
	if (ret->replay.judge && !alignments)
		return opts_fail(&verb_plan, "--admit-by replay needs --alignments of 1 or more");
	while (inside && planning_inside[at] && strcmp(inside, planning_inside[at]) != 0)
		at++;
	if (!planning_inside[at])
		return opts_fail(
			&verb_plan, "--inside: '%s' is not max, p99.9, p99 or p50", inside);
	ret->error = (double)error / 100;
	ret->plan = (struct planning_options){.policy_reader = files_read_beside,
		.read = read_named,
		.work = values[WORK] ? &ret->work : NULL,
		.inside = at,
		.error = values[ERROR] ? &ret->error : NULL,
		.pairs = (size_t)pairs,
		.keep = alignments > 0};
	return 0;
}

static int read_text(const char *name, struct policy_text *ret)
{
	struct weir_err err;
	char *text;

	if (files_read(name, FILES_WRITTEN, &text, &ret->len, &err) < 0)
		return opts_fail(&verb_plan, "%s", err.text);
	ret->text = text;
	ret->name = name;
	return 0;
}

static int replay(struct planning *p, struct planning_replay *how)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct parallel *pool = NULL;
	struct weir_err err;
	int rc;

	if (!how->alignments || !p->in.n_tenants)
		return 0;
	if (parallel_new(cores > 1 ? (unsigned)cores : 1, &pool) == 0) {
		how->run = parallel_run;
		how->pool = pool;
	}
	rc = planning_replay(p, how, &err);
	parallel_free(pool);
	return rc < 0 ? opts_fail(&verb_plan, "%s", err.text) : 0;
}

/* Return 0 with a plan, or the exit status with the reason printed. */
static int make_plan(struct asked *q, struct planning *ret)
{
	struct weir_policy_remarks *remarks = calloc(1, sizeof(*remarks));
	struct weir_err err;
	int rc = remarks ? planning_read(&q->plan, ret, remarks, &err) : -ENOMEM;

	if (!remarks)
		return opts_no_memory(&verb_plan);
	for (size_t i = 0; i < remarks->n_errors && i < WEIR_POLICY_REMARKS; i++)
		fprintf(stderr, "%s\n", remarks->errors[i].text);
	if (rc < 0 && !remarks->n_errors)
		fprintf(stderr, "%s\n", err.text);
	free(remarks);
	if (rc == 0 && (rc = replay(ret, &q->replay)))
		planning_free(ret);
	return rc ? 2 : 0;
}

/* --place: nothing is planned for the policy's own tenants. */
static int place(const struct asked *q, const char *const *values)
{
	int64_t servers = 0;

	if (values[ADMIT] || values[OUT] || values[APPLY] || values[WATCH] || q->replay.judge)
		return opts_fail(&verb_plan,
			"--place excludes --admit, --admit-by replay, --out, --apply and --watch");
	if (!values[SERVERS])
		return opts_fail(&verb_plan, "--place needs --servers");
	if (whole("servers", values[SERVERS], 1, 1000000, &servers))
		return 2;
	return plan_place(
		&q->plan, values[PLACE], (uint32_t)servers, values[SLO], values[JSON] != NULL);
}

static int show_watched(const struct planning *p, const char *const *values)
{
	return show_all(p, values) ? 1 : -1;
}

static int use_watched(const struct planning *p, const char *const *values)
{
	int status = -1;

	if (values[APPLY] && (planning_feasible(p) || values[BEST]))
		status = write_plan(p, values);
	else if (values[APPLY])
		puts("An slo is missed: the plan in force stays.");
	return status > 0 ? status : -1;
}

static int watch(struct asked *q, const char *const *values)
{
	struct plan_watch how = {
		values[EVERY] ? values[EVERY] : "5m", values, show_watched, use_watched};
	struct weir_err err;
	weir_time every;

	if (values[ADMIT] || values[OUT] || values[JSON] || values[URL] || q->replay.judge)
		return opts_fail(&verb_plan,
			"--watch excludes --admit, --admit-by replay, --out, --json and --url");
	if (weir_units_time(how.every, &every, &err) < 0)
		return opts_fail(&verb_plan, "--every: %s", err.text);
	if (every < 1000000000 || every > INT64_C(3600000000000))
		return opts_fail(&verb_plan, "--every must be from 1 s to 1 h");
	q->plan.keep = false;
	return plan_watch(&q->plan, &how, values + SOCKET);
}

static int plan_main(const char *const *values, char **operands, int n)
{
	struct planning p;
	bool wanted = values[OUT] || values[APPLY];
	struct asked q = {0};
	int status;

	if (n != 1)
		return opts_fail(&verb_plan, "needs one POLICY");
	if (values[ADMIT] && wanted)
		return opts_fail(
			&verb_plan, "--admit changes nothing, and --out and --apply need a plan");
	if (values[BEST] && !wanted)
		return opts_fail(&verb_plan, "--best goes with --out or --apply");
	if ((values[SERVERS] || values[SLO]) && !values[PLACE])
		return opts_fail(&verb_plan, "--servers and --slo go with --place");
	if (values[EVERY] && !values[WATCH])
		return opts_fail(&verb_plan, "--every goes with --watch");
	status = read_options(values, &q);
	if (status == 0)
		status = read_text(operands[0], &q.plan.policy);
	if (status == 0 && (values[PLACE] || values[WATCH])) {
		status = values[PLACE] ? place(&q, values) : watch(&q, values);
		free((char *)q.plan.policy.text);
		return status;
	}
	if (status == 0 && values[ADMIT])
		status = read_text(values[ADMIT], &q.plan.admit);
	if (status == 0)
		status = make_plan(&q, &p);
	free((char *)q.plan.policy.text);
	free((char *)q.plan.admit.text);
	if (status)
		return status;
	status = show_all(&p, values);
	if (status == 0)
		status = planning_feasible(&p) ? 0 : 1;
	if (wanted && (status == 0 || (status == 1 && values[BEST]))) {
		int failed = write_plan(&p, values);

		status = failed ? failed : status;
	} else if (wanted && status == 1) {
		fputs("The plan is not used: give --best to use it all the same.\n", stderr);
	}
	planning_free(&p);
	return status;
}

const struct verb verb_plan = {
	.name = "plan",
	.summary = "plan priorities and token buckets that keep latency SLOs",
	.usage = "[OPTION]... POLICY",
	.options = options,
	.run = plan_main,
};
