/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir: the program. Find the verb and run it; everything else is in the verbs' own files.
 */
#include "cli/completion.h"
#include "cli/common/opts.h"
#include "cli/common/verb.h"
#include <weir/err.h>
#include <stdio.h>
#include <string.h>

/* verbs.inc has one VERB(name) per line, made by the build from the list in cli/meson.build. */
#define VERB(name) extern const struct verb verb_##name;
#include "cli/verbs.inc"
#undef VERB

static const struct verb *const verbs[] = {
#define VERB(name) &verb_##name,
#include "cli/verbs.inc"
#undef VERB
	NULL,
};
#define N_VERBS (sizeof(verbs) / sizeof(*verbs) - 1)

static const struct opt own_options[] = {
	{"help", 'h', NULL, "show this help and exit"},
	{"version", 'V', NULL, "show the version and exit"},
	{"completion", 0, "SHELL", "write the completion script for SHELL (bash)"},
	{NULL, 0, NULL, NULL},
};
static const struct verb program = {.name = "weir", .options = own_options};

static void print_usage(FILE *to)
{
	fprintf(to,
		"Usage: weir VERB [OPTION]... [OPERAND]...\n"
		"Regulate shared storage: how much each tenant gets, and how soon.\n\nVerbs:\n");
	for (size_t i = 0; i < N_VERBS; i++)
		fprintf(to, "  %-12s %s\n", verbs[i]->name, verbs[i]->summary);
	fprintf(to, "\nOptions:\n");
	opts_list(to, own_options);
	fprintf(to, "\nweir VERB --help shows a verb's options; see the manual page weir(1) for "
		    "details.\n");
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < N_VERBS; i++)
		if (strcmp(verbs[i]->name, name) == 0)
			return verbs[i];
	return NULL;
}

static int fail_unknown_verb(const char *word)
{
	const char *names[N_VERBS + 1];
	const char *near;

	for (size_t i = 0; i < N_VERBS; i++)
		names[i] = verbs[i]->name;
	names[N_VERBS] = NULL;
	if (*word && strstr(WEIR_LACKING, word))
		return opts_fail(NULL, "this program was built without '%s', which needs %s", word,
			strcmp(word, "shape") == 0 ? "libmnl, libbpf, clang and bpftool"
						   : "libmnl");
	near = weir_err_near(word, names);
	if (near)
		return opts_fail(NULL, "no verb '%s' (did you mean '%s'?)", word, near);
	return opts_fail(NULL, "no verb '%s'; weir --help lists them", word);
}

/*
 * Print one line per option, "verb option letter argument" with - for none, for the test of the
 * manual pages. Not listed in --help.
 */
static void dump_options(void)
{
	for (size_t i = 0; i <= N_VERBS; i++) {
		const struct verb *v = i < N_VERBS ? verbs[i] : &program;

		for (const struct opt *o = v->options; o && o->name; o++)
			printf("%s %s %c %s\n", v->name, o->name, o->letter ? o->letter : '-',
				o->argument ? o->argument : "-");
		if (i < N_VERBS)
			printf("%s help h -\n", v->name);
	}
}

static int handle_own_option(const char *word, const char *argument)
{
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
		print_usage(stdout);
	} else if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
		printf("weir %s\n", WEIR_VERSION);
	} else if (strcmp(word, "--completion") == 0) {
		if (!argument || strcmp(argument, "bash") != 0)
			return opts_fail(NULL, "--completion needs the name of a shell: bash");
		completion_bash(stdout, verbs, own_options);
	} else if (strcmp(word, "--dump-options") == 0) {
		dump_options();
	} else {
		return opts_fail(NULL, "no option %s; see weir --help", word);
	}
	return 0;
}

static int run_verb(const struct verb *v, int argc, char **argv)
{
	const char *values[OPTS_MOST];
	int n, status = opts_parse(v, argc, argv, values, &n);

	return status < 0 ? v->run(values, argv + 1, n) : status;
}

static int run_program(int argc, char **argv)
{
	const struct verb *v;

	if (argc < 2) {
		print_usage(stderr);
		return 2;
	}
	if (argv[1][0] == '-')
		return handle_own_option(argv[1], argv[2]);
	if (strcmp(argv[1], "help") == 0) {
		if (argc == 2)
			return handle_own_option("--help", NULL);
		v = find_verb(argv[2]);
		if (!v)
			return fail_unknown_verb(argv[2]);
		opts_help(v);
		return 0;
	}
	v = find_verb(argv[1]);
	return v ? run_verb(v, argc - 1, argv + 1) : fail_unknown_verb(argv[1]);
}

int main(int argc, char **argv)
{
	int status = run_program(argc, argv);

	/* A full disk or a closed pipe must not look like success. */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		perror("weir: standard output");
		if (status == 0)
			status = 1;
	}
	return status;
}
