/* SPDX-License-Identifier: BSD-3-Clause */
/* Read any text as a scenario: it is refused with a message, or, if it is small, its first
 * moments run. */
#include "sim/metrics.h"
#include "sim/cluster/cluster.h"
#include "sim/network/network.h"
#include "sim/scenario/scenario.h"
#include "fuzz.h"
#include <errno.h>

#define MOST_HOSTS 8
#define MOST_RATE  1e8 /* IOs per second: larger scenarios take too long for a fuzzer */

static bool is_small_network(const struct sim_network_config *c)
{
	for (size_t g = 0; g < c->n_groups; g++)
		if ((double)c->groups[g].many * c->groups[g].from_many * c->groups[g].to_many >
				1000 ||
			c->groups[g].rate > MOST_RATE || c->groups[g].batch > 100 ||
			(c->groups[g].kind == NET_RPC && c->groups[g].size < 1000))
			return false;
	for (size_t k = 0; k < c->n_racks; k++)
		if (c->racks[k].rate > 1e10)
			return false;
	return c->n_machines < 100 && c->policy->n_tenants < 100;
}

static bool is_small(const struct scenario *s)
{
	if (s->network)
		return is_small_network(s->network);
	if (s->cluster)
		return (double)s->cluster->servers * s->cluster->buckets < 1000 &&
		       s->cluster->capacity < 1e6;
	for (uint32_t g = 0; g < s->n_groups; g++)
		for (size_t t = 0; t < s->groups[g].gate.policy->n_tenants; t++) {
			const struct scenario_tenant *tenant = &s->groups[g].gate.tenants[t];

			for (size_t w = 0; w < tenant->n_workloads; w++) {
				const struct workload_config *c = &tenant->workloads[w].config;

				if (c->outstanding > 1000 || c->rate > MOST_RATE ||
					c->rate_end > MOST_RATE)
					return false;
			}
		}
	return s->n_hosts <= MOST_HOSTS;
}

/* Refuse every file: a scenario that names a trace is not run. */
static int no_files(
	const char *path, void *arg, char **ret_text, size_t *ret_len, struct weir_err *err)
{
	return weir_err_set(err, -ENOENT, "%s: no such file", path);
}

static void run_scenario(struct scenario *s)
{
	const struct sim_options options = {.duration = WEIR_MS};
	struct metrics *metrics = NULL;
	struct weir_err err = {""};

	if (scenario_load(s, no_files, NULL, &err) < 0) {
		MUST(err.text[0]);
		return;
	}
	if (sim_run(s, &options, &metrics, NULL, &err) < 0)
		MUST(!metrics && err.text[0]);
	metrics_free(metrics);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct weir_err err = {""};
	struct scenario *scenario = NULL;

	if (scenario_parse((const char *)data, len, "fuzz.yaml", NULL, 0, &scenario, &err) < 0) {
		MUST(!scenario && err.text[0]);
		return 0;
	}
	MUST(scenario->name && scenario->about);
	MUST(scenario->duration > 0);
	if (is_small(scenario))
		run_scenario(scenario);
	scenario_free(scenario);
	return 0;
}
