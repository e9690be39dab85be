/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/parda/facts.h"
#include <math.h>
#include <stdio.h>

struct self {
	struct parda_decision last;
	struct parda_counts counts;
	double held;
	double stranger, wmax_needed, unreachable;   /* 0: not so */
	double window;                               /* of the resource's gate */
	double knee, bursts, reads, probed, longest; /* NAN: not looked for */
};

#define AT(member)   FACT_AT(struct self, member)
#define LAST(member) FACT_AT(struct self, last.member)
static const struct fact facts[] = {
	{.end = "window_end", .unit = FACTS_REQUESTS, LAST(window)},
	{"beta", "beta", "Part of the window that shares control, in slots.", NULL, "beta",
		"beta_end", .unit = FACTS_REQUESTS, LAST(beta)},
	{"peers", "peers", "Other hosts whose reports count.", "PEERS", NULL, "peers_end",
		LAST(peers)},
	{"alone", "alone", "1: no other host is heard.", LAST(alone)},
	{"same_name", "same_name", "1: two hosts have one name.", LAST(twice)},
	{"shares", "shares",
		"Shares of this host's tenants, less those that stay idle beside a busy one.",
		"SHARES", "shares", .unit = FACTS_NUMBER, LAST(report.shares)},
	{"window", .title = "WINDOW", .unit = FACTS_NUMBER, .place = FACTS_OF_RESOURCE, AT(window)},
	{"latency_s", "latency_seconds", "Latency of the resource, over all hosts.", "LATENCY",
		"latency", .unit = FACTS_SECONDS, .none = FACTS_NOT_ZERO, LAST(latency)},
	{"threshold_s", "threshold_seconds", "The target latency.", "AIMS AT", "threshold",
		.unit = FACTS_SECONDS, LAST(threshold)},
	{"held_s", "held_seconds",
		"Time for which limits of an upstream hold a request; not in the latency.", "HELD",
		.unit = FACTS_SECONDS, AT(held)},
	{"stranger", "stranger_requests",
		"Estimated requests inside that no host has sent; 0: none.", .unit = FACTS_REQUESTS,
		.none = FACTS_NOT_ZERO, AT(stranger)},
	{.series = "stranger", .unit = FACTS_REQUESTS, LAST(strange)},
	{"floor", "floor", "Slots kept beside a stranger; 0: the law gives more.", NULL, "floor",
		.unit = FACTS_REQUESTS, .none = FACTS_NOT_ZERO, LAST(floor)},
	{"wmax_below_floor", "wmax_below_floor", "1: wmax is less than these slots.", NULL,
		"too_low", LAST(too_low)},
	{.series = "wmax_short", LAST(wmax_short)},
	{"wmax_needed", "wmax_needed",
		"Sufficient wmax, if wmax keeps the host below its share; else 0.",
		.unit = FACTS_REQUESTS, .none = FACTS_NOT_ZERO, AT(wmax_needed)},
	{.series = "unreachable", LAST(unreachable)},
	{"unreachable_s", "unreachable_seconds",
		"Least latency, if it is over the threshold at any window; else 0.",
		.unit = FACTS_SECONDS, .none = FACTS_NOT_ZERO, AT(unreachable)},
	{"knee_s", .series = "knee", .unit = FACTS_SECONDS, .none = FACTS_NOT_ZERO, LAST(knee)},
	{"probe_bursts", "probe_bursts_total",
		"Bursts of the host's own reads to find its threshold.", AT(counts.bursts)},
	{"probe_reads", "probe_reads_total", "Reads in these bursts.", AT(counts.reads)},
	{"probe_s", "probe_seconds_total", "Time of these bursts.", .unit = FACTS_SECONDS,
		AT(counts.probed)},
	{.end = "probe_bursts", AT(bursts)},
	{.end = "probe_reads", AT(reads)},
	{.end = "probe_time", .unit = FACTS_SECONDS, AT(probed)},
	{.end = "probe_longest", .unit = FACTS_SECONDS, AT(longest)},
	{.end = "knee_end", .unit = FACTS_SECONDS, AT(knee)},
};

/* The members that have no place in JSON, from those that have. */
static void finish(void *row)
{
	struct self *s = row;

	s->last.window = s->window;
	s->last.strange = s->stranger;
	s->last.wmax_short = s->wmax_needed > 0;
	s->last.unreachable = s->unreachable > 0;
	s->knee = s->last.knee > 0 ? s->last.knee : NAN;
	s->bursts = s->counts.bursts ? (double)s->counts.bursts : NAN;
	s->reads = s->counts.bursts ? (double)s->counts.reads : NAN;
	s->probed = s->counts.bursts ? (double)s->counts.probed : NAN;
	s->longest = s->counts.bursts ? (double)s->counts.longest : NAN;
}

static const char *note(const void *row, char text[FACTS_NOTE])
{
	const struct self *s = row;

	if (s->last.twice)
		return "two hosts have one name";
	if (s->unreachable > 0)
		return "latency is over the threshold at any window";
	if (s->stranger > 0) {
		snprintf(text, FACTS_NOTE, "a stranger has about %.2g requests inside%s",
			s->stranger,
			s->last.too_low ? "; wmax is less than half of the fair part" : "");
		return text;
	}
	if (s->wmax_needed > 0) {
		snprintf(text, FACTS_NOTE, "wmax is below the share, which is about %.2g",
			s->wmax_needed);
		return text;
	}
	return s->last.alone ? "alone: no other host is heard" : "";
}

static void fill(const void *of, const struct facts_site *site, struct facts *ret)
{
	const struct parda_facts_of *from = of;
	struct self *s = arena_take(site->memory, 1, sizeof(*s));

	if (!s)
		return;
	s->last = *from->last;
	s->held = from->held;
	parda_counts(from->parda, &s->counts);
	s->stranger = s->last.stranger ? s->last.strange : 0;
	s->wmax_needed = s->last.wmax_short ? s->last.wmax_wanted : 0;
	s->unreachable = s->last.unreachable ? s->last.least : 0;
	s->knee = from->find ? s->last.knee : NAN;
	s->bursts = from->probe ? (double)s->counts.bursts : NAN;
	s->reads = from->probe ? (double)s->counts.reads : NAN;
	s->probed = from->probe ? (double)s->counts.probed : NAN;
	s->longest = from->probe ? (double)s->counts.longest : NAN;
	ret->kind = &parda_facts;
	ret->self = s;
}

const struct facts_kind parda_facts = {
	.name = "parda",
	.label = "PARDA",
	.self = {.facts = facts,
		.n_facts = sizeof(facts) / sizeof(*facts),
		.size = sizeof(struct self),
		.finish = finish,
		.note = note},
	.fill = fill,
};
