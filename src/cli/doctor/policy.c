/* SPDX-License-Identifier: BSD-3-Clause */
/* policy: a policy's errors, warnings and hints, as `weir policy check` and `weir serve --check` have them. */
#include "cli/common/files.h"
#include "cli/doctor/doctor.h"
#include "cli/serve/serve.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Report each line of the hints as a warning. */
static void say_hints(struct doctor *d, const struct weir_policy *p)
{
	char *text = NULL, *rest, *line;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	if (!to)
		return;
	serve_disks_hint(p, to);
	if (fclose(to) == 0)
		for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
			doctor_say(d, DOCTOR_WARNING, "policy", NULL, "%s", line);
	free(text);
}

static void say_remarks(
	struct doctor *d, enum doctor_level level, const struct weir_err *list, size_t n)
{
	for (size_t i = 0; i < n && i < WEIR_POLICY_REMARKS; i++)
		doctor_say(d, level, "policy", NULL, "%s", list[i].text);
	if (n > WEIR_POLICY_REMARKS)
		doctor_say(d, level, "policy", "weir policy check lists them", "%zu more",
			n - WEIR_POLICY_REMARKS);
}

struct weir_policy *doctor_policy(struct doctor *d, const char *path)
{
	static struct weir_policy_remarks remarks;
	struct weir_policy *p = NULL;
	struct weir_err err;
	const char *bare;
	char *text;
	size_t len;

	if (files_read(path, FILES_WRITTEN, &text, &len, &err) < 0) {
		doctor_say(d, DOCTOR_ERROR, "policy", NULL, "%s", err.text);
		return NULL;
	}
	if (weir_policy_parse_all(text, len, path, files_read_beside, NULL, &p, &remarks) < 0)
		p = NULL;
	free(text);
	say_remarks(d, DOCTOR_ERROR, remarks.errors, remarks.n_errors);
	say_remarks(d, DOCTOR_WARNING, remarks.warnings, remarks.n_warnings);
	if (!p)
		return NULL;
	/* A policy of services alone is for weir shape. */
	if (p->n_resources && serve_policy_check(p, &err) < 0)
		doctor_say(d, DOCTOR_ERROR, "policy", NULL, "%s", err.text);
	bare = serve_policy_bare_secret(p, NULL);
	if (bare)
		doctor_say(d, DOCTOR_ERROR, "policy", "chmod 600",
			"%s: readable or writable by all users", bare);
	say_hints(d, p);
	if (!p->n_tenants)
		doctor_say(d, DOCTOR_NOTE, "policy", NULL, "no tenants: all clients are equal");
	else
		doctor_say(d, DOCTOR_OK, "policy", NULL, "%zu tenant%s, %zu resource%s",
			p->n_tenants, p->n_tenants == 1 ? "" : "s", p->n_resources,
			p->n_resources == 1 ? "" : "s");
	return p;
}
