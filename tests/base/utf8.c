/* SPDX-License-Identifier: BSD-3-Clause */
/* utf8: the characters that are shown, and those replaced by '?'. */
#include "base/utf8.h"
#include "test.h"

static size_t shown(const char *s)
{
	return utf8_shown((const unsigned char *)s);
}

static void characters(void)
{
	CHECK_INT(shown("a\xff"), 1);
	CHECK_INT(shown(" "), 1);
	CHECK_INT(shown("~"), 1);
	CHECK_INT(shown("\xc2\xa0"), 2); /* the first after C1 */
	CHECK_INT(shown("\xc3\x80"), 2);
	CHECK_INT(shown("\xdf\xbf"), 2);
	CHECK_INT(shown("\xe2\x82\xac"), 3);
	CHECK_INT(shown("\xe0\xa0\x80"), 3);
	CHECK_INT(shown("\xed\x9f\xbf"), 3);
	CHECK_INT(shown("\xef\xbf\xbd"), 3);
	CHECK_INT(shown("\xf0\x90\x80\x80"), 4);
	CHECK_INT(shown("\xf0\x9f\x98\x80"), 4);
	CHECK_INT(shown("\xf4\x8f\xbf\xbf"), 4);
}

static void controls(void)
{
	CHECK_INT(shown(""), 0);
	CHECK_INT(shown("\n"), 0);
	CHECK_INT(shown("\033[2J"), 0);
	CHECK_INT(shown("\x7f"), 0);
	CHECK_INT(shown("\xc2\x80"), 0);
	CHECK_INT(shown("\xc2\x9b"), 0); /* ESC [ as one character */
	CHECK_INT(shown("\xc2\x9f"), 0);
}

static void no_characters(void)
{
	CHECK_INT(shown("\x80"), 0);
	CHECK_INT(shown("\xbf"), 0);
	CHECK_INT(shown("\xc1\xbf"), 0); /* overlong DEL */
	CHECK_INT(shown("\xc3"), 0);     /* truncated: the terminator is not part of it */
	CHECK_INT(shown("\xc3z"), 0);
	CHECK_INT(shown("\xe2\x82"), 0);
	CHECK_INT(shown("\xf0\x9f\x98z"), 0);
	CHECK_INT(shown("\xe0\x9f\xbf"), 0); /* overlong: two bytes suffice */
	CHECK_INT(shown("\xed\xa0\x80"), 0); /* a surrogate: invalid in JSON */
	CHECK_INT(shown("\xf0\x8f\xbf\xbf"), 0);
	CHECK_INT(shown("\xf4\x90\x80\x80"), 0); /* beyond U+10FFFF */
	CHECK_INT(shown("\xf5\x80\x80\x80"), 0);
	CHECK_INT(shown("\xff"), 0);
}

int main(void)
{
	RUN(characters);
	RUN(controls);
	RUN(no_characters);
	return 0;
}
