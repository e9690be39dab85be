/* SPDX-License-Identifier: BSD-3-Clause */
/* A fractional window: over time exactly that many are inside, for any service times. */
#include <weir/gate.h>
#include "gate/window.h"
#include "law.h"

#define INSIDE 64

/* demand without pauses; each request stays inside for a random time around `service` */
struct demand {
	struct window w;
	weir_time now, ends[INSIDE];
	unsigned n;
	double area; /* slot·ns inside */
};

static void advance(struct demand *d, weir_time to)
{
	d->area += (double)d->n * (double)(to - d->now);
	d->now = to;
	window_update(&d->w, to, d->n);
}

static void enter(struct demand *d, double service)
{
	while (d->n < d->w.limit && d->n < INSIDE) {
		window_update(&d->w, d->now, d->n);
		d->ends[d->n++] = d->now + 1 + (weir_time)rng_exp(&law_rng, service);
	}
}

static void step(struct demand *d, double service)
{
	enter(d, service);
	weir_time to = window_next(&d->w);

	for (unsigned i = 0; i < d->n; i++)
		to = d->ends[i] < to ? d->ends[i] : to;
	CHECK(to != WEIR_NEVER && to >= d->now);
	advance(d, to);
	for (unsigned i = 0; i < d->n;)
		if (d->ends[i] <= to)
			d->ends[i] = d->ends[--d->n];
		else
			i++;
	enter(d, service);
	law_operations++;
}

static void averages(void)
{
	static const double sizes[] = {
		0.01, 0.1, 0.25, 0.5, 0.9, 0.999, 1, 1.01, 1.5, 2.25, 3.99, 7, 20.3};

	for (unsigned k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
		double service = law_log(1e4, 1e7);
		struct demand d = {.now = (weir_time)law_below(1000000)};
		weir_time from = d.now;

		window_set(&d.w, sizes[k], d.now);
		for (unsigned i = 0; i < 60000; i++)
			step(&d, service);
		CHECK_NEAR(d.area / (double)(d.now - from), sizes[k], 0.01);
	}
}

static void averages_while_it_changes(void)
{
	double want = 0, service = 1e6;
	struct demand d = {0};

	/* So often that much of the time more are inside than the smaller window allows: that is
	 * made up for. */
	for (unsigned k = 0; k < 10000; k++) {
		double size = law_chance(0.5) ? 9.5 : 1.5;
		weir_time from = d.now;

		window_update(&d.w, d.now, d.n);
		window_set(&d.w, size, d.now);
		for (unsigned i = 0; i < 20; i++)
			step(&d, service);
		want += size * (double)(d.now - from);
	}
	CHECK_NEAR(d.area, want, 0.01);
}

/* The same with a gate: demand without pauses, and device time ÷ time is the window. In the last
 * case it changes so often that much of the time more are inside than it allows. */
static void averages_of_a_gate(void)
{
	static const double sizes[] = {0.1, 0.5, 1.5, 2.25, 4.1, 9.5};

	for (unsigned k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
		struct weir_gate_config config = {.window = sizes[k]};
		struct weir_req reqs[INSIDE], *r, *inside[INSIDE];
		weir_time now = 0, ends[INSIDE];
		struct weir_gate_stats s;
		struct weir_gate *g;
		unsigned n = 0;
		double size = sizes[k], want = 0;

		CHECK_INT(weir_gate_new(&config, &g), 0);
		weir_node leaf = law_leaf(g, WEIR_ROOT, 1);

		for (unsigned i = 0; i < INSIDE; i++) {
			reqs[i] = (struct weir_req){.tenant = leaf};
			r = &reqs[i];
			CHECK_INT(weir_gate_submit(g, now, &r, 1), 0);
		}
		for (unsigned i = 0; i < 40000; i++) {
			if (sizes[k] > 9 && i % 10 == 0) {
				size = law_chance(0.5) ? 9.5 : 1.5;
				law_knob(g, now, WEIR_ROOT, WEIR_KNOB_WINDOW, size);
			}
			while (weir_gate_next(g, now, &r, 1)) {
				inside[n] = r;
				ends[n++] = now + 1 + (weir_time)rng_exp(&law_rng, 1e6);
			}
			CHECK(n <= ceil(sizes[k]));
			/* Called only when a request completes, and at wakeups. */
			weir_time to = weir_gate_wakeup(g, now);

			for (unsigned j = 0; j < n; j++)
				to = ends[j] < to ? ends[j] : to;
			want += size * (double)(to - now);
			now = to;
			for (unsigned j = 0; j < n;) {
				if (ends[j] > now) {
					j++;
					continue;
				}
				r = inside[j];
				inside[j] = inside[--n];
				ends[j] = ends[n];
				weir_gate_done(g, now, &r, 1);
				CHECK_INT(weir_gate_submit(g, now, &r, 1), 0);
			}
			law_operations++;
		}
		CHECK_INT(weir_gate_get_stats(g, now, leaf, &s), 0);
		CHECK_NEAR(s.device_ns, want, 0.01);
		weir_gate_free(g);
	}
}

static void the_limit_is_one_of_two(void)
{
	struct demand d = {0};

	window_set(&d.w, 3.3, 0);
	for (unsigned i = 0; i < 10000; i++) {
		step(&d, 1e5);
		CHECK(d.w.limit == 3 || d.w.limit == 4);
		CHECK(d.n <= 4);
	}
}

static void rises_when_it_said(void)
{
	for (unsigned i = 0; i < 2000; i++) {
		double size = law_log(0.05, 10);
		struct demand d = {0};

		if (size == floor(size))
			continue;
		window_set(&d.w, size, 0);
		for (unsigned k = 0; k < 20; k++)
			step(&d, 1e5);
		weir_time next = window_next(&d.w);

		if (next == WEIR_NEVER)
			continue;
		struct window early = d.w, then = d.w;

		CHECK(next > d.now);
		window_update(&early, next - 1, d.n <= early.limit ? d.n : early.limit);
		CHECK_INT(early.limit, d.w.limit);
		/* For a moment more than the limit may be inside; it counts. */
		window_update(&then, next, d.n);
		CHECK(then.limit == d.w.limit + 1 || d.n > d.w.limit);
		law_operations++;
	}
}

/* Many were inside when the window shrank, and stayed for long: of the excess, only one slot for
 * a second is made up for. */
static void a_debt_is_bounded(void)
{
	struct window w = {0};

	window_set(&w, 0.5, 0);
	window_update(&w, 100 * WEIR_SEC, 40);
	CHECK_INT(w.limit, 0);
	CHECK_INT(window_next(&w), 102 * WEIR_SEC);
	window_update(&w, 102 * WEIR_SEC, 0);
	CHECK_INT(w.limit, 1);
}

static void whole_windows_are_plain(void)
{
	struct window w = {0};

	window_set(&w, 5, 0);
	CHECK_INT(w.limit, 5);
	CHECK_INT(window_next(&w), WEIR_NEVER);
	window_update(&w, WEIR_SEC, 5);
	CHECK_INT(w.limit, 5);
	window_set(&w, 0, WEIR_SEC);
	CHECK_INT(w.limit, 0);
	CHECK_INT(window_next(&w), WEIR_NEVER);
}

int main(int argc, char **argv)
{
	law_start(argc, argv, "window");
	RUN(averages);
	RUN(averages_while_it_changes);
	RUN(averages_of_a_gate);
	RUN(the_limit_is_one_of_two);
	RUN(rises_when_it_said);
	RUN(a_debt_is_bounded);
	RUN(whole_windows_are_plain);
	return law_end(500000);
}
