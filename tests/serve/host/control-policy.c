/* SPDX-License-Identifier: BSD-3-Clause */
/* control-policy: the buckets of a policy reach the controller in steps, and enter together. */
#include "policy-parse.h"
#include "serve/host/control-impl.h"
#include <stdio.h>
#include <stdlib.h>

enum { MANY = 3 * CONTROL_POLICY_STEP };

/* A controller that counts its calls. */
static struct ids ids;
static size_t calls, known, entered, servers;
static int64_t staged[2 * MANY]; /* reservations by index */

static int64_t add_server(void *c, const char *name)
{
	return (int64_t)servers++;
}

static int64_t stage(void *c, const struct cluster_bucket *b)
{
	size_t at = ids_find(&ids, b->id);

	if (at == SIZE_MAX) {
		at = known++;
		CHECK_INT(ids_add(&ids, b->id, (uint32_t)at), 0);
	}
	calls++;
	staged[at] = b->reservation;
	return (int64_t)at;
}

static void enter(void *c)
{
	entered++;
}

static weir_time due(const void *c)
{
	return WEIR_NEVER;
}

static const struct cluster_lead lead = {
	.server = add_server, .stage = stage, .enter = enter, .due = due};

static void timer_due(struct loop_timer *t, weir_time now)
{
}

static struct control l;

static void begin(void)
{
	l = (struct control){.lead = &lead, .rank = 1, .timer.due = timer_due};
	CHECK_INT(loop_new(&l.loop), 0);
	calls = known = entered = servers = 0;
}

static void end(void)
{
	control_policy_stop(&l);
	for (size_t i = 0; i < l.n_buckets; i++)
		free(l.buckets[i].path);
	free(l.buckets);
	free(l.servers);
	ids_free(&l.server_ids);
	ids_free(&ids);
	loop_free(l.loop);
}

/* Tenants t<from> … t<to - 1>, each with that min. */
static struct weir_policy *policy(size_t from, size_t to, int min)
{
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	struct weir_policy *p;

	fputs("cluster: {name: c, key: k, controller: [\"unix:/c\"], servers: [s1, s2], period: "
	      "1s}\n"
	      "tenants:\n",
		f);
	for (size_t i = from; i < to; i++)
		fprintf(f, "  - {name: t%zu, min: %d iops}\n", i, min);
	fclose(f);
	p = parse(text);
	free(text);
	return p;
}

/* Run the steps that are left; none is long, and nothing enters before the last. Return their number. */
static size_t steps(void)
{
	size_t n = 0;
	int rc;

	do {
		calls = 0;
		CHECK_INT(entered, 0);
		rc = control_policy_step(&l);
		CHECK(calls <= CONTROL_POLICY_STEP);
		n++;
	} while (rc > 0);
	CHECK_INT(rc, 0);
	CHECK_INT(entered, 1);
	entered = 0;
	return n;
}

static void count(size_t n_there, int64_t reservation)
{
	size_t there = 0;

	for (size_t i = 0; i < l.n_buckets; i++) {
		there += !l.buckets[i].gone;
		CHECK_INT(l.buckets[i].is.reservation, l.buckets[i].gone ? 0 : reservation);
		CHECK_INT(staged[i], l.buckets[i].is.reservation);
	}
	CHECK_INT(there, n_there);
}

static void in_steps(void)
{
	struct weir_policy *p = policy(0, MANY, 1), *next = policy(10, MANY + 10, 2);

	begin();
	CHECK_INT(control_policy(&l, p, NULL), 0);
	CHECK_INT(calls, 0);
	CHECK(steps() >= 3);
	CHECK_INT(servers, 2);
	count(MANY, 1);
	CHECK_INT(control_policy(&l, next, NULL), 0);
	CHECK(calls <= CONTROL_POLICY_STEP);
	CHECK_INT(control_policy_step(&l), 1);
	/* The old ones are in force until all are read. */
	for (size_t i = 0; i < MANY; i++)
		CHECK(!l.buckets[i].gone && l.buckets[i].is.reservation == 1);
	steps();
	count(MANY, 2);
	CHECK_INT(known, MANY + 10);
	end();
	weir_policy_free(p);
	weir_policy_free(next);
}

/* A third policy arrives while the second is read: buckets of the second alone never enter. */
static void another_meanwhile(void)
{
	struct weir_policy *p = policy(0, 5, 1), *second = policy(5, MANY, 2),
			   *third = policy(3, 8, 3);

	begin();
	CHECK_INT(control_policy(&l, p, NULL), 0);
	steps();
	CHECK_INT(control_policy(&l, second, NULL), 0);
	CHECK_INT(control_policy_step(&l), 1);
	CHECK_INT(control_policy(&l, third, NULL), 0);
	weir_policy_free(second); /* no longer borrowed */
	steps();
	count(5, 3);
	end();
	weir_policy_free(p);
	weir_policy_free(third);
}

/* ---- the loop does the steps */

static struct turns {
	struct loop_turn turn;
	size_t rounds;
} turns;

static bool each_round(struct loop_turn *t, weir_time now)
{
	CHECK(calls <= CONTROL_POLICY_STEP);
	calls = 0;
	turns.rounds++;
	if (entered)
		loop_stop(l.loop);
	return true;
}

static void one_step_a_round(void)
{
	struct weir_policy *p = policy(0, MANY, 1);

	begin();
	turns = (struct turns){.turn.turn = each_round};
	CHECK_INT(control_policy(&l, p, NULL), 0);
	loop_turn_add(l.loop, &turns.turn);
	CHECK_INT(loop_run(l.loop), 0);
	loop_turn_remove(l.loop, &turns.turn);
	CHECK(turns.rounds >= 3);
	CHECK_INT(entered, 1);
	count(MANY, 1);
	end();
	weir_policy_free(p);
}

int main(void)
{
	RUN(in_steps);
	RUN(another_meanwhile);
	RUN(one_step_a_round);
	return 0;
}
