/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/common/opts.h"
#include "cli/common/verb.h"
#include "base/array.h"
#include <weir/err.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTS_HELP (-2) /* find_option's result for the implied --help */

static struct given { /* by the last opts_parse */
	int option;
	const char *value;
} * given;
static size_t n_given, given_room;

int opts_fail(const struct verb *v, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "weir: %s%s", v ? v->name : "", v ? ": " : "");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return 2;
}

int opts_seed(const struct verb *v, const char *text, uint64_t *ret_seed)
{
	unsigned long long seed;
	char *end;

	if (!text)
		return 0;
	errno = 0;
	seed = strtoull(text, &end, 10);
	if (errno || end == text || *end || !isdigit((unsigned char)text[0]))
		return opts_fail(v, "--seed: '%s' is not a whole number up to 2^64 - 1", text);
	*ret_seed = seed;
	return 0;
}

static void help_line(FILE *to, const struct opt *o)
{
	char left[64];

	snprintf(left, sizeof(left), "%c%c%c --%s%s%s", o->letter ? '-' : ' ',
		o->letter ? o->letter : ' ', o->letter ? ',' : ' ', o->name, o->argument ? " " : "",
		o->argument ? o->argument : "");
	fprintf(to, "  %-26s %s\n", left, o->help);
}

void opts_list(FILE *to, const struct opt *options)
{
	for (const struct opt *o = options; o && o->name; o++)
		help_line(to, o);
}

void opts_help(const struct verb *v)
{
	static const struct opt help = {"help", 'h', NULL, "show this help and exit"};

	printf("Usage: weir %s %s\n%c%s.\n\n", v->name, v->usage,
		toupper((unsigned char)v->summary[0]), v->summary + 1);
	if (v->subverbs) {
		printf("The first word is one of:");
		for (const char *const *s = v->subverbs; *s; s++)
			printf(" %s", *s);
		printf("\n\n");
	}
	printf("Options:\n");
	opts_list(stdout, v->options);
	help_line(stdout, &help);
	printf("\nSee the manual page weir-%s(1) for details.\n", v->name);
}

static int count_options(const struct verb *v)
{
	int n = 0;

	while (v->options && v->options[n].name)
		n++;
	return n;
}

static int unknown_long(const struct verb *v, const char *name, size_t len)
{
	int n = count_options(v);
	const char **names = calloc((size_t)n + 2, sizeof(*names));
	char *word = strndup(name, len);
	const char *near = NULL;

	if (names && word) {
		for (int i = 0; i < n; i++)
			names[i] = v->options[i].name;
		names[n] = "help";
		near = weir_err_near(word, names);
	}
	if (near)
		opts_fail(v, "no option --%.*s (did you mean --%s?)", (int)len, name, near);
	else
		opts_fail(v, "no option --%.*s; see weir %s --help", (int)len, name, v->name);
	free(names);
	free(word);
	return -1;
}

/*
 * Return the index of the option that `arg` ("--name", "--name=value", "-x", "-xvalue") names,
 * OPTS_HELP, or -1 with the error printed. *ret_value is the attached value, or NULL.
 */
static int find_option(const struct verb *v, const char *arg, const char **ret_value)
{
	int n = count_options(v);

	if (arg[1] == '-') {
		const char *name = arg + 2, *eq = strchr(name, '=');
		size_t len = eq ? (size_t)(eq - name) : strlen(name);

		*ret_value = eq ? eq + 1 : NULL;
		for (int i = 0; i < n; i++)
			if (strlen(v->options[i].name) == len &&
				memcmp(v->options[i].name, name, len) == 0)
				return i;
		if (len == 4 && memcmp(name, "help", 4) == 0)
			return OPTS_HELP;
		return unknown_long(v, name, len);
	}
	*ret_value = arg[2] ? arg + 2 : NULL;
	for (int i = 0; i < n; i++)
		if (v->options[i].letter == arg[1])
			return i;
	if (arg[1] == 'h')
		return OPTS_HELP;
	opts_fail(v, "no option -%c; see weir %s --help", arg[1], v->name);
	return -1;
}

int opts_parse(const struct verb *v, int argc, char **argv, const char **values, int *ret_operands)
{
	int operands = 0;

	n_given = 0;
	for (int i = 0; i < count_options(v); i++)
		values[i] = NULL;
	for (int i = 1; i < argc; i++) {
		char *arg = argv[i];
		const char *value = NULL;
		int o;

		if (strcmp(arg, "--") == 0) {
			while (++i < argc)
				argv[++operands] = argv[i];
			break;
		}
		if (arg[0] != '-' || !arg[1]) { /* "-" alone is an operand: standard input */
			argv[++operands] = arg;
			continue;
		}
		o = find_option(v, arg, &value);
		if (o == -1)
			return 2;
		if (o == OPTS_HELP) {
			if (value)
				return opts_fail(v, "%s: --help takes no value", arg);
			opts_help(v);
			return 0;
		}
		if (!v->options[o].argument) {
			if (value)
				return opts_fail(
					v, "%s: --%s takes no value", arg, v->options[o].name);
			value = "";
		} else if (!value) {
			if (++i == argc)
				return opts_fail(v, "--%s needs %s after it", v->options[o].name,
					v->options[o].argument);
			value = argv[i];
		}
		if (array_grow(&given, &given_room, n_given + 1) < 0)
			return opts_no_memory(v);
		given[n_given++] = (struct given){o, value};
		values[o] = value;
	}
	*ret_operands = operands;
	return -1;
}

const char **opts_all(int option, size_t *ret_n)
{
	const char **all = calloc(n_given + 1, sizeof(*all));

	*ret_n = 0;
	for (size_t i = 0; all && i < n_given; i++)
		if (given[i].option == option)
			all[(*ret_n)++] = given[i].value;
	return all;
}
