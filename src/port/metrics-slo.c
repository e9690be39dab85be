/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics-slo: slos of tenants as Prometheus reads them; nothing where no tenant has one. */
#include "port/metrics-impl.h"
#include <stddef.h>

#define S(member) offsetof(struct snapshot_slo, member)
static const struct metrics_field fields[] = {
	{"weir_tenant_slo_requests_total", "counter",
		"Requests of a tenant with an slo that were done.", S(total), METRICS_U64, false},
	{"weir_tenant_slo_good_total", "counter", "Of those, within the bound of the slo.", S(good),
		METRICS_U64, false},
	{"weir_tenant_slo_percentile", "gauge", "Percent of the requests that must be good.",
		S(percentile), METRICS_DOUBLE, false},
	{"weir_tenant_slo_bound_seconds", "gauge", "The time within which a request is good.",
		S(bound), METRICS_TIME, false},
};
#undef S

static const char *const windows[SLO_WINDOWS] = {"1m", "1h"};

static void write_field(const struct snapshot *s, const struct metrics_field *f, FILE *to)
{
	metrics_family(to, f->name, f->type, f->help);
	for (size_t i = 0; i < s->n_slos; i++) {
		fputs(f->name, to);
		metrics_labels(to, "tenant", s->slos[i].path, "", "");
		metrics_number(to, metrics_value(&s->slos[i], f));
	}
}

/* Absent where it is not known: nothing was done in the window. */
static void write_windows(const struct snapshot *s, bool met, FILE *to)
{
	const char *name = met ? "weir_tenant_slo_met" : "weir_tenant_slo_seconds";

	metrics_family(to, name, "gauge",
		met ? "1: the slo is met over the last minute or hour."
		    : "The slo's percentile over the last minute or hour.");
	for (size_t i = 0; i < s->n_slos; i++)
		for (int w = 0; w < SLO_WINDOWS; w++) {
			const struct slo_view *v = &s->slos[i].window[w];

			if (met ? !v->known : v->value < 0)
				continue;
			fputs(name, to);
			metrics_labels(to, "tenant", s->slos[i].path, "window", windows[w]);
			metrics_number(to, met ? v->met : (double)v->value / 1e9);
		}
}

void metrics_slo(const struct snapshot *s, FILE *to)
{
	if (!s->n_slos)
		return;
	for (size_t k = 0; k < COUNT(fields); k++)
		write_field(s, &fields[k], to);
	write_windows(s, false, to);
	write_windows(s, true, to);
}
