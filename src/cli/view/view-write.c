/* SPDX-License-Identifier: BSD-3-Clause */
/* view-write: the lines of weir status and weir top. */
#include "cli/view/view.h"
#include "cli/view/table.h"
#include <weir/units.h>
#include <math.h>
#include <string.h>

#define MIB 1048576.0
enum { SHORT = VIEW_SHORT };

/* ---- numbers in a few characters */

/* "0", "0.5", "57.4", "12.3k" */
static const char *count(double n, char to[SHORT])
{
	static const char *const suffix[] = {"", "k", "M", "G", "T"};
	int i = 0;

	if (isnan(n))
		return "-";
	for (; i < 4 && n >= 999.5; i++)
		n /= 1000;
	if (i == 0 && n == floor(n))
		snprintf(to, SHORT, "%.0f", n);
	else
		snprintf(to, SHORT, "%.*f%s", n < 9.995 ? 2 : n < 99.95 ? 1 : 0, n, suffix[i]);
	return to;
}

static const char *percent(double part, char to[SHORT])
{
	if (isnan(part))
		return "-";
	snprintf(to, SHORT, part > 0 && part < 0.0995 ? "%.1f%%" : "%.0f%%", 100 * part);
	return to;
}

static const char *bytes(double n, char to[SHORT])
{
	return n >= 0 ? weir_units_show_size((uint64_t)n, to, SHORT) : "-";
}

/* ---- the first line */

void view_write_head(const json_t *now, FILE *to)
{
	const json_t *buffers = json_object_get(now, "buffers"),
		     *connections = json_object_get(now, "connections");
	double up = view_count(now, "uptime_s"), refused = view_count(connections, "refused"),
	       broken = view_count(connections, "broken");
	char used[SHORT], limit[SHORT];
	const char *version = json_string_value(json_object_get(now, "weir"));

	fprintf(to, "weir %s, up ", version ? version : "?");
	if (up >= 86400)
		fprintf(to, "%.0f d %.0f h", floor(up / 86400), floor(fmod(up, 86400) / 3600));
	else if (up >= 3600)
		fprintf(to, "%.0f h %.0f min", floor(up / 3600), floor(fmod(up, 3600) / 60));
	else if (up >= 60)
		fprintf(to, "%.0f min %.0f s", floor(up / 60), floor(fmod(up, 60)));
	else
		fprintf(to, "%.0f s", floor(up));
	fprintf(to, "; policy version %.0f%s; %.0f client%s", view_count(now, "policy_version"),
		json_is_true(json_object_get(now, "enforce")) ? "" : ", NOT ENFORCED",
		view_count(now, "clients"), view_count(now, "clients") == 1 ? "" : "s");
	if (refused > 0)
		fprintf(to, ", %.0f refused", refused);
	if (broken > 0)
		fprintf(to, ", %.0f disconnected", broken);
	fprintf(to, "; buffers %s of %s\n", bytes(view_count(buffers, "used"), used),
		bytes(view_count(buffers, "limit"), limit));
}

/* ---- resources */

static void write_capacity(const struct view_resource *r, struct table *t)
{
	char a[SHORT], b[SHORT];
	bool iops = r->capacity[0] > 0, size = r->capacity[1] > 0;

	if (iops)
		weir_units_show_rate(
			(struct weir_rate){r->capacity[0], WEIR_UNIT_REQUESTS}, a, SHORT);
	if (size)
		weir_units_show_rate((struct weir_rate){r->capacity[1], WEIR_UNIT_BYTES}, b, SHORT);
	if (!iops && !size)
		table_cell(t, "not known yet");
	else
		table_cell(t, "%s%s%s%s", iops ? a : "", iops && size ? ", " : "", size ? b : "",
			r->stated ? "" : " (learned)");
}

/* "8", or with a window in bytes "8, 512 KiB". */
static void write_window(const struct view_resource *r, struct table *t)
{
	char a[SHORT], b[SHORT] = "";

	if (r->window_bytes > 0)
		weir_units_show_size((uint64_t)r->window_bytes, b, SHORT);
	table_cell(t, "%s%s%s", r->window > 0 ? count(r->window, a) : "-", *b ? ", " : "", b);
}

void view_write_resources(const struct view *v, FILE *to)
{
	static const char *const heads[] = {"RESOURCE", "WINDOW", "INSIDE", "QUEUED", "FULL",
		"IOPS", "ERRORS", "CAPACITY", "STATE", NULL};
	struct table t;

	table_begin(&t, heads, 0x7e);
	for (size_t i = 0; i < v->n_resources; i++) {
		const struct view_resource *r = &v->resources[i];
		char a[SHORT];
		table_cell(&t, "%s", r->name);
		write_window(r, &t);
		table_cell(&t, "%.0f", r->in_flight);
		table_cell(&t, "%.0f", r->queued);
		table_cell(&t, "%s", percent(r->full, a));
		table_cell(&t, "%s", count(r->iops, a));
		table_cell(&t, "%s", count(r->errors, a));
		write_capacity(r, &t);
		if (r->bypassed >= 0)
			table_cell(
				&t, "%s, BYPASSED for %s", r->state, view_seconds(r->bypassed, a));
		else
			table_cell(&t, "%s", r->state);
	}
	table_end(&t, to);
}

/* Return true if the tenant uses that resource only, and now. */
static bool is_active_at(const struct view_tenant *t, const struct view_resource *r)
{
	const json_t *at = json_object_get(t->now, "at");

	return t->leaf && t->iops > 0 && json_array_size(at) == 1 &&
	       strcmp(view_text(json_array_get(at, 0), "resource"), r->name) == 0;
}

/* Return the active tenant of the resource that misses most of what is due to it, although few of its requests wait; NULL: there
 * is none, or no other is active. A tenant with a tenth of its due asks for little. */
static const struct view_tenant *find_unweighed(const struct view *v, const struct view_resource *r)
{
	const struct view_tenant *most = NULL;
	size_t active = 0;

	for (size_t i = 0; i < v->n_tenants; i++) {
		const struct view_tenant *t = &v->tenants[i];

		if (!is_active_at(t, r))
			continue;
		active++;
		if (t->waited < 0.5 && t->got > 0.1 * t->due && t->got < 0.9 * t->due &&
			(!most || t->due - t->got > most->due - most->got))
			most = t;
	}
	return active > 1 ? most : NULL;
}

/* Say where weights do not act, since no request waits for which they could decide. */
void view_write_unweighed(const struct view *v, FILE *to)
{
	char a[SHORT];

	for (size_t i = 0; i < v->n_resources; i++) {
		const struct view_resource *r = &v->resources[i];
		const struct view_tenant *t = find_unweighed(v, r);

		if (t)
			fprintf(to,
				"\n%s: weights do not act for %s: %s of its requests wait, more do "
				"with a smaller depth or more outstanding\n",
				r->name, t->path, percent(t->waited, a));
	}
}

/* ---- tenants */

/*
 * Write the causes of waiting with their parts: "window 80%, max of prod 20%". Parts under 1 % are
 * left out, and all of them if less than a thousandth of a request waited on average, or fewer than one request in a hundred
 * for longer than a round of the thread.
 */
static void write_why(const struct view_tenant *t, struct table *table)
{
	static const char *const words[VIEW_CAUSES] = {
		"window", "own max", "max above", "tokens", "turn"};
	char text[200] = "";
	double all = 0;
	size_t n = 0;

	for (int i = 0; i < VIEW_CAUSES && !(t->waited < 0.01); i++)
		all += t->wait[i];
	for (int done = 0, said = 0; all > 1e-3 && said < VIEW_CAUSES && n < sizeof(text); said++) {
		int most = -1;
		for (int i = 0; i < VIEW_CAUSES; i++)
			if (!(done >> i & 1) && (most < 0 || t->wait[i] > t->wait[most]))
				most = i;
		done |= 1 << most;
		if (t->wait[most] < 0.01 * all)
			break;
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s%s %.0f%%", n ? ", " : "",
			most == VIEW_ABOVE && t->held_by ? "max of " : "",
			most == VIEW_ABOVE && t->held_by ? t->held_by : words[most],
			100 * t->wait[most] / all);
	}
	table_cell(table, "%s", *text ? text : "-");
}

/* In shadow mode a rate is an estimate, with the range in which enforcement is expected, if that is known. */
static void write_iops(const struct view_tenant *r, struct table *t)
{
	char a[SHORT], b[SHORT], c[SHORT];

	if (isnan(r->high))
		table_cell(t, "?");
	else if (r->high > 0)
		table_cell(t, "~%s (%s-%s)", count(r->iops, a), count(r->iops * r->low, b),
			count(r->iops * r->high, c));
	else
		table_cell(t, "%s", count(r->iops, a));
}

/* Name the tenants whose min is not in force, the first of them. */
static void write_min_off(const struct view *v, FILE *to)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n_tenants; i++)
		if (json_is_true(json_object_get(v->tenants[i].now, "min_off")) && n++ < 10)
			fprintf(to, "%s%s", n > 1 ? ", " : "\nMIN OFF: ", v->tenants[i].path);
	if (n > 10)
		fprintf(to, " and %zu more", n - 10);
	if (n)
		fprintf(to, ": the min does not fit (the log has the reason, min-off)\n");
}

void view_write_tenants(const struct view *v, FILE *to)
{
	static const char *const heads[] = {"TENANT", "IOPS", "MiB/s", "p50", "p99", "GOT", "DUE",
		"QUEUED", "OLDEST", "INSIDE", "ERRORS", "WAITS FOR", NULL};
	struct table t;

	table_begin(&t, heads, 0x7fe);
	for (size_t i = 0; i < v->n_tenants; i++) {
		const struct view_tenant *r = &v->tenants[i];
		char a[SHORT];
		table_cell(&t, "%s", r->path);
		write_iops(r, &t);
		table_cell(&t, "%s", count(r->bytes / MIB, a));
		table_cell(&t, "%s", view_seconds(r->p50, a));
		table_cell(&t, "%s", view_seconds(r->p99, a));
		table_cell(&t, "%s", percent(r->got, a));
		table_cell(&t, "%s", percent(r->due, a));
		table_cell(&t, "%.0f", r->queued);
		table_cell(&t, "%s", r->oldest > 0 ? view_seconds(r->oldest, a) : "-");
		table_cell(&t, "%.0f", r->in_flight);
		table_cell(&t, "%s", count(r->errors, a));
		write_why(r, &t);
	}
	table_end(&t, to);
	write_min_off(v, to);
}

void view_write_idle(const struct view *v, FILE *to)
{
	if (v->idle > 0)
		fprintf(to, "\n%.0f idle tenants are not shown (--all)\n", v->idle);
}

void view_write_lines(const json_t *j, const char *key, const char *label, FILE *to)
{
	const json_t *list = json_object_get(j, key);

	for (size_t i = 0; i < json_array_size(list); i++) {
		fprintf(to, "%s: ", label);
		table_put_text(json_string_value(json_array_get(list, i)), to);
		fputc('\n', to);
	}
}

void view_write_all(const struct view *v, const json_t *now, bool idle, FILE *to)
{
	view_write_head(now, to);
	view_write_lines(now, "remarks", "remark", to);
	fputc('\n', to);
	view_write_resources(v, to);
	view_write_unweighed(v, to);
	fputc('\n', to);
	view_write_tenants(v, to);
	if (idle)
		view_write_idle(v, to);
	view_write_slo(now, to);
	view_write_facts(now, to);
}

/* ---- clients */

void view_write_clients(const json_t *clients, FILE *to)
{
	static const char *const heads[] = {"CLIENT", "EXPORT", "TENANT", "RESOURCE", "SINCE",
		"REQUESTS", "BYTES", "INSIDE", "TLS", NULL};
	static const char *const texts[] = {"name", "export", "tenant", "resource"};
	const json_t *list = json_object_get(clients, "clients");
	struct table t;

	table_begin(&t, heads, 0xf0);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *c = json_array_get(list, i);
		const char *tls = json_string_value(json_object_get(c, "tls"));
		char a[SHORT];
		for (int k = 0; k < 4; k++) {
			const char *s = json_string_value(json_object_get(c, texts[k]));
			table_cell(&t, "%s", s && *s ? s : "-");
		}
		table_cell(&t, "%s", view_seconds(view_count(c, "connected_s"), a));
		table_cell(&t, "%s", count(view_count(c, "requests"), a));
		table_cell(&t, "%s", bytes(view_count(c, "bytes"), a));
		table_cell(&t, "%.0f", view_count(c, "in_flight"));
		table_cell(&t, "%s", tls ? tls : "-");
	}
	table_end(&t, to);
}
