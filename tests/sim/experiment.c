/* SPDX-License-Identifier: BSD-3-Clause */
/* experiment: reading, errors and their places, running, judging, and showing. */
#include "sim/experiment/experiment.h"
#include "sim/scenario/scenario.h"
#include "test.h"
#include <errno.h>

static const char scenario[] = "duration: 2s\n"
			       "warmup: 500ms\n"
			       "sample: 100ms\n"
			       "devices:\n"
			       "  - {name: d, kind: server, rate: 1k iops, service: fixed}\n"
			       "hosts:\n"
			       "  - name: h\n"
			       "    device: d\n"
			       "    policy: {depth: 2}\n"
			       "    workloads: [{outstanding: 8, size: 4 KiB, region: 1 GiB}]\n";

static const char good[] =
	"id: test\n"
	"title: a server at its rate\n"
	"source: nobody\n"
	"runs:\n"
	"  - {name: \"r$x\", scenario: s.yaml, set: {\"devices[0].rate\": \"$x iops\"}, for: [500, "
	"1000]}\n"
	"define:\n"
	"  - {name: both, value: r500.tenant.h.main.iops + r1000.tenant.h.main.iops, unit: iops}\n"
	"  - {name: never, value: 1 / 0}\n"
	"claims:\n"
	"  - {what: \"rate $x\", paper: \"$x\", value: \"r$x.tenant.h.main.iops\", within: 2 % of "
	"$x, unit: iops, for: [500, 1000]}\n"
	"  - {what: sum, value: both, band: [1450, 1550]}\n"
	"  - {what: too much, value: both, band: [2000, none]}\n"
	"  - {what: zero, value: both / (1 - 1), band: [none, 1]}\n"
	"  - {what: a slip, value: r500.tenant.h.main.iop, band: [none, 1]}\n"
	"  - {what: undefined, value: never, band: [none, 1]}\n"
	"plots:\n"
	"  - name: rate\n"
	"    title: rate\n"
	"    x: set [iops]\n"
	"    y: got [iops]\n"
	"    lines:\n"
	"      - {label: got, x: [500, 1000], y: \"r$x.tenant.h.main.iops\"}\n";

static int read_file(
	const char *path, void *arg, char **ret_text, size_t *ret_len, struct weir_err *err)
{
	if (strcmp(path, "s.yaml") != 0)
		return weir_err_set(err, -ENOENT, "%s: not there", path);
	++*(int *)arg;
	*ret_text = strdup(scenario);
	*ret_len = strlen(scenario);
	return *ret_text ? 0 : -ENOMEM;
}

static struct experiment *parse(const char *text)
{
	struct experiment *e;
	struct weir_err err;

	if (experiment_parse(text, strlen(text), "e.yaml", &e, &err) < 0)
		FAIL("%s", err.text);
	return e;
}

static void test_parse(void)
{
	struct experiment *e = parse(good);

	CHECK_STR(e->id, "test");
	CHECK(!e->live);
	CHECK_INT(e->n_runs, 2);
	CHECK_STR(e->runs[1].name, "r1000");
	CHECK_STR(e->runs[1].sets[0].path, "devices[0].rate");
	CHECK_STR(e->runs[1].sets[0].value, "1000 iops");
	CHECK_INT(e->n_claims, 7);
	CHECK_STR(e->claims[0].what, "rate 500");
	CHECK_STR(e->claims[1].paper, "1000");
	CHECK_NEAR(e->claims[1].within, 0.02, 1e-12);
	CHECK(!e->claims[3].hi && e->claims[3].lo);
	CHECK_INT(e->n_plots, 1);
	CHECK_INT(e->plots[0].lines[0].n, 2);
	CHECK_STR(e->plots[0].lines[0].ys[0], "r500.tenant.h.main.iops");
	experiment_free(e);
	experiment_free(NULL);
}

#define HEAD  "id: t\ntitle: t\nsource: s\n"
#define RUNS  "runs: [{name: a, scenario: s.yaml}]\n"
#define CLAIM "claims: [{what: w, value: \"1\", band: [0, 2]}]\n"

static void refuse(const char *text, const char *part)
{
	struct experiment *e = NULL;
	struct weir_err err = {""};
	int r = experiment_parse(text, strlen(text), "e.yaml", &e, &err);

	if (r != -EINVAL || e || !strstr(err.text, part) || strncmp(err.text, "e.yaml:", 7) != 0)
		FAIL("gave %d, \"%s\", not \"%s\", for:\n%s", r, err.text, part, text);
}

static void test_refused(void)
{
	experiment_free(parse(HEAD RUNS CLAIM));
	refuse(HEAD RUNS, "claims");
	refuse(HEAD CLAIM, "runs");
	refuse("title: t\nsource: s\n" RUNS CLAIM, "id");
	refuse(HEAD RUNS CLAIM "clams: 1\n", "clams");
	refuse(HEAD "runs: [{name: a b, scenario: s}]\n" CLAIM, "letters");
	refuse(HEAD "runs: [{name: a, scenario: s}, {name: a, scenario: s}]\n" CLAIM,
		"already a run");
	refuse(HEAD "runs: [{name: a, scenario: s, for: []}]\n" CLAIM, "empty");
	refuse(HEAD "runs: [{name: a, scenario: s, set: [1]}]\n" CLAIM, "map");
	refuse(HEAD "runs: {name: a}\n" CLAIM, "list");
	refuse(HEAD RUNS "claims: [{what: w, value: 1 +, band: [0, 2]}]\n", "column");
	refuse(HEAD RUNS "claims: [{what: w, value: 1, band: [0]}]\n", "band");
	refuse(HEAD RUNS "claims: [{what: w, value: 1, band: [none, none]}]\n", "cannot fail");
	refuse(HEAD RUNS "claims: [{what: w, value: 1}]\n", "band");
	refuse(HEAD RUNS "claims: [{what: w, value: 1, band: [0, 2], within: 1 % of 2}]\n", "both");
	refuse(HEAD RUNS "claims: [{what: w, value: 1, within: 10 of 3}]\n", "within");
	refuse(HEAD RUNS "claims: [{what: w, value: 1, within: 10 % of (}]\n", "within");
	refuse(HEAD RUNS "claims: [{what: w, value: 1, band: [0, \"2 *\"]}]\n", "band");
	refuse(HEAD RUNS CLAIM "plots: [{name: p, title: t, x: x, y: y, lines: [{label: l}]}]\n",
		"series");
	refuse(HEAD RUNS CLAIM
		"plots: [{name: p, title: t, x: x, y: y, lines: [{label: l, x: [2, 1], y: 1}]}]\n",
		"in order");
	refuse(HEAD RUNS CLAIM "plots: [{name: p, title: t, x: x, y: y}]\n", "lines");
	refuse(HEAD RUNS CLAIM
		"plots: [{name: ../p, title: t, x: x, y: y, lines: [{label: l, series: s}]}]\n",
		"letters");
	refuse(HEAD RUNS CLAIM
		"plots: [{name: p, title: Throughput of a job that borrowed for ten minutes with "
		"bounded debts and with those of the paper, x: x, y: y, lines: [{label: l, series: "
		"s}]}]\n",
		"not more than 92");
}

/* A parameter is replaced where its name occurs; a missing one is named. */
static void test_parameters(void)
{
	static const char text[] =
		"id: test\ntitle: t\nsource: s\n"
		"parameters: {rate: 700 iops, where: /a/b}\nneeds: $where/c\n"
		"runs: [{name: r, scenario: s.yaml, set: {\"devices[0].rate\": $rate, hosts: "
		"\"$rates $where\"}}]\n"
		"claims: [{what: \"at $rate\", value: r.x, band: [0, 1]}]\n";
	struct experiment *e = parse(text);

	CHECK(strcmp(e->needs, "/a/b/c") == 0);
	CHECK(strcmp(e->runs[0].sets[0].value, "700 iops") == 0);
	CHECK(strcmp(e->runs[0].sets[1].value, "$rates /a/b") == 0);
	CHECK(strcmp(e->claims[0].what, "at 700 iops") == 0);
	experiment_free(e);
}

static void test_run(void)
{
	struct experiment *e = parse(good);
	int reads = 0;
	struct experiment_options o = {.seed = 1, .read = read_file, .read_arg = &reads};
	struct experiment_result *r, *again;
	struct weir_err err;
	char *text, *text2;

	if (experiment_run(e, &o, &r, &err) < 0)
		FAIL("%s", err.text);
	CHECK_INT(reads, 2);
	CHECK(r->outcomes[0].ok && r->outcomes[1].ok && r->outcomes[2].ok);
	CHECK_NEAR(r->outcomes[1].value, 1000, 0.02);
	CHECK(r->outcomes[3].known && !r->outcomes[3].ok);
	CHECK(!r->outcomes[4].known && strstr(r->outcomes[4].reason.text, "zero"));
	CHECK(!r->outcomes[5].known && strstr(r->outcomes[5].reason.text, "did you mean"));
	CHECK(!r->outcomes[6].known);
	CHECK_INT(r->missed, 4);
	CHECK(r->cost.ios > 2000);

	WRITE_TEXT(text, CHECK_INT(experiment_text(e, r, to), 0));
	CHECK(strstr(text, "test: a server at its rate (nobody)\n") == text);
	CHECK(strstr(text, "\n  ok    rate 500"));
	CHECK(strstr(text, "\n  MISS  too much"));
	CHECK(strstr(text, "\n  zero: column"));
	CHECK_INT(experiment_run(e, &o, &again, &err), 0);
	WRITE_TEXT(text2, CHECK_INT(experiment_text(e, again, to), 0));
	CHECK_STR(text2, text); /* same seed, same bytes */
	free(text);
	free(text2);
	experiment_result_free(e, again);

	WRITE_TEXT(text, CHECK_INT(experiment_markdown(e, r, "pictures", to), 0));
	CHECK(strstr(text, "## test\n"));
	CHECK(strstr(text, "![rate](pictures/test-rate.svg)"));
	free(text);
	experiment_result_free(e, r);
	experiment_free(e);
}

static void fail_run(const char *text, int code, const char *part)
{
	struct experiment *e = parse(text);
	int reads = 0;
	struct experiment_options o = {.seed = 1, .read = read_file, .read_arg = &reads};
	struct experiment_result *r = NULL;
	struct weir_err err = {""};
	int got = experiment_run(e, &o, &r, &err);

	if (got != code || r || !strstr(err.text, part))
		FAIL("gave %d, \"%s\", not %d, \"%s\"", got, err.text, code, part);
	experiment_free(e);
}

static void test_run_fails(void)
{
	fail_run(HEAD "runs: [{name: a, scenario: none.yaml}]\n" CLAIM, -ENOENT, "none.yaml");
	fail_run(HEAD "runs: [{name: a, scenario: s.yaml, set: {no.where: 1}}]\n" CLAIM, -EINVAL,
		"no");
	fail_run(HEAD "runs: [{name: a, scenario: s.yaml, set: {duration: 5}}]\n" CLAIM, -EINVAL,
		"duration");
}

static int stop_half_way(double fraction, const char *run, void *arg)
{
	*(double *)arg = fraction;
	return fraction > 0.6 && strcmp(run, "r1000") == 0;
}

static void test_progress(void)
{
	struct experiment *e = parse(good);
	int reads = 0;
	double fraction = 0;
	struct experiment_options o = {.seed = 1,
		.read = read_file,
		.read_arg = &reads,
		.progress = stop_half_way,
		.progress_arg = &fraction};
	struct experiment_result *r = NULL;

	CHECK_INT(experiment_run(e, &o, &r, NULL), -ECANCELED);
	CHECK(!r && fraction > 0.6 && fraction <= 1);
	experiment_free(e);
}

/* ---- live */

static char *with_live(const char *live)
{
	char *text;

	if (asprintf(&text, "live: %s\n%s", live, good) < 0)
		FAIL("no memory");
	return text;
}

static void test_live_keys(void)
{
	char *text = with_live("true");
	struct experiment *e = parse(text);
	struct weir_err err;

	CHECK(e->live && e->n_live_sets == 0);
	experiment_free(e);
	free(text);
	text = with_live("{duration: 1s, set: {\"hosts[0].policy.depth\": 4}, warmup: 200ms}");
	e = parse(text);
	CHECK(e->live);
	CHECK_INT(e->n_live_sets, 3);
	CHECK_STR(e->live_sets[0].path, "hosts[0].policy.depth");
	CHECK_STR(e->live_sets[0].value, "4");
	CHECK_STR(e->live_sets[1].path, "duration");
	CHECK_STR(e->live_sets[2].path, "warmup");
	CHECK_STR(e->live_sets[2].value, "200ms");
	experiment_free(e);
	free(text);
	for (const char *const *bad = (const char *const[]){"perhaps", "{duration: 5}", "{band: 3}",
		     "[1s]", NULL};
		*bad; bad++) {
		text = with_live(*bad);
		CHECK_INT(experiment_parse(text, strlen(text), "e.yaml", &e, &err), -EINVAL);
		CHECK(strstr(err.text, "live"));
		free(text);
	}
}

static weir_time live_duration;

static int run_live(const struct scenario *s, const struct sim_options *o, struct metrics **ret,
	struct sim_cost *ret_cost, struct weir_err *err)
{
	live_duration = s->duration;
	return sim_run(s, o, ret, ret_cost, err);
}

/* The runner replaces the simulator, and is the only one to get the live parts. */
static void test_live_runs(void)
{
	char *text = with_live("{duration: 1s}");
	struct experiment *e = parse(text);
	int reads = 0;
	struct experiment_options o = {.seed = 1, .read = read_file, .read_arg = &reads};
	struct experiment_result *r;

	CHECK_INT(experiment_run(e, &o, &r, NULL), 0);
	CHECK_INT(live_duration, 0);
	experiment_result_free(e, r);
	o.live = run_live;
	CHECK_INT(experiment_run(e, &o, &r, NULL), 0);
	CHECK_INT(live_duration, WEIR_SEC);
	CHECK(r->outcomes[0].ok);
	experiment_result_free(e, r);
	experiment_free(e);
	free(text);
}

/* ---- without */

/* Two servers, one limited by its window; a claim compares with the third run. */
static const char switched[] =
	"id: test\ntitle: t\nsource: s\n"
	"runs:\n"
	"  - {name: \"r$x\", scenario: s.yaml, set: {\"devices[0].rate\": \"$x iops\"}, for: [500, "
	"1000]}\n"
	"  - {name: other, scenario: s.yaml}\n"
	"define:\n"
	"  - {name: slow, value: r500.tenant.h.main.iops}\n"
	"  - {name: \"slow2\", value: slow * 2}\n"
	"claims:\n"
	"  - {what: rate 500, value: r500.tenant.h.main.iops, within: 2 % of 500}\n"
	"  - {what: twice, value: slow2, within: 2 % of r1000.tenant.h.main.iops}\n"
	"  - {what: other, value: other.tenant.h.main.iops, within: 2 % of 1000}\n"
	"  - {what: mean, value: r500.tenant.h.main.mean, within: 5 % of 16ms}\n";

static struct experiment *with_without(const char *entries)
{
	char *text;
	struct experiment *e;

	if (asprintf(&text, "%swithout:\n%s", switched, entries) < 0)
		FAIL("no memory");
	e = parse(text);
	free(text);
	return e;
}

static void refuse_without(const char *entries, const char *part)
{
	char *text;

	if (asprintf(&text, "%swithout: %s\n", switched, entries) < 0)
		FAIL("no memory");
	refuse(text, part);
	free(text);
}

static void test_without_keys(void)
{
	struct experiment *e = with_without(
		"  - {mechanism: m, set: {\"hosts[0].policy.depth\": 0.25}, miss: [rate *, "
		"twice]}\n"
		"  - {mechanism: m, set: {\"hosts[0].policy.depth\": 0.25}, runs: [r5*], miss: "
		"[twice]}\n");

	CHECK_INT(e->n_without, 2);
	CHECK_STR(e->without[0].mechanism, "m");
	CHECK(e->without[0].claims[0] && e->without[0].claims[1] && !e->without[0].claims[2]);
	/* The runs that the claims need, through definitions and bands. */
	CHECK(e->without[0].runs[0] && e->without[0].runs[1] && !e->without[0].runs[2]);
	CHECK(e->without[1].runs[0] && !e->without[1].runs[1]);
	experiment_free(e);
	e = parse(HEAD RUNS CLAIM "without: it is the device alone\n");
	CHECK_STR(e->no_mechanism, "it is the device alone");
	CHECK_INT(e->n_without, 0);
	experiment_free(e);
	refuse_without("{mechanism: m}", "list");
	refuse_without("[{set: {a: 1}, miss: [twice]}]", "mechanism");
	refuse_without("[{mechanism: m, miss: [twice]}]", "set");
	refuse_without("[{mechanism: m, set: {a: 1}}]", "miss");
	refuse_without("[{mechanism: m, set: {a: 1}, miss: [thrice]}]", "none of the claims");
	refuse_without(
		"[{mechanism: m, set: {a: 1}, miss: [twice], runs: [r7]}]", "none of the runs");
	refuse_without("[{mechanism: m, set: {a: 1}, miss: [twice], runs: [other]}]", "needs");
	refuse_without("[{mechanism: m, set: {a: 1}, miss: [twice], live: true}]", "live");
}

static struct experiment_result *run_without(struct experiment *e, size_t i, int *reads)
{
	struct experiment_options o = {
		.seed = 1, .read = read_file, .read_arg = reads, .without = &e->without[i]};
	struct experiment_result *r;
	struct weir_err err;

	if (experiment_run(e, &o, &r, &err) < 0)
		FAIL("%s", err.text);
	return r;
}

static void test_without_runs(void)
{
	struct experiment *e = with_without(
		"  - {mechanism: service, set: {\"devices[0].rate\": 2k iops}, runs: [r500], miss: "
		"[rate 500, twice]}\n"
		"  - {mechanism: nothing, set: {\"hosts[0].policy.depth\": 3}, miss: [rate 500]}\n"
		"  - {mechanism: time, set: {warmup: 0s, duration: 1us}, miss: [mean]}\n");
	int reads = 0;
	struct experiment_result *r = run_without(e, 0, &reads);
	char *text;

	CHECK_INT(reads, 2); /* runs that no claim needs are not made … */
	CHECK(r->runs[0] && r->runs[1] && !r->runs[2]);
	CHECK_INT(r->judged, 2);
	CHECK_INT(r->missed, 2);
	CHECK_INT(r->held, 0);
	CHECK_NEAR(r->outcomes[1].lo, 980, 0.02); /* … and the reference is unchanged */
	WRITE_TEXT(text, CHECK_INT(experiment_text(e, r, to), 0));
	CHECK(strstr(text,
		"without service (devices[0].rate: 2k iops): 2 claims must be missed, 2 are"));
	CHECK(!strstr(text, "other"));
	free(text);
	WRITE_TEXT(text, CHECK_INT(experiment_markdown(e, r, NULL, to), 0));
	CHECK(strstr(text, "- Without service (`devices[0].rate: 2k iops`)"));
	CHECK(strstr(text, "*rate 500*; *twice*."));
	free(text);
	experiment_result_free(e, r);
	/* A claim that holds without the mechanism proves nothing. */
	r = run_without(e, 1, &reads);
	CHECK(r->judged == 1 && r->held == 1 && r->missed == 0);
	experiment_result_free(e, r);
	/* A claim that cannot be computed does not count as a miss. */
	r = run_without(e, 2, &reads);
	CHECK(r->judged == 1 && r->held == 1 && r->missed == 1);
	experiment_result_free(e, r);
	experiment_free(e);
}

/* Live, a run that is only simulated is not made, and its claims are not judged. */
static void test_simulated_runs(void)
{
	struct experiment *e = parse(HEAD
		"live: true\n"
		"runs: [{name: a, scenario: s.yaml}, {name: b, scenario: s.yaml, live: false}]\n"
		"define: [{name: both, value: a.total.iops + b.total.iops}]\n"
		"claims:\n"
		"  - {what: one, value: a.total.iops, within: 2 % of 1000}\n"
		"  - {what: two, value: both, within: 2 % of 2000}\n");
	int reads = 0;
	struct experiment_options o = {
		.seed = 1, .read = read_file, .read_arg = &reads, .live = run_live};
	struct experiment_result *r;

	CHECK_INT(experiment_run(e, &o, &r, NULL), 0);
	CHECK_INT(reads, 1);
	CHECK(r->judged == 1 && r->missed == 0 && !r->outcomes[1].judged && !r->runs[1]);
	experiment_result_free(e, r);
	o.live = NULL;
	CHECK_INT(experiment_run(e, &o, &r, NULL), 0);
	CHECK(r->judged == 2 && r->missed == 0);
	experiment_result_free(e, r);
	experiment_free(e);
}

int main(void)
{
	RUN(test_parse);
	RUN(test_refused);
	RUN(test_parameters);
	RUN(test_run);
	RUN(test_run_fails);
	RUN(test_progress);
	RUN(test_live_keys);
	RUN(test_live_runs);
	RUN(test_without_keys);
	RUN(test_without_runs);
	RUN(test_simulated_runs);
	return 0;
}
