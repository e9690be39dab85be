/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir demo: a noisy neighbour, without and with a gate, with real I/O.
 *
 * A gateway stands in front of memory with the timing of a disk array, and three tenants load it
 * over NBD without a pause. Half-way the policy is applied; nothing else changes. The program needs
 * no other files; it shows the measurements of the clients and the gateway.
 */
#include "cli/demo/demo.h"
#include <weir/units.h>
#include "cli/common/files.h"
#include "cli/view/progress.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char policy_text[] =
#include "cli/demo.inc"
	;

#define HALF 10 /* s: long enough for a p99 of 300 requests a second */

enum { OUT, SECONDS, SEED, STAY, OPTIONS };
static const struct opt options[] = {
	[OUT] = {"out", 'o', "DIR", "folder for the picture and the policies (weir-demo)"},
	[SECONDS] = {"time", 't', "TIME", "duration of each half: 4s to 60s (10s)"},
	[SEED] = {"seed", 's', "N", "the seed of the clients (1)"},
	[STAY] = {"stay", 0, NULL, "go on until ^C, to look at the page"},
	[OPTIONS] = {NULL, 0, NULL, NULL},
};
static int demo_main(const char *const *values, char **operands, int n);
const struct verb verb_demo = {
	.name = "demo",
	.summary = "show a noisy neighbour, without and with a gate",
	.usage = "[OPTION]...",
	.options = options,
	.run = demo_main,
};

/* ---- text */

static void show_intro(void)
{
	const char *line = strstr(policy_text, "tenants:\n");

	printf("Three tenants share one array: a database and web servers, with few and\n"
	       "urgent requests, and a backup that keeps 64 large reads outstanding.\n"
	       "First without a gate between them and the array, then with a window of 12\n"
	       "and this policy, applied while the load continues:\n\n");
	for (; line && *line; line += strcspn(line, "\n") + 1)
		printf("    %.*s\n", (int)strcspn(line, "\n"), line);
	putchar('\n');
	fflush(stdout);
}

static void show_next(const char *dir)
{
	const char *weir = program_invocation_name;

	printf("Try next, in other terminals: the same gateway, a load, and why it waits.\n"
	       "  %s serve %s/after.yaml --listen unix:/tmp/nbd.sock --api unix:/tmp/api.sock\n"
	       "  %s load 'nbd+unix:///backup?socket=/tmp/nbd.sock' --depth 64 --size 64KiB "
	       "--duration 60s\n"
	       "  %s top --socket /tmp/api.sock\n",
		weir, dir, weir, weir);
}

/* ---- the run */

struct demo_show { /* how results are shown */
	const char *dir;
	bool live, stay;
};

/* Write the policy for the second half, and for the first half with enforcement off. */
static int write_policies(const char *dir, char *before, char *after, struct weir_err *err)
{
	static const char on[] = "enforce: true", off[] = "enforce: false";
	const char *at = strstr(policy_text, on);
	char *text = NULL;
	int r = files_make_dir(dir, err);

	if (r < 0)
		return r;
	snprintf(before, PATH_MAX, "%s/before.yaml", dir);
	snprintf(after, PATH_MAX, "%s/after.yaml", dir);
	int len = asprintf(
		&text, "%.*s%s%s", (int)(at - policy_text), policy_text, off, at + strlen(on));

	if (len < 0)
		return -ENOMEM;
	r = files_write(before, text, (size_t)len, err);
	if (r == 0)
		r = files_write(after, policy_text, strlen(policy_text), err);
	free(text);
	return r;
}

static struct progress progress;
static void tick_progress(const struct demo *d)
{
	progress_tick(&progress, d->elapsed);
}

static void show_page(const struct demo *d)
{
	printf("The gateway's page, in a browser: %s, token %s\n\n", d->page, d->token);
	fflush(stdout);
}

static int show_results(void *arg, struct demo *d, struct weir_err *err)
{
	const struct demo_show *show = arg;
	int r;

	progress_end(&progress);
	if (show->live)
		demo_show_live_end();
	r = demo_show_table(d);
	if (r < 0)
		return r;
	demo_show_sum(d);
	r = demo_show_picture(d, show->dir, err);
	if (r < 0)
		return r;
	show_next(show->dir);
	if (show->stay)
		printf("\nThe load goes on until ^C: %s, token %s\n", d->page, d->token);
	fflush(stdout);
	return 0;
}

static int run_and_show(
	const struct demo_show *show, double seconds, uint64_t seed, struct weir_err *err)
{
	char before[PATH_MAX], after[PATH_MAX];
	struct demo_plan plan = {.before = before,
		.after = after,
		.seconds = seconds,
		.seed = seed,
		.stay = show->stay,
		.started = show_page,
		.look = show->live ? demo_show_live : tick_progress,
		.measured = show_results,
		.arg = (void *)(uintptr_t)show};
	struct demo *d = calloc(1, sizeof(*d));
	int r = d ? write_policies(show->dir, before, after, err) : -ENOMEM;

	if (r == 0) {
		show_intro();
		progress_start(&progress, "demo", 2 * seconds);
		r = demo_run(&plan, d, err);
		if (r < 0)
			progress_end(&progress);
		if (r < 0 && show->live)
			demo_show_live_end();
	}
	if (d)
		demo_free(d);
	free(d);
	return r;
}

static int parse_time(const char *text, double *ret)
{
	struct weir_err err;
	weir_time t;

	if (!text)
		return 0;
	if (weir_units_time(text, &t, &err) < 0)
		return opts_fail(&verb_demo, "--time: %s", err.text);
	if (t < 4 * WEIR_SEC || t > 60 * WEIR_SEC)
		return opts_fail(&verb_demo, "--time: 4s to 60s, not %s", text);
	*ret = (double)t / 1e9;
	return 0;
}

static int demo_main(const char *const *values, char **operands, int n)
{
	const struct demo_show show = {.dir = values[OUT] ? values[OUT] : "weir-demo",
		.live = isatty(STDOUT_FILENO),
		.stay = values[STAY] != NULL};
	struct weir_err err = {"out of memory"};
	double seconds = HALF;
	uint64_t seed = 1;

	if (n > 0)
		return opts_fail(&verb_demo, "takes no operand, but got '%s'", operands[0]);
	if (opts_seed(&verb_demo, values[SEED], &seed) || parse_time(values[SECONDS], &seconds))
		return 2;
	if (run_and_show(&show, seconds, seed, &err) < 0) {
		opts_fail(&verb_demo, "%s", err.text);
		return 1;
	}
	return 0;
}
