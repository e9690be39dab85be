/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No call does work that grows with the number of tenants: a call for n ≤ 32 requests touches at
 * most 64 + 4n of 100,000 nodes.
 *
 * Counted in two ways. weir_gate_next reports how many leaves it examined, and the timer how many
 * entries it moved: these are checked at every call. And now and then all nodes are made
 * inaccessible before a call, so that each page of them that it reads or writes is counted by its
 * fault. Tenants are used in random order: a page, 13 nodes, is seldom touched twice.
 */
#include "gate/node.h"
#include "law.h"
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { N = 100000, BATCH = 32, EVERY = 607 };

static struct weir_gate *g;
static weir_node nodes[N];
static struct weir_req reqs[2 * N];
static weir_time now;
static volatile unsigned touched; /* pages touched by the current call */
static size_t page;

/* ---- counting */

static void on_fault(int sig, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr, from = (uintptr_t)g->nodes;

	if (at - from >= g->room * sizeof(struct node))
		_exit(1); /* not our pages */
	mprotect((void *)(at & -page), page,
		PROT_READ | PROT_WRITE); /* NOLINT(performance-no-int-to-ptr) */
	touched++;
}

/* Protect the whole pages of the nodes. */
static void protect(int how)
{
	size_t bytes = g->room * sizeof(struct node) & -page;

	CHECK_INT(mprotect(g->nodes, bytes, how), 0);
}

static struct {
	const char *what;
	unsigned most, n;
} worst[16];

static unsigned calls;
static bool watched;

/* Check that a call for n requests touched no more than it may. */
static void count(const char *what, size_t n, unsigned much)
{
	unsigned k = 0;

	law_operations++;
	if (much > 64 + 4 * n)
		FAIL("%s of %zu touched %u nodes", what, n, much);
	while (worst[k].what && strcmp(worst[k].what, what) != 0)
		k++;
	worst[k].what = what;
	if (much >= worst[k].most) {
		worst[k].most = much;
		worst[k].n = (unsigned)n;
	}
}

/* Count the pages that the next call touches, always or now and then. */
static void watch(bool always)
{
	watched = always || calls++ % EVERY == 0;
	touched = 0;
	if (watched)
		protect(PROT_NONE);
}
/* Check the call `what`, for n requests. */
static void seen(const char *what, size_t n)
{
	if (!watched)
		return;
	protect(PROT_READ | PROT_WRITE);
	count(what, n, touched);
}

/* ---- the gate's calls */

static void submit(uint32_t from, uint32_t to)
{
	while (from < to) {
		struct weir_req *r[BATCH];
		uint32_t n = to - from < BATCH ? to - from : BATCH;

		for (uint32_t i = 0; i < n; i++)
			r[i] = &reqs[from + i];
		watch(false);
		CHECK_INT(weir_gate_submit(g, now, r, n), 0);
		seen("submit", n);
		from += n;
	}
}

/* Call next, and complete its requests. Return their number. */
static size_t pass(size_t max)
{
	struct weir_req *r[BATCH];
	uint64_t moves = g->timer.moves;
	size_t n;

	watch(false);
	n = weir_gate_next(g, now, r, max);
	seen("next", max);
	count("next, looks", max, g->looks + (unsigned)(g->timer.moves - moves));
	watch(false);
	weir_gate_done(g, now, r, n);
	seen("done", n);
	watch(false);
	(void)weir_gate_wakeup(g, now);
	seen("wakeup", 0);
	return n;
}

/* Call next until nothing more passes at this time. Return the number of requests. */
static size_t drain(size_t max)
{
	size_t n, all = 0;

	do {
		n = pass(max);
		all += n;
	} while (n || weir_gate_wakeup(g, now) <= now);
	return all;
}

static void set(const char *what, weir_node node, enum weir_knob_kind kind, double value)
{
	struct weir_knob k = {.node = node, .kind = kind, .value = value};

	watch(true);
	law_set(g, now, &k, 1);
	seen(what, 1);
}

static void set_max(const char *what, weir_node node, double rate, double size)
{
	struct weir_bucket_spec b = {.kind = WEIR_HOLD, .rate = rate, .size = size};
	struct weir_knob k = {
		.node = node, .kind = WEIR_KNOB_BUCKETS, .buckets = &b, .n_buckets = 1};

	watch(true);
	law_set(g, now, &k, 1);
	seen(what, 1);
}

/* ---- cases */

/* Tenants with a max of 1/s, in random order, each with two requests. */
static void start(void)
{
	CHECK_INT(weir_gate_new(&(struct weir_gate_config){.nodes = N + 1, .window = 64}, &g), 0);
	now = 1000;
	for (uint32_t i = 0; i < N; i++) {
		struct weir_bucket_spec b = {.kind = WEIR_HOLD, .rate = 1, .size = 1};
		struct weir_knob k = {.kind = WEIR_KNOB_BUCKETS, .buckets = &b, .n_buckets = 1};

		CHECK_INT(weir_gate_add(g, WEIR_ROOT, &nodes[i]), 0);
		k.node = nodes[i];
		law_set(g, now, &k, 1);
	}
	for (uint32_t i = N - 1; i > 0; i--) {
		uint32_t k = (uint32_t)law_below(i + 1);
		weir_node n = nodes[i];

		nodes[i] = nodes[k];
		nodes[k] = n;
	}
	for (uint32_t i = 0; i < 2 * N; i++)
		reqs[i] = (struct weir_req){.tenant = nodes[i % N], .bytes = 1};
}

/* All are submitted together; their second requests are due together, at one moment. */
static void all_due_together(void)
{
	start();
	submit(0, 2 * N);
	CHECK_INT(drain(BATCH), N);
	now += 2 * WEIR_SEC;
	CHECK_INT(drain(BATCH), N);
	/* Again, one at a time: up to the time when all are due, and some more. */
	now += 2 * WEIR_SEC;
	submit(0, 2 * N);
	CHECK(drain(1) >= N);
	now += 3600 * WEIR_SEC;
	for (unsigned i = 0; i < 1000; i++)
		CHECK_INT(pass(i % 2), i % 2);
	weir_gate_free(g);
}

/* Spread over a second, due after 1000 s; then time jumps beyond that. */
static void all_due_far_away(void)
{
	start();
	for (uint32_t i = 0; i < N; i++)
		law_set(g, now,
			&(struct weir_knob){.node = nodes[i],
				.kind = WEIR_KNOB_BUCKETS,
				.buckets =
					&(struct weir_bucket_spec){
						.kind = WEIR_HOLD, .rate = 0.001, .size = 1},
				.n_buckets = 1},
			1);
	for (uint32_t i = 0; i < N; i += 1000, now += 10 * WEIR_MS) {
		submit(i, i + 1000);
		submit(N + i, N + i + 1000);
		CHECK_INT(drain(BATCH), 1000);
	}
	now += 1200 * WEIR_SEC;
	CHECK_INT(drain(BATCH), N);
	weir_gate_free(g);
}

/* Each tenant is in a group of its own, with a max, or all are in one group with a max for
 * writes: all are stopped at one moment, and released at one. */
static void groups(bool own)
{
	struct weir_bucket_spec b = {
		.kind = WEIR_HOLD, .ops = WEIR_OPS(WEIR_WRITE), .rate = 1, .size = 1};
	struct weir_knob k = {.kind = WEIR_KNOB_BUCKETS, .buckets = &b, .n_buckets = 1};
	weir_node group = WEIR_ROOT;

	CHECK_INT(weir_gate_new(&(struct weir_gate_config){.nodes = N + 2, .window = 64}, &g), 0);
	now = 1000;
	for (uint32_t i = 0; i < N / 2; i++) {
		if (own || i == 0) {
			CHECK_INT(weir_gate_add(g, WEIR_ROOT, &group), 0);
			k.node = group;
			law_set(g, now, &k, 1);
		}
		CHECK_INT(weir_gate_add(g, group, &nodes[i]), 0);
	}
	for (uint32_t i = N / 2 - 1; i > 0; i--) {
		uint32_t j = (uint32_t)law_below(i + 1);
		weir_node n = nodes[i];

		nodes[i] = nodes[j];
		nodes[j] = n;
	}
	for (uint32_t i = 0; i < N; i++)
		reqs[i] = (struct weir_req){
			.tenant = nodes[i % (N / 2)], .bytes = 1, .op = WEIR_WRITE};
	submit(0, N);
	CHECK_INT(drain(BATCH), own ? N / 2 : 1);
	now += WEIR_SEC + WEIR_MS;
	CHECK_INT(drain(BATCH), own ? N / 2 : 1);
	for (uint32_t i = 0; i < N; i++) /* the second case's requests wait: use others */
		reqs[N + i] = (struct weir_req){.tenant = nodes[i % (N / 2)], .bytes = 1};
	submit(N, 2 * N);
	CHECK_INT(drain(1), N);
	set_max("a group's max", group, 1, 1);
	for (unsigned i = 0; i < 100; i++) {
		now += WEIR_SEC / 2;
		pass(i % 2 ? BATCH : 1);
	}
	weir_gate_free(g);
}
static void groups_of_one(void)
{
	groups(true);
}
static void writers_of_one_group(void)
{
	groups(false);
}

static bool any(const struct weir_req *r, void *arg)
{
	return true;
}
static void drop(struct weir_req *r, void *arg)
{
}

/* Knobs, cancel and remove, while all others wait: for their turn, or for their max. */
static void knobs(bool held)
{
	start();
	if (!held)
		for (uint32_t i = 0; i < N; i++)
			law_set(g, now,
				&(struct weir_knob){.node = nodes[i],
					.kind = WEIR_KNOB_BUCKETS,
					.buckets = NULL,
					.n_buckets = 0},
				1);
	submit(0, 2 * N);
	if (held)
		CHECK_INT(drain(BATCH), N);
	else
		for (unsigned i = 0; i < N / 20; i++)
			CHECK_INT(pass(BATCH), BATCH);
	for (uint32_t i = 0; i < 20; i++) {
		set("priority", nodes[i], WEIR_KNOB_PRIORITY, i % 3);
		set("weight", nodes[20 + i], WEIR_KNOB_WEIGHT, law_log(1.0 / 1024, 1 << 20));
		set_max("max", nodes[40 + i], 10, 1);
	}
	set("the smallest weight", nodes[99], WEIR_KNOB_WEIGHT, 1.0 / 1024);
	set("the window", WEIR_ROOT, WEIR_KNOB_WINDOW, 100);
	for (uint32_t i = 100; i < 140; i++) {
		watch(true);
		weir_gate_cancel(g, now, nodes[i], any, drop, NULL);
		seen("cancel", 2);
		watch(true);
		CHECK_INT(weir_gate_remove(g, nodes[i]), 0);
		seen("remove", 1);
	}
	set_max("the root's first max", WEIR_ROOT, 1e6, 1000);
	set_max("the root's max", WEIR_ROOT, 2e6, 1000);
	for (unsigned i = 0; i < 100; i++) {
		now += WEIR_SEC / 50;
		pass(BATCH);
	}
	weir_gate_free(g);
}

static void knobs_while_all_wait_for_their_turn(void)
{
	knobs(false);
}
static void knobs_while_all_are_held(void)
{
	knobs(true);
}

int main(int argc, char **argv)
{
	struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

	page = (size_t)sysconf(_SC_PAGESIZE);
	sigaction(SIGSEGV, &act, NULL);
	law_start(argc, argv, "law-work");
	RUN(all_due_together);
	RUN(all_due_far_away);
	RUN(knobs_while_all_wait_for_their_turn);
	RUN(knobs_while_all_are_held);
	RUN(groups_of_one);
	RUN(writers_of_one_group);
	for (unsigned k = 0; worst[k].what; k++)
		printf("%s of %u: %u nodes at most\n", worst[k].what, worst[k].n, worst[k].most);
	return law_end(10000);
}
