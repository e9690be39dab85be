/* SPDX-License-Identifier: BSD-3-Clause */
/* control-policy: the buckets of a policy reach the controller in steps, and enter together; the reports of its servers
 * are bounded by the policy in force. */
#include "policy-parse.h"
#include "serve/host/control-impl.h"
#include "serve/lease/lease-link.h"
#include "serve/loop/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
static char key_file[] = "/tmp/weir-key-XXXXXX";

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

	fprintf(f,
		"cluster: {name: c, key: %s, controller: [\"unix:/c\"], servers: [s1, s2], "
		"period: 1s}\n"
		"tenants:\n",
		key_file);
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

/* ---- servers report to a controller whose policy grows */

static struct loop *loop;
static struct control *control;
static struct loop_turn check;
static struct lease_link *to_control;
static uint64_t sequence, reports, wanted;

static void heard(void *arg, struct lease_message *m)
{
}

static bool is_heard(struct loop_turn *t, weir_time now)
{
	struct lease_link_status st;

	lease_link_status(to_control, &st);
	reports = control->servers[0].reports;
	if (reports == wanted || st.downs)
		loop_stop(loop);
	return true;
}

/* Send a report of so many buckets, and run until it was received or the connection has ended. */
static void report(size_t entries)
{
	uint8_t *frame = malloc(LEASE_FRAME(entries));
	struct lease_demand *demands = calloc(entries, sizeof(*demands));
	struct lease_message m = {.kind = LEASE_REPORT,
		.name = "s1",
		.cluster = peer_hash("c"),
		.instance = 9,
		.sequence = ++sequence,
		.n = entries,
		.demands = demands};

	CHECK(frame && demands);
	for (size_t i = 0; i < entries; i++)
		demands[i] = (struct lease_demand){.bucket = i + 1, .used = LEASE_TOKENS_MAX};
	wanted = reports + 1;
	CHECK_INT(lease_link_send(to_control, frame, lease_write(frame, &m)), 0);
	CHECK_INT(loop_run(loop), 0);
	CHECK_INT(reports, wanted);
	free(frame);
	free(demands);
}

static void is_up(void *arg)
{
	loop_stop(loop);
}

/* Tenants are replaced by others and by more: the servers report buckets of both policies, and none is cut off. */
static void a_policy_that_grows(void)
{
	struct weir_policy *p = policy(0, 10, 1), *next = policy(10, MANY, 1);
	struct lease_conn_stats stats = {0};
	struct lease_message message = {0};
	struct peer_key key;
	struct weir_err err;
	char at[64];
	struct lease_link_config c = {.address = at,
		.conn = {.key = &key,
			.cluster = peer_hash("c"),
			.instance = 9,
			.name = "s1",
			.entries = MANY,
			.stats = &stats,
			.message = &message},
		.receive = heard,
		.up = is_up};

	snprintf(at, sizeof(at), "unix:@weir-grows-%ld", (long)getpid());
	CHECK_INT(loop_new(&loop), 0);
	CHECK_INT(peer_key_read(key_file, "c", &key, &err), 0);
	c.conn.loop = loop;
	if (control_stand_in(loop, p, NULL, "s2", 2, at, &control, &err) < 0)
		FAIL("%s", err.text);
	CHECK_INT(lease_link_new(&c, &to_control), 0);
	CHECK_INT(loop_run(loop), 0);
	check.turn = is_heard;
	loop_turn_add(loop, &check);
	report(10);
	CHECK_INT(control_policy(control, next, NULL), 0);
	report(MANY);
	loop_turn_remove(loop, &check);
	lease_link_free(to_control);
	control_free(control);
	lease_message_free(&message);
	loop_free(loop);
	weir_policy_free(p);
	weir_policy_free(next);
}

int main(void)
{
	int fd = mkstemp(key_file);

	CHECK(fd >= 0 && write(fd, "of a test, 32 bytes long at least", 33) == 33);
	close(fd);
	log_open(LOG_LEVEL_ERROR, LOG_FORM_TEXT);
	RUN(in_steps);
	RUN(another_meanwhile);
	RUN(one_step_a_round);
	RUN(a_policy_that_grows);
	unlink(key_file);
	return 0;
}
