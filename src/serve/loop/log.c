/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log: a line is built in a buffer on the stack and written by one write.
 *
 * METHOD   Events are counted by name in a small table: the first BURST of a second are logged, the
 *          rest only counted. The first line, of any event, after that second logs the count. When
 *          the table is full of events that are being counted, the one with the oldest second is
 *          replaced.
 */
#include "serve/loop/log.h"
#include "base/utf8.h"
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PAIRS 24 /* of an event */

#define LINE   2048 /* bytes; a longer line is cut */
#define EVENTS 64   /* names counted at once; there are some thirty */

static _Atomic(enum log_level) most = LOG_LEVEL_INFO;
static _Atomic(enum log_form) form = LOG_FORM_TEXT;
static atomic_bool to_journal;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *const level_names[] = {"error", "warning", "info", "debug"};
static const int priorities[] = {3, 4, 6, 7}; /* of syslog */

/* ---- how often */

struct counter {
	char event[32]; /* cut if longer; "": free */
	weir_time since;
	unsigned said;
	uint64_t unsaid;
};
static struct counter counters[EVENTS];

static struct counter *find_counter(const char *event)
{
	struct counter *oldest = &counters[0];

	for (size_t i = 0; i < EVENTS; i++) {
		struct counter *c = &counters[i];
		if (c->event[0] && strncmp(c->event, event, sizeof(c->event) - 1) == 0)
			return c;
		if (!c->event[0] || (oldest->event[0] && c->since < oldest->since))
			oldest = c;
	}
	*oldest = (struct counter){.since = INT64_MIN};
	snprintf(oldest->event, sizeof(oldest->event), "%s", event);
	return oldest;
}

bool log_admit(const char *event, weir_time now)
{
	struct counter *c = find_counter(event);

	if (c->since == INT64_MIN || now - c->since >= WEIR_SEC) {
		c->since = now;
		c->said = 0;
	}
	if (c->said < LOG_BURST) {
		c->said++;
		return true;
	}
	c->unsaid++;
	return false;
}

uint64_t log_unsaid(weir_time now, char event[32])
{
	for (size_t i = 0; i < EVENTS; i++) {
		struct counter *c = &counters[i];
		uint64_t n = c->unsaid;
		if (!n || now - c->since < WEIR_SEC)
			continue;
		memcpy(event, c->event, sizeof(c->event));
		c->unsaid = 0;
		return n;
	}
	return 0;
}

/* ---- a line */

struct line {
	size_t n;
	char text[LINE];
};

static void put_char(struct line *l, char c)
{
	if (l->n < LINE - 3) /* room for a quote, a brace and the newline */
		l->text[l->n++] = c;
}

static void puts_to(struct line *l, const char *s)
{
	while (*s)
		put_char(l, *s++);
}

/* Write in quotes; a byte that is no text becomes '?', so that no client can forge a line. */
static void put_quoted(struct line *l, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	put_char(l, '"');
	while (*s) {
		size_t n = utf8_shown(s);
		bool escaped = *s == '"' || *s == '\\';
		if (l->n + n + escaped > LINE - 3)
			break; /* never half of a character, or an incomplete escape */
		if (!n) {
			put_char(l, '?');
			s++;
			continue;
		}
		if (escaped)
			put_char(l, '\\');
		while (n--)
			put_char(l, (char)*s++);
	}
	l->text[l->n++] = '"'; /* put_char leaves room for it */
}

static bool plain(const char *s)
{
	static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				   "-_.:/@+,%[]*";

	return *s && !s[strspn(s, fine)];
}

static void put_value(struct line *l, const char *value)
{
	if (form == LOG_FORM_TEXT && plain(value))
		puts_to(l, value);
	else
		put_quoted(l, value);
}

static void put_time(struct line *l)
{
	char text[40];
	struct timespec t;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &t);
	gmtime_r(&t.tv_sec, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	puts_to(l, text);
	snprintf(text, sizeof(text), ".%03ldZ", t.tv_nsec / 1000000);
	puts_to(l, text);
}

static void begin(struct line *l, enum log_level level, const char *event)
{
	char prefix[8];

	l->n = 0;
	if (to_journal) {
		snprintf(prefix, sizeof(prefix), "<%d>", priorities[level]);
		puts_to(l, prefix);
	}
	if (form == LOG_FORM_JSON) {
		puts_to(l, "{\"time\":\"");
		put_time(l);
		puts_to(l, "\",\"level\":\"");
		puts_to(l, level_names[level]);
		puts_to(l, "\",\"event\":");
		put_quoted(l, event);
		return;
	}
	if (!to_journal) {
		put_time(l);
		put_char(l, ' ');
	}
	puts_to(l, level_names[level]);
	put_char(l, ' ');
	puts_to(l, event);
}

static void pair(struct line *l, const char *key, const char *value)
{
	/* Omit a pair that may not fit: half a string is no JSON. */
	if (l->n + strlen(key) + 8 > LINE - 3)
		return;
	if (form == LOG_FORM_JSON) {
		put_char(l, ',');
		put_quoted(l, key);
		put_char(l, ':');
	} else {
		put_char(l, ' ');
		puts_to(l, key);
		put_char(l, '=');
	}
	put_value(l, value);
}

static void end(struct line *l)
{
	const char *at = l->text;

	if (form == LOG_FORM_JSON)
		l->text[l->n++] = '}';
	l->text[l->n++] = '\n';
	while (l->n) {
		ssize_t n = write(STDERR_FILENO, at, l->n);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return; /* there is no reader */
		at += n;
		l->n -= (size_t)n;
	}
}

/* ---- for users */

void log_open(enum log_level level, enum log_form how)
{
	const char *journal = getenv("JOURNAL_STREAM"); /* DEVICE:INODE of its pipe; sd-daemon(3) */
	struct stat st;
	char own[64] = "";

	most = level;
	form = how;
	if (fstat(STDERR_FILENO, &st) == 0)
		snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	to_journal = journal && strcmp(journal, own) == 0;
}

static void say_unsaid(weir_time now)
{
	char event[32], text[24];
	struct line l;
	uint64_t n;

	while ((n = log_unsaid(now, event))) {
		begin(&l, LOG_LEVEL_WARNING, "log-unsaid");
		pair(&l, "of", event);
		snprintf(text, sizeof(text), "%ju", (uintmax_t)n);
		pair(&l, "count", text);
		end(&l);
	}
}

static void log_line(
	enum log_level level, bool limited, const char *event, const char *const *pairs)
{
	struct timespec t;
	weir_time now;
	struct line l;

	if (level > most)
		return;
	clock_gettime(CLOCK_MONOTONIC, &t);
	now = t.tv_sec * WEIR_SEC + t.tv_nsec;
	pthread_mutex_lock(&lock);
	say_unsaid(now);
	if (!limited || log_admit(event, now)) {
		begin(&l, level, event);
		for (; pairs[0]; pairs += 2)
			if (pairs[1])
				pair(&l, pairs[0], pairs[1]);
		end(&l);
	}
	pthread_mutex_unlock(&lock);
}

void log_event_pairs(enum log_level level, const char *event, const char *const *pairs)
{
	log_line(level, true, event, pairs);
}

static void log_args(enum log_level level, bool limited, const char *event, va_list args)
{
	const char *pairs[2 * PAIRS + 1];
	size_t n = 0;

	while (n < 2 * PAIRS && (pairs[n] = va_arg(args, const char *))) {
		pairs[n + 1] = va_arg(args, const char *);
		n += 2;
	}
	pairs[n] = NULL;
	log_line(level, limited, event, pairs);
}

void log_event(enum log_level level, const char *event, ...)
{
	va_list args;

	va_start(args, event);
	log_args(level, true, event, args);
	va_end(args);
}

void log_always(enum log_level level, const char *event, ...)
{
	va_list args;

	va_start(args, event);
	log_args(level, false, event, args);
	va_end(args);
}

const char *log_number(char text[24], double value)
{
	if (value >= -1e15 && value <= 1e15 && value == (double)(int64_t)value)
		snprintf(text, 24, "%jd", (intmax_t)value);
	else
		snprintf(text, 24, "%.6g", value);
	return text;
}
