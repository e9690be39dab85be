/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log: one line per event, for people and for programs.
 *
 * On standard error: `warning client-lost client=127.0.0.1:4711 export=db-data why="bad magic"`,
 * with the time before it; or one JSON object per line; or, under systemd, the priority prefix <N>
 * instead of the time. Any thread; a line is one write. Not for the hot path. More than 10 of one
 * event in a second are counted and reported in one line: a client cannot fill a disk.
 */
#pragma once

#include <weir/clock.h>
#include <stdbool.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_form { LOG_FORM_TEXT, LOG_FORM_JSON };

void log_open(enum log_level most, enum log_form form); /* before the first thread starts */

/* Pairs of key and value, all strings, then NULL: log_event(LOG_LEVEL_INFO, "client-lost",
 * "client", name, "why", text, NULL). A NULL value is omitted with its key. */
void log_event(enum log_level level, const char *event, ...) __attribute__((sentinel));
/* The same, however often: for lines that must not be lost, which no client can cause that is not trusted. */
void log_always(enum log_level level, const char *event, ...) __attribute__((sentinel));
/* log_event from an array. */
void log_event_pairs(enum log_level level, const char *event, const char *const *pairs);
const char *log_number(char text[24], double value); /* "12.5"; returns text */

/* The rate limit of log_event (which holds the lock), and of its test: return true if this event
 * may be logged now; and get one event with omitted lines in a past second, and their number, 0:
 * none. */
#define LOG_BURST 10
bool log_admit(const char *event, weir_time now);
uint64_t log_unsaid(weir_time now, char event[32]);
