/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/completion.h"
#include "cli/trace/trace.h"
#include <string.h>

/* Return true if bash should complete file names for an option's argument or an operand. */
static bool is_file(const char *argument)
{
	static const char *const files[] = {"FILE", "DIR", "SCENARIO", "POLICY", "TRACE"};

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		if (argument && strstr(argument, files[i]))
			return true;
	return false;
}

static void option_words(FILE *to, const struct opt *options)
{
	for (const struct opt *o = options; o && o->name; o++)
		fprintf(to, "--%s ", o->name);
}

/* Return the values of an option: the formats that can be read or, for --to, written. NULL:
 * unknown. */
static const char *value_words(const struct opt *o, char *buf, size_t len)
{
	if (!o->argument || strcmp(o->argument, "FORMAT") != 0)
		return NULL;
	return trace_formats(strcmp(o->name, "to") == 0, " ", buf, len);
}

static void value_pattern(FILE *to, const struct verb *v, const struct opt *o, bool more)
{
	fprintf(to, "%s%s:--%s", more ? "|" : "\t", v->name, o->name);
	if (o->letter)
		fprintf(to, "|%s:-%c", v->name, o->letter);
}

/* Write a case pattern of the options whose value is not a word of a list: those that take files,
 * or the others. */
static void value_case(FILE *to, const struct verb *v, bool file, const char *action)
{
	char words[TRACE_FORMATS_ROOM];
	bool any = false;

	for (const struct opt *o = v->options; o && o->name; o++) {
		if (!o->argument || is_file(o->argument) != file ||
			value_words(o, words, sizeof(words)))
			continue;
		value_pattern(to, v, o, any);
		any = true;
	}
	if (any)
		fprintf(to, ") %s ;;\n", action);
}

static void value_cases(FILE *to, const struct verb *v)
{
	char words[TRACE_FORMATS_ROOM];

	value_case(to, v, true, "COMPREPLY=($(compgen -f -- \"$cur\")); return");
	value_case(to, v, false, "return");
	for (const struct opt *o = v->options; o && o->name; o++) {
		if (!value_words(o, words, sizeof(words)))
			continue;
		value_pattern(to, v, o, false);
		fprintf(to, ") COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")); return ;;\n", words);
	}
}

/* Write the subverbs; after `experiment run` the experiments, listed when completion is
 * requested. */
static void operand_words(FILE *to, const struct verb *v)
{
	if (!v->subverbs)
		return;
	fprintf(to, "\t\t*)\n\t\t\t[ \"$COMP_CWORD\" -eq 2 ] && words=\"");
	for (const char *const *s = v->subverbs; *s; s++)
		fprintf(to, "%s%s", s == v->subverbs ? "" : " ", *s);
	fprintf(to, "\"\n");
	if (strcmp(v->name, "experiment") == 0)
		fprintf(to,
			"\t\t\t[ \"$COMP_CWORD\" -gt 2 ] && [ \"${COMP_WORDS[2]}\" = run ] &&\n"
			"\t\t\t\twords=\"all $(\"${COMP_WORDS[0]}\" experiment list 2>/dev/null |\n"
			"\t\t\t\t\ttail -n +2 | cut -d ' ' -f 1)\"\n");
	fprintf(to, "\t\t\t;;\n");
}

void completion_bash(FILE *to, const struct verb *const *verbs, const struct opt *own)
{
	fprintf(to, "# bash completion for weir, written by `weir --completion bash`\n"
		    "_weir()\n{\n"
		    "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
		    "\tlocal verb=${COMP_WORDS[1]} words=\n"
		    "\tCOMPREPLY=()\n"
		    "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
		    "\t\tCOMPREPLY=($(compgen -W \"");
	for (const struct verb *const *v = verbs; *v; v++)
		fprintf(to, "%s ", (*v)->name);
	option_words(to, own);
	fprintf(to, "\" -- \"$cur\"))\n\t\treturn\n\tfi\n"
		    "\tcase $verb:$prev in\n"
		    "\t--completion:--completion) COMPREPLY=($(compgen -W bash -- \"$cur\")); "
		    "return ;;\n");
	for (const struct verb *const *v = verbs; *v; v++)
		value_cases(to, *v);
	fprintf(to, "\tesac\n\tcase $verb in\n");
	for (const struct verb *const *v = verbs; *v; v++) {
		fprintf(to, "\t%s)\n\t\tcase $cur in\n\t\t-*) words=\"", (*v)->name);
		option_words(to, (*v)->options);
		fprintf(to, "--help\" ;;\n");
		operand_words(to, *v);
		fprintf(to, "\t\tesac ;;\n");
	}
	fprintf(to, "\tesac\n"
		    "\tif [ -n \"$words\" ]; then\n"
		    "\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
		    "\telse\n"
		    "\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n"
		    "\tfi\n}\n"
		    "complete -o filenames -F _weir weir\n");
}
