/* SPDX-License-Identifier: BSD-3-Clause */
/* Read any bytes as a plan's file: they are refused with a message, or a gate takes every claim, and the same text is read
 * again. */
#include "fuzz.h"
#include "serve/snapshot/note.h"
#include "serve/gateway/plan.h"
#include <string.h>

static const char text[] = "resources: [{name: a, depth: 8}, {name: b}]\n"
			   "links: [{name: l, rate: 1 Gbit/s}]\n"
			   "tenants:\n"
			   "  - {name: x, slo: \"p99 < 10ms\"}\n"
			   "  - {name: g, children: [{name: y, slo: \"p99.9 < 10ms\"}]}\n";

static void set_claim(struct weir_gate *g, const struct policy_claim *c)
{
	struct weir_knob knobs[2] = {
		{.node = 1, .kind = WEIR_KNOB_BUCKETS, .buckets = c->profile, .n_buckets = c->n},
		{.node = 1, .kind = WEIR_KNOB_PRIORITY, .value = c->n ? c->priority : -1}};
	struct weir_err err;

	MUST(c->n <= POLICY_CLAIM_PAIRS);
	MUST(weir_gate_set(g, 1, knobs, 2, &err) == 0);
}

static void use(const struct gateway_plan *plan, const struct weir_policy *p)
{
	struct gateway_profile profile = {.table = {.depth = 8}};
	struct gateway_profile *all[2] = {&profile, &profile};
	struct gateway_profiles profiles = {all, 2};
	struct gateway_note note = {0};
	struct gateway_claims claims;
	struct weir_gate_config config = {.nodes = 2};
	struct weir_gate *g;
	weir_node node;

	memset(profile.digest, '0', GATEWAY_DIGEST - 1);
	gateway_plan_untrue(plan, p, profile.digest, &profiles, &note);
	for (size_t i = 0; i < note.n; i++)
		MUST(strncmp(note.lines[i], "plan: ", 6) == 0);
	MUST(note.n <= 1 + 2 * plan->n_profiles + 11);
	gateway_note_free(&note);
	MUST(gateway_claims_make(plan, p, &profiles, &claims) == 0);
	MUST(weir_gate_new(&config, &g) == 0 && weir_gate_add(g, WEIR_ROOT, &node) == 0);
	for (size_t r = 0; r < claims.n; r++)
		for (size_t i = 0; claims.of[r] && i < p->n_tenants; i++)
			set_claim(g, &claims.of[r][i]);
	for (size_t i = 0; i < plan->n_tenants; i++)
		for (size_t k = 0; k < plan->tenants[i].n_stages; k++)
			set_claim(g, &plan->tenants[i].stages[k].claim);
	weir_gate_free(g);
	gateway_claims_free(&claims);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct weir_policy *p;
	struct gateway_plan *plan, *again;
	struct weir_err err = {""};

	if (!p)
		MUST(weir_policy_parse(text, strlen(text), "policy", &p, &err) == 0);
	if (gateway_plan_read((const char *)data, size, &plan, &err) < 0) {
		MUST(err.text[0]);
		return 0;
	}
	use(plan, p);
	MUST(gateway_plan_read(plan->text, plan->len, &again, &err) == 0);
	MUST(again->n_tenants == plan->n_tenants);
	gateway_plan_drop(again);
	gateway_plan_drop(plan);
	return 0;
}
