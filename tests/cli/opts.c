/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/common/opts.h"
#include "cli/common/verb.h"
#include "test.h"
#include <unistd.h>

static const struct opt options[] = {
	{"seed", 's', "N", "the seed"},
	{"quiet", 'q', NULL, "say less"},
	{"out", 0, "DIR", "where"},
	{NULL, 0, NULL, NULL},
};
static const struct verb verb = {
	.name = "try", .summary = "Tries", .usage = "[OPTION]... FILE", .options = options};

static const char *values[3];
static int operands;
static char *args[16];

/* Parse a line of words separated by single spaces. */
static int parse(const char *line)
{
	static char text[256];
	int argc = 0;

	snprintf(text, sizeof(text), "%s", line);
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
		args[argc++] = word;
	operands = -1;
	return opts_parse(&verb, argc, args, values, &operands);
}

static void nothing_given(void)
{
	CHECK_INT(parse("try"), -1);
	CHECK_INT(operands, 0);
	for (int i = 0; i < 3; i++)
		CHECK(!values[i]);
}

static void every_form(void)
{
	CHECK_INT(parse("try --seed 7 --quiet --out=dir"), -1);
	CHECK_STR(values[0], "7");
	CHECK_STR(values[1], "");
	CHECK_STR(values[2], "dir");
	CHECK_INT(parse("try -s 8 -q"), -1);
	CHECK_STR(values[0], "8");
	CHECK_STR(values[1], "");
	CHECK(!values[2]);
	CHECK_INT(parse("try -s9"), -1);
	CHECK_STR(values[0], "9");
	CHECK_INT(parse("try --out="), -1);
	CHECK_STR(values[2], "");
	CHECK_INT(parse("try --seed --quiet"),
		-1); /* the word after an option is its value, even if it looks like an option */
	CHECK_STR(values[0], "--quiet");
	CHECK(!values[1]);
}

static void last_wins(void)
{
	CHECK_INT(parse("try --seed 1 -s 2 --seed=3"), -1);
	CHECK_STR(values[0], "3");
}

static void operands_in_order(void)
{
	CHECK_INT(parse("try a --seed 1 b -q - c"), -1);
	CHECK_INT(operands, 4);
	CHECK_STR(args[1], "a");
	CHECK_STR(args[2], "b");
	CHECK_STR(args[3], "-");
	CHECK_STR(args[4], "c");
	CHECK_INT(parse("try a -- --seed -q"), -1);
	CHECK_INT(operands, 3);
	CHECK_STR(args[2], "--seed");
	CHECK_STR(args[3], "-q");
	CHECK(!values[0] && !values[1]);
}

/* Return the message on standard error for a line that must be refused. */
static const char *refused(const char *line)
{
	static char text[512];
	FILE *file = tmpfile();
	int old = dup(2);
	size_t n;

	CHECK(file && old >= 0);
	fflush(stderr);
	CHECK(dup2(fileno(file), 2) == 2);
	int status = parse(line);
	fflush(stderr);
	dup2(old, 2);
	close(old);
	rewind(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = 0;
	fclose(file);
	CHECK_INT(status, 2);
	CHECK_INT(operands, -1); /* outputs only on success */
	return text;
}

static void slips(void)
{
	CHECK_STR(refused("try --sede 1"), "weir: try: no option --sede (did you mean --seed?)\n");
	CHECK_STR(
		refused("try --seed2=1"), "weir: try: no option --seed2 (did you mean --seed?)\n");
	CHECK_STR(refused("try --frobnicate"),
		"weir: try: no option --frobnicate; see weir try --help\n");
	CHECK_STR(refused("try -x"), "weir: try: no option -x; see weir try --help\n");
	CHECK_STR(refused("try --seed"), "weir: try: --seed needs N after it\n");
	CHECK_STR(refused("try -s"), "weir: try: --seed needs N after it\n");
	CHECK_STR(refused("try --quiet=1"), "weir: try: --quiet=1: --quiet takes no value\n");
	CHECK_STR(refused("try -qs"), "weir: try: -qs: --quiet takes no value\n");
}

static void seeds(void)
{
	static const char *const wrong[] = {
		"", "-1", " 1", "+1", "1e5", "0x1", "1.5", "seven", "18446744073709551616"};
	uint64_t seed = 7;

	CHECK_INT(opts_seed(&verb, NULL, &seed), 0);
	CHECK_INT((int)seed, 7);
	CHECK_INT(opts_seed(&verb, "12", &seed), 0);
	CHECK_INT((int)seed, 12);
	CHECK_INT(opts_seed(&verb, "18446744073709551615", &seed), 0);
	CHECK(seed == UINT64_MAX);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		CHECK_INT(opts_seed(&verb, wrong[i], &seed), 2);
	CHECK(seed == UINT64_MAX); /* outputs only on success */
}

static void a_verb_without_options(void)
{
	static const struct verb bare = {.name = "bare", .summary = "Nothing", .usage = ""};
	char name[] = "bare", file[] = "file";
	char *words[] = {name, file, NULL};

	CHECK_INT(opts_parse(&bare, 2, words, NULL, &operands), -1);
	CHECK_INT(operands, 1);
}

int main(void)
{
	RUN(nothing_given);
	RUN(every_form);
	RUN(last_wins);
	RUN(operands_in_order);
	RUN(slips);
	RUN(seeds);
	RUN(a_verb_without_options);
	return 0;
}
