/* SPDX-License-Identifier: BSD-3-Clause */
/* control-api: what a controller can be asked; weir-api(7), "THE CONTROLLER". It can be told nothing but a plan. */
#include "base/container.h"
#include "serve/page/page.h"
#include "serve/http/json.h"
#include "serve/host/control-join.h"
#include "serve/show/metrics-text.h"
#include <string.h>

/* ---- status */

static json_t *count(uint64_t v)
{
	return json_integer((json_int_t)v);
}

static json_t *server_json(const struct control *l, const struct control_server *s, weir_time now)
{
	bool heard = s->last.length > 0;

	return json_pack("{s:s, s:b, s:s?, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", s->name,
		"connected", s->link != NULL, "address", s->link ? lease_hub_peer(s->link) : NULL,
		"state", heard ? json_string(lease_state_name(s->last.state)) : json_null(),
		"heard_s", heard ? json_real((double)(now - s->at) / 1e9) : json_null(), "period",
		heard ? count(s->last.period) : json_null(), "capacity",
		heard ? count(s->last.capacity) : json_null(), "reports", count(s->reports),
		"grants", count(s->grants), "plan", control_plan_server(l, s));
}

static json_t *bucket_json(const struct control_bucket *b)
{
	return json_pack("{s:s, s:o, s:o}", "tenant", b->path, "reservation",
		count((uint64_t)b->is.reservation), "limit",
		b->is.limit == LEASE_NO_LIMIT ? json_null() : count((uint64_t)b->is.limit));
}

struct saying {
	const struct control *control;
	json_t *lines;
};

static const char *server_name(void *arg, size_t i)
{
	return ((const struct saying *)arg)->control->servers[i].name;
}

static const char *bucket_name(void *arg, size_t i)
{
	return ((const struct saying *)arg)->control->buckets[i].path;
}

static void add_line(void *arg, const char *words)
{
	json_array_append_new(((struct saying *)arg)->lines, json_string(words));
}

/* Write the buckets that no allocation can meet, and the reason. */
static json_t *short_json(struct control *l, const struct cluster_status *st)
{
	struct saying say = {l, json_array()};

	if (st->asked > st->phi)
		l->lead->explain(l->machine, server_name, bucket_name, &say, add_line);
	return json_pack("{s:o, s:o, s:o, s:o}", "asked", count((uint64_t)st->asked), "placed",
		count((uint64_t)st->phi), "short", count((uint64_t)(st->asked - st->phi)), "why",
		say.lines);
}

static json_t *messages_json(const struct control *l)
{
	struct lease_hub_stats s;
	json_t *verdicts = json_object();

	lease_hub_stats(l->hub, &s);
	for (int v = 0; v < PEER_VERDICTS; v++)
		json_object_set_new(verdicts, peer_verdict_name((enum peer_verdict)v),
			count(s.conn.verdicts[v]));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "received", verdicts,
		"received_bytes", count(s.conn.received_bytes), "sent", count(s.conn.sent),
		"sent_bytes", count(s.conn.sent_bytes), "lost", count(s.conn.lost), "slow",
		count(s.conn.slow), "accepted", count(s.accepted), "refused", count(s.refused));
}

static const char *role(const struct control *l, const struct cluster_status *st)
{
	if (st->started || !st->standby || !st->led)
		return st->started ? "granting" : "starting";
	return l->granted ? "stood down" : "standby";
}

static json_t *status_json(struct control *l)
{
	struct cluster_status st;
	json_t *servers, *buckets, *fabric = l->fabric ? fabric_host_json(l->fabric) : NULL;
	weir_time now = loop_clock();

	if (!l->machine)
		return json_pack("{s:s, s:f, s:s, s:o}", "weir", WEIR_VERSION, "uptime_s",
			(double)(now - l->started) / 1e9, "controller", l->name, "fabric", fabric);
	servers = json_array();
	buckets = json_array();
	l->lead->status(l->machine, &st);
	for (size_t i = 0; i < l->n_servers; i++)
		json_array_append_new(servers, server_json(l, &l->servers[i], now));
	for (size_t i = 0; i < l->n_buckets; i++)
		if (!l->buckets[i].gone)
			json_array_append_new(buckets, bucket_json(&l->buckets[i]));
	return json_pack(
		"{s:s, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, "
		"s:o, s:o, s:o, s:o*}",
		"weir", WEIR_VERSION, "uptime_s", json_real((double)(now - l->started) / 1e9),
		"controller", l->name, "cluster", l->policy->cluster.name, "state", role(l, &st),
		"generation", count(st.generation), "period", count(st.period), "period_s",
		json_real((double)l->policy->cluster.period / 1e9), "interval_s",
		json_real((double)st.interval / 1e9), "waiting", count(st.waiting), "overdrawn",
		st.overdrawn, "rounds", count(st.rounds), "busy_s",
		json_real((double)l->busy / 1e9), "reservations", short_json(l, &st), "messages",
		messages_json(l), "election", control_join_json(l), "servers", servers, "buckets",
		buckets, "fabric", fabric);
}

/* ---- metrics */

static void write_servers(const struct control *l, FILE *to)
{
	metrics_family(to, "weir_control_server_connected", "gauge", "1: the server is connected.");
	for (size_t i = 0; i < l->n_servers; i++) {
		fputs("weir_control_server_connected", to);
		metrics_labels(to, "server", l->servers[i].name, "", "");
		metrics_number(to, l->servers[i].link != NULL);
	}
	metrics_family(to, "weir_control_server_leased", "gauge", "1: the server holds a lease.");
	for (size_t i = 0; i < l->n_servers; i++) {
		const struct control_server *s = &l->servers[i];

		fputs("weir_control_server_leased", to);
		metrics_labels(to, "server", s->name, "", "");
		metrics_number(to, s->last.length > 0 && s->last.state == LEASE_LEASED);
	}
}

static void write_metrics(const struct control *l, FILE *to)
{
	struct cluster_status st;
	struct lease_hub_stats h;

	if (l->fabric)
		fabric_host_metrics(l->fabric, to);
	if (!l->machine)
		return;
	l->lead->status(l->machine, &st);
	lease_hub_stats(l->hub, &h);
	metrics_single(to, "weir_control_granting", "gauge",
		"1: the controller grants; 0: it starts, or is a standby.", st.started);
	metrics_single(to, "weir_control_generation", "gauge",
		"Generation; of two controllers the later one has the higher.",
		(double)st.generation);
	metrics_single(
		to, "weir_control_period", "gauge", "Number of the QoS period.", (double)st.period);
	metrics_single(to, "weir_control_interval_seconds", "gauge", "Time between two rounds.",
		(double)st.interval / 1e9);
	metrics_single(to, "weir_control_reserved_tokens", "gauge",
		"Tokens of reservations with demand, per period.", (double)st.asked);
	metrics_single(to, "weir_control_placed_tokens", "gauge",
		"Of those, tokens that servers can serve.", (double)st.phi);
	metrics_single(to, "weir_control_servers_silent", "gauge",
		"Servers that were silent for a period.", (double)st.silent);
	metrics_single(to, "weir_control_limits_waiting", "gauge",
		"Limits that wait until a server gives up a part.", (double)st.waiting);
	metrics_single(to, "weir_control_rounds_total", "counter", "Times that tokens were placed.",
		(double)st.rounds);
	metrics_single(to, "weir_control_grants_total", "counter", "Messages to servers.",
		(double)st.grants);
	metrics_single(to, "weir_control_busy_seconds_total", "counter",
		"CPU time of placing and sending tokens.", (double)l->busy / 1e9);
	metrics_single(to, "weir_control_received_bytes_total", "counter", "From servers.",
		(double)h.conn.received_bytes);
	metrics_single(to, "weir_control_sent_bytes_total", "counter", "To servers.",
		(double)h.conn.sent_bytes);
	metrics_single(to, "weir_control_refused_total", "counter",
		"Connections that were closed for a fault.", (double)h.refused);
	write_servers(l, to);
}

/* ---- routes */

typedef void control_answer(struct control *l, struct http_request *q, struct http_reply *ret);

static void get_health(struct control *l, struct http_request *q, struct http_reply *ret)
{
	ret->body = strdup("ok\n");
	ret->length = 3;
	ret->status = ret->body ? 200 : 500;
}

static void get_status(struct control *l, struct http_request *q, struct http_reply *ret)
{
	http_json_give(ret, 200, status_json(l));
}

static void get_metrics(struct control *l, struct http_request *q, struct http_reply *ret)
{
	FILE *f = open_memstream(&ret->body, &ret->length);

	if (!f)
		return;
	write_metrics(l, f);
	ret->type = HTTP_PROM;
	ret->status = fclose(f) == 0 ? 200 : 500;
}

static const struct route {
	struct http_route is;
	control_answer *run;
} routes[] = {
	{{"GET", "/healthz", 0, POLICY_ROLE_NONE, NULL}, get_health},
	{{"GET", "/metrics", 0, POLICY_ROLE_READ, NULL}, get_metrics},
	{{"GET", "/v1/status", 0, POLICY_ROLE_READ, NULL}, get_status},
	{{"GET", "/v1/plan", 0, POLICY_ROLE_READ, NULL}, control_get_plan},
	{{"PUT", "/v1/plan", 0, POLICY_ROLE_ADMIN, NULL}, control_put_plan},
	{{"DELETE", "/v1/plan", 0, POLICY_ROLE_ADMIN, NULL}, control_delete_plan},
	{{"POST", "/v1/plan", 0, POLICY_ROLE_OPERATE, NULL}, control_post_plan},
	{{"POST", "/v1/plan/admit", 0, POLICY_ROLE_OPERATE, NULL}, control_post_admit},
};

static void handle(void *arg, struct http_request *q, struct http_reply *ret)
{
	const struct route *r = container_of(q->route, struct route, is);
	struct control *l = arg;

	if (!l->machine && strncmp(q->path, "/v1/plan", 8) == 0)
		http_json_fail(ret, 409, "this controller has no policy yet");
	else if (http_route_ready(q, ret))
		r->run(l, q, ret);
}

int control_api_start(struct control *l, struct weir_err *err)
{
	const struct weir_policy *p = l->policy;
	struct http_config c = {.addresses = l->options.n_api ? l->options.api : p->api,
		.n_addresses = l->options.n_api ? l->options.n_api : p->n_api,
		.access = {l->options.token_file ? l->options.token_file : p->token, &p->access,
			p->state},
		.routes = HTTP_ROUTES(routes),
		.files = page_files,
		.n_files = page_n_files,
		.handler = handle,
		.arg = l};

	return c.n_addresses ? http_new(l->loop, &c, &l->http, err) : 0;
}
