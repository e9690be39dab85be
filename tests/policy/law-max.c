/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A max is reached on a busy machine. The gate's thread and the client each run up to 20 ms late
 * one time in four; the client keeps a fixed number of requests in flight. Over ten seconds it gets
 * 0.98 to 1.01 of its max, and over no second more than 1.05 of it and one request. WEIR_SEED or an
 * argument gives another seed.
 */
#include "base/rng.h"
#include "policy/impl.h"
#include "policy-parse.h"

#define LATE    (20 * WEIR_MS) /* as law 4 of gate.h */
#define SPAN    (10 * WEIR_SEC)
#define DEPTH   256
#define RECORDS 262144

static struct rng rng;

struct row {
	const char *max;
	double rate; /* requests/s */
	uint32_t bytes;
	size_t depth; /* of the client: enough to use all of the max in spite of its lateness */
};

struct client {
	struct weir_req reqs[DEPTH];
	struct weir_req *back[DEPTH]; /* requests that the client has back */
	size_t n_back;
	weir_time at; /* when it sends them */
};

struct world {
	struct weir_gate *g;
	weir_node node;
	weir_time now, turn; /* turn: when the gate's thread runs next */
	struct client client;
	weir_time passed[RECORDS];
	size_t n_passed;
};
static struct world w;

static weir_time late(void)
{
	return rng_below(&rng, 4) ? 0 : (weir_time)rng_below(&rng, LATE);
}

static void start(const struct row *row)
{
	struct weir_gate_config config;
	struct weir_resource r;
	struct weir_err err;
	struct weir_policy *p;
	char text[99];

	memset(&w, 0, sizeof(w));
	snprintf(text, sizeof(text), "tenants: [{name: a, max: %s}]", row->max);
	p = parse(text);
	policy_resource_default("r", &r);
	weir_policy_gate(&r, &config);
	config.window = DEPTH;
	CHECK_INT(weir_gate_new(&config, &w.g), 0);
	if (weir_policy_install(p, w.g, 0, &w.node, &err) != 0)
		FAIL("%s", err.text);
	weir_policy_free(p);
	for (size_t i = 0; i < row->depth; i++)
		w.client.back[w.client.n_back++] = &w.client.reqs[i];
	w.turn = WEIR_NEVER;
}

static void send(const struct row *row)
{
	struct client *c = &w.client;

	for (size_t i = 0; i < c->n_back; i++)
		*c->back[i] =
			(struct weir_req){.tenant = w.node, .requests = 1, .bytes = row->bytes};
	CHECK_INT(weir_gate_submit(w.g, w.now, c->back, c->n_back), 0);
	c->n_back = 0;
	c->at = WEIR_NEVER;
	w.turn = w.now;
}

static void serve(void)
{
	struct client *c = &w.client;
	struct weir_req *reqs[DEPTH];
	size_t n = weir_gate_next(w.g, w.now, reqs, DEPTH);
	weir_time next;

	weir_gate_done(w.g, w.now, reqs, n);
	for (size_t i = 0; i < n; i++) {
		CHECK(w.n_passed < RECORDS);
		w.passed[w.n_passed++] = w.now;
		c->back[c->n_back++] = reqs[i];
	}
	if (n && c->at == WEIR_NEVER)
		c->at = w.now + late();
	next = weir_gate_wakeup(w.g, w.now);
	w.turn = next < WEIR_NEVER ? next + late() : WEIR_NEVER;
}

/* Return the largest number of requests that passed in any second. */
static size_t worst_second(void)
{
	size_t most = 0;

	for (size_t i = 0, j = 0; i < w.n_passed; i++) {
		while (j < w.n_passed && w.passed[j] < w.passed[i] + WEIR_SEC)
			j++;
		most = j - i > most ? j - i : most;
	}
	return most;
}

static void run_row(const struct row *row)
{
	size_t worst;
	double got;

	start(row);
	while (w.now < SPAN) {
		if (w.client.at <= w.turn)
			send(row);
		else
			serve();
		w.now = w.client.at < w.turn ? w.client.at : w.turn;
	}
	worst = worst_second();
	got = (double)w.n_passed / (row->rate * 10);
	printf("%s, %u bytes: %.4f, in the worst second %.4f\n", row->max, row->bytes, got,
		(double)worst / row->rate);
	CHECK(got >= 0.98);
	CHECK(got <= 1.01);
	CHECK((double)worst <= 1.05 * row->rate + 1);
	weir_gate_free(w.g);
}

int main(int argc, char **argv)
{
	static const struct row rows[] = {
		{"1k iops", 1000, 4096, 8}, {"100 iops", 100, 4096, 8},
		{"20k iops", 20000, 4096, 256}, {"100 MiB/s", 1600, 65536, 16},
		{"100 MiB/s", 400, 256 << 10, 8}, /* requests of 1 MiB, in pieces */
	};

	const char *text = argc > 1 ? argv[1] : getenv("WEIR_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : 1;

	printf("seed %llu\n", (unsigned long long)seed);
	rng_init(&rng, seed, "law-max");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		run_row(&rows[i]);
	return 0;
}
