/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics-facts: the facts of controllers, and of messages between hosts, for Prometheus. */
#include "serve/api/metrics-impl.h"
#include <stddef.h>

/* ---- values of the controllers themselves: one a resource */

static bool has_any(const struct snapshot *s, const struct facts_kind *kind)
{
	for (size_t i = 0; i < s->n_resources; i++)
		if (s->resources[i].facts.kind == kind)
			return true;
	return false;
}

static void write_self(const struct snapshot *s, const struct facts_kind *kind, FILE *to)
{
	const struct facts_table *t = &kind->self;

	for (const struct fact *f = t->facts; f < t->facts + t->n_facts; f++) {
		if (!f->metric)
			continue;
		metrics_fact_family(to, kind->name, f);
		for (size_t i = 0; i < s->n_resources; i++) {
			const struct snapshot_resource *r = &s->resources[i];

			if (r->facts.kind == kind)
				metrics_fact(to, kind->name, f, "resource", r->name, r->facts.self);
		}
	}
}

/* ---- rows */

/* A part is a table of a kind; the table of the whole gateway follows the tables of each kind. */
#define PARTS_EACH (FACTS_TABLES + 1)

static const struct facts_table *table_of(const struct metrics_cursor *c)
{
	const struct facts_kind *kind = facts_kind(c->part / PARTS_EACH);
	size_t i = c->part % PARTS_EACH;

	return i < FACTS_TABLES ? &kind->tables[i] : &kind->whole;
}

/* Return the rows of a resource in the cursor's part; none if they are of another kind. */
static struct facts_rows rows_of(const struct metrics_cursor *c, size_t resource)
{
	const struct facts *f = &c->snapshot->resources[resource].facts;

	if (f->kind != facts_kind(c->part / PARTS_EACH))
		return (struct facts_rows){0};
	return f->tables[c->part % PARTS_EACH];
}

static bool is_whole(const struct metrics_cursor *c)
{
	return c->part % PARTS_EACH == FACTS_TABLES;
}

static const struct facts_rows *whole_rows(const struct metrics_cursor *c)
{
	return &c->snapshot->whole[c->part / PARTS_EACH];
}

static size_t count_rows(const struct metrics_cursor *c)
{
	const struct facts_table *t = table_of(c);
	size_t n = 0;

	if (!t->size || !t->facts[c->family].metric)
		return 0;
	if (is_whole(c))
		return whole_rows(c)->n;
	for (size_t i = 0; i < c->snapshot->n_resources; i++)
		n += rows_of(c, i).n;
	return n;
}

static void head_row(const struct metrics_cursor *c, size_t family, FILE *to)
{
	metrics_fact_family(
		to, facts_kind(c->part / PARTS_EACH)->name, &table_of(c)->facts[family]);
}

/* i counts through the rows of all resources. */
static bool write_row(const struct metrics_cursor *c, size_t i, size_t family, FILE *to)
{
	const struct facts_table *t = table_of(c);
	const struct fact *f = &t->facts[family];
	const struct facts_row *row;
	char before = '{';

	metrics_fact_name(to, facts_kind(c->part / PARTS_EACH)->name, f);
	if (is_whole(c)) {
		row = facts_row(t, whole_rows(c), i);
	} else {
		size_t r = 0;
		struct facts_rows rows;

		for (; i >= (rows = rows_of(c, r)).n; r++)
			i -= rows.n;
		row = facts_row(t, &rows, i);
		metrics_label(to, before, "resource", c->snapshot->resources[r].name);
		before = ',';
	}
	for (size_t k = 0; k < 2 && t->keys[k].name; k++) {
		metrics_label(to, before, t->keys[k].label, row->key[k] ? row->key[k] : "");
		before = ',';
	}
	fputs("} ", to);
	metrics_number(to, facts_value(f, row));
	return true;
}

size_t metrics_facts_parts(void)
{
	size_t n = 0;

	while (facts_kind(n))
		n++;
	return n * PARTS_EACH;
}

struct metrics_rows metrics_facts_rows(const struct metrics_cursor *c)
{
	const struct facts_table *t = table_of(c);

	return (struct metrics_rows){t->n_facts, count_rows, head_row, write_row};
}

/* ---- messages between hosts */

static void write_peers(const struct snapshot *s, FILE *to)
{
	const struct peer_stats *p = &s->peers;
	const struct {
		const char *name, *type, *help;
		double value;
	} all[] = {
		{"weir_peer_heard", "gauge", "Hosts heard in the last 10 s.", p->heard},
		{"weir_peer_sent_total", "counter", "Messages to other hosts.", (double)p->sent},
		{"weir_peer_sent_bytes_total", "counter", "Of those.", (double)p->sent_bytes},
		{"weir_peer_received_bytes_total", "counter", "Datagrams, or what was read.",
			(double)p->received_bytes},
		{"weir_peer_failed_total", "counter",
			"Sends, reads and writes that the system refused.", (double)p->failed},
		{"weir_peer_missed_total", "counter", "Periods skipped because storage was slow.",
			(double)p->missed},
		{"weir_peer_same_name_total", "counter", "Messages of hosts with one name.",
			(double)p->same},
	};

	if (!s->has_peers)
		return;
	for (size_t i = 0; i < COUNT(all); i++)
		metrics_single(to, all[i].name, all[i].type, all[i].help, all[i].value);
	metrics_family(to, "weir_peer_received_total", "counter",
		"Messages by outcome; only taken ones have an effect.");
	for (int v = 0; v < PEER_VERDICTS; v++) {
		fputs("weir_peer_received_total", to);
		metrics_labels(to, "verdict", peer_verdict_name((enum peer_verdict)v), "", "");
		metrics_number(to, (double)p->verdicts[v]);
	}
}

void metrics_facts(const struct snapshot *s, FILE *to)
{
	for (size_t k = 0; facts_kind(k); k++)
		if (has_any(s, facts_kind(k)))
			write_self(s, facts_kind(k), to);
	write_peers(s, to);
}
