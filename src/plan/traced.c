/* SPDX-License-Identifier: BSD-3-Clause */
/* traced: from the trace of a tenant to its buckets at each stage of its path. */
#include "plan/read-impl.h"
#include "base/no-memory.h"
#include "model/trace/tenant.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the work of requests */

double planning_link_work(const struct policy_link *l, bool to_server, unsigned op, uint64_t bytes)
{
	bool carries = op == (to_server ? TRACE_WRITE : TRACE_READ);

	return fmax(1, (double)l->overhead + (carries ? (double)bytes : 0));
}

/* Return the work of a request at a resource: of the pieces of which a gateway makes it. most: raised to that of a piece. */
static double resource_work(const struct estimate *e, struct estimate_past *past,
	const struct trace_record *q, double *most)
{
	uint32_t n = replay_pieces(q);
	uint64_t done = 0, piece = n < REPLAY_PIECES ? STATION_PIECE : q->bytes / n + 1;
	double sum = 0;

	do {
		uint64_t left = q->bytes - done;
		uint32_t bytes = (uint32_t)(n > 1 && left > piece ? piece : left);
		double work = 1e-9 * estimate_work(e, past, q->op, q->offset + done, bytes);

		*most = fmax(*most, work);
		sum += work;
		done += bytes;
	} while (done < q->bytes);
	return sum;
}

double planning_arrivals(
	const struct estimate *e, const struct trace *t, struct meister_arrival *ret)
{
	struct estimate_past past = {0};
	double most = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct trace_record *q = &t->records[i];

		ret[i] = (struct meister_arrival){(double)q->at * 1e-9,
			resource_work(e, t->has_offsets ? &past : NULL, q, &most)};
	}
	return most;
}

/* Write the work of a trace at place k of the path. Return that of the largest request, or piece of one. */
static double arrivals_of(const struct planning *p, const struct path *path, unsigned k,
	const struct trace *t, struct meister_arrival *ret)
{
	const struct policy_stage s = path->stage[k];
	double most = 0;

	if (!s.link)
		return planning_arrivals(&p->stage[stage_index(p, s)].estimate, t, ret);
	for (size_t i = 0; i < t->n; i++) {
		ret[i] = (struct meister_arrival){(double)t->records[i].at * 1e-9,
			planning_link_work(&p->policy->links[s.index], k < path->storage,
				t->records[i].op, t->records[i].bytes)};
		most = fmax(most, ret[i].work);
	}
	return most;
}

/* Reduce a trace to buckets, stage by stage; to: NULL, or to keep the work for a replay. */
static int reduce(struct reading *r, const struct path *path, const struct trace *trace,
	struct plan_hop *hops, double **to)
{
	struct meister_arrival *arrivals = calloc(trace->n, sizeof(*arrivals));
	struct planning *p = r->p;
	int rc = arrivals ? 0 : -ENOMEM;

	for (unsigned k = 0; rc == 0 && k < path->n; k++) {
		uint32_t stage = stage_index(p, path->stage[k]);
		double most = arrivals_of(p, path, k, trace, arrivals);

		rc = plan_hop_of(arrivals, trace->n, r->pairs, p->stages[stage].rate, &hops[k]);
		hops[k].largest = most;
		hops[k].stage = stage;
		if (rc == 0 && to && !(to[k] = calloc(trace->n, sizeof(**to))))
			rc = -ENOMEM;
		for (size_t i = 0; rc == 0 && to && i < trace->n; i++)
			to[k][i] = arrivals[i].work;
	}
	free(arrivals);
	return rc < 0 ? no_memory(r->err) : 0;
}

/* ---- the file */

void planning_kept_free(struct planning_trace *kept, unsigned n)
{
	for (unsigned k = 0; kept && kept->work && k < n; k++)
		free(kept->work[k]);
	if (kept) {
		free(kept->work);
		trace_free(&kept->trace);
	}
	free(kept);
}

/* Refuse a recording of several tenants, none of them the one that is wanted. */
static int no_such_tenant(
	const char *text, size_t len, const char *wanted, const char *file, struct weir_err *err)
{
	const char *at = text;
	struct trace_name name;
	char names[120] = "";
	size_t used = 0;

	while (used < sizeof(names) && trace_name_next(&at, text + len, &name))
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%.*s",
			used ? ", " : "", (int)(name.len < 64 ? name.len : 64), name.tenant);
	return weir_err_set(err, -EINVAL,
		"%s: has no requests of %s, but of %s%s; name one of them, as in trace: {file: "
		"FILE, tenant: NAME}",
		file, wanted, names, used >= sizeof(names) ? "…" : "");
}

static bool has_several(const char *text, size_t len)
{
	const char *at = text;
	struct trace_name first, name;
	bool several = false;

	if (trace_name_next(&at, text + len, &first))
		while (!several && trace_name_next(&at, text + len, &name))
			several = name.len != first.len ||
				  memcmp(name.tenant, first.tenant, name.len) != 0;
	return several;
}

/* Leave the requests of one tenant in a recording: of the one that is named, or else of the same name. A trace that names no tenants,
 * or only another one and none is named, is taken whole. */
static int choose_tenant(const struct weir_tenant *t, const char *resource, char *text, size_t len,
	struct weir_err *err)
{
	const char *wanted = t->planned->trace_of ? t->planned->trace_of : t->path;
	int n = trace_keep_tenant(text, len, wanted, resource);

	if (n < 0)
		return no_memory(err);
	if (n == 0 && (t->planned->trace_of || has_several(text, len)))
		return no_such_tenant(text, len, wanted, t->planned->trace, err);
	return 0;
}

/* Read a tenant's trace. */
static int read_trace(struct reading *r, size_t index, const struct path *path, struct trace *ret)
{
	const struct weir_policy *policy = r->p->policy;
	const struct weir_tenant *t = &policy->tenants[index];
	const struct policy_planned *from = t->planned;
	struct weir_err err;
	char *text;
	size_t len;
	int rc = r->o->read(r->o->arg, PLANNING_TRACE, t, index >= r->p->first_new, from->trace_at,
		from->trace, &text, &len, &err);

	if (rc == 0) {
		rc = choose_tenant(t, policy->resources[path->stage[path->storage].index].name,
			text, len, &err);
		if (rc == 0)
			rc = trace_read(text, len, from->trace, TRACE_AUTO, false, ret, &err);
		free(text);
	}
	return rc < 0 ? weir_err_at(r->err, rc, from->trace_at, "trace: %s", err.text) : 0;
}

/* Return the number of requests of the kind of an slo. */
static size_t count_of(const struct trace *t, uint8_t ops)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += !ops || ops >> t->records[i].op & 1;
	return n;
}

int planning_traced(struct reading *r, size_t index, const struct path *path)
{
	struct planning *p = r->p;
	const struct weir_tenant *t = &p->policy->tenants[index];
	struct planning_trace *kept = calloc(1, sizeof(*kept));
	struct plan_hop *hops = calloc(path->n, sizeof(*hops));
	int rc = kept && hops ? read_trace(r, index, path, &kept->trace) : no_memory(r->err);

	if (rc == 0 && r->o->keep && !(kept->work = calloc(path->n, sizeof(*kept->work))))
		rc = no_memory(r->err);
	if (rc == 0)
		rc = reduce(r, path, &kept->trace, hops, kept->work);
	if (rc == 0) {
		size_t of_kind = count_of(&kept->trace, t->slo_ops);

		p->tenants[p->n_traced] =
			(struct plan_tenant){(double)t->slo_latency * 1e-9, hops, path->n};
		p->tenant[p->n_traced++] = (struct planning_tenant){.tenant = index,
			.requests = kept->trace.n,
			.of_kind = of_kind,
			.too_short = (double)of_kind * (1 - t->slo_percentile / 100) < PLAN_BEYOND,
			.kept = r->o->keep ? kept : NULL};
		planning_note_max(p, &p->policy->resources[path->stage[path->storage].index],
			&kept->trace, &p->tenant[p->n_traced - 1]);
		hops = NULL;
	}
	free(hops);
	if (rc || !r->o->keep)
		planning_kept_free(kept, path->n);
	return rc;
}
