/* SPDX-License-Identifier: BSD-3-Clause */
#include <weir/err.h>
#include "test.h"

#include <errno.h>

static void set_formats_and_returns_the_code(void)
{
	struct weir_err e;

	CHECK_INT(weir_err_set(&e, -EINVAL, "weight: %d is not > %s", -1, "0"), -EINVAL);
	CHECK_STR(e.text, "weight: -1 is not > 0");
	CHECK_INT(weir_err_set(NULL, -ENOENT, "no reader of %s", "this"), -ENOENT);
	CHECK_INT(weir_err_at(NULL, -ENOENT, (struct weir_place){"f", 1, 1}, "nor this"), -ENOENT);
}

static void at_prints_the_known_parts_of_a_place(void)
{
	struct weir_err e;

	CHECK_INT(
		weir_err_at(&e, -EIO, (struct weir_place){"a.yaml", 12, 9}, "no %s", "good"), -EIO);
	CHECK_STR(e.text, "a.yaml:12:9: no good");
	weir_err_at(&e, -EIO, (struct weir_place){"a.csv", 12, 0}, "bad");
	CHECK_STR(e.text, "a.csv:12: bad");
	weir_err_at(&e, -EIO, (struct weir_place){"a.csv", 0, 4}, "bad");
	CHECK_STR(e.text, "a.csv: bad");
	weir_err_at(&e, -EIO, (struct weir_place){NULL, 3, 4}, "bad");
	CHECK_STR(e.text, "3:4: bad");
	weir_err_at(&e, -EIO, (struct weir_place){NULL, 0, 0}, "bad");
	CHECK_STR(e.text, "bad");
}

static void long_messages_are_cut_at_a_character(void)
{
	char text[1000];
	struct weir_err e;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	weir_err_set(&e, -EINVAL, "%s", text);
	CHECK_INT(strlen(e.text), sizeof(e.text) - 1);

	/* A file name that fills the message leaves room for the rest. */
	weir_err_at(&e, -EINVAL, (struct weir_place){text, 4294967295u, 4294967295u}, "the point");
	CHECK(strstr(e.text, ":4294967295:4294967295: the point"));

	/* "µ" has two bytes, "…" three, U+1F600 four; wherever the cut falls, no partial character
	 * remains. */
	static const char *const wide[] = {"µ", "…", "\xF0\x9F\x98\x80"};
	for (size_t w = 0; w < 3; w++)
		for (size_t ascii = sizeof(e.text) - 8; ascii < sizeof(e.text); ascii++) {
			size_t n = strlen(wide[w]);
			text[ascii] = '\0';
			weir_err_set(&e, -EINVAL, "%s%s%s%s%s", text, wide[w], wide[w], wide[w],
				wide[w]);
			text[ascii] = 'x';
			size_t whole = (sizeof(e.text) - 1 - ascii) / n;
			CHECK_INT(strlen(e.text), ascii + (whole < 4 ? whole : 4) * n);
		}
}

static void control_characters_do_not_get_through(void)
{
	struct weir_err e;

	weir_err_set(&e, -EINVAL, "a\nb\x1b[2Jc\x7f%s", "\xC2\x9B;\t");
	CHECK_STR(e.text, "a?b?[2Jc???;?");
	weir_err_set(&e, -EINVAL, "%s", "\xC2\xB5s \xC3\xA9 …"); /* letters stay */
	CHECK_STR(e.text, "µs é …");
	weir_err_set(&e, -EINVAL, "%s", "\xC2");
	CHECK_STR(e.text, "?");
	weir_err_set(&e, -EINVAL, "%s", "\x80 \xC0\x80 \xE2\x80x \xF5 \xF0\x9F\x98\x80");
	CHECK_STR(e.text, "? ?\? ?\?x ? \xF0\x9F\x98\x80");
	weir_err_set(&e, -EINVAL, "\"%.4s\" is cut", "abcµ"); /* by printf, in the middle of µ */
	CHECK_STR(e.text, "\"abc?\" is cut");
}

static const char *near(const char *word)
{
	static const char *const keys[] = {"weight", "name", "min", "max", "children", "slo",
		"match", "Mbps", "MBps", "burst", NULL};

	return weir_err_near(word, keys);
}

static void near_finds_slips(void)
{
	CHECK_STR(near("wieght"), "weight");  /* swapped */
	CHECK_STR(near("weigth"), "weight");  /* swapped at the end */
	CHECK_STR(near("wight"), "weight");   /* left out */
	CHECK_STR(near("weights"), "weight"); /* added */
	CHECK_STR(near("childern"), "children");
	CHECK_STR(near("Name"), "name");
	CHECK_STR(near("NAME"), "name"); /* four changes of case count as two */
	CHECK_STR(near("mx"), "max");
	CHECK_STR(near("mbps"), "Mbps"); /* one change of case, not two */
	CHECK_STR(near("MBPS"), "MBps");
	CHECK_STR(near("max"), "max");
	CHECK_STR(near("mix"), "min"); /* the first of equals */
	CHECK_STR(near("brust"), "burst");
}

static void near_does_not_guess(void)
{
	char longest[400];

	CHECK(near("") == NULL);
	CHECK(near("z") == NULL);
	CHECK(near("colour") == NULL);
	CHECK(near("waite") == NULL);
	CHECK_STR(near("xexght"), "weight"); /* two of six */
	CHECK(near("xexgxt") == NULL);
	CHECK_STR(near("xhyldrzn"), "children"); /* three typos in eight letters are likely, … */
	CHECK(near("xhyldrzq") == NULL);         /* … four are not */
	memset(longest, 'w', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	CHECK(near(longest) == NULL);

	const char *const words[] = {longest, "ab", NULL};
	CHECK_STR(weir_err_near("abc", words), "ab");
	const char *const empty[] = {NULL};
	CHECK(weir_err_near("abc", empty) == NULL);
	/* One letter replaced by another has nothing in common. */
	const char *const letters[] = {"k", NULL};
	CHECK(weir_err_near("m", letters) == NULL);
	CHECK_STR(weir_err_near("K", letters), "k");
}

int main(void)
{
	RUN(set_formats_and_returns_the_code);
	RUN(at_prints_the_known_parts_of_a_place);
	RUN(long_messages_are_cut_at_a_character);
	RUN(control_characters_do_not_get_through);
	RUN(near_finds_slips);
	RUN(near_does_not_guess);
	return 0;
}
