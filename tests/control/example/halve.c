/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * halve: an example of a controller: it halves the window while latency is over a threshold.
 *
 * LAW     Every period, L = time that requests spent inside / requests that were done. L > threshold: w' = max(1, w/2);
 *         else w' = min(most, w + 1). A period in which no request was done changes nothing.
 * EXAMPLE A server that does one request in 1 ms, threshold 5 ms: w = 32, 16, 8, 4, 5, 6, 3, 4, 5, 6, 3 …
 */
#include "control/controller.h"
#include <math.h>
#include <stdlib.h>

struct halve_settings {
	weir_time threshold, period;
	uint32_t most; /* requests */
};

#define AT(member) KEY_AT(struct halve_settings, member)
static const struct key keys[] = {{"threshold", KEY_TIME, AT(threshold), 0.01, 1e-4, 60},
	{"period", KEY_TIME, AT(period), 0.1, 0.01, 60},
	{"most", KEY_WHOLE, AT(most), 32, 1, 65536}, {0}};
static const struct key_help help[] = {{"threshold", "The latency that halves the window."},
	{"period", "The time between two steps."}, {"most", "The first and largest window."}, {0}};

/* ---- life */

struct halve {
	struct site *site;
	struct halve_settings settings;
	size_t n;          /* tenants */
	double inside;     /* request·ns, of all tenants so far */
	uint64_t done;     /* requests, the same */
	double window;     /* 0: not set yet */
	weir_time latency; /* 0: not known */
	uint64_t halved;
};

static void sum_up(struct halve *h, weir_time now)
{
	struct weir_gate_stats s;

	h->inside = 0;
	h->done = 0;
	for (size_t i = 0; i < h->n; i++)
		if (site_stats(h->site, now, h->site->nodes[i], &s) == 0) {
			h->inside += s.device_ns;
			h->done += s.served;
		}
}

static void set_window(struct halve *h, weir_time now, double window)
{
	h->window = fmin(fmax(1, window), h->settings.most);
	weir_gate_set(h->site->gate, now,
		&(struct weir_knob){.kind = WEIR_KNOB_WINDOW, .value = h->window}, 1, NULL);
}

static int make(struct site *site, void **ret)
{
	struct halve *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->site = site;
	*ret = h;
	return 0;
}

static void begin(void *c, const struct controller_version *v)
{
	struct halve *h = c;
	weir_time now = h->site->ops->now(h->site);

	h->settings = *(const struct halve_settings *)v->settings;
	h->n = v->n;
	sum_up(h, now);
	set_window(h, now, h->window > 0 ? h->window : h->settings.most);
	h->site->ops->wake(h->site, now + h->settings.period);
}

static weir_time step(void *c, weir_time now)
{
	struct halve *h = c, last = *h;

	sum_up(h, now);
	if (h->done > last.done) {
		h->latency = (weir_time)((h->inside - last.inside) / (double)(h->done - last.done));
		h->halved += h->latency > h->settings.threshold;
		set_window(h, now, h->halved > last.halved ? h->window / 2 : h->window + 1);
	}
	return now + h->settings.period;
}

/* ---- facts */

struct tenant_row {
	struct facts_row row;
	uint64_t inside; /* requests */
};

static const struct fact self_facts[] = {
	{"window", "window", "Requests that may be inside at once.", "WINDOW", "window",
		"window_end", .unit = FACTS_REQUESTS, FACT_AT(struct halve, window)},
	{"latency_s", "latency_seconds", "Of a request, in the last period.", "LATENCY", "latency",
		.unit = FACTS_SECONDS, .none = FACTS_NOT_ZERO, FACT_AT(struct halve, latency)},
	{"halved", "halved_total", "Times that the window was halved.", "HALVED", NULL, "halved",
		FACT_AT(struct halve, halved)},
};
static const struct fact tenant_facts[] = {{"inside", "inside", "Requests inside.", "INSIDE",
	"inside", "inside_end", FACT_AT(struct tenant_row, inside)}};

static const struct facts_kind facts = {.name = "halve",
	.label = "Halve",
	.self = {FACTS_OF(struct halve, self_facts)},
	.tables = {{"tenants", {{"tenant", "tenant", "TENANT"}}, .tenants = true,
		FACTS_OF(struct tenant_row, tenant_facts)}}};

static void look(
	const void *c, const struct facts_site *to, bool tenants, bool state, struct facts *ret)
{
	const struct halve *h = c;
	struct halve *self = arena_take(to->memory, 1, sizeof(*self));
	struct tenant_row *rows = arena_take(to->memory, h->n + 1, sizeof(*rows));
	struct weir_gate_stats s;

	if (!self || !rows)
		return;
	*self = *h;
	*ret = (struct facts){.kind = &facts, .self = self, .tables = {{.rows = rows}}};
	for (size_t i = 0; tenants && i < h->n; i++)
		if (site_stats(h->site, h->site->ops->now(h->site), h->site->nodes[i], &s) == 0)
			rows[ret->tables[0].n++] = (struct tenant_row){
				{{to->path(to->arg, i)}, (uint32_t)i}, s.in_flight};
}

const struct controller halve_controller = {
	.name = "halve",
	.summary = "halves the window while latency is over a threshold",
	.keys = keys,
	.help = help,
	.settings_size = sizeof(struct halve_settings),
	.sets_window = true,
	.new = make,
	.free = free,
	.begin = begin,
	.step = step,
	.facts = &facts,
	.look = look,
};
