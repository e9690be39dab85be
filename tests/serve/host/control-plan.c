/* SPDX-License-Identifier: BSD-3-Clause */
/* control-plan: a plan that the controller refuses is not kept. Linked with --wrap=http_defer, which fails here: there is no memory
 * for the client's reply. */
#include "policy-parse.h"
#include "plan/planning.h"
#include "serve/gateway/plan/kept.h"
#include "serve/host/control-impl.h"
#include "serve/http/json.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct http_later *__wrap_http_defer(struct http_request *q);
struct http_later *__wrap_http_defer(struct http_request *q)
{
	return NULL;
}

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define POLICY                                                                                     \
	"resources: [{name: d, back: \"memory:1M\"}]\ntenants: [{name: a, match: {export: a}}]\n"

static char folder[] = "/tmp/weir-plan-XXXXXX", file[64];
static struct control l;

/* Write a plan of one tenant, made for that policy. */
static void plan_text(const char *bound, char *to, size_t room)
{
	char digest[PLAN_DIGEST];

	planning_digest(POLICY, strlen(POLICY), l.policy->tenants_text, digest);
	snprintf(to, room,
		"{\"version\": 1, \"policy\": \"%s\", \"profiles\": {\"d\": \"" ZEROS
		"\"}, \"tenants\": [{\"name\": \"a\", \"slo\": {\"percentile\": 99, "
		"\"latency\": 0.01}, \"bound\": %s, \"stages\": [{\"name\": \"d\", \"unit\": "
		"\"bytes\", \"priority\": 3, \"buckets\": [[1000, 4096]]}]}]}",
		digest, bound);
}

/* Ask with a method, and expect a status. */
static void ask(const char *method, const char *body, unsigned status)
{
	struct http_request q = {
		.method = method, .path = "/v1/plan", .body = body, .length = strlen(body)};
	struct http_reply r = {0};

	if (strcmp(method, "PUT") == 0)
		control_put_plan(&l, &q, &r);
	else if (strcmp(method, "DELETE") == 0)
		control_delete_plan(&l, &q, &r);
	else
		control_get_plan(&l, &q, &r);
	if (r.status != status)
		FAIL("%s: %u: %s", method, r.status, r.body);
	free(r.body);
}

/* Expect that the file has a plan with that bound; "": that there is no file. */
static void kept(const char *bound)
{
	uint64_t number = 0;
	struct gateway_plan *plan = NULL;
	struct weir_err err;
	struct stat st;

	if (!*bound) {
		CHECK(stat(file, &st) < 0);
		return;
	}
	CHECK_INT(plan_kept_read(folder, "cluster-plan.json", &number, &plan, &err), 0);
	CHECK_INT(number, 7);
	CHECK(plan && plan->n_tenants == 1);
	CHECK_NEAR(plan->tenants[0].bound, atof(bound), 1e-12);
	gateway_plan_drop(plan);
}

static void refused_is_not_kept(void)
{
	char text[1024], old[1024];
	struct weir_policy *p = parse(POLICY);
	struct weir_err err;

	CHECK(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/cluster-plan.json", folder);
	p->state = folder;
	l = (struct control){.policy = p, .said_start = true, .options.text = (char *)POLICY};
	CHECK_INT(loop_new(&l.loop), 0);
	plan_text("0.008", text, sizeof(text));
	ask("PUT", text, 500);
	kept("");
	CHECK(!l.plan.text);

	plan_text("0.009", old, sizeof(old));
	CHECK_INT(plan_kept_write(folder, "cluster-plan.json",
			  &(struct plan_kept){7, 1, "", "", old}, &err),
		0);
	CHECK_INT(control_plan_start(&l, &err), 0);
	CHECK_INT(l.plan.number, 7);
	CHECK_NEAR(l.plan.applied, 1, 1e-9);
	ask("PUT", text, 500);
	kept("0.009");
	ask("DELETE", "", 500);
	kept("0.009");
	CHECK_INT(l.plan.number, 7);
	CHECK_NEAR(l.plan.applied, 1, 1e-9);
	ask("GET", "", 200);

	control_plan_stop(&l);
	loop_free(l.loop);
	p->state = NULL;
	weir_policy_free(p);
	unlink(file);
	rmdir(folder);
}

int main(void)
{
	RUN(refused_is_not_kept);
	return 0;
}
