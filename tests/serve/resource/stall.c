/* SPDX-License-Identifier: BSD-3-Clause */
/* A volume that does not answer: the others keep their rates, its requests wait, and none is lost. */
#include "serve/resource-rig.h"
#include "serve/back/volumes.h"

#define VOLUMES 10
#define POLICY                                                                                     \
	"resources: [{name: disk, depth: 8}]\n"                                                    \
	"tenants: [{name: one, match: {export: a}}, {name: both, match: {export: \"[bc]\"}},"      \
	" {name: rest, match: {export: \"*\"}}]\n"

struct many {
	struct world w; /* its `fake` is not used */
	struct fake *fakes[VOLUMES];
	uint32_t slots[VOLUMES];
	struct back *all;
	bool varies;
};

static void open_many(struct many *m)
{
	struct resource_config config = {0};
	struct weir_err err;

	memset(m, 0, sizeof(*m));
	m->w.policy = parse(POLICY);
	m->w.now = WEIR_SEC;
	CHECK_INT(back_volumes_new(NULL, &m->all), 0);
	for (int i = 0; i < VOLUMES; i++) {
		struct fake *f = m->fakes[i] = calloc(1, sizeof(*f));

		f->back.ops = &fake_ops;
		f->back.info = (struct back_info){.size = UINT64_C(1) << 40, .depth = 16};
		f->time = WEIR_MS;
		f->end = &f->first;
		CHECK_INT(back_volumes_reserve(m->all, &m->slots[i]), 0);
		CHECK_INT(back_volumes_add(
				  m->all, m->slots[i], &f->back, &(struct back_volume_calls){0}),
			0);
	}
	config.spec = &m->w.policy->resources[0];
	config.back = m->all;
	CHECK_INT(resource_new(&config, &m->w.resource), 0);
	if (resource_swap(m->w.resource, m->w.policy, &err) < 0)
		FAIL("%s", err.text);
}

static void ask_at(struct many *m, struct asker *a, int volume, unsigned i)
{
	a->asks[i].client = &a->client;
	a->asks[i].done = answered;
	a->asks[i].owner = a;
	a->asks[i].io = (struct back_io){.op = BACK_READ,
		.offset = back_volumes_offset(m->slots[volume]) + ((uint64_t)i << 20),
		.length = 4096};
	resource_submit(m->w.resource, &a->asks[i]);
}

/* Latencies of the requests that ended, by volume; of those that began before from, none. */
static struct latencies {
	weir_time all[100000];
	size_t n;
} latencies[VOLUMES];
static weir_time from = WEIR_NEVER;

static void note(const struct request *q)
{
	struct latencies *l = &latencies[q->gate.offset >> BACK_VOLUMES_BITS];
	weir_time now = q->client->resource->now;

	if (q->gate.submitted >= from && l->n < sizeof(l->all) / sizeof(*l->all))
		l->all[l->n++] = now - q->gate.submitted;
}

/* The rig's requests are submitted again as they came back: volumes have seen their own offsets. */
static void again_at(struct request *q)
{
	struct asker *a = q->owner;

	note(q);

	a->done++;
	a->errors += q->io.error != 0;
	a->cancelled += q->io.error == -ECANCELED;
	if (!a->again)
		return;
	q->io.offset = q->gate.offset;
	resource_submit(a->client.resource, q);
}

static void join_at(
	struct many *m, struct asker *a, const char *export_, int volume, unsigned depth)
{
	join(&m->w, a, export_, 0);
	a->again = true;
	for (unsigned i = 0; i < depth; i++) {
		ask_at(m, a, volume, i);
		a->asks[i].done = again_at;
	}
}

/* Service times are uniform, 0 to 2 ms. */
static void vary(struct many *m)
{
	static uint64_t x = 1;

	for (int i = 0; i < VOLUMES; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		if (m->varies && m->fakes[i]->time < WEIR_SEC)
			m->fakes[i]->time = (weir_time)(x >> 33) % (2 * WEIR_MS) + 1;
	}
}

static void run_many(struct many *m, weir_time span)
{
	weir_time end = m->w.now + span, next;

	for (;;) {
		if (m->w.resource->timer_at <= m->w.now)
			m->w.resource->timer_at = WEIR_NEVER;
		for (int i = 0; i < VOLUMES; i++)
			fake_step(m->fakes[i], m->w.now);
		vary(m);
		for (int i = 0; resource_turn(m->w.resource, m->w.now); i++)
			CHECK(i < 10000);
		next = m->w.resource->timer_at;
		for (int i = 0; i < VOLUMES; i++)
			if (fake_next(m->fakes[i]) < next)
				next = fake_next(m->fakes[i]);
		if (next > end)
			break;
		CHECK(next > m->w.now);
		m->w.now = next;
	}
	m->w.now = end;
}

/* Stop a volume: requests inside, and those that come, do not end; or let it go on. */
static void stop_volume(struct many *m, int volume, bool stop)
{
	struct fake *f = m->fakes[volume];

	f->time = stop ? WEIR_NEVER / 2 : WEIR_MS;
	for (struct back_io *io = f->first; io; io = io->next)
		io->scratch[0] = (uint64_t)(stop ? WEIR_NEVER / 2 : m->w.now);
}

static void close_many(struct many *m)
{
	struct weir_gate_totals totals;

	weir_gate_get_totals(m->w.resource->gate, m->w.now, &totals);
	CHECK_INT(totals.in_flight, 0);
	CHECK_INT(totals.queued, 0);
	CHECK(!resource_busy(m->w.resource));
	world_free(&m->w);
}

static uint64_t rate(struct many *m, const struct asker *a)
{
	uint64_t before = a->done;

	run_many(m, 2 * WEIR_SEC);
	return a->done - before;
}

static void end_all(struct many *m, struct asker *a, size_t n)
{
	for (size_t i = 0; i < n; i++)
		a[i].again = false;
	run_many(m, 2 * WEIR_SEC);
	for (size_t i = 0; i < n; i++) {
		CHECK_INT(a[i].errors, 0);
		CHECK_INT(a[i].client.in_flight, 0);
	}
	close_many(m);
}

/* 8 slots of 1 ms: 8,000 a second for all. Stopped volumes keep none of so few. */
static void test_the_others_go_on(void)
{
	static struct asker a[3];
	struct many m;
	uint64_t calm, stopped;

	open_many(&m);
	join_at(&m, &a[0], "a", 0, 32); /* alone in its tenant */
	join_at(&m, &a[1], "b", 1, 32); /* two volumes of one tenant */
	join_at(&m, &a[2], "c", 2, 32);
	run_many(&m, WEIR_SEC);
	calm = rate(&m, &a[2]);
	stop_volume(&m, 0, true);
	stop_volume(&m, 1, true);
	run_many(&m, 2 * WEIR_SEC);
	CHECK_INT(resource_stalled(m.w.resource), 2);
	stopped = rate(&m, &a[2]);
	CHECK(stopped >= calm); /* it has the slots of the others */
	CHECK_NEAR((double)stopped, 2 * 8000.0, 100);
	stop_volume(&m, 0, false);
	stop_volume(&m, 1, false);
	run_many(&m, 100 * WEIR_MS);
	CHECK_INT(resource_stalled(m.w.resource), 0);
	CHECK_NEAR((double)rate(&m, &a[2]), (double)calm, (double)calm * 0.05);
	end_all(&m, a, 3);
}

/* Of ten volumes three stop: from 2 s on the others have 0.9 of their rates, or more. */
static void test_three_of_ten(void)
{
	static struct asker a[VOLUMES];
	static const char *const names[VOLUMES] = {
		"d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9"};
	uint64_t calm, stopped;
	struct many m;

	open_many(&m);
	for (int i = 0; i < VOLUMES; i++)
		join_at(&m, &a[i], names[i], i, 4);
	run_many(&m, WEIR_SEC);
	calm = rate(&m, &a[9]);
	for (int i = 0; i < 3; i++)
		stop_volume(&m, i, true);
	run_many(&m, 2 * WEIR_SEC);
	CHECK_INT(resource_stalled(m.w.resource), 3);
	stopped = rate(&m, &a[9]);
	CHECK((double)stopped >= 0.9 * (double)calm);
	for (int i = 0; i < 3; i++)
		stop_volume(&m, i, false);
	end_all(&m, a, VOLUMES);
}

static int by_time(const void *a, const void *b)
{
	const weir_time *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Run for 4 s; get the p99 of each volume. */
static void get_p99(struct many *m, weir_time ret[VOLUMES])
{
	for (int i = 0; i < VOLUMES; i++)
		latencies[i].n = 0;
	from = m->w.now;
	run_many(m, 4 * WEIR_SEC);
	from = WEIR_NEVER;
	for (int i = 0; i < VOLUMES; i++) {
		struct latencies *l = &latencies[i];

		qsort(l->all, l->n, sizeof(*l->all), by_time);
		ret[i] = l->n ? l->all[l->n * 99 / 100] : 0;
	}
}

/* From 2 s on the p99 of every other volume is at most 1.2 of what it was: volumes 0 to stopped - 1 of the first `used` stop;
 * clients have `asks` requests each. */
static void check_p99(int used, int stopped, unsigned asks, const char *const *names)
{
	static struct asker a[VOLUMES];
	weir_time calm[VOLUMES], then[VOLUMES];
	struct many m;

	open_many(&m);
	m.varies = true;
	for (int i = 0; i < used; i++)
		join_at(&m, &a[i], names[i], i, asks);
	run_many(&m, WEIR_SEC);
	get_p99(&m, calm);
	for (int i = 0; i < stopped; i++)
		stop_volume(&m, i, true);
	run_many(&m, 2 * WEIR_SEC);
	CHECK_INT(resource_stalled(m.w.resource), stopped);
	get_p99(&m, then);
	for (int i = stopped; i < used; i++)
		CHECK((double)then[i] <= 1.2 * (double)calm[i]);
	for (int i = 0; i < stopped; i++)
		stop_volume(&m, i, false);
	end_all(&m, a, (size_t)used);
}

static void test_latency_of_the_others(void)
{
	static const char *const one[VOLUMES] = {
		"d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9"};
	static const char *const both[] = {"b", "c"};
	static const unsigned asks[] = {1, 2, 4, 16};

	for (size_t i = 0; i < sizeof(asks) / sizeof(*asks); i++) {
		check_p99(10, 1, asks[i], one);
		check_p99(10, 3, asks[i], one);
		check_p99(2, 1, asks[i], both);
	}
}

static void test_a_client_of_a_stalled_volume_leaves(void)
{
	static struct asker a[2];
	struct many m;

	open_many(&m);
	join_at(&m, &a[0], "a", 0, 32);
	join_at(&m, &a[1], "b", 1, 8);
	stop_volume(&m, 0, true);
	run_many(&m, 2 * WEIR_SEC);
	CHECK_INT(resource_stalled(m.w.resource), 1);
	a[0].again = false;
	resource_leave(m.w.resource, &a[0].client);
	CHECK(a[0].cancelled > 0);
	CHECK_INT(a[0].cancelled + a[0].client.in_flight, 32);
	stop_volume(&m, 0, false);
	a[1].again = false;
	run_many(&m, WEIR_SEC);
	CHECK_INT(a[0].client.in_flight, 0);
	CHECK_INT(a[1].client.in_flight, 0);
	close_many(&m);
}

/* A volume that is slow, but answers, is not stalled, and none of its requests is lost. */
static void test_a_slow_volume_is_not_stalled(void)
{
	static struct asker a;
	struct many m;

	open_many(&m);
	m.fakes[0]->time = 900 * WEIR_MS;
	join_at(&m, &a, "a", 0, 2);
	run_many(&m, 5 * WEIR_SEC);
	CHECK_INT(resource_stalled(m.w.resource), 0);
	end_all(&m, &a, 1);
}

int main(void)
{
	RUN(test_the_others_go_on);
	RUN(test_three_of_ten);
	RUN(test_latency_of_the_others);
	RUN(test_a_client_of_a_stalled_volume_leaves);
	RUN(test_a_slow_volume_is_not_stalled);
	return 0;
}
