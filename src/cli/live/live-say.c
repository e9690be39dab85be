/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live-say: the values of the gateways' controllers, as metrics with the simulator's names. A point
 * of a series is the value when the status was read.
 */
#include "cli/live/live-impl.h"

static const json_t *resource_of(const struct live *l, size_t server)
{
	return json_array_get(json_object_get(l->servers[server].now, "resources"), 0);
}

/* A key of the status, and the name, unit and scale of its metric. */
struct saying {
	const char *key, *name, *unit;
	double scale;
};

/* Record points or values PREFIX.NAME for all keys: null gives no point, and 0 as a value. */
static int put_values(struct live *l, const json_t *from, const struct saying *all, size_t n,
	const char *prefix, double t, bool end)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		const json_t *value = json_object_get(from, all[i].key);
		double x = all[i].scale * json_number_value(value);

		if (end) {
			r = metrics_putf(l->metrics, all[i].unit, x, "%s.%s", prefix, all[i].name);
		} else if (json_is_number(value)) {
			int series = metrics_seriesf(
				l->metrics, all[i].unit, "%s.%s", prefix, all[i].name);

			r = series < 0 ? series : metrics_append(l->metrics, series, t, x);
		}
	}
	return r;
}
#define PUT(l, from, list, prefix, t, end)                                                         \
	put_values(l, from, list, sizeof(list) / sizeof(*(list)), prefix, t, end)

int live_say_parda(struct live *l, const struct scenario_controller *c, double t, bool end)
{
	static const struct saying points[] = {{"beta", "beta", "requests", 1},
		{"shares", "shares", "", 1}, {"latency_s", "latency", "ms", 1000},
		{"threshold_s", "threshold", "ms", 1000}, {"stranger", "stranger", "requests", 1},
		{"floor", "floor", "requests", 1}};
	static const struct saying values[] = {
		{"beta", "beta_end", "requests", 1}, {"peers", "peers_end", "", 1}};
	static const struct saying window[] = {{"window", "window_end", "requests", 1}};
	int r = 0;

	for (uint32_t h = 0; r == 0 && h < l->s->n_hosts; h++) {
		const json_t *resource, *parda;
		char prefix[256];

		if (!live_control_moves(l->s, c, h) || l->host_server[h] < 0 ||
			l->servers[l->host_server[h]].down)
			continue;
		resource = resource_of(l, (size_t)l->host_server[h]);
		parda = json_object_get(resource, "parda");
		snprintf(prefix, sizeof(prefix), "parda.%s", l->s->hosts[h].name);
		if (end)
			r = PUT(l, resource, window, prefix, t, end);
		if (r == 0)
			r = end ? PUT(l, parda, values, prefix, t, end)
				: PUT(l, parda, points, prefix, t, end);
	}
	return r;
}

/*
 * Record the tokens that a job gave away by the ledger, minus those that it got and those written
 * off.
 */
static int put_given(struct live *l, const json_t *job, const char *prefix, double t)
{
	double given = json_number_value(json_object_get(job, "lent")) +
		       json_number_value(json_object_get(job, "repaid")) +
		       json_number_value(json_object_get(job, "forgiven")) -
		       json_number_value(json_object_get(job, "borrowed")) -
		       json_number_value(json_object_get(job, "regained")) -
		       json_number_value(json_object_get(job, "written_off"));
	int series = metrics_seriesf(l->metrics, "tokens", "%s.given", prefix);

	return series < 0 ? series : metrics_append(l->metrics, series, t, given);
}

int live_say_adaptbf(struct live *l, const struct scenario_controller *c, double t, bool end)
{
	static const struct saying points[] = {{"tokens", "tokens", "tokens", 1},
		{"record", "record", "tokens", 1}, {"demand", "demand", "requests", 1}};
	static const struct saying values[] = {{"record", "record_end", "tokens", 1},
		{"lent", "lent", "tokens", 1}, {"borrowed", "borrowed", "tokens", 1},
		{"repaid", "repaid", "tokens", 1}, {"regained", "regained", "tokens", 1},
		{"written_off", "written_off", "tokens", 1}, {"forgiven", "forgiven", "tokens", 1}};
	static const struct saying server_points[] = {{"rate", "rate", "iops", 1}};
	static const struct saying server_values[] = {{"rate", "rate_end", "iops", 1},
		{"written_off", "written_off", "tokens", 1}, {"aged", "aged", "tokens", 1},
		{"steps", "steps", "", 1}, {"records_off", "records_off", "tokens", 1},
		{"tokens_off", "tokens_off", "tokens", 1}};
	const json_t *adaptbf = json_object_get(resource_of(l, c->station), "adaptbf");
	const json_t *jobs = json_object_get(adaptbf, "jobs");
	int r = end ? PUT(l, adaptbf, server_values, "adaptbf.server", t, end)
		    : PUT(l, adaptbf, server_points, "adaptbf.server", t, end);

	for (size_t i = 0; r == 0 && i < json_array_size(jobs); i++) {
		const json_t *job = json_array_get(jobs, i);
		const char *name = json_string_value(json_object_get(job, "tenant"));
		char prefix[256];

		if (!name)
			continue;
		snprintf(prefix, sizeof(prefix), "adaptbf.%s", name);
		r = end ? PUT(l, job, values, prefix, t, end) : PUT(l, job, points, prefix, t, end);
		if (r == 0 && !end)
			r = put_given(l, job, prefix, t);
	}
	return r;
}

int live_say_capacity(struct live *l, const struct scenario_controller *c, double t, bool end)
{
	static const struct saying values[] = {
		{"iops", "capacity_iops", "iops", 1}, {"bytes", "capacity_bytes", "B/s", 1}};
	uint32_t device = c->station;
	char prefix[256];

	snprintf(prefix, sizeof(prefix), "device.%s", l->s->stations[device].name);
	return end ? PUT(l, json_object_get(resource_of(l, device), "capacity"), values, prefix, t,
			     end)
		   : 0;
}
