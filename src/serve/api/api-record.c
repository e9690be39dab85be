/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api-record: recordings. They go into one folder, which the gateway's own policy file or command
 * line names: a client of the API chooses a name in it and nothing else.
 */
#include "base/container.h"
#include "serve/api/api-impl.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Default of requests in a recording: some 4 GB of lines. */
#define RECORD_MOST 100000000

static void record_due(struct loop_timer *t, weir_time now)
{
	struct api *a = container_of(t, struct api, record_end);

	a->recorded_set =
		gateway_record_stop(a->gateway, &a->recorded, &a->dropped) == 0 || a->recorded_set;
}

int api_record_start(struct api *a, const char *folder)
{
	a->record_end.due = record_due;
	a->recordings = folder ? strdup(folder) : NULL;
	return folder && !a->recordings ? -ENOMEM : 0;
}

void api_record_stop(struct api *a)
{
	loop_set(gateway_loop(a->gateway), &a->record_end, WEIR_NEVER);
	free(a->recordings);
}

/* A client has started the recording, or asked for its state. */
static void record_asked(struct api *a)
{
	weir_time now = loop_clock(), end = a->record_until;

	if (a->record_while < end - now)
		end = now + a->record_while;
	loop_set(gateway_loop(a->gateway), &a->record_end, end);
}

/* Return the name in a file: a plain one, or a path directly in the folder. NULL: neither. */
static const char *name_in(const char *folder, const char *file)
{
	size_t n = strlen(folder);

	while (n > 1 && folder[n - 1] == '/')
		n--;
	if (file[0] == '/' && strncmp(file, folder, n) == 0 && file[n] == '/')
		file += n + 1;
	return *file && *file != '.' && !strchr(file, '/') ? file : NULL;
}

/* Get the path that ?file= names; 0 or -1: refused. */
static int find_file(const struct api *a, const struct http_request *q, char ret_path[PATH_MAX],
	struct http_reply *ret)
{
	const char *file = http_query(q, "file"), *name;
	char why[PATH_MAX + 100];

	if (!a->recordings) {
		http_json_fail(ret, 400,
			"this gateway has no folder for recordings; its policy file can name one: "
			"recordings");
		return -1;
	}
	name = file ? name_in(a->recordings, file) : NULL;
	if (name && snprintf(ret_path, PATH_MAX, "%s/%s", a->recordings, name) < PATH_MAX)
		return 0;
	snprintf(why, sizeof(why), "?file= must be a name without '/': recordings go to %s",
		a->recordings);
	http_json_fail(ret, 400, why);
	return -1;
}

void api_post_record(struct api *a, struct http_request *q, struct http_reply *ret)
{
	const char *most = http_query(q, "requests"), *duration = http_query(q, "duration"),
		   *asked = http_query(q, "while");
	weir_time span = WEIR_NEVER, lease = WEIR_NEVER;
	char path[PATH_MAX];
	double n = RECORD_MOST;
	struct weir_err err = {""};
	int r;

	if (find_file(a, q, path, ret) < 0)
		return;
	if ((most && weir_units_count(most, &n, &err) < 0) ||
		(duration && weir_units_time(duration, &span, &err) < 0) ||
		(asked && weir_units_time(asked, &lease, &err) < 0)) {
		http_json_fail(ret, 400, err.text);
		return;
	}
	if (n < 1 || n > 1e18) {
		http_json_fail(ret, 400, "requests: must be at least 1");
		return;
	}
	r = gateway_record(a->gateway, path, (uint64_t)n, &err);
	if (r < 0) {
		api_fail(ret, r, &err);
		return;
	}
	a->recorded_set = false;
	a->record_until = span == WEIR_NEVER ? span : loop_clock() + span;
	a->record_while = lease;
	record_asked(a);
	http_json_give(ret, 200, json_pack("{s:b, s:s}", "recording", 1, "file", path));
}

static void give_record(struct http_reply *ret, bool on, uint64_t recorded, uint64_t dropped)
{
	http_json_give(ret, 200,
		json_pack("{s:b, s:I, s:I}", "recording", on, "recorded", (json_int_t)recorded,
			"dropped", (json_int_t)dropped));
}

void api_get_record(struct api *a, struct http_request *q, struct http_reply *ret)
{
	uint64_t recorded, dropped;
	bool on = gateway_recording(a->gateway, &recorded, &dropped);

	if (on)
		record_asked(a);
	if (!on && a->recorded_set) {
		recorded = a->recorded;
		dropped = a->dropped;
	}
	give_record(ret, on, recorded, dropped);
}

void api_delete_record(struct api *a, struct http_request *q, struct http_reply *ret)
{
	uint64_t recorded = a->recorded, dropped = a->dropped;
	int r = gateway_record_stop(a->gateway, &recorded, &dropped);

	loop_set(gateway_loop(a->gateway), &a->record_end, WEIR_NEVER);
	if (r < 0 && !a->recorded_set)
		http_json_fail(ret, 404, "nothing is being recorded");
	else
		give_record(ret, false, recorded, dropped);
	a->recorded_set = false;
}
