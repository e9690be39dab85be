/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan: 100,000 random plans put in force, changed and undone with requests inside, beside every kind of controller: no request
 * is lost or passes another of its tenant and kind, a max is never exceeded, a min is kept where the plan leaves room for it, and
 * each node has its limits, its rule and its claim.
 */
#include "serve/resource-rig.h"
#include "base/rng.h"
#include <math.h>
#include <string.h>
#include <time.h>

enum { CLIENTS = 8, DEPTH = 12, PAIRS = 4, LEAVES = 6 };
#define WORK (250 * WEIR_US) /* of a request: 4 inside, each for 1 ms */

static const char *const kinds[] = {
	"controller: none",
	"controller: adaptbf",
	"controller: adaptbf, adaptbf: {tokens: hold}",
	"controller: tbf, tbf: {depth: 3, default: 900 iops}",
	"controller: pshift",
};
enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

static const char tenants[] = "tenants:\n"
			      "  - {name: a, max: 500 iops, match: {export: a}}\n"
			      "  - {name: b, min: 800 iops, match: {export: b}}\n"
			      "  - name: g\n"
			      "    max: 700 iops\n"
			      "    children:\n"
			      "      - {name: c, match: {export: c}}\n"
			      "      - {name: d, weight: 3, match: {export: d}}\n"
			      "  - {name: e, match: {export: e}}\n"
			      "  - {name: f, max: {reads: 600 iops}, match: {export: f}}\n";
/* In a cluster only leaves have limits, of all operations. */
static const char tenants_of_cluster[] = "tenants:\n"
					 "  - {name: a, max: 500 iops, match: {export: a}}\n"
					 "  - {name: b, min: 800 iops, match: {export: b}}\n"
					 "  - name: g\n"
					 "    children:\n"
					 "      - {name: c, max: 350 iops, match: {export: c}}\n"
					 "      - {name: d, max: 350 iops, match: {export: d}}\n"
					 "  - {name: e, match: {export: e}}\n"
					 "  - {name: f, max: 600 iops, match: {export: f}}\n";
static const struct {
	const char *export_;
	uint8_t op;
} clients[CLIENTS] = {{"a", BACK_READ}, {"b", BACK_READ}, {"c", BACK_WRITE}, {"d", BACK_READ},
	{"e", BACK_READ}, {"e", BACK_READ}, {"f", BACK_READ}, {"f", BACK_WRITE}};

static struct world w;
static struct rng rng;
static struct estimate table;

/* ---- clients that number their requests, and a back end that checks the numbers */

struct numbered {
	struct request request;
	struct client *client;
	uint64_t number;
	bool inside;
};
static struct client joined[CLIENTS];
static struct numbered requests[CLIENTS][DEPTH];
static uint64_t sent[CLIENTS][2], passed[CLIENTS][2], done[CLIENTS];

static uint64_t *count(uint64_t (*of)[2], const struct numbered *n)
{
	return &of[n->client->tenant][n->request.io.op == BACK_WRITE];
}

static void send(struct numbered *n)
{
	n->number = (*count(sent, n))++;
	resource_submit(w.resource, &n->request);
}

static void returned(struct request *q)
{
	struct numbered *n = container_of(q, struct numbered, request);

	CHECK_INT(q->io.error, 0);
	CHECK(n->inside);
	n->inside = false;
	done[n->client - joined]++;
	send(n);
}

static void submit(struct back *b, struct back_io *ios)
{
	for (struct back_io *io = ios; io; io = io->next) {
		struct numbered *n = container_of(
			container_of(io, struct request, io), struct numbered, request);

		CHECK(!n->inside);
		n->inside = true;
		CHECK_INT(n->number, (*count(passed, n))++); /* in order, none left out */
	}
	fake_submit(b, ios);
}

static const struct back_ops checked = {.name = "checked", .submit = submit, .free = fake_free};

static void start(const char *kind)
{
	char text[1000];

	memset(requests, 0, sizeof(requests));
	memset(joined, 0, sizeof(joined));
	memset(sent, 0, sizeof(sent));
	memset(passed, 0, sizeof(passed));
	memset(done, 0, sizeof(done));
	snprintf(text, sizeof(text),
		"%sresources: [{name: s, depth: 4, capacity: 4k iops, %s}]\n%s",
		strstr(kind, "pshift") ? "cluster: {key: k, controller: \"tcp:c:1\", servers: [s], "
					 "period: 100ms}\n"
				       : "",
		kind, strstr(kind, "pshift") ? tenants_of_cluster : tenants);
	world_new(&w, text, false);
	w.fake->back.ops = &checked;
	estimate_constant(&table, (double)WORK, 0);
	CHECK_INT(resource_swap_all(w.resource,
			  &(struct resource_change){.to = w.policy, .estimate = &table}, NULL),
		0);
	for (int i = 0; i < CLIENTS; i++) {
		strcpy(joined[i].export_, clients[i].export_);
		resource_join(w.resource, &joined[i]);
		for (int k = 0; k < DEPTH; k++) {
			struct numbered *n = &requests[i][k];

			n->client = &joined[i];
			n->request = (struct request){.client = &joined[i], .done = returned};
			n->request.io = (struct back_io){.op = clients[i].op, .length = 4096};
			send(n);
		}
	}
}

/* ---- plans */

struct plan {
	struct policy_claim claims[16];
	struct weir_bucket_spec specs[16][PAIRS];
};

/* A plan for some of the leaves; their last rates leave room for b's min. */
static void random_plan(struct plan *p)
{
	const struct weir_policy *policy = w.policy;

	memset(p, 0, sizeof(*p));
	for (size_t i = 0; i < policy->n_tenants; i++) {
		unsigned n = (unsigned)rng_below(&rng, PAIRS + 1);

		if (policy->tenants[i].first_child >= 0)
			continue;
		for (unsigned k = 0; k < n; k++)
			p->specs[i][k] = (struct weir_bucket_spec){.kind = WEIR_PROFILE,
				.unit = rng_below(&rng, 8) ? WEIR_UNIT_TIME : WEIR_UNIT_BYTES,
				.rate = 1e9 * (0.02 + 0.08 * rng_double(&rng)) *
					(k + 1 < n ? 4 : 1),
				.size = (double)WORK * (double)(1 + rng_below(&rng, 8))};
		if (n)
			p->specs[i][n - 1].unit = WEIR_UNIT_TIME;
		p->claims[i] = (struct policy_claim){(int)rng_below(&rng, 64), n, p->specs[i]};
	}
}

static void check_node(size_t i)
{
	struct resource *r = w.resource;
	struct resource_part *t = &r->policy_of->part;
	struct weir_bucket_spec want[POLICY_BUCKETS], have[64];
	int n, m, profiles = 0;
	double priority;

	resource_policy_rule(r, i);
	m = (int)policy_install_buckets_part(
		r->policy, i, &t->bounds[i], resource_part_all(t), want);
	n = weir_gate_get_buckets(r->gate, w.now, r->nodes[i], have, NULL, 64);
	CHECK_INT(n, m);
	for (int k = 0; k < n; k++) {
		unsigned at = (unsigned)profiles;

		if (have[k].kind != WEIR_PROFILE)
			continue;
		CHECK_NEAR(have[k].rate, t->claims[i].profile[at].rate, 1);
		CHECK_NEAR(have[k].size, t->claims[i].profile[at].size, 1);
		profiles++;
	}
	CHECK_INT(profiles, t->claims ? t->claims[i].n : 0);
	if (r->policy->tenants[i].first_child >= 0)
		return;
	CHECK_INT(weir_gate_get(r->gate, r->nodes[i], WEIR_KNOB_PRIORITY, &priority), 0);
	CHECK_INT((int)priority, profiles ? t->claims[i].priority : -1);
}

/* Put a plan in force, or not. Return true if it was. */
static bool change(const struct plan *p)
{
	struct resource_change c = {
		.to = w.policy, .estimate = &table, .claims = p ? p->claims : NULL};
	unsigned undo_after = rng_below(&rng, 5) ? 0 : 1 + (unsigned)rng_below(&rng, 3);
	struct weir_err err;

	CHECK_INT(resource_swap_start(w.resource, &c, &err), 0);
	for (int steps = 1; resource_swap_step(w.resource, &err) > 0; steps++) {
		if (rng_below(&rng, 2))
			run_world(&w, (weir_time)rng_below(&rng, 300) * WEIR_US);
		if (steps == (int)undo_after) {
			while (resource_swap_undo(w.resource))
				;
			return false;
		}
	}
	CHECK_INT(resource_swap_finish(w.resource, &err), 0);
	return true;
}

static void step(void)
{
	struct resource *r = w.resource;

	r->now = w.now;
	if (r->control && r->control->step)
		r->control->step(resource_control_instance(r, r->control), w.now);
}

static void run_plans(unsigned n, weir_time between)
{
	static struct plan plans[2];
	static unsigned in_force;

	for (unsigned i = 0; i < n; i++) {
		struct plan *next = &plans[!in_force];
		bool none = rng_below(&rng, 20) == 0;

		random_plan(next);
		if (change(none ? NULL : next) && !none)
			in_force = !in_force;
		step();
		check_node(rng_below(&rng, w.policy->n_tenants));
		run_world(&w, (weir_time)(2 * rng_double(&rng) * (double)between));
	}
}

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static double rate(unsigned client, uint64_t before, weir_time since)
{
	return (double)(done[client] - before) / ((double)(w.now - since) / WEIR_SEC);
}

static void finish(void)
{
	for (int i = 0; i < CLIENTS; i++)
		CHECK(done[i] > 0);
	for (size_t i = 0; i < w.policy->n_tenants; i++)
		for (int k = 0; k < 2; k++)
			CHECK(sent[i][k] - passed[i][k] <= 2 * DEPTH);
}

static void stop(struct request *q)
{
	container_of(q, struct numbered, request)->inside = false;
	container_of(q, struct numbered, request)->client = NULL;
}

/* When no more are sent, all come back. */
static void drain(void)
{
	for (int i = 0; i < CLIENTS; i++)
		for (int k = 0; k < DEPTH; k++)
			requests[i][k].request.done = stop;
	for (int i = 0; i < 100; i++) { /* a controller grants tokens meanwhile */
		run_world(&w, 100 * WEIR_MS);
		step();
	}
	for (int i = 0; i < CLIENTS; i++)
		for (int k = 0; k < DEPTH; k++)
			CHECK(requests[i][k].client == NULL);
}

static void test_any_controller(void)
{
	rng_init(&rng, 18, "plans");
	for (int k = 0; k < KINDS; k++) {
		weir_time since;
		double g;

		start(kinds[k]);
		since = w.now;
		run_plans(20000, WEIR_MS);
		g = rate(2, 0, since) + rate(3, 0, since);
		printf("  %s: a %.0f, g %.0f, reads of f %.0f a second\n", kinds[k],
			rate(0, 0, since), g, rate(6, 0, since));
		CHECK(rate(0, 0, since) <= 500 * 1.01);
		CHECK(g <= 700 * 1.01);
		CHECK(rate(6, 0, since) <= 600 * 1.01);
		if (k == 0) { /* as without a plan: they ask for more */
			CHECK(rate(0, 0, since) >= 500 * 0.95);
			CHECK(g >= 700 * 0.95);
		}
		finish();
		drain();
		world_free(&w);
	}
}

/* Planned rates and the min fit the device; so each second has the min. */
static void test_min(void)
{
	rng_init(&rng, 19, "plans");
	start(kinds[0]);
	for (int i = 0; i < 100; i++) {
		uint64_t before = done[1];
		weir_time since = w.now;

		run_plans(5, 200 * WEIR_MS);
		if (rate(1, before, since) < 800 * 0.97)
			FAIL("b has %.0f a second", rate(1, before, since));
	}
	finish();
	drain();
	world_free(&w);
}

/* The law of the claims themselves: a flood beside a tenant in its profile. */
static void test_priority(void)
{
	struct plan p = {0};
	struct weir_gate_stats st;
	int e = 0;

	rng_init(&rng, 20, "plans");
	start(kinds[0]);
	e = weir_policy_find(w.policy, "e");
	p.specs[e][0] = (struct weir_bucket_spec){.kind = WEIR_PROFILE,
		.unit = WEIR_UNIT_TIME,
		.rate = 0.3e9,
		.size = (double)WORK * 4};
	p.claims[e] = (struct policy_claim){7, 1, p.specs[e]};
	while (!change(&p))
		;
	run_world(&w, 10 * WEIR_SEC);
	st = stats(&w, "e");
	CHECK_NEAR((double)st.by_class[WEIR_CLASS_PRIORITY] / 10, 0.3 * 4000, 30);
	CHECK(st.by_class[WEIR_CLASS_REST] > 0);
	drain();
	world_free(&w);
}

/* A plan of 10,000 tenants goes into the gate in steps, between which requests pass. */
static void test_many(void)
{
	enum { N = 10000 };
	char *text = malloc(60 * N + 1000);
	struct policy_claim *claims[2] = {
		calloc(N, sizeof(*claims[0])), calloc(N, sizeof(*claims[1]))};
	struct weir_bucket_spec pairs[PAIRS];
	size_t n = (size_t)sprintf(text, "resources: [{name: s, depth: 4}]\ntenants:\n");
	double most = 0, all = 0;
	struct weir_err err;

	for (unsigned k = 0; k < PAIRS; k++)
		pairs[k] = (struct weir_bucket_spec){.kind = WEIR_PROFILE,
			.unit = WEIR_UNIT_TIME,
			.rate = 1e8 / (k + 1),
			.size = (double)WORK * (k + 4)};
	for (int i = 0; i < N; i++) {
		n += (size_t)sprintf(text + n, "  - {name: t%d, match: {export: t%d}}\n", i, i);
		claims[0][i] = (struct policy_claim){i % 64, PAIRS, pairs};
		claims[1][i] = (struct policy_claim){(i + 1) % 64, PAIRS - 1, pairs};
	}
	world_new(&w, text, false);
	for (int plan = 0; plan < 4; plan++) {
		struct resource_change c = {.to = w.policy, .claims = claims[plan % 2]};
		double from = cpu_ms(), to;
		int rc = resource_swap_start(w.resource, &c, &err);

		while (rc >= 0) {
			to = cpu_ms();
			most = to - from > most ? to - from : most;
			all += to - from;
			from = to;
			if (w.resource->policy_of->part.claims == c.claims)
				break;
			rc = resource_swap_step(w.resource, &err);
			if (rc == 0)
				rc = resource_swap_finish(w.resource, &err);
		}
		CHECK(rc >= 0);
	}
	printf("  10,000 tenants: %.2f ms of CPU time, at most %.2f ms at once\n", all / 4, most);
	world_free(&w);
	free(claims[0]);
	free(claims[1]);
	free(text);
}

int main(void)
{
	RUN(test_any_controller);
	RUN(test_min);
	RUN(test_priority);
	RUN(test_many);
	return 0;
}
