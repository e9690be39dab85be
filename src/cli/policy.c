/* SPDX-License-Identifier: BSD-3-Clause */
/* policy: `weir policy`, check a policy, show its shares and limits, or put it in force. */
#include "cli/policy-verb.h"
#include "cli/common/files.h"
#include "cli/common/remote.h"
#include "cli/serve/serve.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	JSON,
	CONTROLLERS,
	POD,
	LAB,
	KEEP,
	DRY_RUN,
	MESSAGE,
	BASE,
	NUMBER,
	STORE,
	SOCKET,
	URL,
	TOKEN,
	TLS,
	N_OPTIONS
};
static const struct opt options[] = {
	[JSON] = {"json", 0, NULL, "show, history: JSON"},
	[CONTROLLERS] = {"controllers", 0, NULL, "show FILE: which controllers run, and why"},
	[POD] = {"pod", 0, NULL, "keys: as a part of a manual page"},
	[LAB] = {"lab", 0, NULL, "check, show: accept keys for experiments"},
	[KEEP] = {"keep", 'k', NULL, "apply: keep values of weir set"},
	[DRY_RUN] = {"dry-run", 'n', NULL, "apply: only print what would change"},
	[MESSAGE] = {"message", 'm', "TEXT", "apply, rollback: why, for the history"},
	[BASE] = {"base", 0, "N", "apply, rollback: only if version N is the newest"},
	[NUMBER] = {"number", 0, "N", "history: how many versions (20)"},
	[STORE] = {"store", 0, "STORE",
		"sqlite:FOLDER, etcd:URL,... or a cluster's token; else $WEIR_STORE"},
	REMOTE_ROWS,
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};
static const char *const subverbs[] = {
	"check", "show", "apply", "history", "diff", "rollback", "export", "keys", NULL};

static const char *name_of(const char *path)
{
	return strcmp(path, "-") == 0 ? "standard input" : path;
}

/* Read one policy and print its errors and warnings. Return the policy, or NULL. */
static struct weir_policy *load_policy(const char *path, bool lab)
{
	static struct weir_policy_remarks remarks;
	struct weir_policy *p = NULL;
	struct weir_err err;
	char *text;
	size_t len;

	if (files_read(path, FILES_WRITTEN, &text, &len, &err) < 0) {
		opts_fail(&verb_policy, "%s", err.text);
		return NULL;
	}
	if (policy_parse_lab(text, len, name_of(path), lab, files_read_beside, NULL, &p, &remarks) <
		0)
		p = NULL;
	free(text);
	for (size_t i = 0; i < remarks.n_errors && i < WEIR_POLICY_REMARKS; i++)
		fprintf(stderr, "%s\n", remarks.errors[i].text);
	if (remarks.n_errors > WEIR_POLICY_REMARKS)
		fprintf(stderr, "%s: and %zu more\n", name_of(path),
			remarks.n_errors - WEIR_POLICY_REMARKS);
	if (p && serve_policy_names(p, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		weir_policy_free(p);
		p = NULL;
	}
	if (p)
		serve_disks_hint(p, stderr);
	for (size_t i = 0; i < remarks.n_warnings && i < WEIR_POLICY_REMARKS; i++)
		fprintf(stderr, "%s (warning)\n", remarks.warnings[i].text);
	if (remarks.n_warnings > WEIR_POLICY_REMARKS)
		fprintf(stderr, "%s: and %zu more warnings\n", name_of(path),
			remarks.n_warnings - WEIR_POLICY_REMARKS);
	return p;
}

static int check_policies(int n, char **paths, bool lab)
{
	int status = 0;

	for (int i = 0; i < n; i++) {
		struct weir_policy *p = load_policy(paths[i], lab);

		if (!p) {
			status = 2;
			continue;
		}
		printf("%s: ok (%zu tenant%s, %zu resource%s)\n", name_of(paths[i]), p->n_tenants,
			p->n_tenants == 1 ? "" : "s", p->n_resources,
			p->n_resources == 1 ? "" : "s");
		weir_policy_free(p);
	}
	return status;
}

static int show_controllers(const char *path, bool lab)
{
	struct weir_policy *p = load_policy(path, lab);

	if (!p)
		return 2;
	policy_show_controllers(p, stdout);
	weir_policy_free(p);
	return 0;
}

static int show_policy(const char *path, bool json, bool lab)
{
	struct weir_policy *p = load_policy(path, lab);
	int rc;

	if (!p)
		return 2;
	rc = policy_show_all(p, json, stdout);
	weir_policy_free(p);
	if (rc < 0) {
		fprintf(stderr, "weir: policy: %s\n", strerror(-rc));
		return 1;
	}
	return 0;
}

/* ---- the command line */

#define LIVE "apply and history, and with show without a FILE"
enum { CHECK_, SHOW, APPLY, HISTORY, DIFF, ROLLBACK, EXPORT, KEYS };

/* Return 0, or 2 with a message about the first option that does not belong to the subverb. */
static int check_options(const char *const *values, int subverb, int n)
{
	static const struct {
		unsigned subverbs; /* bit set */
		const char *with;
	} go[N_OPTIONS] = {
		[JSON] = {1 << SHOW | 1 << HISTORY, "show and history"},
		[CONTROLLERS] = {1 << SHOW, "show FILE"},
		[POD] = {1 << KEYS, "keys"},
		[LAB] = {1 << CHECK_ | 1 << SHOW, "check FILE and show FILE"},
		[KEEP] = {1 << APPLY, "apply"},
		[DRY_RUN] = {1 << APPLY, "apply"},
		[MESSAGE] = {1 << APPLY | 1 << ROLLBACK, "apply and rollback, and a store"},
		[BASE] = {1 << APPLY | 1 << ROLLBACK, "apply and rollback, and a store"},
		[NUMBER] = {1 << HISTORY, "history"},
		[STORE] = {1 << APPLY | 1 << HISTORY | 1 << DIFF | 1 << ROLLBACK | 1 << EXPORT,
			"apply, history, diff, rollback and export"},
		[SOCKET] = {1 << APPLY | 1 << SHOW | 1 << HISTORY, LIVE},
		[URL] = {1 << APPLY | 1 << SHOW | 1 << HISTORY, LIVE},
		[TOKEN] = {1 << APPLY | 1 << SHOW | 1 << HISTORY, LIVE},
		[TLS] = {1 << APPLY | 1 << SHOW | 1 << HISTORY, LIVE},
	};

	for (int i = 0; i < N_OPTIONS; i++) {
		bool live = subverb == SHOW && n == 1;

		if (!values[i])
			continue;
		if (!(go[i].subverbs & 1u << subverb) || (i == LAB && live) ||
			(i >= SOCKET && subverb == SHOW && !live))
			return opts_fail(
				&verb_policy, "--%s goes with %s", options[i].name, go[i].with);
	}
	return 0;
}

/* Parse the number of a version. Return 0, or 2 with a message. */
static int parse_number(const char *text, const char *name, uint64_t *ret)
{
	struct weir_err err;
	int64_t n;

	if (!text)
		return 0;
	if (weir_units_int(text, &n, &err) < 0 || n < 1)
		return opts_fail(&verb_policy, "%s: must be a number from 1 on", name);
	*ret = (uint64_t)n;
	return 0;
}

static const char *store_of(const char *const *values)
{
	const char *store = values[STORE] ? values[STORE] : getenv("WEIR_STORE");

	return store && *store ? store : NULL;
}

static int run_versions(const char *const *values, int subverb, char **operands, int n)
{
	static const int most[] = {[HISTORY] = 0, [DIFF] = 2, [ROLLBACK] = 1, [EXPORT] = 1};
	struct policy_change c = {.message = values[MESSAGE]};
	const char *store = store_of(values);
	uint64_t a = 0, b = 0, number = 20;
	bool live = values[SOCKET] || values[URL] || values[TOKEN] || values[TLS];

	if (n - 1 > most[subverb] || (subverb != EXPORT && n - 1 < most[subverb]))
		return opts_fail(&verb_policy, "%s needs %s", operands[0],
			subverb == HISTORY  ? "no operand"
			: subverb == DIFF   ? "the numbers of two versions"
			: subverb == EXPORT ? "the number of a version, or none"
					    : "the number of a version");
	live &= subverb == HISTORY;
	if (!store && !live)
		return opts_fail(&verb_policy, "%s needs --store, or $WEIR_STORE", operands[0]);
	if (parse_number(values[BASE], "--base", &c.base) ||
		parse_number(values[NUMBER], "--number", &number) ||
		(n > 1 && parse_number(operands[1], operands[1], &a)) ||
		(n > 2 && parse_number(operands[2], operands[2], &b)))
		return 2;
	if (live)
		return policy_history_live(
			values + SOCKET, number < 1000 ? number : 1000, values[JSON]);
	if (subverb == HISTORY)
		return policy_store_history(store, number < 1000 ? number : 1000, values[JSON]);
	if (subverb == DIFF)
		return policy_store_diff(store, a, b);
	if (subverb == ROLLBACK)
		return policy_store_rollback(store, a, &c);
	return policy_store_export(store, a);
}

static int run_apply(const char *const *values, char **operands, int n)
{
	struct policy_change c = {
		.keep = values[KEEP], .dry = values[DRY_RUN], .message = values[MESSAGE]};
	bool live = values[SOCKET] || values[URL] || values[TOKEN] || values[TLS];
	const char *store = live ? NULL : store_of(values);

	if (n != 2)
		return opts_fail(&verb_policy, "apply needs one FILE");
	if (live && values[STORE])
		return opts_fail(&verb_policy, "--store, or --socket or --url");
	if (parse_number(values[BASE], "--base", &c.base))
		return 2;
	return policy_apply(values + SOCKET, store, operands[1], &c);
}

static int run_show(const char *const *values, char **operands, int n)
{
	if (values[CONTROLLERS])
		return n == 2 && !values[JSON]
			       ? show_controllers(operands[1], values[LAB])
			       : opts_fail(&verb_policy,
					 "show --controllers needs one FILE, and no --json");
	if (n == 1)
		return policy_show_live(values + SOCKET, values[JSON]);
	return n == 2 ? show_policy(operands[1], values[JSON], values[LAB])
		      : opts_fail(&verb_policy, "show needs one FILE, or none");
}

static int policy_main(const char *const *values, char **operands, int n)
{
	int subverb = 0, status;

	if (n == 0)
		return opts_fail(&verb_policy,
			"needs check, show, apply, history, diff, rollback, export or keys; see "
			"weir policy --help");
	while (subverbs[subverb] && strcmp(subverbs[subverb], operands[0]) != 0)
		subverb++;
	if (!subverbs[subverb])
		return opts_fail(&verb_policy,
			"no '%s'; use check, show, apply, history, diff, rollback, export or keys",
			operands[0]);
	status = check_options(values, subverb, n);
	if (status)
		return status;
	switch (subverb) {
	case CHECK_:
		return n >= 2 ? check_policies(n - 1, operands + 1, values[LAB])
			      : opts_fail(&verb_policy, "check needs one FILE or several");
	case SHOW:
		return run_show(values, operands, n);
	case APPLY:
		return run_apply(values, operands, n);
	case KEYS:
		return n <= 2 ? policy_keys_show(n == 2 ? operands[1] : NULL, values[POD])
			      : opts_fail(&verb_policy, "keys needs one CONTROLLER, or none");
	default:
		return run_versions(values, subverb, operands, n);
	}
}

const struct verb verb_policy = {
	.name = "policy",
	.summary = "check a policy, show its shares and limits, or put it in force",
	.usage = "check [--lab] FILE...\n       weir policy show [--json | --controllers] [--lab] "
		 "[FILE]\n"
		 "       weir policy apply [--keep] [--dry-run] [--store STORE] [-m TEXT] FILE\n"
		 "       weir policy history | diff N M | rollback N | export [N]\n"
		 "       weir policy keys [--pod] [CONTROLLER]",
	.options = options,
	.subverbs = subverbs,
	.run = policy_main,
};
