/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Law 6 per level: a tree of depth 3, whose leaves pause and return at random, shares as a
 * hierarchical fair queue does.
 *
 * The naive queue of hsfq.h has the same leaves busy at the same moments and serves as many
 * requests. For both, between any two changes of the busy leaves:
 *
 *   - busy siblings differ by at most K(c_i/r_i + c_j/r_j) of service per weight, over any interval
 *     (c: the largest cost below them, or in the gate that of a whole run; K: law 6's constant, or
 *     1 for the reference)
 *   - a node gets its part of its parent's service, r/Σr over the busy siblings, within the bound
 *     that follows from that: K·c·(1 + (n − 2)·r/Σr) for n busy siblings; and so a leaf, from the
 *     root down, gets what a fluid server would give it.
 */
#include "hsfq.h"
#include "law.h"
#include "reference.h"

#define NODES 40
#define K     5.0 /* the constant of the law */

static double worst; /* of all differences of siblings, as a part of the bound */

struct tree {
	struct weir_gate *g;
	struct hsfq ref;
	unsigned n; /* nodes, 0 the root; the same numbers in ref and in the gate */
	weir_node node[NODES];
	unsigned of[NODES + 1]; /* the gate's node → ours */
	uint32_t parent[NODES];
	double weight[NODES];
	bool leaf[NODES], busy[NODES];
	unsigned below[NODES];                           /* busy leaves below */
	double served[2][NODES], began[2][NODES];        /* by the gate, by the reference */
	double lo[2][NODES][NODES], hi[2][NODES][NODES]; /* of the difference per weight */
	uint32_t most;                                   /* largest cost */
	double run;                                      /* requests in a run, in the gate */
	struct weir_req reqs[NODES][2];
	weir_time now;
};

static bool drop_all(const struct weir_req *r, void *arg)
{
	return true;
}
static void dropped(struct weir_req *r, void *arg)
{
}

static void submit(struct tree *t, struct weir_req *r, unsigned leaf)
{
	*r = (struct weir_req){.tenant = t->node[leaf], .bytes = (uint32_t)law_between(1, t->most)};
	CHECK_INT(weir_gate_submit(t->g, t->now, &r, 1), 0);
	law_operations++;
}

static void set_busy(struct tree *t, unsigned leaf, bool busy)
{
	if (t->busy[leaf] == busy)
		return;
	t->busy[leaf] = busy;
	hsfq_busy(&t->ref, leaf, busy);
	for (unsigned n = leaf;; n = t->parent[n]) {
		t->below[n] += busy ? 1 : -1u;
		if (n == 0)
			break;
	}
	if (busy)
		for (unsigned i = 0; i < 2; i++)
			submit(t, &t->reqs[leaf][i], leaf);
	else
		weir_gate_cancel(t->g, t->now, t->node[leaf], drop_all, dropped, NULL);
	law_operations++;
}

/* ---- checks */

static void begin(struct tree *t)
{
	for (unsigned who = 0; who < 2; who++) {
		for (unsigned n = 0; n < t->n; n++)
			t->began[who][n] = t->served[who][n];
		for (unsigned i = 1; i < t->n; i++)
			for (unsigned j = i + 1; j < t->n; j++)
				t->lo[who][i][j] = t->hi[who][i][j] =
					t->served[who][i] / t->weight[i] -
					t->served[who][j] / t->weight[j];
	}
}

/* Return the largest cost of one turn. */
static double largest(const struct tree *t, unsigned who)
{
	return who ? t->most : t->run * t->most;
}

static void check_pairs(struct tree *t, unsigned who, unsigned n)
{
	for (unsigned m = 1; m < t->n; m++) {
		if (m == n || t->parent[m] != t->parent[n] || !t->below[m])
			continue;
		unsigned i = n < m ? n : m, j = n < m ? m : n;
		double d = t->served[who][i] / t->weight[i] - t->served[who][j] / t->weight[j];
		double most = largest(t, who);
		double bound = (who ? 1 : K) * (most / t->weight[i] + most / t->weight[j]);

		t->lo[who][i][j] = fmin(t->lo[who][i][j], d);
		t->hi[who][i][j] = fmax(t->hi[who][i][j], d);
		if (!who)
			worst = fmax(worst, (t->hi[who][i][j] - t->lo[who][i][j]) / bound);
		if (t->hi[who][i][j] - t->lo[who][i][j] > bound * (1 + 1e-9))
			FAIL("%s: siblings %u and %u are apart by %g, bound %g",
				who ? "reference" : "gate", i, j,
				t->hi[who][i][j] - t->lo[who][i][j], bound);
	}
}

static void serve(struct tree *t, unsigned who, unsigned leaf, double cost)
{
	for (unsigned n = leaf;; n = t->parent[n]) {
		t->served[who][n] += cost;
		if (n == 0)
			return;
		check_pairs(t, who, n);
	}
}

/* Return the fluid part of a node in the root's service; `ret_off` is the allowed error. */
static double fluid(const struct tree *t, unsigned who, unsigned n, double *ret_off)
{
	double sum = 0, off = 0;
	unsigned siblings = 0;

	*ret_off = 0;
	if (n == 0)
		return 1;
	double above = fluid(t, who, t->parent[n], &off);

	for (unsigned m = 1; m < t->n; m++)
		if (t->parent[m] == t->parent[n] && t->below[m]) {
			sum += t->weight[m];
			siblings++;
		}
	double part = t->weight[n] / sum;

	*ret_off =
		off * part +
		(siblings > 1 ? (who ? 1 : K) * largest(t, who) * (1 + (siblings - 2) * part) : 0);
	return above * part;
}

static void end(struct tree *t)
{
	for (unsigned who = 0; who < 2; who++)
		for (unsigned n = 1; n < t->n; n++) {
			double off, got = t->served[who][n] - t->began[who][n];

			if (!t->below[n]) {
				CHECK(got == 0);
				continue;
			}
			double due =
				fluid(t, who, n, &off) * (t->served[who][0] - t->began[who][0]);

			if (fabs(got - due) > off * (1 + 1e-9) + 1e-6)
				FAIL("%s: node %u got %g, not within %g of %g",
					who ? "reference" : "gate", n, got, off, due);
		}
	/* Compare both: as many requests, so the root's service may differ as well. */
	for (unsigned n = 1; n < t->n; n++) {
		double off, ref_off, part;

		if (!t->below[n])
			continue;
		part = fluid(t, 0, n, &off);
		(void)fluid(t, 1, n, &ref_off);
		double root =
			(t->served[0][0] - t->began[0][0]) - (t->served[1][0] - t->began[1][0]);
		double apart =
			(t->served[0][n] - t->began[0][n]) - (t->served[1][n] - t->began[1][n]);

		CHECK(fabs(apart - part * root) <= (off + ref_off) * (1 + 1e-9) + 1e-6);
	}
}

/* ---- a case */

static unsigned add(struct tree *t, unsigned parent)
{
	unsigned n = t->n++;

	t->parent[n] = parent;
	t->leaf[n] = true;
	t->leaf[parent] = false;
	t->weight[n] = law_chance(0.5) ? (double)law_between(1, 10) : law_log(1, 10);
	t->node[n] = law_leaf(t->g, t->node[parent], t->weight[n]);
	CHECK(t->node[n] <= NODES);
	t->of[t->node[n]] = n;
	CHECK_INT(hsfq_add(&t->ref, parent, t->weight[n]), n);
	return n;
}

static void grow(struct tree *t)
{
	t->n = 1;
	hsfq_init(&t->ref);
	for (unsigned a = 0; a < 3; a++) {
		unsigned x = add(t, 0);

		for (unsigned b = 0; b < law_between(1, 3); b++) {
			unsigned y = add(t, x);

			for (unsigned c = 0; c < law_below(4); c++)
				add(t, y);
		}
	}
}

static void phase(struct tree *t)
{
	unsigned steps = (unsigned)law_log(1, 400);

	begin(t);
	for (unsigned i = 0; i < steps && t->below[0]; i++) {
		struct weir_req *r;

		CHECK_INT(weir_gate_next(t->g, t->now, &r, 1), 1);
		unsigned leaf = t->of[r->tenant];

		CHECK(t->busy[leaf]);
		serve(t, 0, leaf, r->bytes);
		t->now += 1000;
		weir_gate_done(t->g, t->now, &r, 1);
		submit(t, r, leaf);

		uint32_t cost = (uint32_t)law_between(1, t->most);

		leaf = hsfq_next(&t->ref);
		CHECK(leaf && t->busy[leaf]);
		hsfq_serve(&t->ref, leaf, cost);
		serve(t, 1, leaf, cost);
		law_operations += 2;
	}
	end(t);
}

static void run_case(unsigned number, unsigned phases)
{
	struct tree *t = calloc(1, sizeof *t);
	double pause = law_log(0.02, 0.5);

	CHECK(t);
	t->most = (uint32_t)law_log(1, 1e5);
	t->run = number % 4 ? 1 : (double)law_between(2, 6);
	CHECK_INT(weir_gate_new(&(struct weir_gate_config){.cost = WEIR_UNIT_BYTES,
					.window = 1,
					.run = (uint32_t)t->run,
					.run_distance = t->most}, /* all requests are near: at 0 */
			  &t->g),
		0);
	grow(t);
	for (unsigned i = 0; i < phases; i++) {
		for (unsigned n = 1; n < t->n; n++)
			if (t->leaf[n] && law_chance(i ? pause : 0.7))
				set_busy(t, n, !t->busy[n]);
		phase(t);
	}
	weir_gate_free(t->g);
	free(t);
}

int main(int argc, char **argv)
{
	law_start(argc, argv, "law-tree");
	for (unsigned i = 0; i < 200; i++) {
		law_case("tree", i);
		run_case(i, 60);
	}
	printf("greatest difference %.3f of its bound\n", worst);
	return law_end(1600000);
}
