/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live-look: the gateways' counters, as metrics with the simulator's names.
 *
 * METHOD  The status of every gateway is read (GET /v1/status); counters only grow, so the activity
 *         between two readings is their difference (view.h). Rates are over the time between the
 *         two by the gateway's own clock, so a late reading causes no error. The status at the last
 *         sample and at the warm-up's end is kept.
 */
#include "cli/live/live-impl.h"
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

int live_look_asked(struct live *l, struct weir_err *err)
{
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

int live_look_new(struct live *l)
{
	const struct scenario *s = l->s;
	char prefix[256];
	int *h, r = metrics_new(&l->metrics);

	h = l->series =
		calloc(l->n_tenants * MEASURE_TENANT_SERIES + s->n_hosts * MEASURE_HOST_SERIES +
				s->n_devices * MEASURE_STATION_SERIES + 1,
			sizeof(*l->series));
	if (r < 0 || !h)
		return -ENOMEM;
	for (size_t i = 0; i < l->n_tenants; i++, h += MEASURE_TENANT_SERIES) {
		snprintf(prefix, sizeof(prefix), "tenant.%s.%s", s->hosts[l->tenants[i].host].name,
			l->tenants[i].path);
		measure_name_series(
			l->metrics, prefix, measure_tenant_series, MEASURE_TENANT_SERIES, h);
	}
	for (uint32_t i = 0; i < s->n_hosts; i++, h += MEASURE_HOST_SERIES) {
		snprintf(prefix, sizeof(prefix), "host.%s", s->hosts[i].name);
		measure_name_series(
			l->metrics, prefix, measure_host_series, MEASURE_HOST_SERIES, h);
	}
	for (uint32_t i = 0; i < s->n_devices; i++) {
		size_t n = MEASURE_STATION_SERIES - !s->stations[i].capacity_auto;

		snprintf(prefix, sizeof(prefix), "device.%s", s->stations[i].name);
		measure_name_series(l->metrics, prefix, measure_station_series, n, h);
		h += n;
	}
	*h = metrics_series(l->metrics, "total.throughput", "iops");
	for (int *p = l->series; p <= h; p++)
		r = *p < 0 ? *p : r;
	return r;
}

struct sampling {
	struct live *l;
	int *handle;
	double t;
	int failed;
};

static void put_point(struct sampling *s, double value)
{
	int r = metrics_append(s->l->metrics, *s->handle++, s->t, value);

	s->failed = r < 0 ? r : s->failed;
}

static void put_point_if(struct sampling *s, bool any, double value)
{
	if (any)
		put_point(s, value);
	else
		s->handle++; /* no request completed: there is no latency, rather than 0 */
}

/* Those of a tenant's series that have no point if no request is done. */
enum { SAMPLE_LATENCY = 2, SAMPLE_P99 = 3 };

static void sample_tenant(
	struct sampling *s, const struct live_tenant *t, struct measure_flow *host)
{
	const struct view_tenant *v = find_tenant(&s->l->servers[t->server].view, t->server_path);
	struct measure_flow f;
	struct weir_hist h;

	if (s->l->servers[t->server].down) {
		for (int i = 0; i < MEASURE_TENANT_SERIES; i++)
			put_point_if(s, i != SAMPLE_LATENCY && i != SAMPLE_P99, 0);
		return;
	}
	if (!v) {
		s->failed = -EPROTO;
		return;
	}
	f = tenant_flow(s->l, t, v, &h);
	put_point(s, f.ios / f.span);
	put_point(s, f.bytes / f.span);
	put_point_if(s, h.count > 0, f.latency_ms);
	put_point_if(s, h.count > 0, v->p99 * 1000);
	put_point(s, f.outstanding);
	host->span = f.span;
	measure_flow_add(host, &f);
}

static void sample_device(struct sampling *s, uint32_t device)
{
	const struct live_server *v = &s->l->servers[device];
	struct measure_flow f = device_flow(v);

	put_point(s, f.ios / f.span);
	put_point(s, f.bytes / f.span);
	put_point_if(s, f.ios > 0, f.latency_ms);
	put_point(s, f.outstanding);
	if (s->l->s->stations[device].capacity_auto) {
		double capacity = v->view.resources[0].capacity[0];

		put_point(s, isnan(capacity) ? 0 : capacity);
	}
}

static int write_sample(struct live *l, double t)
{
	struct sampling s = {l, l->series, t, 0};
	struct measure_flow *hosts = calloc(l->s->n_hosts, sizeof(*hosts));
	double total = 0;

	if (!hosts)
		return -ENOMEM;
	for (size_t i = 0; i < l->n_tenants; i++)
		sample_tenant(&s, &l->tenants[i], &hosts[l->tenants[i].host]);
	for (uint32_t i = 0; i < l->s->n_hosts; i++) {
		const struct measure_flow *f = &hosts[i];
		double iops = f->span > 0 ? f->ios / f->span : 0;

		put_point(&s, iops);
		put_point_if(&s, f->ios > 0, f->latency_ms);
		put_point(&s, f->outstanding);
		put_point(&s, window_of(l, i));
		total += iops;
	}
	for (uint32_t i = 0; i < l->s->n_devices; i++)
		sample_device(&s, i);
	put_point(&s, total);
	free(hosts);
	return s.failed ? s.failed : live_control_say(l, t, false);
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
	int r;

	if (!v)
		return -EPROTO;
	f = tenant_flow(l, t, v, &total);
	view_latency(v, is_direct(l, t) ? "latency" : "device", &inside);
	for (int c = 0; c < WEIR_CAUSES; c++)
		wait_ns[c] = v->wait[c] * f.span * 1e9;
	snprintf(prefix, sizeof(prefix), "tenant.%s.%s", name, t->path);
	if ((r = measure_put_flow(l->metrics, &f, prefix)) ||
		(r = metrics_putf(l->metrics, "", device_ios > 0 ? f.ios / device_ios : 0,
			 "%s.share", prefix)) ||
		(r = measure_put_hist(l->metrics, "tenant", name, t->path, &total)) ||
		(r = measure_put_hist(l->metrics, "inside", name, t->path, &inside)) ||
		(r = measure_put_wait(
			 l->metrics, name, t->path, is_direct(l, t) ? none : wait_ns, &f)))
		return r;
	if (p->slo_percentile > 0)
		r = measure_put_slo(
			l->metrics, name, t->path, &total, p->slo_percentile, p->slo_latency);
	host->span = f.span;
	measure_flow_add(host, &f);
	return r;
}

static int end_flow(struct live *l, const struct measure_flow *f, const char *prefix)
{
	int r = measure_put_flow(l->metrics, f, prefix);

	return r ? r : measure_put_mean(l->metrics, f, prefix);
}

static int end_hosts(struct live *l, const struct measure_flow *hosts)
{
	struct measure_flow total = {.span = 1};
	char prefix[256];
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < l->s->n_hosts; i++) {
		if (!(hosts[i].span > 0))
			continue;
		snprintf(prefix, sizeof(prefix), "host.%s", l->s->hosts[i].name);
		r = end_flow(l, &hosts[i], prefix);
		if (r == 0)
			r = metrics_putf(
				l->metrics, "requests", window_of(l, i), "%s.window_end", prefix);
		total.span = hosts[i].span;
		measure_flow_add(&total, &hosts[i]);
	}
	return r ? r : end_flow(l, &total, "total");
}

static int end_all(struct live *l, struct measure_flow *hosts)
{
	char prefix[256];
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < l->s->n_devices; i++) {
		struct measure_flow f = device_flow(&l->servers[i]);

		snprintf(prefix, sizeof(prefix), "device.%s", l->s->stations[i].name);
		r = end_flow(l, &f, prefix);
		for (size_t k = 0; r == 0 && k < l->n_tenants; k++)
			if (l->servers[l->tenants[k].server].device == i)
				r = end_tenant(
					l, &l->tenants[k], &hosts[l->tenants[k].host], f.ios);
	}
	if (r == 0)
		r = end_hosts(l, hosts);
	return r ? r : live_control_say(l, 0, true);
}

int live_look_end(struct live *l, struct weir_err *err)
{
	struct measure_flow *hosts = calloc(l->s->n_hosts, sizeof(*hosts));
	int r = hosts ? make_views(l, true, err) : -ENOMEM;

	if (r == 0) {
		r = end_all(l, hosts);
		if (r < 0)
			weir_err_set(err, r, "the values of the run: %s", strerror(-r));
	} else if (r == -ENOMEM) {
		weir_err_set(err, r, "out of memory");
	}
	free(hosts);
	return r;
}
