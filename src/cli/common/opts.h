/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * opts: parse the command line by one table of options.
 *
 * `--name`, `--name VALUE`, `--name=VALUE` and, where given, `-x`. `--` ends the options. Options
 * and operands may be mixed. Errors name the option, suggest the near one, and go to standard
 * error.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct opt {
	const char *name;     /* "seed", without the dashes; NULL ends the table */
	char letter;          /* 0: none */
	const char *argument; /* "N", "FILE"; NULL: a flag */
	const char *help;     /* one line */
};

struct verb;

/*
 * Parse argv[1…]. values[i] is set for options[i] (last wins): the argument, or "" for a flag; NULL
 * if absent. Operands are moved to the front of argv, from argv[1]; *ret_operands is their number.
 * Return -1 to continue, or the exit status to exit with at once (--help printed: 0; an error
 * printed: 2).
 */
int opts_parse(const struct verb *v, int argc, char **argv, const char **values, int *ret_operands);
#define OPTS_MOST 64 /* options of a verb, at most */

/* Return all values of an option in the last opts_parse, in order, malloc'ed; NULL: no memory. */
const char **opts_all(int option, size_t *ret_n);

/*
 * Print "weir: <verb>: message" to standard error; return 2, so that a verb may `return
 * opts_fail(…)`.
 */
int opts_fail(const struct verb *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline int opts_no_memory(const struct verb *v)
{
	return opts_fail(v, "out of memory");
}

/* Parse --seed. Return 0, or 2 with the error printed. *ret_seed is unchanged if text is NULL. */
int opts_seed(const struct verb *v, const char *text, uint64_t *ret_seed);

void opts_help(const struct verb *v);                /* to standard output */
void opts_list(FILE *to, const struct opt *options); /* one line each, as in the help */
