/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live-lab: the parts of a live run that the simulator computes beforehand: the arrivals of open workloads, as traces; plans, as
 * priorities and profile buckets of tenants; and estimates, as profiles.
 *
 * The world is the simulator's, with the same seed, and is never run. Its tenants and loads are in the order of the run's own
 * tenants and clients.
 */
#include "cli/live/live-impl.h"
#include "model/trace/trace.h"
#include "sim/world/measure.h"
#include "sim/world/world.h"
#include <errno.h>
#include <inttypes.h>

#define LONGER (5 * WEIR_SEC) /* a trace goes on so long after the run's end */

/*
 * A client sends late by so much on a busy machine: the arrivals of a plan's trace, each up to this late, fit buckets that are
 * larger by their rate times this.
 */
#define LATE 0.010 /* s */

/* ---- arrivals */

static int write_trace(const struct live *l, struct live_client *c, struct workload *source,
	FILE *f, struct weir_err *err)
{
	static const char ops[] = {'R', 'W', 'F', 'T'};
	struct workload_io io;
	bool any = false;

	fputs("# weir-trace 1\n", f);
	while (workload_next(source, 0, &io) && io.at < l->s->duration + LONGER) {
		if (io.bytes > LIVE_PIECE)
			return weir_err_at(err, -EINVAL, yamldoc_place(c->workload->node),
				"workload %s cannot run live: a size over 256 KiB, which a gateway "
				"divides into pieces",
				c->name);
		if (!any)
			c->start = io.at;
		any = true;
		fprintf(f, "%" PRId64 " %c %" PRIu64 " %" PRIu32 " 0\n", io.at - c->start,
			ops[io.op], io.op == WEIR_FLUSH ? 0 : io.offset - c->tenant->low, io.bytes);
	}
	c->held |= !any;
	return 0;
}

/* Write the arrivals of an open workload; its client starts with the first of them. */
static int make_trace(
	const struct live *l, struct live_client *c, struct world_load *from, struct weir_err *err)
{
	FILE *f;
	int r;

	snprintf(c->trace, LIVE_PATH, "%s/c%zu.trace", l->dir, (size_t)(c - l->clients));
	r = files_create(c->trace, &f, err);
	if (r < 0)
		return r;
	r = write_trace(l, c, from->source, f, err);
	return files_close(f, c->trace, r, err);
}

int live_lab(struct live *l, struct weir_err *err)
{
	int r = world_new(l->s, l->seed, &l->world, err);

	for (size_t i = 0; r == 0 && i < l->n_clients; i++)
		if (!l->world->loads[i].closed)
			r = make_trace(l, &l->clients[i], &l->world->loads[i], err);
	return r;
}

/* ---- plans */

static const struct world_gate *gate_of(const struct live *l, const struct live_server *v)
{
	return v->host < 0 ? l->world->stations[v->device].gate : l->world->hosts[v->host].gate;
}

static void put_bucket(FILE *f, const struct weir_bucket_spec *b, double late)
{
	double size = b->size + b->rate * late;

	if (b->unit == WEIR_UNIT_TIME)
		fprintf(f, "{share: %.17g, size: %.0f ns", b->rate / (double)WEIR_SEC, size);
	else if (b->unit == WEIR_UNIT_BYTES)
		fprintf(f, "{rate: %.17g B/s, size: %.0f B", b->rate, size);
	else
		fprintf(f, "{rate: %.17g iops, size: %.17g", b->rate, size);
	fprintf(f, ", ops: %s}, ",
		b->ops == WEIR_OPS_READS    ? "reads"
		: b->ops == WEIR_OPS_WRITES ? "writes"
					    : "all");
}

void live_lab_put_tenant(
	FILE *f, const struct live *l, const struct live_server *v, const char *path)
{
	const struct world_gate *g = gate_of(l, v);
	int i = weir_policy_find(g->config->policy, path);
	const struct policy_lab_tenant *k =
		g->knobs ? &g->knobs[i].lab : &g->config->tenants[i].knobs.lab;

	fputs("lab: {", f);
	if (k->priority >= 0)
		fprintf(f, "priority: %d, ", k->priority);
	if (g->config->config.order == WEIR_EDF)
		fprintf(f, "deadline: %" PRId64 " ns, ", k->deadline);
	fputs("profile: [", f);
	for (unsigned n = 0; n < k->n_profile; n++)
		put_bucket(f, &k->profile[n],
			g->config->tenants[i].knobs.lab.n_profile ? 0 : LATE); /* of a plan */
	fputs("], ", f);
	if (k->rtokens.size > 0) {
		fputs("rtokens: ", f);
		put_bucket(f, &k->rtokens, 0);
	}
	if (k->ltokens.size > 0) {
		fputs("ltokens: ", f);
		put_bucket(f, &k->ltokens, 0);
	}
	fputs("}, ", f);
}

void live_lab_plans(const struct live *l)
{
	for (uint32_t i = 0; i < l->world->n_tenants; i++)
		measure_put_plan(l->metrics, &l->world->tenants[i]);
}

/* ---- resources */

int live_lab_check(const struct scenario_gate *g, struct weir_err *err)
{
	const struct policy_lab_resource *lab = &g->resource.lab;

	if (lab->holds || lab->aligned)
		return weir_err_at(err, -EINVAL, lab->at, "lab: '%s' cannot run live",
			lab->holds ? "limit" : "aligned");
	return policy_lab_controls(&g->resource, err);
}

void live_lab_put_resource(
	FILE *f, const struct live *l, const struct live_server *v, yamldoc_node lab)
{
	static const char *const orders[] = {"fair", "fifo", "edf"};
	static const char *const not [] = {"order", "estimate", "plan", "pairs", "only", "limit",
		"levels", "blocking", "margin", "aligned", NULL};
	const struct world_gate *g = gate_of(l, v);

	if (!g)
		return;
	fprintf(f, "lab: {order: %s, ", orders[g->config->config.order]);
	live_text_keys(f, lab, not );
	fputs("}, ", f);
	if (g->config->resource.lab.estimates)
		fprintf(f, "profile: \"%s\", ", v->profile);
}

static void put_row(FILE *f, const struct estimate_row *row)
{
	fputs("    - {", f);
	if (row->distance != UINT64_MAX)
		fprintf(f, "distance: %" PRIu64 " B, ", row->distance);
	for (int i = 0; i < ESTIMATE_SIZES; i++)
		fprintf(f, "%s%.0f ns", i ? ", " : "work: [", row->work[i] < 1 ? 1 : row->work[i]);
	fputs("]}\n", f);
}

int live_lab_write_profile(const struct live *l, const struct live_server *v, struct weir_err *err)
{
	static const char *const ops[ESTIMATE_OPS] = {"read", "write"};
	const struct world_gate *g = gate_of(l, v);
	const struct policy_lab_resource *lab = g ? &g->config->resource.lab : NULL;
	struct estimate e;
	FILE *f;
	int r;

	if (!lab || !lab->estimates)
		return 0;
	estimate_constant(&e, (double)lab->estimate_io,
		lab->estimate_rate > 0 ? 1e9 / lab->estimate_rate : 0);
	if (g->config->estimate)
		e = *g->config->estimate;
	r = files_create(v->profile, &f, err);
	if (r < 0)
		return r;
	fprintf(f, "profile: 1\ndepth: %u\nsizes: [", e.depth ? e.depth : 1);
	for (int i = 0; i < ESTIMATE_SIZES; i++)
		fprintf(f, "%s%u B", i ? ", " : "", ESTIMATE_LEAST << i);
	fputs("]\n", f);
	for (unsigned op = 0; op < ESTIMATE_OPS; op++) {
		fprintf(f, "%s:\n  work:\n", ops[op]);
		for (unsigned i = 0; i < e.n_rows[op]; i++)
			put_row(f, &e.row[op][i]);
	}
	return files_close(f, v->profile, 0, err);
}

void live_lab_free(struct live *l)
{
	world_free(l->world);
}
