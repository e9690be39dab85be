/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc: `weir alloc`, one step of an allocation algorithm, for other programs to use or check. */
#include "base/field.h"
#include "cli/alloc.h"
#include "cli/common/files.h"
#include "cli/common/verb.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct opt options[] = {{NULL, 0, NULL, NULL}};
static const char *const subverbs[] = {"adaptbf", "meister", "parda", "pshift", "waterfill", NULL};
static alloc_step *const steps[] = {alloc_adaptbf, alloc_meister, alloc_parda, alloc_pshift,
	alloc_waterfill}; /* as the subverbs */

extern const struct verb verb_alloc;

static json_t *parse_object(const char *text, size_t len)
{
	json_error_t why;
	json_t *in = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);

	if (!in) {
		opts_fail(&verb_alloc, "line %d, column %d: %s", why.line, why.column, why.text);
		return NULL;
	}
	if (!json_is_object(in)) {
		opts_fail(&verb_alloc, "the input must be an object");
		json_decref(in);
		return NULL;
	}
	return in;
}

static int print_json(json_t *out)
{
	/* 15 digits: the precision of a double, and 0.1 stays 0.1. */
	char *text = json_dumps(out, JSON_INDENT(1) | JSON_REAL_PRECISION(15));

	if (!text) {
		fprintf(stderr, "weir: alloc: out of memory\n");
		return 1;
	}
	puts(text);
	free(text);
	return 0;
}

static int allocate(alloc_step *step, const char *path)
{
	struct weir_err err = {""};
	json_t *in, *out = NULL;
	char *text;
	size_t len;
	int r, status;

	if (files_read(path, FILES_WRITTEN, &text, &len, &err) < 0)
		return opts_fail(&verb_alloc, "%s", err.text);
	in = parse_object(text, len);
	free(text);
	if (!in)
		return 2;
	r = step(in, &out, &err);
	json_decref(in);
	if (r == -EINVAL)
		return opts_fail(&verb_alloc, "%s", err.text);
	if (r) {
		fprintf(stderr, "weir: alloc: %s\n", strerror(-r));
		return 1;
	}
	status = print_json(out);
	json_decref(out);
	return status;
}

static int alloc_main(const char *const *values, char **operands, int n)
{
	int i;

	if (n == 0)
		return opts_fail(&verb_alloc, "needs an algorithm: adaptbf, meister, parda, "
					      "pshift or waterfill; see weir alloc --help");
	if (n > 2)
		return opts_fail(&verb_alloc, "one FILE, or none for standard input");
	i = field_index(subverbs, operands[0]);
	if (i >= 0)
		return allocate(steps[i], n == 2 ? operands[1] : "-");
	return opts_fail(&verb_alloc,
		"unknown algorithm '%s'; must be adaptbf, meister, parda, pshift or "
		"waterfill",
		operands[0]);
}

const struct verb verb_alloc = {
	.name = "alloc",
	.summary = "one step of an allocation algorithm, JSON in and out",
	.usage = "adaptbf|meister|parda|pshift|waterfill [FILE]",
	.options = options,
	.subverbs = subverbs,
	.run = alloc_main,
};
