/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the simulator per host: in use at the end of a run, with one hundred hosts more and
 * less, with its gate and without. */
#include "fixture.h"
#include <weir/gate.h>
#include <malloc.h>

#define HOST_MOST 20000 /* bytes, with its gate: as in `weir bench sim` */
#define REST_MOST 10000 /* without the gate */

/* From AddressSanitizer, which has a heap of its own. */
extern size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static double in_use(void)
{
	struct mallinfo2 info;

	if (__sanitizer_get_current_allocated_bytes)
		return (double)__sanitizer_get_current_allocated_bytes();
	info = mallinfo2();
	return (double)info.uordblks + (double)info.hblkhd;
}

static int note_end(double fraction, void *arg)
{
	if (fraction >= 1)
		*(double *)arg = in_use();
	return 0;
}

/* Return the bytes in use at the end of a run of so many hosts, and those of its results. */
static double run_hosts(int hosts, double *ret_results)
{
	static const char text[] =
		"duration: 10s\n"
		"warmup: 1s\n"
		"devices:\n"
		"  - {name: d, kind: server, servers: 64, rate: 20k iops}\n"
		"hosts:\n"
		"  - {name: h, count: %d, policy: {depth: 6}, workloads: [{outstanding: 8}]}\n";
	char filled[sizeof(text) + 10];
	double before, end = 0;
	struct sim_options options = {.progress = note_end, .progress_arg = &end};
	struct weir_err err = {""};
	struct scenario *s;
	struct metrics *m;

	snprintf(filled, sizeof(filled), text, hosts);
	CHECK_INT(scenario_parse(filled, strlen(filled), "test", NULL, 0, &s, &err), 0);
	before = in_use();
	CHECK_INT(sim_run(s, &options, &m, NULL, &err), 0);
	*ret_results = in_use() - before;
	metrics_free(m);
	scenario_free(s);
	return end - before;
}

/* Of many gates: the allocator's overhead for one depends on its free memory. */
static double gate_bytes(void)
{
	enum { N = 100 };
	struct weir_gate_config config = {.window = 6, .nodes = 2};
	double before = in_use(), bytes;
	struct weir_gate *g[N];
	weir_node node;

	for (unsigned i = 0; i < N; i++) {
		CHECK_INT(weir_gate_new(&config, &g[i]), 0);
		CHECK_INT(weir_gate_add(g[i], WEIR_ROOT, &node), 0);
	}
	bytes = in_use() - before;
	for (unsigned i = 0; i < N; i++)
		weir_gate_free(g[i]);
	return bytes / N;
}

static void a_host_costs_little(void)
{
	double few_results, many_results;
	double few = run_hosts(100, &few_results), many = run_hosts(200, &many_results);
	double host = (many - few) / 100, results = (many_results - few_results) / 100;
	double gate = gate_bytes();

	printf("a host: %.0f bytes, %.0f of them its gate; its results %.0f\n", host, gate,
		results);
	CHECK(host > gate); /* else nothing was measured */
	CHECK(host <= HOST_MOST);
	CHECK(host - gate <= REST_MOST);
	CHECK(results <= REST_MOST);
}

int main(void)
{
	RUN(a_host_costs_little);
	return 0;
}
