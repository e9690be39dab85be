/* SPDX-License-Identifier: BSD-3-Clause */
/* policy: `weir policy`, check a policy, show its shares and limits, or put it in force. */
#include "cli/policy-verb.h"
#include "cli/common/files.h"
#include "cli/common/remote.h"
#include "cli/serve/serve.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JSON, POD, LAB, KEEP, DRY_RUN, SOCKET, URL, TOKEN, N_OPTIONS };
static const struct opt options[] = {
	[JSON] = {"json", 0, NULL, "show: JSON instead of tables"},
	[POD] = {"pod", 0, NULL, "keys: as a part of a manual page"},
	[LAB] = {"lab", 0, NULL, "check, show: accept keys for experiments"},
	[KEEP] = {"keep", 'k', NULL, "apply: keep values of weir set"},
	[DRY_RUN] = {"dry-run", 'n', NULL, "apply: only print what would change"},
	REMOTE_ROWS,
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};
static const char *const subverbs[] = {"check", "show", "apply", "keys", NULL};

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

/* Return 0, or 2 with a message about the first option that does not belong to the subverb. */
static int check_options(const char *const *values, bool is_show, bool is_apply, bool live)
{
	for (int i = 0; i < N_OPTIONS; i++) {
		if (!values[i])
			continue;
		if (i == POD)
			return opts_fail(&verb_policy, "--pod goes with keys");
		if (i == LAB && (is_apply || live))
			return opts_fail(&verb_policy, "--lab goes with check FILE and show FILE");
		if (i == JSON && !is_show)
			return opts_fail(&verb_policy, "--json goes with show");
		if ((i == KEEP || i == DRY_RUN) && !is_apply)
			return opts_fail(&verb_policy, "--%s goes with apply", options[i].name);
		if (i >= SOCKET && !live)
			return opts_fail(&verb_policy,
				"--%s goes with apply, and with show without a FILE",
				options[i].name);
	}
	return 0;
}

static int policy_main(const char *const *values, char **operands, int n)
{
	bool is_show, is_apply;
	int status;

	if (n == 0)
		return opts_fail(
			&verb_policy, "needs check, show, apply or keys; see weir policy --help");
	if (strcmp(operands[0], "keys") == 0)
		return n <= 2 ? policy_keys_show(n == 2 ? operands[1] : NULL, values[POD])
			      : opts_fail(&verb_policy, "keys needs one CONTROLLER, or none");
	is_show = strcmp(operands[0], "show") == 0;
	is_apply = strcmp(operands[0], "apply") == 0;
	if (!is_show && !is_apply && strcmp(operands[0], "check") != 0)
		return opts_fail(
			&verb_policy, "no '%s'; use check, show, apply or keys", operands[0]);
	status = check_options(values, is_show, is_apply, is_apply || (is_show && n == 1));
	if (status)
		return status;
	if (is_show && n == 1)
		return policy_show_live(values + SOCKET, values[JSON]);
	if (is_show)
		return n == 2 ? show_policy(operands[1], values[JSON], values[LAB])
			      : opts_fail(&verb_policy, "show needs one FILE, or none");
	if (is_apply)
		return n == 2 ? policy_apply(
					values + SOCKET, operands[1], values[KEEP], values[DRY_RUN])
			      : opts_fail(&verb_policy, "apply needs one FILE");
	return n >= 2 ? check_policies(n - 1, operands + 1, values[LAB])
		      : opts_fail(&verb_policy, "check needs one FILE or several");
}

const struct verb verb_policy = {
	.name = "policy",
	.summary = "check a policy, show its shares and limits, or put it in force",
	.usage = "check [--lab] FILE...\n       weir policy show [--json] [--lab] [FILE]\n"
		 "       weir policy apply [--keep] [--dry-run] FILE\n"
		 "       weir policy keys [--pod] [CONTROLLER]",
	.options = options,
	.subverbs = subverbs,
	.run = policy_main,
};
