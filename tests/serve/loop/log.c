/* SPDX-License-Identifier: BSD-3-Clause */
/* log: the form of a line; and that no client can forge a line or fill the disk. */
#include "test.h"
#include "serve/loop/log.h"
#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

static FILE *file; /* standard error is redirected here */
static int saved;
static char text[100000];

static void begin(void)
{
	file = tmpfile();
	CHECK(file);
	saved = dup(STDERR_FILENO);
	dup2(fileno(file), STDERR_FILENO);
}

static void finish(void)
{
	size_t n;

	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = 0;
	fclose(file);
}

static void as_text(void)
{
	char number[24];

	begin();
	log_open(LOG_LEVEL_INFO, LOG_FORM_TEXT);
	log_event(LOG_LEVEL_WARNING, "client-lost", "client", "127.0.0.1:4711", "why",
		"bad \"magic\"\n<3>error forged", "none", NULL, "size", log_number(number, 12.5),
		"empty", "", NULL);
	log_event(LOG_LEVEL_DEBUG, "not-said", NULL);
	finish();
	CHECK(strlen(text) > 25);
	CHECK_INT(text[4], '-');
	CHECK_STR(text + 23,
		"Z warning client-lost client=127.0.0.1:4711 why=\"bad \\\"magic\\\"?<3>error "
		"forged\" size=12.5 empty=\"\"\n");
}

static void as_json(void)
{
	char longer[5000];
	json_t *j;

	memset(longer, '"', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	begin();
	log_open(LOG_LEVEL_DEBUG, LOG_FORM_JSON);
	log_event(LOG_LEVEL_DEBUG, "json-one", "who", "a\\b\xff\x01é", NULL);
	finish();
	j = json_loads(text, 0, NULL);
	CHECK(j);
	CHECK_STR(json_string_value(json_object_get(j, "level")), "debug");
	CHECK_STR(json_string_value(json_object_get(j, "event")), "json-one");
	CHECK_STR(json_string_value(json_object_get(j, "who")), "a\\b??é");
	json_decref(j);

	/* Clients may send invalid UTF-8, and bytes that a terminal takes for ESC [. */
	begin();
	log_event(LOG_LEVEL_DEBUG, "json-two", "who", "\xed\xa0\x80 \xe0\x80\x80 \xc2\x9b", NULL);
	finish();
	j = json_loads(text, 0, NULL);
	CHECK(j);
	CHECK_STR(json_string_value(json_object_get(j, "who")), "??? ??? ?\?");
	json_decref(j);

	/* Cut at any place: still valid JSON. */
	for (size_t i = 0; i < 9; i++) {
		char event[32];
		snprintf(event, sizeof(event), "json-cut%.*s", (int)i, "12345678");
		begin();
		log_event(LOG_LEVEL_DEBUG, event, "long", longer, "more", longer, NULL);
		finish();
		j = json_loads(text, 0, NULL);
		CHECK(j);
		json_decref(j);
	}
	begin();
	log_event(LOG_LEVEL_DEBUG, "json-long", "a", "x", "long", longer, "more", longer, NULL);
	finish();
	j = json_loads(text, 0, NULL);
	CHECK(j);
	CHECK(strlen(text) < 2100);
	CHECK_STR(json_string_value(json_object_get(j, "a")), "x");
	CHECK(json_string_length(json_object_get(j, "long")) > 500);
	json_decref(j);
}

static void under_systemd(void)
{
	struct stat st;
	char stream[64];

	begin();
	CHECK_INT(fstat(STDERR_FILENO, &st), 0);
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	log_open(LOG_LEVEL_INFO, LOG_FORM_TEXT);
	log_event(LOG_LEVEL_ERROR, "disk-lost", NULL);
	finish();
	unsetenv("JOURNAL_STREAM");
	CHECK_STR(text, "<3>error disk-lost\n");
}

static void ten_a_second(void)
{
	char event[32];
	weir_time t = 1000 * WEIR_SEC;

	for (int i = 0; i < 25; i++)
		CHECK_INT(log_admit("flood", t + i), i < LOG_BURST);
	CHECK(log_admit("other", t)); /* has its own count */
	CHECK_INT(log_unsaid(t + WEIR_SEC - 1, event), 0);
	CHECK_INT(log_unsaid(t + WEIR_SEC, event), 15);
	CHECK_STR(event, "flood");
	CHECK_INT(log_unsaid(t + WEIR_SEC, event), 0);
	CHECK(log_admit("flood", t + WEIR_SEC));
}

/* More event names than it counts at once: still no event is logged more often. */
static void many_events(void)
{
	weir_time t = 5000 * WEIR_SEC;
	char event[32];

	for (int i = 0; i < 1000; i++) {
		snprintf(event, sizeof(event), "event-%d", i);
		CHECK(log_admit(event, t + i));
	}
	for (int i = 0; i < 30; i++)
		CHECK_INT(log_admit("event-999", t + 1000 + i), i < LOG_BURST - 1);
}

static void numbers(void)
{
	char n[24];

	CHECK_STR(log_number(n, 5), "5");
	CHECK_STR(log_number(n, -3), "-3");
	CHECK_STR(log_number(n, 1234567890123.0), "1234567890123");
	CHECK_STR(log_number(n, 0.25), "0.25");
	CHECK_STR(log_number(n, 1e300), "1e+300");
	CHECK_STR(log_number(n, NAN), "nan");
}

int main(void)
{
	RUN(as_text);
	RUN(as_json);
	RUN(under_systemd);
	RUN(ten_a_second);
	RUN(many_events);
	RUN(numbers);
	return 0;
}
