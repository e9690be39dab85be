/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * screen: full-screen use of a terminal, restored on every way out.
 *
 * The alternate screen of the terminal, no echo, no cursor, keys one by one. Signals that end the
 * program are received in screen_wait, so that the terminal is restored first; ^Z restores it while
 * the program is stopped. Standard input and output are the terminal.
 */
#pragma once

#include <weir/clock.h>
#include <stddef.h>

/* Return 0, or -ENOTTY: standard input or output is not a terminal. One screen at a time. */
int screen_open(void);
void screen_close(void); /* idempotent; also called at exit */

unsigned screen_rows(void);

/* Draw lines of text, from the top; lines that do not fit are omitted, long ones are cut, and
 * headings (TABLE_HEAD) are highlighted. One write, so that nothing flickers. */
void screen_draw(const char *text);

enum screen_event { SCREEN_TIME, SCREEN_KEY, SCREEN_RESIZED, SCREEN_END };
/* Wait until `until` (CLOCK_MONOTONIC), a key, a change of size or a signal that ends the program.
 * A key is its character or one of those below. */
enum {
	SCREEN_UP = 256,
	SCREEN_DOWN,
	SCREEN_PAGE_UP,
	SCREEN_PAGE_DOWN,
	SCREEN_HOME,
	SCREEN_LAST,
	SCREEN_ESCAPE,
	SCREEN_UNKNOWN
};
enum screen_event screen_wait(weir_time until, int *ret_key);
