/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verb: one command of the program.
 *
 * Each verb has a file, cli/<verb>.c or cli/<verb>/<verb>.c, that defines `const struct verb verb_<verb>`; the list in
 * cli/meson.build makes weir.c's table. The option table is the only place where options are
 * declared: `--help`, the shell completion and the test of the manual pages all read it.
 */
#pragma once

#include "cli/common/opts.h"

struct verb {
	const char *name;
	const char *summary;         /* one line, no full stop */
	const char *usage;           /* the text after "weir <name>", e.g. "[OPTION]... SCENARIO" */
	const struct opt *options;   /* ends with an entry whose name is NULL; --help is implied */
	const char *const *subverbs; /* NULL, or the words that may come first: "check", "show" */
	/*
	 * `values` has the value of each option, as opts_parse sets it. Return the exit status: 0
	 * success, 1 the verb failed or a claim missed, 2 the command line or the input is wrong
	 * (with one line on standard error).
	 */
	int (*run)(const char *const *values, char **operands, int n);
};
