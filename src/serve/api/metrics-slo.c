/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics-slo: slos of tenants for Prometheus; nothing if no tenant has one. */
#include "serve/api/metrics-impl.h"
#include <stddef.h>

#define AT(member) FACT_AT(struct snapshot_slo, member)
static const struct fact facts[] = {
	{NULL, "slo_requests_total", "Requests of a tenant with an slo that were done.", AT(total)},
	{NULL, "slo_good_total", "Of those, within the bound of the slo.", AT(good)},
	{NULL, "slo_percentile", "Percent of the requests that must be good.", AT(percentile)},
	{NULL, "slo_bound_seconds", "The time within which a request is good.",
		.unit = FACTS_SECONDS, AT(bound)},
};

static const char *const windows[SLO_WINDOWS] = {"1m", "1h"};

static size_t count(const struct metrics_cursor *c)
{
	return c->snapshot->n_slos;
}

static void head_field(const struct metrics_cursor *c, size_t k, FILE *to)
{
	metrics_fact_family(to, "tenant", &facts[k]);
}

static bool row_field(const struct metrics_cursor *c, size_t i, size_t k, FILE *to)
{
	const struct snapshot_slo *s = &c->snapshot->slos[i];

	metrics_fact(to, "tenant", &facts[k], "tenant", s->path, s);
	return true;
}

static const char *const window_names[2] = {"weir_tenant_slo_seconds", "weir_tenant_slo_met"};

static void head_window(const struct metrics_cursor *c, size_t met, FILE *to)
{
	metrics_family(to, window_names[met], "gauge",
		met ? "1: the slo is met over the last minute or hour."
		    : "The slo's percentile over the last minute or hour.");
}

/* Absent if not known: no request completed in the window. */
static bool row_window(const struct metrics_cursor *c, size_t i, size_t met, FILE *to)
{
	const struct snapshot_slo *s = &c->snapshot->slos[i];

	for (int w = 0; w < SLO_WINDOWS; w++) {
		const struct slo_view *v = &s->window[w];

		if (met ? !v->known : v->value < 0)
			continue;
		fputs(window_names[met], to);
		metrics_labels(to, "tenant", s->path, "window", windows[w]);
		metrics_number(to, met ? v->met : (double)v->value / 1e9);
	}
	return true;
}

const struct metrics_rows metrics_slos[2] = {{COUNT(facts), count, head_field, row_field},
	{COUNT(window_names), count, head_window, row_window}};
