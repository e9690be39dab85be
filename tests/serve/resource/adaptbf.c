/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * adaptbf: AdapTBF and static rules at a resource, in virtual time: shares, queues of any depth,
 * changes of the policy under load, parts of a max, off and on again, and a restart. The back end
 * serves one request per millisecond, in order; no request is lost, doubled or reordered within its
 * client.
 */
#include "serve/snapshot/version.h"
#include "control/adaptbf/facts.h"
#include "serve/snapshot/snapshot.h"
#include "control/adaptbf/controller.h"
#include "serve/resource/impl.h"
#include "serve/sent.h"
#include "policy-parse.h"
#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>

enum { CLIENTS = 3, DEPTH = 512 };

static struct world {
	struct back back;
	struct resource *r;
	struct weir_policy *p;
	weir_time now;
	struct client clients[CLIENTS];
	struct sent sent[CLIENTS][DEPTH];
	unsigned depth[CLIENTS], serial[CLIENTS], expect[CLIENTS];
	uint64_t served[CLIENTS];
	double rate[CLIENTS]; /* > 0: open loop, requests a second; else a closed loop */
	struct back_io *inside[CLIENTS * DEPTH];
	size_t n;
} w;

static struct adaptbf_control *control(void)
{
	return resource_control_instance(w.r, &adaptbf_controller);
}

static void back_take(struct back *b, struct back_io *ios)
{
	for (; ios; ios = ios->next) {
		struct sent *s = sent_of(ios);

		CHECK(s->away);
		CHECK_INT(s->serial, w.expect[s->client]++);
		CHECK(w.n < CLIENTS * DEPTH);
		w.inside[w.n++] = ios;
	}
}

static void back_gone(struct back *b)
{
	(void)b;
}

static const struct back_ops ops = {.name = "slow", .submit = back_take, .free = back_gone};

static void turn(void)
{
	while (resource_turn(w.r, w.now))
		;
}

static void submit(unsigned client);

static void request_done(struct request *q)
{
	struct sent *s = (struct sent *)(void *)q;

	s->away = false;
	if (q->io.error == -ECANCELED) {
		w.expect[s->client]++;
		return;
	}
	w.served[s->client]++;
	if (w.rate[s->client] <= 0)
		submit(s->client);
}

static void submit(unsigned client)
{
	struct sent *s = &w.sent[client][w.serial[client] % DEPTH];

	if (s->away || !w.depth[client])
		return;
	sent_submit(w.r, s, &w.clients[client], client, w.serial[client]++, request_done);
}

static void swap(const char *text)
{
	struct weir_policy *next = parse(text);
	struct weir_err err;

	if (resource_swap(w.r, next, &err) != 0)
		FAIL("%s", err.text);
	weir_policy_free(w.p);
	w.p = next;
	turn();
}

static void start(const char *text)
{
	struct weir_resource spec;
	struct resource_config config = {.spec = &spec, .back = &w.back};

	memset(&w, 0, sizeof(w));
	policy_resource_default("ost", &spec);
	w.back.ops = &ops;
	w.now = WEIR_SEC;
	CHECK_INT(resource_new(&config, &w.r), 0);
	swap(text);
}

static void join(unsigned i, unsigned depth)
{
	struct client *c = &w.clients[i];

	snprintf(c->export_, sizeof(c->export_), "%c", 'a' + (int)i);
	w.depth[i] = depth;
	resource_join(w.r, c);
	CHECK(c->tenant >= 0);
	for (unsigned d = 0; d < depth && w.rate[i] <= 0; d++)
		submit(i);
	turn();
}

static void stop_client(unsigned i) /* its requests are served, and no more are sent */
{
	w.depth[i] = 0;
}

static void stop(void)
{
	for (unsigned i = 0; i < CLIENTS; i++) {
		stop_client(i);
		if (w.clients[i].resource)
			resource_leave(w.r, &w.clients[i]);
	}
	while (w.n || resource_busy(w.r)) {
		for (; w.n; w.n--)
			w.back.done(w.back.done_arg, w.inside[w.n - 1]);
		w.now += WEIR_MS; /* requests of clients that left are dropped a little later */
		turn();
	}
	resource_free(w.r);
	weir_policy_free(w.p);
}

static void one_ms(void)
{
	w.now += WEIR_MS;
	if (w.now % (100 * WEIR_MS) == 0 && w.r->control == &adaptbf_controller) {
		w.r->now = w.now;
		adaptbf_control_step(control(), w.now);
	}
	for (unsigned i = 0; i < CLIENTS; i++) {
		double now = (double)w.now / WEIR_SEC, was = (double)(w.now - WEIR_MS) / WEIR_SEC;

		if (w.rate[i] > 0 && floor(w.rate[i] * now) > floor(w.rate[i] * was))
			submit(i);
	}
	if (w.n) {
		struct back_io *io = w.inside[0];

		memmove(w.inside, w.inside + 1, --w.n * sizeof(*w.inside));
		w.back.done(w.back.done_arg, io);
	}
	turn();
}

static void run_for_ms(unsigned ms)
{
	memset(w.served, 0, sizeof(w.served));
	while (ms--)
		one_ms();
}

static void account(const char *path, struct lend_account *ret)
{
	uint64_t id = jobnames_find(&control()->names, path);

	CHECK(id != 0);
	CHECK_INT(lend_account(control()->adaptbf, id, ret), 0);
}

#define RESOURCE(more) "resources: [{name: ost, depth: 4, " more "}]\n"
#define ADAPTBF(mode)                                                                              \
	RESOURCE("capacity: 1k iops, controller: adaptbf, adaptbf: {tokens: " mode "}")
#define TENANT(name, weight) "{name: " name ", weight: " weight ", match: {export: " name "}}"
#define THREE(a, b, c)       "tenants: [" TENANT("a", a) ", " TENANT("b", b) ", " TENANT("c", c) "]\n"

#define EQUAL THREE("1", "1", "1")

/* ---- shares */

static void in_proportion_whatever_the_queue(void)
{
	static const char *const modes[] = {
		ADAPTBF("hold") THREE("1", "1", "3"), ADAPTBF("first") THREE("1", "1", "3")};

	for (int i = 0; i < 2; i++) {
		start(modes[i]);
		join(0, 8);
		join(1, 512);
		join(2, 64);
		run_for_ms(2000);
		run_for_ms(20000);
		CHECK_NEAR((double)w.served[0], 4000, 0.03);
		CHECK_NEAR((double)w.served[1], 4000, 0.03);
		CHECK_NEAR((double)w.served[2], 12000, 0.03);
		stop();
	}
}

static void static_rules_as_in_lustre(void)
{
	start("resources: [{name: ost, depth: 4, controller: tbf, tbf: {depth: 3, default: 50 "
	      "iops,\n"
	      "  rules: [{match: a, rate: 100 iops}, {match: \"* a\", rate: 200 iops}]}}]\n" EQUAL);
	join(0, 8);
	run_for_ms(12);
	CHECK_INT(w.served[0], 4); /* three at once, the fourth after 10 ms */
	run_for_ms(10000);
	CHECK_NEAR((double)w.served[0], 1000, 0.01); /* the first rule that matches */
	join(1, 8);
	run_for_ms(10000);
	CHECK_NEAR((double)w.served[1], 2000, 0.01);
	/* Other rates, while requests wait: at once, and without a full bucket for each change. */
	for (int i = 0; i < 100; i++) {
		swap("resources: [{name: ost, depth: 4, controller: tbf, tbf: {default: 10 iops,\n"
		     "  rules: [{match: b, rate: 100 iops}]}}]\n" EQUAL);
		w.served[0] = i ? w.served[0] : 0;
		for (int k = 0; k < 10; k++)
			one_ms();
	}
	CHECK(w.served[0] <= 4 + 10); /* in a second; four at most were inside */
	swap(RESOURCE("controller: none") EQUAL);
	run_for_ms(1000);
	CHECK(w.served[0] > 450 && w.served[1] > 450);
	stop();
}

/* ---- changes while it is on */

/* A swap must neither give a fresh bucket nor lose the rule between two steps. */
static void swaps_give_nothing_away(void)
{
	static const char same[] =
		"resources: [{name: ost, depth: 4, capacity: 100 iops, controller: adaptbf,\n"
		"  adaptbf: {tokens: hold}}]\n" EQUAL;

	start(same);
	join(0, 64);
	join(1, 64);
	run_for_ms(500);
	memset(w.served, 0, sizeof(w.served));
	for (int i = 0; i < 5000; i++) {
		if (i % 10 == 0)
			swap(same);
		one_ms();
	}
	CHECK_NEAR((double)(w.served[0] + w.served[1]), 500, 0.03);
	CHECK_NEAR((double)w.served[0], (double)w.served[1], 0.05);
	stop();
}

/* Maxes of tenants are divided over gates a hundred times a second: a is held by its max, b by
 * tokens. */
static void parts_of_a_max_leave_the_rule(void)
{
	double part[2][2] = {{0.5, 0.5}, {0.6, 0.6}};

	start("resources: [{name: ost, depth: 4, capacity: 100 iops, controller: adaptbf,\n"
	      "  adaptbf: {tokens: hold}}]\n"
	      "tenants: [{name: a, max: 60 iops, match: {export: a}},\n"
	      "  {name: b, max: 1k iops, match: {export: b}}, {name: c, match: {export: c}}]\n");
	join(0, 64);
	join(1, 64);
	run_for_ms(1000);
	memset(w.served, 0, sizeof(w.served));
	for (int i = 0; i < 5000; i++) {
		if (i % 10 == 0)
			CHECK_INT(resource_divide(w.r, part[i / 10 % 2], NULL, NULL, 2, NULL), 0);
		one_ms();
	}
	CHECK_NEAR((double)w.served[0], 165, 0.1); /* between 30 and 36 a second */
	/* Of its four tokens a period, a uses 3.3. */
	CHECK(w.served[0] + w.served[1] <= 505 && w.served[0] + w.served[1] >= 450);
	stop();
}

static void off_and_on_again(void)
{
	struct lend_account before, after;

	start(ADAPTBF("hold") THREE("1", "1", "2"));
	w.rate[2] = 20;
	join(0, 64);
	join(2, 1);
	run_for_ms(3000);
	account("c", &before);
	CHECK(before.record > 100); /* it lends */
	swap(RESOURCE("controller: none") THREE("1", "1", "2"));
	CHECK(w.r->control != &adaptbf_controller);
	run_for_ms(1000);
	CHECK(w.served[0] > 900);
	swap(ADAPTBF("hold") THREE("1", "1", "2"));
	account("c", &after);
	CHECK_INT(after.record, before.record);
	run_for_ms(1000);
	account("c", &after);
	CHECK(after.record > before.record);
	/* In shadow mode nothing is held, so nothing is lent. */
	swap("enforce: false\n" ADAPTBF("hold") THREE("1", "1", "2"));
	account("c", &before);
	run_for_ms(1000);
	account("c", &after);
	CHECK_INT(after.record, before.record);
	stop();
}

/* Loans are repaid when the lender becomes busy; the ledger shows when. */
static void lent_and_paid_back(void)
{
	struct lend_account lender, borrower;
	const struct adaptbf_facts_loan *paid;
	struct arena memory = {0};
	struct facts facts;

	start(ADAPTBF("hold") EQUAL);
	w.rate[1] = 50;
	join(0, 64);
	join(1, 64);
	run_for_ms(1000);
	account("a", &borrower);
	account("b", &lender);
	CHECK(lender.record > 100);
	CHECK_INT(borrower.record, -lender.record);
	w.rate[1] = 0; /* now the lender is busy */
	for (int i = 0; i < 64; i++)
		submit(1);
	turn();
	run_for_ms(5000);
	CHECK(w.served[1] > w.served[0] + 100);
	account("b", &lender);
	CHECK_INT(lender.record, 0);
	account("a", &borrower);
	CHECK(lender.ledger.written_off > 0 && lender.ledger.written_off < lender.ledger.lent / 20);
	CHECK_INT(lender.ledger.regained + lender.ledger.written_off, lender.ledger.lent);
	CHECK_INT(borrower.ledger.forgiven, lender.ledger.written_off);
	CHECK_INT(resource_control_facts(w.r, &memory, &facts), 0);
	CHECK_INT(facts.tables[ADAPTBF_FACTS_LOANS].n, 0);
	CHECK(facts.tables[ADAPTBF_FACTS_REPAID].n >= 1);
	paid = facts.tables[ADAPTBF_FACTS_REPAID].rows;
	CHECK_STR(paid->row.key[0], "b");
	CHECK_STR(paid->row.key[1], "a");
	CHECK(paid->loan.last < paid->loan.since && paid->loan.last >= 0);
	arena_free(&memory);
	stop();
}

/* ---- snapshots */

enum { MANY = 10000 };

static char *many_tenants(void)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	fprintf(f, "resources: [{name: ost, depth: 4, capacity: 1k iops, controller: adaptbf,\n"
		   "  adaptbf: {tokens: hold, forget: 10s}}]\ntenants:\n");
	for (int i = 0; i < MANY; i++)
		fprintf(f, "  - {name: idle%d, match: {tls: t%d}}\n", i, i);
	fprintf(f, "  - {name: a, match: {export: a}}\n  - {name: b, match: {export: b}}\n");
	fclose(f);
	return text;
}

/* Take a snapshot; *ret is its facts, which the snapshot owns. */
static struct snapshot *take_snapshot(struct gateway_version *v, struct facts *ret)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	struct snapshot_resource r = {.name = "ost"};

	*v = (struct gateway_version){.policy = w.p};
	s->of = v;
	resource_control_look(w.r, s, &r);
	CHECK(r.facts.kind == &adaptbf_facts);
	*ret = r.facts;
	return s;
}

static void look_end(struct snapshot *s)
{
	s->of = NULL; /* a version that is not reference-counted */
	snapshot_free(s);
}

/* Only jobs with requests that are not forgotten are listed, and saved. */
static void a_look_lists_the_jobs_that_were_active(void)
{
	char *text = many_tenants();
	struct gateway_version v;
	const struct adaptbf_facts_self *self;
	const struct adaptbf_facts_job *jobs;
	struct arena memory = {0};
	struct facts a;
	struct snapshot *s;
	size_t before;

	start(text);
	join(0, 8);
	join(1, 8);
	run_for_ms(1000);
	before = mallinfo2().uordblks;
	s = take_snapshot(&v, &a);
	CHECK(mallinfo2().uordblks - before < 16384);
	self = a.self;
	jobs = a.tables[ADAPTBF_FACTS_JOBS].rows;
	CHECK_INT(self->state.known, 2);
	CHECK_INT(a.tables[ADAPTBF_FACTS_JOBS].n, 2);
	CHECK_STR(jobs[0].row.key[0], "a");
	CHECK_INT(jobs[0].row.tenant, MANY);
	CHECK_STR(jobs[1].row.key[0], "b");
	CHECK(jobs[0].account.tokens > 0);
	look_end(s);
	CHECK_INT(resource_control_facts(w.r, &memory, &a), 0);
	CHECK_INT(a.tables[ADAPTBF_FACTS_JOBS].n, 2);
	arena_free(&memory);
	/* An idle job stays until it is forgotten: counters do not come and go. */
	stop_client(0);
	run_for_ms(9000);
	s = take_snapshot(&v, &a);
	jobs = a.tables[ADAPTBF_FACTS_JOBS].rows;
	CHECK_INT(a.tables[ADAPTBF_FACTS_JOBS].n, 2);
	CHECK(!jobs[0].account.active);
	look_end(s);
	run_for_ms(3000);
	s = take_snapshot(&v, &a);
	self = a.self;
	jobs = a.tables[ADAPTBF_FACTS_JOBS].rows;
	CHECK_INT(a.tables[ADAPTBF_FACTS_JOBS].n, 1);
	CHECK_STR(jobs[0].row.key[0], "b");
	CHECK_INT(self->records_off, 0);
	CHECK_INT(self->tokens_off, 0);
	look_end(s);
	stop();
	free(text);
}

/* a has no max, b one that is above its rule, c one that is below. */
static void waits_for_tokens_or_for_its_max(void)
{
	static const char tenants[] = "tenants: [{name: a, match: {export: a}}, {name: b, max: 900 "
				      "iops, match: {export: b}}, "
				      "{name: c, max: 2 iops, match: {export: c}}]\n";
	static const char *const rows[] = {
		RESOURCE("capacity: 100 iops, controller: adaptbf, adaptbf: {tokens: hold}"),
		RESOURCE("controller: tbf, tbf: {default: 10 iops}")};

	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		char text[500];
		double sum[CLIENTS] = {0};

		snprintf(text, sizeof(text), "%s%s", rows[k], tenants);
		start(text);
		for (unsigned i = 0; i < CLIENTS; i++)
			join(i, 8);
		for (int look = 0; look < 5; look++) {
			run_for_ms(1000);
			for (size_t i = 0; i < CLIENTS; i++) {
				enum weir_cause is = i == 2 ? WEIR_WAIT_MAX : WEIR_WAIT_TOKENS;
				enum weir_cause no = i == 2 ? WEIR_WAIT_TOKENS : WEIR_WAIT_MAX;
				struct weir_gate_stats st;

				CHECK_INT(resource_stats(w.r, i, &st), 0);
				CHECK_INT(st.cause, is);
				CHECK(st.wait_ns[is] > sum[i] + WEIR_SEC);
				CHECK(st.wait_ns[no] < 0.1 * st.wait_ns[is]);
				sum[i] = st.wait_ns[is];
			}
		}
		stop();
	}
}

/* ---- a restart */

static void a_restart_knows_it(void)
{
	struct lend_account before, after;
	struct arena memory = {0};
	struct facts facts, again;
	struct adaptbf_facts_job *jobs;
	const struct adaptbf_facts_loan *was, *is;

	start(ADAPTBF("hold") EQUAL);
	CHECK_INT(resource_control_facts(w.r, &memory, &facts), 0);
	CHECK_INT(facts.tables[ADAPTBF_FACTS_JOBS].n, 0);
	w.rate[1] = 50;
	join(0, 64);
	join(1, 64);
	run_for_ms(1000);
	account("b", &before);
	CHECK_INT(resource_control_facts(w.r, &memory, &facts), 0);
	CHECK_INT(facts.tables[ADAPTBF_FACTS_LOANS].n, 1);
	stop();
	/* In place of what it has, after some steps without requests. */
	start(ADAPTBF("hold") EQUAL);
	run_for_ms(500);
	CHECK_INT(resource_control_restore(w.r, &facts, 0), 0);
	account("b", &after);
	CHECK_INT(after.record, before.record);
	w.rate[1] = 50;
	join(0, 64);
	join(1, 64);
	run_for_ms(300);
	CHECK_INT(resource_control_facts(w.r, &memory, &again), 0);
	CHECK_INT(again.tables[ADAPTBF_FACTS_LOANS].n, 1);
	stop();
	/* Other tenants come before them, and b is gone. */
	start(ADAPTBF("hold") "tenants: [" TENANT("c", "1") ", " TENANT("a", "1") "]\n");
	CHECK_INT(resource_control_restore(w.r, &facts, 5 * WEIR_SEC), 0);
	account("b", &after);
	CHECK_INT(after.record, before.record);
	CHECK_INT(after.ledger.lent, before.ledger.lent);
	CHECK_INT(resource_control_facts(w.r, &memory, &again), 0);
	CHECK_INT(again.tables[ADAPTBF_FACTS_LOANS].n, 1);
	was = facts.tables[ADAPTBF_FACTS_LOANS].rows;
	is = again.tables[ADAPTBF_FACTS_LOANS].rows;
	CHECK_STR(is->row.key[0], "b");
	CHECK_STR(is->row.key[1], "a");
	CHECK_INT(is->loan.amount, was->loan.amount);
	CHECK_INT(is->loan.since, was->loan.since + 5 * WEIR_SEC);
	/* b returns, and gets its loans back. */
	swap(ADAPTBF("hold") EQUAL);
	join(0, 64);
	join(1, 64);
	run_for_ms(3000);
	account("b", &after);
	CHECK(after.record < before.record / 2);
	stop();
	/* Books that do not balance, at a controller that has not stepped yet. */
	start(RESOURCE("controller: none") EQUAL);
	jobs = facts.tables[ADAPTBF_FACTS_JOBS].rows;
	jobs[0].account.record++;
	CHECK_INT(resource_control_restore(w.r, &facts, 0), -EINVAL);
	CHECK_INT(resource_control_steps(w.r), 0);
	jobs[0].account.record--;
	CHECK_INT(resource_control_restore(w.r, &facts, 0), 0); /* it rests */
	CHECK_INT(resource_control_facts(w.r, &memory, &again), 0);
	CHECK(!((const struct adaptbf_facts_self *)again.self)->on);
	CHECK_INT(again.tables[ADAPTBF_FACTS_LOANS].n, 1);
	arena_free(&memory);
	stop();
}

int main(void)
{
	RUN(in_proportion_whatever_the_queue);
	RUN(static_rules_as_in_lustre);
	RUN(swaps_give_nothing_away);
	RUN(parts_of_a_max_leave_the_rule);
	RUN(off_and_on_again);
	RUN(lent_and_paid_back);
	RUN(a_look_lists_the_jobs_that_were_active);
	RUN(waits_for_tokens_or_for_its_max);
	RUN(a_restart_knows_it);
	return 0;
}
