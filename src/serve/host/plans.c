/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plans: plans of the policy in force.
 *
 * METHOD  A plan is made aside: it reads traces, and a replay takes seconds. Jobs run one after the other. The last plan is kept, so
 *         that one more tenant is admitted without reading the traces of the others again; POST /v1/plan reads them anew.
 *         Files are read only if the policy in force is the text of the file that the operator gave at the start: a policy
 *         that came through the API may name any file.
 */
#include "base/container.h"
#include "plan/ask.h"
#include "serve/gateway/gateway.h"
#include "serve/host/plans.h"
#include "serve/http/json.h"
#include "serve/loop/aside.h"
#include "serve/loop/parallel.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define END_WAIT (10 * WEIR_SEC) /* for a plan that is being made when the gateway ends */

struct plans {
	struct aside *aside;
	/* The thread's: */
	struct parallel *pool;
	struct planning last;
	char *last_text; /* the policy of `last`, and its overrides; NULL: none */
	struct planning_override *last_overrides;
	size_t n_last_overrides;
};

struct plan_job {
	struct aside_job job;
	struct plans *plans;
	void (*answer)(void *arg, struct http_reply *r);
	void *arg;
	char *text, *name, *file, *body;
	size_t length;
	weir_policy_reader *reader;
	void *reader_arg;
	struct planning_override *overrides;
	size_t n_overrides;
	bool admit;
	json_t *json;
	int rc;
	struct weir_err err;
};

static void overrides_free(struct planning_override *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free((char *)list[i].key);
		free((char *)list[i].value);
	}
	free(list);
}

static void job_free(struct plan_job *j)
{
	free(j->text);
	free(j->name);
	free(j->file);
	free(j->body);
	overrides_free(j->overrides, j->n_overrides);
	free(j);
}

/* ---- on the thread */

/* Return true if the policy is the text of the operator's own file. */
static bool is_own(struct plan_job *j)
{
	struct weir_err err;
	char *text;
	size_t len;
	bool own;

	if (!j->reader || !j->file || j->reader(j->reader_arg, "", j->file, &text, &len, &err) < 0)
		return false;
	own = len == strlen(j->text) && memcmp(text, j->text, len) == 0;
	free(text);
	return own;
}

static void forget_last(struct plans *x)
{
	planning_free(&x->last);
	free(x->last_text);
	overrides_free(x->last_overrides, x->n_last_overrides);
}

static void keep_last(struct plans *x, const struct planning *p, struct plan_job *j)
{
	forget_last(x);
	x->last = *p;
	x->last_text = j->text;
	x->last_overrides = j->overrides;
	x->n_last_overrides = j->n_overrides;
	j->text = NULL;
	j->overrides = NULL;
	j->n_overrides = 0;
}

static bool is_last(const struct plans *x, const struct plan_job *j)
{
	bool same = x->last_text && strcmp(x->last_text, j->text) == 0 &&
		    x->n_last_overrides == j->n_overrides;

	for (size_t i = 0; same && i < j->n_overrides; i++)
		same = strcmp(x->last_overrides[i].key, j->overrides[i].key) == 0 &&
		       strcmp(x->last_overrides[i].value, j->overrides[i].value) == 0;
	return same;
}

static void run_job(struct aside_job *job)
{
	struct plan_job *j = container_of(job, struct plan_job, job);
	struct plans *x = j->plans;
	bool own = is_own(j);
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct planning_ask ask = {.policy = {j->text, strlen(j->text), j->name},
		.reader = own ? j->reader : NULL,
		.reader_arg = j->reader_arg,
		.overrides = j->overrides,
		.n_overrides = j->n_overrides,
		.admit = j->admit,
		.base = j->admit && own && is_last(x, j) ? &x->last : NULL};
	struct planning p;

	if (!x->pool && parallel_new(cores > 1 ? (unsigned)cores : 1, &x->pool) < 0)
		x->pool = NULL;
	ask.run = x->pool ? parallel_run : NULL;
	ask.pool = x->pool;
	j->rc = planning_ask(&ask, j->body, j->length, &p, &j->json, &j->err);
	if (j->rc == 0 && j->admit)
		planning_free(&p);
	else if (j->rc == 0)
		keep_last(x, &p, j);
}

/* ---- on the main thread */

static void job_done(struct aside_job *job)
{
	struct plan_job *j = container_of(job, struct plan_job, job);
	struct http_reply r = {0};

	if (j->rc < 0)
		http_json_fail(&r, j->rc == -ENOMEM ? 500 : 400,
			j->err.text[0] ? j->err.text : strerror(-j->rc));
	else
		http_json_give(&r, 200, j->json);
	j->answer(j->arg, &r);
	job_free(j);
}

static int copy_overrides(const struct gateway *g, struct plan_job *j)
{
	const char *key, *value;
	size_t n = 0;

	while (g && gateway_override(g, n, &key, &value))
		n++;
	j->overrides = calloc(n + 1, sizeof(*j->overrides));
	while (j->overrides && j->n_overrides < n) {
		struct planning_override *to = &j->overrides[j->n_overrides];

		gateway_override(g, j->n_overrides, &key, &value);
		*to = (struct planning_override){strdup(key), strdup(value)};
		j->n_overrides++;
		if (!to->key || !to->value)
			return -ENOMEM;
	}
	return j->overrides ? 0 : -ENOMEM;
}

bool plans_post(struct plans **plans, const struct plans_of *of, struct http_request *q, bool admit,
	void (*done)(void *arg, struct http_reply *r), void *arg)
{
	struct plan_job *j = calloc(1, sizeof(*j));

	if (!*plans && (*plans = calloc(1, sizeof(**plans))) &&
		aside_new(of->loop, &(*plans)->aside) < 0) {
		free(*plans);
		*plans = NULL;
	}
	if (!j || !*plans) {
		free(j);
		return false;
	}
	j->reader = of->reader;
	j->reader_arg = of->reader_arg;
	j->text = strdup(of->text);
	j->file = of->file ? strdup(of->file) : NULL;
	j->name = strdup(of->file ? of->file : "policy");
	j->length = q->length;
	j->body = q->length ? http_take_body(q) : calloc(1, 1);
	if (copy_overrides(of->gateway, j) < 0 || !j->text || !j->name || !j->body) {
		job_free(j);
		return false;
	}
	j->job = (struct aside_job){.run = run_job, .done = job_done};
	j->plans = *plans;
	j->admit = admit;
	j->answer = done;
	j->arg = arg;
	aside_post((*plans)->aside, &j->job);
	return true;
}

void plans_free(struct plans *x)
{
	if (!x || !aside_free(x->aside, END_WAIT))
		return; /* a plan is being made: its memory stays */
	parallel_free(x->pool);
	forget_last(x);
	free(x);
}
