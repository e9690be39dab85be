/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pshift: a resource as the only server of a cluster, in virtual time, with a controller: tokens
 * arrive and are spent, and no limit is exceeded in a period, also when the policy is swapped under
 * requests, whether tenants stay, move or return.
 */
#include "control/pshift/control.h"
#include "control/pshift/gate.h"
#include "serve/resource/impl.h"
#include "serve/snapshot/version.h"
#include "control/pshift/facts.h"
#include "serve/snapshot/snapshot.h"
#include "test.h"
#include <errno.h>
#include <stdlib.h>

enum { CLIENTS = 2, DEPTH = 64 };
#define STEP WEIR_MS

static struct world {
	struct back back;
	struct resource *r;
	struct weir_policy *p;
	struct pshift_control *control; /* NULL: there is none */
	weir_time now;
	struct client clients[CLIENTS];
	struct request requests[CLIENTS][DEPTH];
	uint64_t served[CLIENTS];
	struct back_io *inside;
	bool deaf; /* its messages are lost */
	unsigned heard, said;
} w;

/* ---- requests: the back end completes all of them a step later */

static void back_take(struct back *b, struct back_io *ios)
{
	for (struct back_io *next; ios; ios = next) {
		next = ios->next;
		ios->next = w.inside;
		w.inside = ios;
	}
}

static void back_gone(struct back *b)
{
}

static const struct back_ops ops = {.name = "test", .submit = back_take, .free = back_gone};

static struct pshift_gate_server *control(void)
{
	return resource_control_instance(w.r, &pshift_controller);
}

static void again(struct request *q);

static void submit(struct request *q, struct client *c)
{
	memset(q, 0, sizeof(*q));
	q->io.op = BACK_READ;
	q->io.length = 4096;
	q->client = c;
	q->done = again;
	resource_submit(w.r, q);
}

static void again(struct request *q)
{
	if (q->io.error)
		return;
	w.served[q->client - w.clients]++;
	submit(q, q->client);
}

static void finish_inside(void)
{
	struct back_io *all = w.inside;

	w.inside = NULL;
	for (struct back_io *next; all; all = next) {
		next = all->next;
		w.back.done(w.back.done_arg, all);
	}
}

/* ---- messages */

static void to_server(void *arg, size_t server, const struct lease_message *m)
{
	w.said++;
	if (!w.deaf)
		resource_control_hear(
			w.r, &(struct controller_news){.kind = CONTROLLER_MESSAGE, .message = m});
}

static void to_controller(void *arg, uint8_t *frame, size_t n)
{
	struct lease_message m = {0};

	w.heard++;
	CHECK_INT(lease_read(frame, n, &m), PEER_TAKEN);
	CHECK_STR(m.name, "s");
	if (w.control && !w.deaf)
		pshift_control_receive(w.control, w.now, &m);
	lease_message_free(&m);
	free(frame);
}

static void control_start(int64_t limit)
{
	struct cluster_lead_config c = {.name = "c",
		.cluster = peer_hash("weir"),
		.instance = 77,
		.length = WEIR_SEC,
		.send = to_server};
	struct cluster_bucket a = {peer_hash("a"), 0, limit, 1};
	struct cluster_bucket b = {peer_hash("b"), 90, limit, 1};

	CHECK_INT(pshift_control_new(&c, &w.control), 0);
	CHECK_INT(pshift_control_server(w.control, "s"), 0);
	CHECK_INT(pshift_control_bucket(w.control, &a), 0);
	CHECK_INT(pshift_control_bucket(w.control, &b), 1);
}

/* ---- time */

static void run_for(weir_time span)
{
	for (weir_time until = w.now + span; w.now < until;) {
		w.now += STEP;
		finish_inside();
		while (resource_turn(w.r, w.now))
			finish_inside();
		w.r->now = w.now;
		if (control() && control()->on && w.now >= pshift_server_due(control()->server))
			pshift_gate_look(control(), w.now);
		if (w.control && w.now >= pshift_control_due(w.control))
			pshift_control_step(w.control, w.now);
	}
}

/* ---- the policy */

#define HEAD                                                                                       \
	"cluster: {key: k, controller: \"tcp:c:1\", servers: [s], period: 1s}\n"                   \
	"resources: [{name: s, controller: pshift, capacity: 1k iops, depth: 64}]\n"
#define TWO                                                                                        \
	HEAD "tenants: [{name: a, max: 100 iops, match: {export: a}},"                             \
	     " {name: b, max: 100 iops, match: {export: b}}]\n"
/* a has another node; b is removed, or stays. */
#define MOVED                                                                                      \
	HEAD "tenants: [{name: b, max: 100 iops, match: {export: b}},"                             \
	     " {name: g, children: [{name: a, max: 100 iops, match: {export: a}}]}]\n"
#define ONE HEAD "tenants: [{name: a, max: 100 iops, match: {export: a}}]\ndefault: a\n"

#define WITHOUT                                                                                    \
	"resources: [{name: s, depth: 64}]\n"                                                      \
	"tenants: [{name: a, match: {export: a}}, {name: b, match: {export: b}}]\n"

static void swap(const char *text)
{
	struct weir_policy *next;
	struct weir_err err;

	if (weir_policy_parse(text, strlen(text), "t.yaml", &next, &err) < 0 ||
		resource_swap(w.r, next, &err) != 0)
		FAIL("%s", err.text);
	weir_policy_free(w.p);
	w.p = next;
	resource_control_connect(w.r, to_controller, NULL);
}

static void join(unsigned i, unsigned depth)
{
	struct client *c = &w.clients[i];

	snprintf(c->export_, sizeof(c->export_), "%c", 'a' + (int)i);
	c->tenant = weir_policy_match(w.p, &(struct weir_who){.export_ = c->export_});
	CHECK(c->tenant >= 0);
	resource_join(w.r, c);
	for (unsigned d = 0; d < depth; d++)
		submit(&w.requests[i][d], c);
}

static void start(const char *text)
{
	struct weir_resource spec;
	struct resource_config config = {.spec = &spec, .back = &w.back};

	memset(&w, 0, sizeof(w));
	policy_resource_default("s", &spec);
	w.back.ops = &ops;
	w.now = 100 * WEIR_SEC;
	CHECK_INT(resource_new(&config, &w.r), 0);
	w.r->now = w.now;
	swap(text);
}

static void stop(void)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		if (w.clients[i].resource)
			resource_leave(w.r, &w.clients[i]);
	for (int k = 0; k < 4; k++) {
		finish_inside();
		resource_turn(w.r, w.now + k);
	}
	resource_free(w.r);
	weir_policy_free(w.p);
	pshift_control_free(w.control);
}

static struct pshift_server_status status(void)
{
	struct pshift_server_status s;

	pshift_server_status(control()->server, &s);
	return s;
}

/* Run to the exact start of a period. */
static void to_period(void)
{
	uint64_t k = status().period;

	while (status().period == k)
		run_for(STEP);
}

/* ---- tests */

/* Just started: tenants with a limit wait, and the cause is reported. */
static void blind(void)
{
	struct weir_gate_stats st;

	start(TWO);
	join(0, DEPTH);
	run_for(500 * WEIR_MS);
	CHECK_INT(w.served[0], 0);
	CHECK_INT(status().state, LEASE_BLIND);
	CHECK_INT(weir_gate_get_stats(w.r->gate, w.now, w.clients[0].node, &st), 0);
	CHECK_INT(st.cause, WEIR_WAIT_TOKENS);
	CHECK(w.heard > 0);
	/* Without a controller: after a while it uses its static part, paced. */
	run_for(7 * WEIR_SEC);
	CHECK_INT(status().state, LEASE_STATIC);
	w.served[0] = 0;
	run_for(5 * WEIR_SEC);
	CHECK(w.served[0] >= 480 && w.served[0] <= 502);
	stop();
}

enum { MANY = 5 * PSHIFT_GATE_KNOBS };

/* Tenants a and t1, t2, …, each with a max of 100. */
static void start_many(void)
{
	static char text[MANY * 80];
	int n = snprintf(text, sizeof(text), "%stenants:\n", HEAD);

	for (int i = 0; i < MANY; i++) {
		char name[16] = "a";

		if (i)
			snprintf(name, sizeof(name), "t%d", i);
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			"  - {name: %s, max: 100 iops, match: {export: %s}}\n", name, name);
	}
	start(text);
}

static int resting(void)
{
	const uint8_t *r = pshift_server_resting(control()->server);
	int n = 0;

	for (int i = 0; r && i < MANY; i++)
		n += r[i];
	return n;
}

/* When it is no longer blind every tenant gets tokens at once, and none takes effect with more than a few
 * others: a gate checks a set of knobs in a time that grows with its square. */
static void many(void)
{
	struct pshift_server_tokens t;
	double levels[8];
	int n;

	start_many();
	run_for(500 * WEIR_MS);
	CHECK_INT(status().state, LEASE_BLIND);
	run_for(7 * WEIR_SEC);
	CHECK_INT(status().state, LEASE_STATIC);
	CHECK_INT(control()->n_knobs, 0);
	for (int i = 0; i < MANY; i++) {
		n = weir_gate_get_buckets(w.r->gate, w.now, w.r->nodes[i], NULL, levels, 8);
		pshift_server_tokens(control()->server, (size_t)i, &t);
		CHECK(n >= 2 && t.l > 0);
		CHECK_INT(levels[n - 1], t.l); /* the last is that of L-tokens */
	}
	stop();
}

/* Of very many tenants the idle ones rest, and are not looked at. One that a request wakes has what it would have had
 * otherwise: paced in every second, and all of it. */
static void check_woken(void)
{
	CHECK_INT(resting(), MANY);
	join(0, DEPTH);
	for (int i = 0; i < 5; i++) {
		w.served[0] = 0;
		run_for(WEIR_SEC);
		CHECK(w.served[0] >= 95 && w.served[0] <= 105);
		CHECK(resting() == MANY - 1 ||
			status().period); /* all are looked at once in a period */
	}
	resource_leave(w.r, &w.clients[0]);
	w.clients[0].resource = NULL;
}

static void rest(void)
{
	start_many();
	run_for(9 * WEIR_SEC);
	CHECK_INT(status().state, LEASE_STATIC);
	check_woken();
	stop();
}

static void rest_leased(void)
{
	start_many();
	control_start(100);
	run_for(9 * WEIR_SEC);
	CHECK_INT(status().state, LEASE_LEASED);
	while (resting() < MANY)
		run_for(STEP);
	check_woken();
	stop();
}

static void limits(void)
{
	start(TWO);
	control_start(100);
	join(0, DEPTH);
	join(1, DEPTH);
	run_for(3 * WEIR_SEC); /* its possible use before the start is waited out */
	CHECK_INT(status().state, LEASE_LEASED);
	to_period();
	for (int k = 0; k < 5; k++) {
		uint64_t a = w.served[0], b = w.served[1];

		to_period();
		CHECK(w.served[0] - a <= 101 && w.served[0] - a >= 90);
		CHECK(w.served[1] - b <= 101 && w.served[1] - b >= 90);
	}
	stop();
}

/* In a period with a swap no tenant exceeds its limit, and in the next one it has all of it
 * again. With ONE both clients are a. As g/a the first one is a tenant that the controller does
 * not know: it has its static part. */
static void swaps(void)
{
	static const char *const policies[] = {MOVED, TWO, TWO, ONE, TWO};

	start(TWO);
	control_start(100);
	join(0, DEPTH);
	join(1, DEPTH);
	run_for(3 * WEIR_SEC);
	for (size_t k = 0; k < sizeof(policies) / sizeof(*policies); k++) {
		uint64_t a, b, tenants = k == 3 ? 1 : 2;

		to_period();
		a = w.served[0];
		b = w.served[1];
		run_for(300 * WEIR_MS);
		swap(policies[k]);
		to_period();
		if (k < 2) /* as a and as g/a */
			CHECK(w.served[0] - a <= 202 && w.served[1] - b <= 101);
		else if (k == 2)
			CHECK(w.served[0] - a <= 101 && w.served[1] - b <= 101);
		else /* as b and as a */
			CHECK(w.served[0] - a + w.served[1] - b <= 202);
		run_for(WEIR_SEC);
		to_period();
		a = w.served[0];
		b = w.served[1];
		to_period();
		CHECK(w.served[0] - a + w.served[1] - b <= 101 * tenants);
		CHECK(w.served[0] - a + w.served[1] - b >= 95 * tenants);
	}
	stop();
}

/* A hundred a second, 90 reserved, and after 30 of them the tenant has another node: the rest
 * moves with it. */
static void moves(void)
{
	static const char before[] =
		HEAD "tenants: [{name: a}, {name: b, min: 90 iops, max: 100 iops, "
		     "match: {export: b}}]\n";
	static const char between[] = HEAD "tenants: [{name: b, children: [{name: c, match: "
					   "{export: b}}]}]\n";
	uint64_t b;

	start(before);
	control_start(100);
	join(1, 2);
	run_for(5 * WEIR_SEC);
	to_period();
	b = w.served[1];
	run_for(300 * WEIR_MS);
	CHECK(w.served[1] - b >= 25 && w.served[1] - b <= 33);
	swap(between);
	swap(before);
	to_period();
	CHECK(w.served[1] - b >= 90 && w.served[1] - b <= 101);
	stop();
}

/* Take a snapshot; *ret is its facts, which the snapshot owns. */
static struct snapshot *take_snapshot(struct gateway_version *v, struct facts *ret)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	struct snapshot_resource r = {.name = "s"};

	*v = (struct gateway_version){.policy = w.p};
	s->of = v;
	resource_control_look(w.r, s, &r);
	CHECK(r.facts.kind == &pshift_facts);
	*ret = r.facts;
	return s;
}

static void look_end(struct snapshot *s)
{
	s->of = NULL; /* a version that is not reference-counted */
	snapshot_free(s);
}

/* All leases of few tenants are listed; of many tenants only those with requests. */
static void looks(void)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	const struct pshift_facts_lease *leases;
	struct facts p;
	struct gateway_version v;
	struct snapshot *s;

	start(TWO);
	join(0, 1);
	run_for(100 * WEIR_MS);
	s = take_snapshot(&v, &p);
	leases = p.tables[0].rows;
	CHECK_INT(p.tables[0].n, 2);
	CHECK_INT(((const struct pshift_facts_self *)p.self)->leases_all, 2);
	CHECK_INT(leases[1].row.tenant, 1);
	look_end(s);
	fprintf(f, HEAD "tenants:\n");
	for (int i = 0; i < 10000; i++)
		fprintf(f, "  - {name: idle%d, max: 10 iops, match: {tls: t%d}}\n", i, i);
	fprintf(f, "  - {name: a, max: 100 iops, match: {export: a}}\n");
	fclose(f);
	swap(text);
	run_for(10 * WEIR_MS);
	s = take_snapshot(&v, &p);
	leases = p.tables[0].rows;
	CHECK_INT(((const struct pshift_facts_self *)p.self)->leases_all, 10001);
	CHECK_INT(p.tables[0].n, 1);
	CHECK_STR(leases[0].row.key[0], "a");
	CHECK_INT(leases[0].row.tenant, 10000);
	look_end(s);
	stop();
	free(text);
}

/* Off: no request is held; on again: it starts anew, and its earlier state is not used. */
static void off_and_on(void)
{
	uint64_t before;

	start(TWO);
	control_start(100);
	join(0, DEPTH);
	run_for(3 * WEIR_SEC);
	swap("enforce: false\n" TWO);
	before = w.served[0];
	run_for(WEIR_SEC);
	CHECK(w.served[0] - before > 1000);
	swap(TWO);
	CHECK_INT(status().state, LEASE_BLIND);
	before = w.served[0];
	run_for(300 * WEIR_MS);
	to_period();
	to_period();
	CHECK_INT(status().state, LEASE_LEASED);
	before = w.served[0];
	to_period();
	CHECK(w.served[0] - before <= 101 && w.served[0] - before >= 90);
	stop();
}

/* While a swap to a policy without pShift proceeds, tenants leave it one by one; after an undo
 * they go on as before. */
static void undone(void)
{
	struct weir_policy *other;
	struct weir_err err;
	uint64_t before;

	CHECK_INT(weir_policy_parse(WITHOUT, strlen(WITHOUT), "t.yaml", &other, &err), 0);
	start(TWO);
	control_start(100);
	join(0, DEPTH);
	run_for(5 * WEIR_SEC);
	for (int k = 0; k < 3; k++) {
		CHECK_INT(
			resource_swap_start(w.r, &(struct resource_change){.to = other}, &err), 0);
		while (resource_swap_step(w.r, &err) > 0)
			;
		while (resource_swap_undo(w.r))
			;
		to_period();
		to_period();
		before = w.served[0];
		to_period();
		CHECK(w.served[0] - before <= 101 && w.served[0] - before >= 90);
	}
	stop();
	weir_policy_free(other);
}

/* The controller falls silent: grants are held, then the static part is used; the limit holds
 * all the time. */
static void silence(void)
{
	start(TWO);
	control_start(100);
	join(0, DEPTH);
	run_for(3 * WEIR_SEC);
	w.deaf = true;
	for (int k = 0; k < 12; k++) {
		uint64_t before = w.served[0];

		to_period();
		CHECK(w.served[0] - before <= 102);
		CHECK(k == 0 || w.served[0] - before >= 85);
	}
	CHECK_INT(status().state, LEASE_STATIC);
	stop();
}

int main(void)
{
	RUN(blind);
	RUN(many);
	RUN(rest);
	RUN(rest_leased);
	RUN(limits);
	RUN(swaps);
	RUN(moves);
	RUN(looks);
	RUN(off_and_on);
	RUN(undone);
	RUN(silence);
	return 0;
}
