/* SPDX-License-Identifier: BSD-3-Clause */
/* api-history: a snapshot every HISTORY_STEP for the history (serve/history), and answers from it. */
#include "base/container.h"
#include "serve/api/api-impl.h"
#include "serve/history/history.h"
#include "serve/loop/inherit.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BEHIND                                                                                     \
	(100 * WEIR_MS) /* after the end of a point: a snapshot that is early would be of the point before */

/* Set the timer to the end of the next point. */
static void wait_for_next(struct api *a)
{
	weir_time left = HISTORY_STEP - (weir_time)(loop_date() * 1e9) % HISTORY_STEP;

	loop_set(gateway_loop(a->gateway), &a->history_due, loop_clock() + left + BEHIND);
}

/* Say once that the file does not take the history, until it does again. */
static void warn_of_file(struct api *a)
{
	int r = a->history ? history_wrong(a->history) : 0;

	if (r < 0 && !a->history_wrong)
		log_event(LOG_LEVEL_WARNING, "history", "why", strerror(-r), "so",
			"it is kept in memory only", NULL);
	a->history_wrong = r < 0;
}

static void looked(void *arg, struct snapshot *s)
{
	struct api *a = arg;
	size_t lost;

	if (!s) /* the gateway ends, and the API has ended */
		return;
	a->history_looks = false;
	lost = a->history ? history_take(a->history, s, loop_date()) : 0;
	snapshot_free(s);
	if (lost && !a->history_full)
		log_event(LOG_LEVEL_WARNING, "history-full", "why",
			"there are more active tenants than the history has room for", NULL);
	a->history_full = lost > 0;
	warn_of_file(a);
}

/* The process that this one has replaced gives the file up when it ends. */
static void open_late(struct api *a)
{
	struct history *h;
	struct weir_err err;
	int r = history_new(a->history_late, &h, &err);

	if (r == -EBUSY)
		return;
	if (r == 0) {
		history_free(a->history);
		a->history = h;
	} else {
		log_event(LOG_LEVEL_WARNING, "history", "why", err.text, "so",
			"it is kept in memory only", NULL);
	}
	free(a->history_late);
	a->history_late = NULL;
}

static void on_due(struct loop_timer *t, weir_time now)
{
	struct api *a = container_of(t, struct api, history_due);

	if (a->history_late)
		open_late(a);
	if (!a->history_looks && gateway_look(a->gateway, NULL, looked, a) == 0)
		a->history_looks = true;
	wait_for_next(a);
}

int api_history_start(struct api *a, const char *folder)
{
	struct weir_err err;
	int r;

	if (folder && mkdir(folder, 0700) < 0 && errno != EEXIST)
		folder = NULL; /* the gateway has said so */
	r = history_new(folder, &a->history, &err);
	if (r == -EBUSY && inherit_keeps_names() && (a->history_late = strdup(folder))) {
		r = history_new(NULL, &a->history, &err);
	} else if (r < 0 && folder) {
		log_event(LOG_LEVEL_WARNING, "history", "why", err.text, "so",
			"it is kept in memory only", NULL);
		r = history_new(NULL, &a->history, &err);
	}
	if (r < 0)
		return r;
	a->history_due.due = on_due;
	wait_for_next(a);
	return 0;
}

void api_history_stop(struct api *a)
{
	loop_set(gateway_loop(a->gateway), &a->history_due, WEIR_NEVER);
	history_free(a->history);
	a->history = NULL;
	free(a->history_late);
	a->history_late = NULL;
}

void api_get_history(struct api *a, struct http_request *q, struct http_reply *ret)
{
	const char *tenant = http_query(q, "tenant"), *resource = http_query(q, "resource"),
		   *span = http_query(q, "span");
	weir_time last = 300 * WEIR_SEC;
	struct weir_err err;
	FILE *to;
	int r;

	if (tenant && resource) {
		http_json_fail(ret, 400, "tenant or resource, not both");
		return;
	}
	if (span && weir_units_time(span, &last, &err) < 0) {
		http_json_fail(ret, 400, err.text);
		return;
	}
	if (last < HISTORY_STEP || last > HISTORY_SPAN * WEIR_SEC) {
		http_json_fail(ret, 400, "span: must be from 5s to 24h");
		return;
	}
	to = open_memstream(&ret->body, &ret->length);
	if (!to)
		return;
	r = history_write(a->history,
		tenant     ? HISTORY_TENANT
		: resource ? HISTORY_RESOURCE
			   : HISTORY_GATEWAY,
		tenant     ? tenant
		: resource ? resource
			   : "",
		(double)last / 1e9, loop_date(), to);
	if (fclose(to) == 0 && r == 0) {
		ret->type = HTTP_JSON;
		ret->status = 200;
		return;
	}
	free(ret->body);
	ret->body = NULL;
	ret->length = 0;
	if (r == -ENOENT)
		http_json_fail(ret, 404, "the history has nothing of that name");
}
