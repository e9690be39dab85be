/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics-control: what controllers say of themselves, as Prometheus reads it. */
#include "serve/api/metrics-impl.h"
#include <math.h>
#include <stddef.h>

/* ---- of resources: what a controller says of each that it has */

typedef const void *part_fn(const struct snapshot_resource *r); /* NULL: it has no part of this */

static bool any(const struct snapshot *s, part_fn *part)
{
	for (size_t i = 0; i < s->n_resources; i++)
		if (part(&s->resources[i]))
			return true;
	return false;
}

static void write_fields(const struct snapshot *s, part_fn *part,
	const struct metrics_field *fields, size_t n, FILE *to)
{
	for (const struct metrics_field *f = fields; f < fields + n; f++) {
		metrics_family(to, f->name, f->type, f->help);
		for (size_t i = 0; i < s->n_resources; i++) {
			const void *at = part(&s->resources[i]);

			if (!at)
				continue;
			fputs(f->name, to);
			metrics_labels(to, "resource", s->resources[i].name, "", "");
			metrics_number(to, metrics_value(at, f));
		}
	}
}

/* ---- other hosts */

#define R(member) offsetof(struct snapshot_resource, member)
static const struct metrics_field parda_fields[] = {
	{"weir_parda_peers", "gauge", "Hosts that are heard and count.", R(peers), METRICS_U32,
		true},
	{"weir_parda_alone", "gauge", "1: no other host is heard.", R(alone), METRICS_BOOL, true},
	{"weir_parda_shares", "gauge",
		"Of this host's tenants, less those that stay idle beside a busy one.", R(shares),
		METRICS_DOUBLE, true},
	{"weir_parda_beta", "gauge", "Slots of the window that shares steer.", R(beta),
		METRICS_DOUBLE, true},
	{"weir_parda_latency_seconds", "gauge", "Of the resource, as all hosts see it.", R(latency),
		METRICS_TIME, true},
	{"weir_parda_threshold_seconds", "gauge", "The latency that is aimed at.", R(aim),
		METRICS_TIME, true},
	{"weir_parda_held_seconds", "gauge",
		"Of a request, by limits of an upstream that tells it; not in the latency.",
		R(held), METRICS_TIME, true},
	{"weir_parda_stranger_requests", "gauge",
		"Requests inside that no host has sent, about; 0: none are known.", R(stranger),
		METRICS_DOUBLE, true},
	{"weir_parda_floor", "gauge", "Slots kept beside a stranger; 0: the law gives more.",
		R(floor), METRICS_DOUBLE, true},
	{"weir_parda_wmax_below_floor", "gauge", "1: wmax is less than that.", R(too_low),
		METRICS_BOOL, true},
	{"weir_parda_wmax_needed", "gauge",
		"Where wmax keeps the host below its share: one that would do; else 0.",
		R(wmax_wanted), METRICS_DOUBLE, true},
	{"weir_parda_unreachable_seconds", "gauge",
		"The least latency seen, where every window was over the threshold; else 0.",
		R(unreachable), METRICS_TIME, true},
	{"weir_parda_probe_bursts_total", "counter",
		"Bursts of reads of the host's own, for its threshold.", R(probe_bursts),
		METRICS_U64, true},
	{"weir_parda_probe_reads_total", "counter", "Reads in them.", R(probe_reads), METRICS_U64,
		true},
	{"weir_parda_probe_seconds_total", "counter", "Time that they took.", R(probe_time),
		METRICS_DOUBLE, true},
	{"weir_parda_same_name", "gauge", "1: two hosts have one name.", R(twice), METRICS_BOOL,
		true},
};
#undef R

static const void *parda_of(const struct snapshot_resource *r)
{
	return r->controlled ? r : NULL;
}

static void write_parda(const struct snapshot *s, FILE *to)
{
	if (any(s, parda_of))
		write_fields(s, parda_of, parda_fields, COUNT(parda_fields), to);
}

/* ---- AdapTBF */

#define J(member) offsetof(struct adaptbf_account, member)
static const struct metrics_field job_fields[] = {
	{"weir_adaptbf_tokens", "gauge", "Tokens of the last period.", J(tokens), METRICS_I64,
		true},
	{"weir_adaptbf_initial_tokens", "gauge", "What its priority alone would give.", J(initial),
		METRICS_I64, true},
	{"weir_adaptbf_demand", "gauge", "Requests that it asked for, as far as they count.",
		J(demand), METRICS_U64, true},
	{"weir_adaptbf_record", "gauge", "Tokens that it is owed, or owes (below 0).", J(record),
		METRICS_I64, true},
	{"weir_adaptbf_lent_tokens_total", "counter", "Lent to others.", J(ledger.lent),
		METRICS_I64, true},
	{"weir_adaptbf_borrowed_tokens_total", "counter", "Borrowed from others.",
		J(ledger.borrowed), METRICS_I64, true},
	{"weir_adaptbf_repaid_tokens_total", "counter", "Given back to others.", J(ledger.repaid),
		METRICS_I64, true},
	{"weir_adaptbf_regained_tokens_total", "counter", "Given back by others.",
		J(ledger.regained), METRICS_I64, true},
	{"weir_adaptbf_written_off_claims_total", "counter",
		"Claims of its that aged away, tokens.", J(ledger.written_off), METRICS_I64, true},
	{"weir_adaptbf_forgiven_tokens_total", "counter", "Debts of its that aged away.",
		J(ledger.forgiven), METRICS_I64, true},
};
#undef J
#define S(member) offsetof(struct snapshot_adaptbf, state.member)
static const struct metrics_field adaptbf_fields[] = {
	{"weir_adaptbf_rate", "gauge", "Tokens a second, stated or learned.", S(rate),
		METRICS_DOUBLE, true},
	{"weir_adaptbf_period_tokens", "gauge", "Tokens of the last period, of all jobs.",
		S(tokens), METRICS_I64, true},
	{"weir_adaptbf_active", "gauge", "Jobs that had tokens.", S(active), METRICS_U32, true},
	{"weir_adaptbf_known", "gauge", "Jobs that are remembered.", S(known), METRICS_U32, true},
	{"weir_adaptbf_steps_total", "counter", "Periods.", S(steps), METRICS_U64, true},
	{"weir_adaptbf_step_seconds", "gauge", "What a step takes, lately.",
		offsetof(struct snapshot_adaptbf, took), METRICS_TIME, true},
	{"weir_adaptbf_written_off_tokens_total", "counter", "Debts of those who left.",
		S(written_off), METRICS_I64, true},
	{"weir_adaptbf_aged_tokens_total", "counter", "Claims that aged away, of all jobs.",
		S(aged), METRICS_I64, true},
};
#undef S

static size_t count_jobs(const struct metrics_cursor *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->snapshot->n_resources; i++) {
		const struct snapshot_adaptbf *a = c->snapshot->resources[i].adaptbf;

		n += a ? a->n_jobs : 0;
	}
	return n;
}

static void head_job(size_t k, FILE *to)
{
	metrics_family(to, job_fields[k].name, job_fields[k].type, job_fields[k].help);
}

/* i counts through the jobs of all resources. */
static bool row_job(const struct metrics_cursor *c, size_t i, size_t k, FILE *to)
{
	const struct snapshot_resource *r = c->snapshot->resources;

	for (; !r->adaptbf || i >= r->adaptbf->n_jobs; r++)
		i -= r->adaptbf ? r->adaptbf->n_jobs : 0;
	fputs(job_fields[k].name, to);
	metrics_labels(to, "resource", r->name, "tenant", r->adaptbf->jobs[i].tenant);
	metrics_number(to, metrics_value(&r->adaptbf->jobs[i].account, &job_fields[k]));
	return true;
}

const struct metrics_rows metrics_jobs = {COUNT(job_fields), count_jobs, head_job, row_job};

static const void *adaptbf_of(const struct snapshot_resource *r)
{
	return r->adaptbf;
}

static void write_adaptbf(const struct snapshot *s, FILE *to)
{
	if (any(s, adaptbf_of))
		write_fields(s, adaptbf_of, adaptbf_fields, COUNT(adaptbf_fields), to);
}

/* ---- pShift */

#define P(member) offsetof(struct snapshot_pshift, member)
static const struct metrics_field pshift_fields[] = {
	{"weir_pshift_period", "gauge", "Number of the QoS period; 0: none is known.",
		P(status.period), METRICS_U64, true},
	{"weir_pshift_granted_period", "gauge", "That in which a controller was last heard.",
		P(status.granted), METRICS_U64, true},
	{"weir_pshift_capacity", "gauge", "Tokens a second that it says it can serve.", P(capacity),
		METRICS_DOUBLE, true},
	{"weir_pshift_reports_total", "counter", "Messages to the controllers.", P(status.reports),
		METRICS_U64, true},
	{"weir_pshift_grants_total", "counter", "Messages of controllers that were taken.",
		P(status.taken), METRICS_U64, true},
	{"weir_pshift_busy_seconds_total", "counter", "Spent looking at the gate and granting.",
		P(busy), METRICS_TIME, true},
};
#undef P
#define L(member) offsetof(struct snapshot_lease, member)
static const struct metrics_field lease_fields[] = {
	{"weir_pshift_used_tokens", "gauge", "Used in this period.", L(used), METRICS_I64, true},
	{"weir_pshift_claim_tokens", "gauge", "Served first until so many were used.", L(claim),
		METRICS_I64, true},
	{"weir_pshift_reserved_tokens", "gauge", "Claim of each period to come.", L(reserved),
		METRICS_I64, true},
	{"weir_pshift_r_tokens", "gauge", "First claims at the gate.", L(r), METRICS_I64, true},
	{"weir_pshift_l_tokens", "gauge", "Rights to be served at the gate.", L(l), METRICS_I64,
		true},
	{"weir_pshift_cap_tokens", "gauge", "Served at all until so many were used.", L(cap),
		METRICS_I64, true},
	{"weir_pshift_limit_tokens", "gauge", "Cap of each period to come.", L(limit), METRICS_I64,
		true},
};
#undef L

static size_t count_leases(const struct metrics_cursor *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->snapshot->n_resources; i++) {
		const struct snapshot_pshift *p = c->snapshot->resources[i].pshift;

		n += p ? p->n_leases : 0;
	}
	return n;
}

static void head_lease(size_t k, FILE *to)
{
	metrics_family(to, lease_fields[k].name, lease_fields[k].type, lease_fields[k].help);
}

/* As for jobs. */
static bool row_lease(const struct metrics_cursor *c, size_t i, size_t k, FILE *to)
{
	const struct snapshot_resource *r = c->snapshot->resources;
	double value;

	for (; !r->pshift || i >= r->pshift->n_leases; r++)
		i -= r->pshift ? r->pshift->n_leases : 0;
	value = metrics_value(&r->pshift->leases[i], &lease_fields[k]);
	fputs(lease_fields[k].name, to);
	metrics_labels(to, "resource", r->name, "tenant", r->pshift->leases[i].tenant);
	metrics_number(to, value >= (double)LEASE_NO_LIMIT ? INFINITY : value);
	return true;
}

const struct metrics_rows metrics_leases = {
	COUNT(lease_fields), count_leases, head_lease, row_lease};

static void write_links(const struct snapshot *s, FILE *to)
{
	metrics_family(to, "weir_pshift_controller_up", "gauge", "1: it is connected and proven.");
	for (size_t i = 0; i < s->n_links; i++) {
		fputs("weir_pshift_controller_up", to);
		metrics_labels(
			to, "resource", s->links[i].resource, "controller", s->links[i].address);
		metrics_number(to, s->links[i].up);
	}
}

static const void *pshift_of(const struct snapshot_resource *r)
{
	return r->pshift;
}

static void write_pshift(const struct snapshot *s, FILE *to)
{
	if (!any(s, pshift_of))
		return;
	metrics_family(to, "weir_pshift_leased", "gauge", "1: leased; 0: blind, held or static.");
	for (size_t i = 0; i < s->n_resources; i++) {
		if (!s->resources[i].pshift)
			continue;
		fputs("weir_pshift_leased", to);
		metrics_labels(to, "resource", s->resources[i].name, "", "");
		metrics_number(to, s->resources[i].pshift->status.state == LEASE_LEASED);
	}
	write_fields(s, pshift_of, pshift_fields, COUNT(pshift_fields), to);
	write_links(s, to);
}

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
		{"weir_peer_failed_total", "counter", "What the system refused.",
			(double)p->failed},
		{"weir_peer_missed_total", "counter", "Periods that slow storage cost.",
			(double)p->missed},
		{"weir_peer_same_name_total", "counter", "Messages of hosts with one name.",
			(double)p->same},
	};

	if (!s->has_peers)
		return;
	for (size_t i = 0; i < COUNT(all); i++) {
		metrics_family(to, all[i].name, all[i].type, all[i].help);
		fprintf(to, "%s ", all[i].name);
		metrics_number(to, all[i].value);
	}
	metrics_family(to, "weir_peer_received_total", "counter",
		"Messages, by what became of them; all but taken changed nothing.");
	for (int v = 0; v < PEER_VERDICTS; v++) {
		fputs("weir_peer_received_total", to);
		metrics_labels(to, "verdict", peer_verdict_name((enum peer_verdict)v), "", "");
		metrics_number(to, (double)p->verdicts[v]);
	}
}

void metrics_control(const struct snapshot *s, FILE *to)
{
	write_parda(s, to);
	write_adaptbf(s, to);
	write_pshift(s, to);
	write_peers(s, to);
}
