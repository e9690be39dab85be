/* SPDX-License-Identifier: BSD-3-Clause */
/* api: what a shaper can be asked: GET /v1/status, /metrics and /healthz; and set.c, plan.c. */
#include "base/container.h"
#include "serve/page/page.h"
#include "serve/shape/impl.h"
#include "serve/http/json.h"
#include "serve/show/metrics-text.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AT_CAP 0.9 /* of its cap: a service that uses so much would use more */

static const char *const dirs[SHAPE_DIRS] = {"in", "out"};

static const struct policy_net_share *share_of(const struct shaper *s, size_t node, int dir)
{
	const struct policy_net *net = s->now.policy->tenants[s->now.tree->nodes[node].tenant].net;

	return net ? &net->share[POLICY_NET_MACHINE][dir] : NULL;
}

static bool is_shown(const struct shaper *s, size_t node)
{
	return s->now.tree->nodes[node].leaf;
}

static double total_out(const struct shaper *s)
{
	double sum = 0;

	for (size_t i = 0; i < s->now.tree->n; i++)
		sum += s->now.use[i][SHAPE_OUT].rate;
	return sum;
}

static bool at_max(const struct shaper *s, size_t node, int dir)
{
	const struct policy_net_share *share;

	for (size_t i = node; i; i = s->now.tree->nodes[i].parent)
		if ((share = share_of(s, i, dir)) &&
			s->now.use[node][dir].rate >= 0.95 * share->max)
			return true;
	return false;
}

/* A service that receives is limited while its senders are told a rate below the link's. */
static const char *bound_in(const struct shaper *s, size_t node)
{
	double rate = s->now.use[node][SHAPE_IN].rate,
	       most = receive_capacity(s->now.receive, node, s->looked);

	if (!s->talk || !(receive_told(s->now.receive, node) < INFINITY) || rate < 0.9 * most)
		return "";
	return at_max(s, node, SHAPE_IN) ? "its max" : "the machine's link";
}

/* Return true if the cap of brokers keeps a service from more. */
static bool is_capped(const struct shaper *s, size_t node, int dir)
{
	const struct policy_net_share *own = node ? share_of(s, node, dir) : NULL;
	const struct shaper_queue *q = &s->now.queue[node];
	double cap = s->now.cap[dir][node];
	bool waits = dir == SHAPE_OUT && (q->queued || q->dropped > q->before);

	return cap < (own ? own->max : INFINITY) &&
	       (waits || s->now.use[node][dir].rate >= AT_CAP * cap);
}

/* Return what keeps a service from more of a direction: "" if nothing does. text: may hold it. */
static const char *bound_of(const struct shaper *s, size_t node, int dir, char text[128])
{
	const struct shaper_queue *q = &s->now.queue[node];

	if (is_capped(s, node, dir)) {
		brokers_bound(s->brokers, node, (enum shape_dir)dir, text);
		return text;
	}
	if (dir == SHAPE_IN)
		return bound_in(s, node);
	if (!q->queued && q->dropped <= q->before)
		return "";
	if (at_max(s, node, dir))
		return "its max";
	if (total_out(s) >= 0.9 * s->rate * s->now.tree->load)
		return "the machine's link";
	return q->told ? "receiver's feedback" : "a burst";
}

static json_t *number(double v)
{
	return v < INFINITY ? json_real(v) : json_null();
}

static json_t *service_json(const struct shaper *s, size_t i, int dir)
{
	const struct policy_net_share *share = i ? share_of(s, i, dir) : NULL;
	char text[128];
	const char *bound = bound_of(s, i, dir, text);

	json_t *j = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:s, s:I}", "service",
		i ? s->now.tree->nodes[i].path : "", "dir", dirs[dir], "weight",
		number(share ? share->weight : 1), "min", number(share ? share->min : 0), "max",
		number(share ? share->max : INFINITY), "cap", number(s->now.cap[dir][i]), "rate",
		number(s->now.use[i][dir].rate), "wants_more", bound[0] != '\0', "bound", bound,
		"bytes", (json_int_t)s->now.use[i][dir].bytes);
	const struct shaper_queue *q = &s->now.queue[i];

	if (dir == SHAPE_OUT)
		json_object_update_new(
			j, json_pack("{s:o, s:I, s:I, s:I}", "share", number(s->now.share[i]),
				   "queued", (json_int_t)q->queued, "dropped",
				   (json_int_t)q->dropped, "leaves", (json_int_t)q->leaves));
	else
		json_object_update_new(
			j, json_pack("{s:o, s:o}", "share",
				   number(receive_capacity(s->now.receive, i, s->looked)), "told",
				   number(receive_told(s->now.receive, i))));
	return j;
}

/* Feedback that was received and not used, by reason. */
static json_t *refused_json(const struct shaper *s, const struct talk_stats *t)
{
	json_t *j = json_pack("{s:I, s:I}", "nonsense", (json_int_t)s->feedback.nonsense, "full",
		(json_int_t)s->leaves.stats.full);

	for (int v = PEER_TAKEN + 1; v < PEER_VERDICTS; v++)
		json_object_set_new(j, peer_verdict_name((enum peer_verdict)v),
			json_integer((json_int_t)t->peers.verdicts[v]));
	return j;
}

static json_t *feedback_json(const struct shaper *s)
{
	struct talk_stats t;

	if (!s->talk)
		return json_null();
	talk_stats(s->talk, &t);
	return json_pack("{s:f, s:I, s:I, s:I, s:I, s:o}", "period_s",
		(double)s->now.receive->period / 1e9, "told", (json_int_t)s->feedback.sent, "heard",
		(json_int_t)s->feedback.heard, "leaves", (json_int_t)s->leaves.stats.live, "set",
		(json_int_t)s->leaves.stats.set, "refused", refused_json(s, &t));
}

static json_t *status_json(const struct shaper *s)
{
	json_t *services = json_array(), *devices = json_array();
	const char *machine = s->now.policy->network->machine;

	for (size_t i = 1; i <= s->now.tree->n; i++) {
		size_t node = i % s->now.tree->n; /* packets of no service come last */

		for (int d = 0; is_shown(s, node) && d < SHAPE_DIRS; d++)
			json_array_append_new(services, service_json(s, node, d));
	}
	for (size_t i = 0; i < s->n_devices; i++)
		json_array_append_new(devices, json_pack("{s:s, s:o}", "device", s->devices[i].name,
						       "rate", number(s->devices[i].rate)));
	return json_pack("{s:s, s:o, s:s?, s:o, s:o, s:o, s:o, s:o*}", "weir", WEIR_VERSION,
		"uptime_s", json_real((double)(loop_clock() - s->began) / 1e9), "machine", machine,
		"devices", devices, "services", services, "feedback", feedback_json(s), "overrides",
		shaper_set_json(s), "rack", s->brokers ? brokers_json(s->brokers) : NULL);
}

struct family {
	const char *name, *type, *help;
	double (*value)(const struct shaper *s, size_t node, int dir);
};

/* Bytes/s; a service without a cap has infinity. */
static double cap_of(const struct shaper *s, size_t node, int dir)
{
	return s->now.cap[dir][node];
}

static double bytes_of(const struct shaper *s, size_t node, int dir)
{
	return (double)s->now.use[node][dir].bytes;
}

static double dropped_of(const struct shaper *s, size_t node, int dir)
{
	return dir == SHAPE_OUT ? (double)s->now.queue[node].dropped : 0;
}

static double queued_of(const struct shaper *s, size_t node, int dir)
{
	return dir == SHAPE_OUT ? (double)s->now.queue[node].queued : 0;
}

static double share_now(const struct shaper *s, size_t node, int dir)
{
	return dir == SHAPE_OUT ? s->now.share[node]
				: receive_capacity(s->now.receive, node, s->looked);
}

/* The rate that one sender of weight 1 is told; the link's: it is not limited. */
static double told_of(const struct shaper *s, size_t node, int dir)
{
	double told = receive_told(s->now.receive, node);

	return dir == SHAPE_OUT ? 0 : told < INFINITY ? told : s->rate;
}

static double leaves_of(const struct shaper *s, size_t node, int dir)
{
	return dir == SHAPE_OUT ? (double)s->now.queue[node].leaves : 0;
}

/* Feedback of the whole machine, by what became of it. */
static void write_feedback(const struct shaper *s, FILE *to)
{
	static const char name[] = "weir_net_feedback_total";
	struct talk_stats t;

	if (!s->talk)
		return;
	talk_stats(s->talk, &t);
	metrics_family(to, name, "counter", "Messages from other shapers, by what became of them.");
	for (int v = 0; v < PEER_VERDICTS; v++) {
		fputs(name, to);
		metrics_labels(to, "outcome", peer_verdict_name((enum peer_verdict)v), "", "");
		metrics_number(to, (double)t.peers.verdicts[v]);
	}
	metrics_single(to, "weir_net_feedback_nonsense_total", "counter",
		"Rates in genuine feedback that make no sense.", (double)s->feedback.nonsense);
}

static void write_metrics(const struct shaper *s, FILE *to)
{
	static const struct family families[] = {
		{"weir_net_bytes_total", "counter", "Bytes of a service on the shaped devices.",
			bytes_of},
		{"weir_net_dropped_total", "counter",
			"Packets that a service's full queue dropped.", dropped_of},
		{"weir_net_cap_bytes", "gauge",
			"What brokers allow a service here, in bytes per second.", cap_of},
		{"weir_net_queued", "gauge", "Packets that wait in a service's queue.", queued_of},
		{"weir_net_share_bytes", "gauge", "Bytes/s that a service may have now.",
			share_now},
		{"weir_net_told_bytes", "gauge",
			"Bytes/s that each sender to a service is told, for a weight of 1.",
			told_of},
		{"weir_net_leaves", "gauge",
			"Destinations whose receivers limit what a service sends.", leaves_of},
	};

	for (size_t f = 0; f < sizeof(families) / sizeof(*families); f++) {
		metrics_family(to, families[f].name, families[f].type, families[f].help);
		for (size_t i = 0; i < s->now.tree->n; i++)
			for (int d = 0; is_shown(s, i) && d < SHAPE_DIRS; d++) {
				fputs(families[f].name, to);
				metrics_labels(
					to, "service", s->now.tree->nodes[i].path, "dir", dirs[d]);
				metrics_number(to, families[f].value(s, i, d));
			}
	}
	write_feedback(s, to);
	if (s->brokers)
		brokers_metrics(s->brokers, to);
}

typedef void shaper_answer(struct shaper *s, struct http_request *q, struct http_reply *ret);

static void get_health(struct shaper *s, struct http_request *q, struct http_reply *ret)
{
	ret->body = strdup("ok\n");
	ret->length = 3;
	ret->status = ret->body ? 200 : 500;
}

static void get_status(struct shaper *s, struct http_request *q, struct http_reply *ret)
{
	http_json_give(ret, 200, status_json(s));
}

static void get_metrics(struct shaper *s, struct http_request *q, struct http_reply *ret)
{
	FILE *f = open_memstream(&ret->body, &ret->length);

	if (!f)
		return;
	write_metrics(s, f);
	ret->type = HTTP_PROM;
	ret->status = fclose(f) == 0 ? 200 : 500;
}

static const struct route {
	struct http_route is;
	shaper_answer *run;
} routes[] = {
	{{"GET", "/healthz", 0, POLICY_ROLE_NONE, NULL}, get_health},
	{{"GET", "/metrics", 0, POLICY_ROLE_READ, NULL}, get_metrics},
	{{"GET", "/v1/status", 0, POLICY_ROLE_READ, NULL}, get_status},
	{{"GET", "/v1/policy", 0, POLICY_ROLE_READ, NULL}, shaper_get_policy},
	{{"PUT", "/v1/set/", 511, POLICY_ROLE_OPERATE, NULL}, shaper_put_set},
	{{"DELETE", "/v1/set/", 511, POLICY_ROLE_OPERATE, NULL}, shaper_delete_set},
	{{"GET", "/v1/plan", 0, POLICY_ROLE_READ, NULL}, shaper_get_plan},
	{{"PUT", "/v1/plan", 0, POLICY_ROLE_ADMIN, NULL}, shaper_put_plan},
	{{"DELETE", "/v1/plan", 0, POLICY_ROLE_ADMIN, NULL}, shaper_delete_plan},
};

static void handle(void *arg, struct http_request *q, struct http_reply *ret)
{
	const struct route *r = container_of(q->route, struct route, is);

	if (http_route_ready(q, ret))
		r->run(arg, q, ret);
}

int shaper_api_start(struct shaper *s, struct weir_err *err)
{
	struct http_config c = {.addresses = s->options.api,
		.n_addresses = s->options.n_api,
		.access = {.policy = &s->now.policy->access},
		.routes = HTTP_ROUTES(routes),
		.files = page_files,
		.n_files = page_n_files,
		.handler = handle,
		.arg = s};

	return c.n_addresses ? http_new(s->loop, &c, &s->http, err) : 0;
}
