/* SPDX-License-Identifier: BSD-3-Clause */
/* api-impl: shared by api*.c. */
#pragma once

#include "serve/api/api.h"
#include "serve/gateway/gateway.h"
#include "serve/http/json.h"
#include <pthread.h>
#include <stdatomic.h>

struct api_call;
struct look;

struct api { /* the main thread's, but for `http` */
	struct gateway *gateway;
	struct member *member; /* NULL: none */
	struct http *http;     /* on `loop` */
	/* api-call.c */
	struct loop *loop;
	pthread_t thread;
	bool running, stopping;
	struct api_call *calls; /* that are not answered yet */
	struct loop_task stop;
	/* api-look.c */
	struct look *waiting, **waiting_end; /* for others to be sent */
	unsigned n_looks;                    /* being gathered or sent */
	atomic_uint crowd;                   /* how many wait; read by the thread of HTTP */
	/* api-record.c */
	char *recordings; /* folder; NULL: none */
	struct loop_timer record_end;
	weir_time record_until; /* WEIR_NEVER: its duration is not bounded */
	/* end the recording after so long without a request for it; WEIR_NEVER: do not */
	weir_time record_while;
	bool recorded_set; /* the timer has ended a recording, and this is its result */
	uint64_t recorded, dropped;
	/* api-history.c */
	struct history *history;
	struct loop_timer history_due;
	bool history_looks; /* a snapshot for it is being gathered */
	bool history_full;  /* and the last one had no room for some tenants */
	char *history_late; /* a folder whose history the process has that this one replaces; or NULL */
	bool history_wrong;  /* the file did not take the last points */
	struct plans *plans; /* serve/host/plans.h; NULL: none was asked for */
};

typedef void api_run(struct api *a, struct http_request *q, struct http_reply *ret);

/* ---- api-call.c */

/* Instead of filling in its reply a route may keep the request, and answer it later from the main
 * thread, once, at any time; an answer after api_stop is dropped. */
struct api_call *api_keep(struct http_request *q);
void api_answer(struct api_call *c, const struct http_reply *r);
http_handler api_handle;            /* arg: the API */
int api_calls_start(struct api *a); /* 0 or a negative errno */
void api_calls_stop(struct api *a);

/* ---- api.c */

void api_route(struct api *a, struct http_request *q, struct http_reply *ret);
/* Return the HTTP status for a negative errno. */
void api_fail(struct http_reply *ret, int code, const struct weir_err *err);
/* Make a change, and answer with what `give` returns once it is made; c NULL: no memory. */
typedef json_t *api_changed(struct gateway *g, const char *name, const struct gateway_note *note);
void api_change(struct api *a, struct http_request *q, struct gateway_change *c, const char *name,
	api_changed *give);
bool api_flag(const struct http_request *q, const char *key); /* ?key, ?key=1 */

/* ---- api-member.c: of a member of a cluster */

api_run api_put_policy_member, api_set_member, api_get_versions;

/* ---- api-look.c */

api_run api_get_metrics, api_get_status, api_get_clients, api_get_policy;
void api_looks_stop(struct api *a); /* drops waiting ones */

/* ---- api-volume.c */

api_run api_get_volumes, api_get_volume, api_put_volume, api_patch_volume, api_delete_volume;

/* ---- api-record.c */

api_run api_get_record, api_post_record, api_delete_record;
int api_record_start(struct api *a, const char *folder); /* 0 or -ENOMEM */
void api_record_stop(struct api *a);

/* ---- api-history.c */

api_run api_get_history;
int api_history_start(
	struct api *a, const char *folder); /* folder NULL: in memory only. 0 or -ENOMEM */
void api_history_stop(struct api *a);

/* ---- api-plan.c */

api_run api_post_plan, api_post_admit;
void api_plans_stop(struct api *a);
