/* SPDX-License-Identifier: BSD-3-Clause */
/* Read any text as a policy: it is refused with a message, or can be installed in a gate,
 * matched and shown. */
#include "policy/by-size.h"
#include "policy/policy.h"
#include "policy/each.h"
#include "policy/knobs/swap.h"
#include "fuzz.h"
#include <string.h>

static void use(const struct weir_policy *p)
{
	struct weir_bounds *bounds = calloc(p->n_tenants + 1, sizeof(*bounds));
	weir_node *nodes = calloc(p->n_tenants + 1, sizeof(*nodes));
	double *parent = calloc(p->n_tenants + 1, sizeof(*parent));
	double *all = calloc(p->n_tenants + 1, sizeof(*all));
	const struct weir_who who = {.export_ = "db-1", .client = "10.0.0.7", .uid = "1000"};
	struct weir_gate_config config;
	struct weir_resource resource;
	struct weir_gate *gate;
	struct weir_err err;
	int tenant;

	MUST(bounds && nodes && parent && all);
	MUST(weir_policy_bounds(p, bounds) == 0);
	weir_policy_share(p, parent, all);
	for (size_t i = 0; i < p->n_tenants; i++) {
		MUST(all[i] >= 0 && all[i] <= parent[i] && parent[i] <= 1);
		MUST(p->tenants[i].parent < (int)i);
		MUST(weir_policy_find(p, p->tenants[i].path) == (int)i);
	}
	tenant = weir_policy_match(p, &who);
	MUST(tenant < (int)p->n_tenants);

	policy_resource_default("fuzz", &resource);
	weir_policy_gate(p->n_resources ? &p->resources[0] : &resource, &config);
	MUST(weir_gate_new(&config, &gate) == 0);
	MUST(weir_policy_install(p, gate, 0, nodes, &err) == 0);
	if (tenant >= 0) {
		struct weir_req req = {.tenant = nodes[tenant], .bytes = 4096}, *r = &req;

		MUST(weir_gate_submit(gate, 0, &r, 1) == 0);
	}
	weir_gate_free(gate);
	free(nodes);
	free(parent);
	free(all);
	free(bounds);
}

/* Swap from an empty gate to the policy, to a copy of it, and to a tree with one tenant. */
static void change(const struct weir_policy *p)
{
	static const char one[] = "tenants: [{name: one, match: {export: \"*\"}}]";
	struct weir_gate_config config = {.window = 1};
	struct policy_swap s = {0};
	struct weir_policy *copy, *other;
	struct weir_gate *gate;
	struct weir_err err;

	struct policy_instance senders[] = {
		{.who = {.export_ = "db-1", .client = "10.0.0.7", .uid = "1000"}},
		{.who = {.export_ = "x", .client = "10.0.0.8", .uid = "1"}}};

	MUST(policy_copy(p, &copy) == 0);
	MUST(policy_each_expand(copy, senders, 2) == 0);
	policy_size_resolve(copy, NULL, NULL);
	MUST(policy_each_fit(copy, senders, 2, NULL, false) == 0);
	use(copy);
	MUST(weir_policy_parse(one, strlen(one), "one", &other, &err) == 0);
	MUST(weir_gate_new(&config, &gate) == 0);
	const struct weir_policy *const steps[] = {NULL, p, copy, other};

	for (int i = 1; i < 4; i++) {
		struct policy_swap_how how = {.from = steps[i - 1], .to = steps[i]};

		MUST(policy_swap_begin(&s, &how, gate, i, &err) == 0);
		policy_swap_finish(&s, gate, i, NULL, 0, NULL, NULL, NULL);
		MUST(!policy_swap_sweep(&s, gate, SIZE_MAX, NULL, NULL));
		MUST(s.n_leaving == 0);
	}
	policy_swap_free(&s);
	weir_gate_free(gate);
	weir_policy_free(copy);
	weir_policy_free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct weir_err err = {""};
	struct weir_policy *policy = NULL;

	if (weir_policy_parse((const char *)data, len, "fuzz.yaml", &policy, &err) < 0) {
		MUST(!policy && err.text[0]);
		return 0;
	}
	use(policy);
	change(policy);
	weir_policy_free(policy);
	return 0;
}
