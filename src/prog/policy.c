/* SPDX-License-Identifier: BSD-3-Clause */
/* policy: `weir policy`, is a policy right, and what does it amount to. */
#include "prog/policy-verb.h"
#include "prog/files.h"
#include "prog/verb.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct verb verb_policy;

enum { JSON, N_OPTIONS };
static const struct opt options[] = {
	[JSON] = {"json", 0, NULL, "show: JSON instead of tables"},
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};
static const char *const subverbs[] = {"check", "show", NULL};

static const char *name_of(const char *path)
{
	return strcmp(path, "-") == 0 ? "standard input" : path;
}

/* Reads one policy and prints what there is to say of it. The policy, or NULL. */
static struct weir_policy *load(const char *path)
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
	if (weir_policy_parse_all(text, len, name_of(path), files_read_beside, NULL, &p, &remarks) <
		0)
		p = NULL;
	free(text);
	for (size_t i = 0; i < remarks.n_errors && i < WEIR_POLICY_REMARKS; i++)
		fprintf(stderr, "%s\n", remarks.errors[i].text);
	if (remarks.n_errors > WEIR_POLICY_REMARKS)
		fprintf(stderr, "%s: and %zu more\n", name_of(path),
			remarks.n_errors - WEIR_POLICY_REMARKS);
	for (size_t i = 0; i < remarks.n_warnings && i < WEIR_POLICY_REMARKS; i++)
		fprintf(stderr, "%s (warning)\n", remarks.warnings[i].text);
	if (remarks.n_warnings > WEIR_POLICY_REMARKS)
		fprintf(stderr, "%s: and %zu more warnings\n", name_of(path),
			remarks.n_warnings - WEIR_POLICY_REMARKS);
	return p;
}

static int check(int n, char **paths)
{
	int status = 0;

	for (int i = 0; i < n; i++) {
		struct weir_policy *p = load(paths[i]);

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

static int show(const char *path, bool json)
{
	struct weir_policy *p = load(path);
	int rc;

	if (!p)
		return 2;
	rc = json ? policy_show_json(p) : policy_show_table(p);
	weir_policy_free(p);
	if (rc < 0) {
		fprintf(stderr, "weir: policy: %s\n", strerror(-rc));
		return 1;
	}
	return 0;
}

static int run(int argc, char **argv)
{
	const char *values[N_OPTIONS];
	int n, status = opts_parse(&verb_policy, argc, argv, values, &n);

	if (status >= 0)
		return status;
	if (n == 0)
		return opts_fail(&verb_policy, "what? check or show; see weir policy --help");
	if (strcmp(argv[1], "check") == 0) {
		if (values[JSON])
			return opts_fail(&verb_policy, "--json goes with show");
		if (n < 2)
			return opts_fail(&verb_policy, "check needs one FILE or several");
		return check(n - 1, argv + 2);
	}
	if (strcmp(argv[1], "show") == 0) {
		if (n != 2)
			return opts_fail(&verb_policy, "show needs one FILE");
		return show(argv[2], values[JSON] != NULL);
	}
	return opts_fail(&verb_policy, "no '%s'; it may be check or show", argv[1]);
}

const struct verb verb_policy = {
	.name = "policy",
	.summary = "check a policy, or show what it amounts to",
	.usage = "check FILE...\n       weir policy show [--json] FILE",
	.options = options,
	.subverbs = subverbs,
	.run = run,
};
