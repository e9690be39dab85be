/* SPDX-License-Identifier: BSD-3-Clause */
/* probe: which host probes, when, and the threshold of the others meanwhile. */
#include "control/parda/parda.h"
#include "test.h"

#define PERIOD (2 * WEIR_SEC)
#define BURST  (200 * WEIR_MS)

struct host {
	struct parda *parda;
	struct parda_decision last;
};

static void make(struct host *h, uint64_t id)
{
	struct parda_config c = {.id = id,
		.instance = id,
		.law = {100.0 * WEIR_MS, 0.8, 1, 64},
		.find = true,
		.probe = true,
		.epsilon = 0.2};

	CHECK_INT(parda_new(&c, &h->parda), 0);
}

static void step(struct host *hosts, int n, weir_time now)
{
	struct parda_vm vm = {.shares = 1};
	struct parda_measured m = {.vms = &vm, .n_vms = 1};

	for (int i = 0; i < n; i++)
		parda_step(hosts[i].parda, now, &m, &hosts[i].last);
	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++)
			if (i != k)
				parda_hear(hosts[k].parda, &hosts[i].last.report);
}

static void end(struct host *hosts, int n)
{
	for (int i = 0; i < n; i++)
		parda_free(hosts[i].parda);
}

/* Run a burst on a device of 50 servers of 1 ms each. Return its end. */
static weir_time read_on(struct host *h, weir_time now, weir_time length)
{
	struct probe_burst b;
	weir_time began = now;
	uint64_t reads = 0;
	uint32_t bytes;

	CHECK(parda_probe_plan(h->parda, now, &b, &bytes));
	CHECK_INT(bytes, 8192);
	probe_burst_start(&b, now);
	for (;;) {
		uint32_t batch;

		b.over |= now >= began + length;
		reads += probe_burst_more(&b, now);
		if (!b.inside)
			break;
		batch = b.inside < 50 ? b.inside : 50;
		for (uint32_t i = 0, n = b.inside; i < batch; i++)
			probe_burst_done(&b, now + (i + 1) * WEIR_MS / batch, WEIR_MS * n / batch);
		now += WEIR_MS;
	}
	parda_probe_learn(h->parda, &b, reads, now);
	return now;
}

static void test_lowest_id(void)
{
	struct host hosts[3];
	struct probe_burst b;
	uint32_t bytes;
	weir_time now = 1000 * WEIR_SEC;

	for (int i = 0; i < 3; i++)
		make(&hosts[i], 10 + (uint64_t)i);
	step(hosts, 3, now);
	CHECK(parda_probe_decides(hosts[0].parda));
	CHECK(!parda_probe_decides(hosts[1].parda) && !parda_probe_decides(hosts[2].parda));
	CHECK(!parda_probe_plan(hosts[2].parda, now + 1000 * WEIR_SEC, &b, &bytes));
	/* The first host leaves; the next one takes over. */
	for (int i = 1; i < 3; i++)
		parda_leave(hosts[i].parda, 10, 10);
	CHECK(parda_probe_decides(hosts[1].parda) && !parda_probe_decides(hosts[2].parda));
	end(hosts, 3);
}

/* At any time, bursts have taken at most 2 % of it. */
static void test_part_of_time(void)
{
	struct host h;
	weir_time start = 1000 * WEIR_SEC, now = start, used = 0;
	struct parda_counts counts;
	struct probe_burst b;
	uint32_t bytes;

	make(&h, 1);
	step(&h, 1, now);
	for (int i = 0; i < 6000; i++, now += 100 * WEIR_MS) {
		if (!parda_probe_plan(h.parda, now, &b, &bytes) || i % 300 > 250)
			continue;
		used -= now;
		now = read_on(&h, now, i % 3 ? BURST : 30 * WEIR_MS);
		used += now;
		CHECK((double)used <= 0.021 * (double)(now - start));
	}
	parda_counts(h.parda, &counts);
	CHECK_INT(counts.probed, used);
	CHECK(counts.bursts > 50 && counts.reads > 1000);
	CHECK((double)used >= 0.015 * (double)(now - start));
	end(&h, 1);
}

/* Peers answer each question separately. */
static void test_agree(void)
{
	struct host hosts[2];
	struct parda_report r;

	make(&hosts[0], 1);
	make(&hosts[1], 2);
	step(hosts, 2, 1000 * WEIR_SEC);
	parda_probe_ask(hosts[0].parda);
	CHECK(!parda_probe_agreed(hosts[0].parda));
	r = hosts[1].last.report;
	r.sequence++;
	r.quiet = true;
	CHECK_INT(parda_hear(hosts[0].parda, &r), PARDA_FRESH);
	CHECK(parda_probe_agreed(hosts[0].parda));
	r.sequence++;
	r.quiet = false;
	CHECK_INT(parda_hear(hosts[0].parda, &r), PARDA_FRESH);
	CHECK(!parda_probe_agreed(hosts[0].parda));
	parda_leave(hosts[0].parda, 2, 2);
	CHECK(parda_probe_agreed(hosts[0].parda)); /* no peer is left to ask */
	end(hosts, 2);
}

static void test_all_aim_at_it(void)
{
	struct host hosts[2];
	weir_time now = 1000 * WEIR_SEC;

	make(&hosts[0], 1);
	make(&hosts[1], 2);
	for (int i = 0; i < 40; i++, now += PERIOD) {
		struct probe_burst b;
		uint32_t bytes;

		step(hosts, 2, now);
		if (parda_probe_plan(hosts[0].parda, now, &b, &bytes))
			read_on(&hosts[0], now, BURST);
	}
	CHECK_NEAR(hosts[0].last.knee, 1.0 * WEIR_MS, 0.2);
	CHECK_NEAR(hosts[0].last.threshold, hosts[0].last.knee, 0.05);
	CHECK_NEAR(hosts[1].last.threshold, hosts[0].last.threshold, 0.001);
	end(hosts, 2);
}

int main(void)
{
	RUN(test_lowest_id);
	RUN(test_part_of_time);
	RUN(test_agree);
	RUN(test_all_aim_at_it);
	return 0;
}
