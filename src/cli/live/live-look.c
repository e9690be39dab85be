/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live-look: the gateways' counters, as metrics with the simulator's names.
 *
 * METHOD  The status of every gateway is read (GET /v1/status); counters only grow, so the activity
 *         between two readings is their difference (view.h). Rates are over the time between the
 *         two by the gateway's own clock, so a late reading causes no error. The status at the last
 *         sample and at the warm-up's end is kept.
 */
#include "base/no-memory.h"
#include "cli/live/live-impl.h"
#include "sim/world/world.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- flows */

static bool is_direct(const struct live *l, const struct live_tenant *t)
{
	return l->host_server[t->host] < 0;
}

static const struct view_tenant *find_tenant(const struct view *v, const char *path)
{
	for (size_t i = 0; i < v->n_tenants; i++)
		if (strcmp(v->tenants[i].path, path) == 0)
			return &v->tenants[i];
	return NULL;
}

static struct measure_flow flow_of(
	const struct view *v, const struct view_tenant *t, const struct weir_hist *h)
{
	struct measure_flow f = {.span = v->span,
		.ios = t->iops * v->span,
		.bytes = t->bytes * v->span,
		.latency_ns = (double)h->sum,
		.outstanding = t->inside};

	f.latency_ms = weir_hist_mean(h) / 1e6;
	return f;
}

/*
 * Return the flow of a tenant. If its host has no gateway, requests that wait at the device's gate
 * count as outstanding, too.
 */
static struct measure_flow tenant_flow(const struct live *l, const struct live_tenant *t,
	const struct view_tenant *v, struct weir_hist *h)
{
	struct measure_flow f;

	view_latency(v, "latency", h);
	f = flow_of(&l->servers[t->server].view, v, h);
	for (int c = 0; is_direct(l, t) && c < VIEW_CAUSES; c++)
		f.outstanding += v->wait[c];
	return f;
}

static struct measure_flow device_flow(const struct live_server *v)
{
	struct measure_flow all = {.span = v->view.span};
	struct weir_hist h;

	for (size_t i = 0; i < v->view.n_tenants; i++) {
		const struct view_tenant *t = &v->view.tenants[i];
		struct measure_flow f;

		if (!t->leaf)
			continue;
		view_latency(t, "device", &h);
		f = flow_of(&v->view, t, &h);
		measure_flow_add(&all, &f);
	}
	return all;
}

static double window_of(const struct live *l, uint32_t host)
{
	int server = l->host_server[host];

	if (server >= 0 && l->servers[server].down)
		return 0;
	return server < 0 ? l->s->groups[l->s->hosts[host].group].gate.config.window
			  : l->servers[server].view.resources[0].window;
}

/* ---- status */

/* Make the views from the warm-up's end (`begin`) or the last sample to now. */
static int make_views(struct live *l, bool begin, struct weir_err *err)
{
	for (size_t i = 0; i < l->n_servers; i++) {
		struct live_server *v = &l->servers[i];
		int r;

		if (v->down)
			continue;
		view_free(&v->view);
		r = view_make(begin ? v->begin : v->last, v->now, &v->view);
		if (r == 0 && !v->view.n_resources)
			r = -EPROTO;
		if (r < 0)
			return weir_err_set(
				err, r, "the gateway of '%s': %s", v->name, strerror(-r));
	}
	return 0;
}

static int read_status(struct live *l, struct weir_err *err)
{
	for (size_t i = 0; i < l->n_servers; i++) {
		struct live_server *v = &l->servers[i];
		struct weir_err why;
		json_t *now;
		int r = v->down ? 0 : remote_try(v->remote, "GET", VIEW_PATH, NULL, 0, &now, &why);

		if (v->down)
			continue;
		if (r < 0)
			return weir_err_set(err, r, "the gateway of '%s': %s", v->name, why.text);
		json_decref(v->now);
		v->now = now;
	}
	return 0;
}

int live_look_asked(void *arg, struct weir_err *err)
{
	struct live *l = arg;
	int r = read_status(l, err);

	if (r == 0)
		r = make_views(l, false, err); /* no status before: since the start */
	if (r < 0)
		return r;
	for (size_t i = 0; i < l->n_clients; i++) {
		const struct live_tenant *t = l->clients[i].tenant;
		const struct view_tenant *v =
			find_tenant(&l->servers[t->server].view, t->server_path);

		if (l->clients[i].state == LIVE_RUNS &&
			!(v && json_number_value(json_object_get(v->now, "arrivals")) > 0))
			return 0;
	}
	return 1;
}

static void keep_status(json_t **to, json_t *look)
{
	json_decref(*to);
	*to = json_incref(look);
}

void live_look_begin(struct live *l)
{
	for (size_t i = 0; i < l->n_servers; i++)
		keep_status(&l->servers[i].begin, l->servers[i].now);
}

void live_look_free(struct live *l)
{
	for (size_t i = 0; i < l->n_servers; i++) {
		struct live_server *v = &l->servers[i];

		view_free(&v->view);
		json_decref(v->begin);
		json_decref(v->last);
		json_decref(v->now);
	}
	metrics_free(l->metrics);
	free(l->series);
}

/* ---- samples */

static const char *tenant_path(const void *arg, size_t n, uint32_t *ret_host)
{
	const struct live *l = arg;

	*ret_host = l->tenants[n].host;
	return l->tenants[n].path;
}

int live_look_new(struct live *l)
{
	int r = metrics_new(&l->metrics);

	if (r < 0)
		return r;
	l->series = measure_series_new(l->metrics, l->s, l->n_tenants, tenant_path, l);
	return l->series ? metrics_failed(l->metrics) : -ENOMEM;
}

static int sample_tenant(
	struct live *l, struct measure_sampling *s, size_t n, struct measure_flow *host)
{
	const struct live_tenant *t = &l->tenants[n];
	const struct live_server *server = &l->servers[t->server];
	const struct view_tenant *v = find_tenant(&server->view, t->server_path);
	struct measure_flow f = {0};
	struct weir_hist h;

	if (!v && !server->down)
		return -EPROTO;
	if (!server->down)
		f = tenant_flow(l, t, v, &h);
	measure_sample_tenant(s, &f, server->down ? 0 : v->p99 * 1000);
	if (!server->down)
		measure_flow_add(host, &f);
	return 0;
}

static int write_sample(struct live *l, double t)
{
	struct measure_sampling s = {l->metrics, l->series, t};
	struct measure_flow *hosts = calloc(l->s->n_hosts, sizeof(*hosts));
	double total = 0;
	int r = hosts ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < l->n_tenants; i++)
		r = sample_tenant(l, &s, i, &hosts[l->tenants[i].host]);
	for (uint32_t i = 0; r == 0 && i < l->s->n_hosts; i++) {
		measure_sample_host(&s, &hosts[i], window_of(l, i));
		total += hosts[i].span > 0 ? hosts[i].ios / hosts[i].span : 0;
	}
	for (uint32_t i = 0; r == 0 && i < l->s->n_devices; i++) {
		const struct live_server *v = &l->servers[i];
		double capacity = v->view.resources[0].capacity[0];
		struct measure_flow f = device_flow(v);

		capacity = isnan(capacity) ? 0 : capacity;
		measure_sample_station(&s, &f, l->s->stations[i].capacity_auto ? &capacity : NULL);
	}
	if (r == 0)
		measure_sample_total(&s, total);
	free(hosts);
	return r ? r : live_control_facts(l, t);
}

int live_look_sample(struct live *l, weir_time t, struct weir_err *err)
{
	bool first = !l->servers[0].last;
	int r = read_status(l, err);

	if (r == 0 && !first && l->s->sample) {
		r = make_views(l, false, err);
		if (r == 0) {
			r = write_sample(l, (double)t / 1e9);
			if (r < 0)
				weir_err_set(err, r, "a sample: %s", strerror(-r));
		}
	}
	for (size_t i = 0; r == 0 && i < l->n_servers; i++)
		keep_status(&l->servers[i].last, l->servers[i].now);
	return r;
}

/* ---- the end */

static int end_tenant(
	struct live *l, const struct live_tenant *t, struct measure_flow *host, double device_ios)
{
	static const double none[WEIR_CAUSES];
	const struct weir_tenant *p =
		&l->s->groups[l->s->hosts[t->host].group].gate.policy->tenants[t->index];
	const struct view_tenant *v = find_tenant(&l->servers[t->server].view, t->server_path);
	const char *name = l->s->hosts[t->host].name;
	struct measure_flow f;
	struct weir_hist total, inside;
	double wait_ns[WEIR_CAUSES];
	char prefix[256];

	if (!v)
		return -EPROTO;
	f = tenant_flow(l, t, v, &total);
	view_latency(v, is_direct(l, t) ? "latency" : "device", &inside);
	for (int c = 0; c < WEIR_CAUSES; c++)
		wait_ns[c] = v->wait[c] * f.span * 1e9;
	snprintf(prefix, sizeof(prefix), "tenant.%s.%s", name, t->path);
	measure_put_flow(l->metrics, &f, prefix);
	measure_put_share(l->metrics, &f, device_ios, prefix);
	measure_put_hist(l->metrics, "tenant", name, t->path, &total);
	measure_put_hist(l->metrics, "inside", name, t->path, &inside);
	measure_put_wait(l->metrics, name, t->path, is_direct(l, t) ? none : wait_ns, &f);
	if (p->slo_percentile > 0) {
		struct weir_tenant last = *p; /* a change may have set another */

		last.slo_latency = l->world->tenants[t - l->tenants].slo_latency;
		measure_put_slo(l->metrics, name, &last, &total);
	}
	measure_flow_add(host, &f);
	return 0;
}

static void end_hosts(struct live *l, const struct measure_flow *hosts)
{
	struct measure_flow total = {.span = 1};
	char prefix[256];

	for (uint32_t i = 0; i < l->s->n_hosts; i++) {
		if (!(hosts[i].span > 0))
			continue;
		snprintf(prefix, sizeof(prefix), "host.%s", l->s->hosts[i].name);
		measure_put_group(l->metrics, &hosts[i], prefix);
		metrics_putf(l->metrics, "requests", window_of(l, i), "%s.window_end", prefix);
		measure_flow_add(&total, &hosts[i]);
	}
	measure_put_group(l->metrics, &total, "total");
}

static int end_all(struct live *l, struct measure_flow *hosts)
{
	char prefix[256];
	int r = 0;

	for (uint32_t i = 0; i < l->s->n_devices; i++) {
		struct measure_flow f = device_flow(&l->servers[i]);

		snprintf(prefix, sizeof(prefix), "device.%s", l->s->stations[i].name);
		measure_put_group(l->metrics, &f, prefix);
		if (l->s->stations[i].capacity_auto)
			measure_put_capacity(
				l->metrics, l->servers[i].view.resources[0].capacity, prefix);
		for (size_t k = 0; r == 0 && k < l->n_tenants; k++)
			if (l->servers[l->tenants[k].server].device == i)
				r = end_tenant(
					l, &l->tenants[k], &hosts[l->tenants[k].host], f.ios);
	}
	end_hosts(l, hosts);
	live_lab_plans(l);
	return r ? r : live_control_facts(l, -1);
}

int live_look_end(struct live *l, struct weir_err *err)
{
	struct measure_flow *hosts = calloc(l->s->n_hosts, sizeof(*hosts));
	int r = hosts ? make_views(l, true, err) : no_memory(err);

	if (r == 0) {
		r = end_all(l, hosts);
		if (r < 0)
			weir_err_set(err, r, "the values of the run: %s", strerror(-r));
	}
	free(hosts);
	return r;
}
