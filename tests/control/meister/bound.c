/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bound: the closed form equals a linear program on random queues, with blocking and with groups of equal priority; known values;
 * unbounded queues; no arrival that conforms to the curves exceeds it.
 */
#include "control/meister/bound.h"
#include "control/meister/sum.h"
#include "systems.h"
#ifdef HAS_GLPK
#include <glpk.h>
#endif

static void known_values(void)
{
	struct meister_pair a[] = {{0.2, 1}}, w[] = {{0.1, 0.5}};
	struct meister_knee ka[1], kw[1];
	struct meister_curve above = {1, ka}, own = {1, kw}, none = {0, NULL};

	meister_curve_of(a, 1, ka);
	meister_curve_of(w, 1, kw);
	CHECK_NEAR(meister_bound((struct meister_above){&above, NULL}, &own, 1, 0.1), 2, 1e-12);
	CHECK_NEAR(meister_bound((struct meister_above){&none, NULL}, &own, 2, 0), 0.25, 1e-12);
	/* the workload itself in the sum, and left out */
	CHECK_NEAR(meister_bound((struct meister_above){&own, &own}, &own, 2, 0), 0.25, 1e-12);
	CHECK(isinf(meister_bound((struct meister_above){&above, NULL}, &own, 0.2, 0)));
	CHECK(isinf(meister_bound((struct meister_above){&above, NULL}, &own, 0.25, 0)));
	CHECK_NEAR(meister_bound((struct meister_above){&above, NULL}, &own, 0.3, 0), 15, 1e-9);
}

static void pairs_are_reduced(void)
{
	struct meister_pair p[] = {{1, 5}, {0.1, 3}, {0.5, 1}, {0.5, 2}, {0.3, 2.5}, {0.1, 4}};
	struct meister_knee k[6];

	CHECK_INT(meister_pairs_reduce(p, 6), 2); /* (0.3, 2.5) lies above both others everywhere */
	CHECK_NEAR(p[0].rate, 0.5, 0);
	CHECK_NEAR(p[1].size, 3, 0);
	meister_curve_of(p, 2, k);
	CHECK_NEAR(k[1].t, 5, 1e-12);
	CHECK_NEAR(k[1].value, 3.5, 1e-12);
}

#ifdef HAS_GLPK
/* max t − s, y ≤ α of each member of the group at s together, y + Σ x_k = B t − L, x_k ≤ r t + b for every pair of k. */
struct program {
	glp_prob *lp;
	int row, entry;
	int ia[4096], ja[4096];
	double ar[4096];
};

static int add_row(struct program *p, int kind, double bound)
{
	p->row = glp_add_rows(p->lp, 1);
	glp_set_row_bnds(p->lp, p->row, kind, bound, bound);
	return p->row;
}

static void put(struct program *p, int column, double value)
{
	p->entry++;
	p->ia[p->entry] = p->row;
	p->ja[p->entry] = column;
	p->ar[p->entry] = value;
}

static double by_program(
	const struct system_room *x, uint32_t stage, const uint32_t *priority, uint32_t level)
{
	struct program p = {.lp = glp_create_prob()};
	const struct meister_stage *q = &x->stage[stage];
	glp_smcp how;
	double most;
	int t = 1, s = 2, balance, status;

	glp_set_obj_dir(p.lp, GLP_MAX);
	glp_add_cols(p.lp, 2 + (int)x->s.n_hops);
	for (int c = 1; c <= 2 + (int)x->s.n_hops; c++)
		glp_set_col_bnds(p.lp, c, GLP_LO, 0, 0);
	glp_set_obj_coef(p.lp, t, 1);
	glp_set_obj_coef(p.lp, s, -1);
	for (uint32_t h = 0; h < x->s.n_hops; h++) {
		if (x->hop[h].stage != stage || priority[h] > level) {
			glp_set_col_bnds(p.lp, 3 + (int)h, GLP_FX, 0, 0);
			continue;
		}
		for (uint32_t i = 0; i < x->n_pairs[h]; i++) {
			add_row(&p, GLP_UP, x->pair[h][i].size);
			put(&p, 3 + (int)h, 1);
			put(&p, priority[h] == level ? s : t, -x->pair[h][i].rate);
		}
	}
	balance = add_row(&p, GLP_FX, -q->blocking);
	(void)balance;
	for (uint32_t h = 0; h < x->s.n_hops; h++)
		put(&p, 3 + (int)h, 1);
	put(&p, t, -q->rate);
	glp_load_matrix(p.lp, p.entry, p.ia, p.ja, p.ar);
	glp_init_smcp(&how);
	how.msg_lev = GLP_MSG_OFF;
	glp_simplex(p.lp, &how);
	status = glp_get_status(p.lp);
	most = status == GLP_OPT ? glp_get_obj_val(p.lp) : HUGE_VAL;
	glp_delete_prob(p.lp);
	return most;
}

static void equals_program(void)
{
	static struct system_room x;
	uint32_t priority[LOADS * STAGES], unbounded = 0;
	struct rng r;

	rng_init(&r, 1, "bound");
	for (int round = 0; round < 1000; round++) {
		uint32_t n = 1 + (uint32_t)rng_below(&r, 12),
			 levels = 1 + (uint32_t)rng_below(&r, n);

		random_system(&x, &r, n, 1, between(&r, 0.3, 2.5));
		for (uint32_t h = 0; h < x.s.n_hops; h++)
			priority[h] = x.hop[h].priority = (uint32_t)rng_below(&r, levels);
		CHECK_INT(meister_bounds(&x.s), 0);
		for (uint32_t h = 0; h < x.s.n_hops; h++) {
			double want = by_program(&x, 0, priority, priority[h]);

			if (isinf(want) || isinf(x.hop[h].bound))
				CHECK(isinf(want) && isinf(x.hop[h].bound));
			else
				CHECK_NEAR(x.hop[h].bound, want, 1e-6);
			unbounded += isinf(want);
		}
	}
	CHECK(unbounded > 100 && unbounded < 3000);
}
#else
static void equals_program(void)
{
	SKIP("no GLPK (libglpk-dev) to compare with");
}
#endif

/* Fluid arrivals at a queue of strict priorities: each class sends all that its curve allows from a moment of its own on. The
 * work of the lowest class that arrives at s is done when the backlog that stood before it is. */
static void is_not_exceeded(void)
{
	static struct system_room x;
	struct rng r;
	double closest = 0;

	rng_init(&r, 2, "bound");
	for (int round = 0; round < 300; round++) {
		uint32_t n = 2 + (uint32_t)rng_below(&r, 6);

		random_system(&x, &r, n, 1, 0.95);
		for (uint32_t h = 0; h < n; h++)
			x.hop[h].priority = h;
		CHECK_INT(meister_bounds(&x.s), 0);
		for (int k = 0; k <= 200; k++) {
			double s = x.hop[n - 1].bound * 2 * k / 200, t, last = 0;
			double own = meister_curve_value(&x.hop[n - 1].curve, s);

			/* the first t at which B t − Σ α(t) − L ≥ own: fixed point from below */
			for (t = 0;;) {
				double work = own + x.stage[0].blocking;

				for (uint32_t h = 0; h + 1 < n; h++)
					work += meister_curve_value(&x.hop[h].curve, t);
				last = t;
				t = work / x.stage[0].rate;
				if (t - last <= 1e-13 * t)
					break;
			}
			CHECK(t - s <= x.hop[n - 1].bound * (1 + 1e-9));
			closest = fmax(closest, (t - s) / x.hop[n - 1].bound);
		}
	}
	CHECK(closest > 0.99);
}

int main(void)
{
	RUN(known_values);
	RUN(pairs_are_reduced);
	RUN(is_not_exceeded);
	RUN(equals_program);
	return 0;
}
