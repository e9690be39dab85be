/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api-resource: the resources of a snapshot as JSON, with the facts of their controllers.
 *
 * METHOD  A controller may have as many rows as there are tenants: they are at the end of its
 *         object, which is at the end of its resource, and are written a few at a time.
 */
#include "serve/api/api-json.h"
#include "serve/show/facts-json.h"
#include <stddef.h>

#define AT(member) FACT_AT(struct snapshot_resource, member)
static const struct fact facts[] = {
	{"name", AT(name)},
	{"back", AT(back)},
	{"up", "up", "1: the back end answers.", AT(up)},
	{"healthy", "healthy", "1: the back end answers, and nothing is wrong with it.",
		AT(healthy)},
	{"stalled", "stalled_volumes", "Volumes with requests inside that do not answer.",
		AT(stalled)},
	{"bypassed", "bypassed", "1: requests bypass its gate (weir bypass).", AT(bypassed)},
	{"bypassed_s", .unit = FACTS_SECONDS, AT(bypassed_for)},
	{"size", "size_bytes", "Size of the back end.", AT(size)},
	{"window", "window", "Requests that may be inside at once.", AT(window)},
	{"window_bytes", "window_bytes", "Bytes that may be inside at once; 0: no such window.",
		.none = FACTS_NOT_ZERO, AT(window_bytes)},
	{"full_s", "full_seconds_total",
		"Time for which the window, in requests or in bytes, was full.",
		.unit = FACTS_SECONDS, AT(full)},
	{"submitted", "submitted_total", "Requests that arrived.", AT(submitted)},
	{"dispatched", "dispatched_total", "Requests that passed the gate.", AT(dispatched)},
	{"waited", "waited_total", "Requests that waited for longer than a round of the thread.",
		AT(waited)},
	{"served", "served_total", "Requests that were finished.", AT(served)},
	{"errors", "errors_total", "Requests that failed.", AT(errors)},
	{"flush_errors", "flush_errors_total",
		"FLUSHes, and writes with FUA, that were answered with an error.",
		AT(flush_errors)},
	{"lost", "lost_total", "Times that the back end was lost.", AT(lost)},
	{"queued", "queued", "Requests that wait now.", AT(queued)},
	{"in_flight", "in_flight", "Requests inside now.", AT(in_flight)},
	{"in_flight_bytes", "in_flight_bytes", "Bytes of the requests inside now.",
		AT(in_flight_bytes)},
	{"clients", "clients", "Connections now.", AT(clients)},
	{"drift", "profile_drift_ratio",
		"Time that requests take while the device is full, over what the profile says, "
		"minus 1.",
		.unit = FACTS_NUMBER, AT(drift)},
	{"mins", "mins_ratio", "Mins of its tenants over the capacity that was learned.",
		.unit = FACTS_NUMBER, AT(mins)},
	{"thread", AT(thread)},
	{"controller", AT(controller)},
};
const struct facts_table api_resource_facts = {
	.facts = facts, .n_facts = sizeof(facts) / sizeof(*facts)};

static json_t *capacity(const struct snapshot_resource *r)
{
	return json_pack("{s:o, s:o, s:b}", "iops",
		r->capacity[0] > 0 ? show_real(r->capacity[0]) : json_null(), "bytes",
		r->capacity[1] > 0 ? show_real(r->capacity[1]) : json_null(), "stated",
		r->capacity_stated);
}

static json_t *resource(const struct snapshot_resource *r)
{
	json_t *j = facts_json_row(&api_resource_facts, r, FACTS_IN_STATUS);

	json_object_set_new(j, "state", show_text(r->state));
	json_object_set_new(j, "capacity", capacity(r));
	return j;
}

/* ---- in pieces */

/* Write at most *items rows of the table, and subtract them from *items. Return false if there are
 * more. */
static bool write_table(
	struct api_status *s, const struct snapshot_resource *r, size_t *items, FILE *to)
{
	const struct facts_table *t = &r->facts.kind->tables[s->table];
	const struct facts_rows *rows = &r->facts.tables[s->table];

	if (t->place != FACTS_EVERYWHERE)
		return true;
	if (*items == 0)
		return false;
	if (s->row == 0)
		fprintf(to, ", \"%s\": [", t->name);
	for (; *items > 0 && s->row < rows->n; s->row++, --*items) {
		fputs(s->row ? ",\n   " : "\n   ", to);
		show_write(facts_json_row(t, facts_row(t, rows, s->row), FACTS_IN_STATUS), to);
	}
	if (s->row < rows->n)
		return false;
	fputc(']', to);
	s->row = 0;
	return true;
}

/* Write the facts of one kind of controller; null if the resource has another one. */
static bool write_kind(
	struct api_status *s, const struct snapshot_resource *r, size_t *items, FILE *to)
{
	const struct facts_kind *kind = facts_kind(s->part);

	if (r->facts.kind != kind) {
		fprintf(to, ", \"%s\": null", kind->name);
		return true;
	}
	if (s->table == 0 && s->row == 0) {
		fprintf(to, ", \"%s\": {", kind->name);
		show_write_members(facts_json_row(&kind->self, r->facts.self, FACTS_IN_STATUS), to);
	}
	for (; s->table < FACTS_TABLES && kind->tables[s->table].size; s->table++)
		if (!write_table(s, r, items, to))
			return false;
	fputc('}', to);
	s->table = 0;
	return true;
}

bool api_resources_more(struct api_status *s, size_t items, FILE *to)
{
	while (items > 0 && s->resource < s->snapshot->n_resources) {
		const struct snapshot_resource *r = &s->snapshot->resources[s->resource];

		if (s->part == 0 && s->table == 0 && s->row == 0) {
			fputs(s->resource ? ",\n  {" : "\n  {", to);
			show_write_members(resource(r), to);
		}
		if (!write_kind(s, r, &items, to))
			return true;
		if (facts_kind(++s->part))
			continue;
		fputc('}', to);
		s->part = 0;
		s->resource++;
		items -= items > 0;
	}
	return s->resource < s->snapshot->n_resources;
}
