/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peers: reports that come late, twice, from the past, from two hosts of one name, or are invalid,
 * and more hosts than the table holds.
 */
#include "control/parda/peers.h"
#include "test.h"

#define PERIOD    (2 * WEIR_SEC)
#define THRESHOLD (25.0 * WEIR_MS)

static struct parda *one(uint64_t id, uint32_t most)
{
	struct parda_config c = {.id = id,
		.instance = 77,
		.law = {THRESHOLD, 0.8, 1, 64},
		.epsilon = 0.2,
		.peers_max = most};
	struct parda *p;

	CHECK_INT(parda_new(&c, &p), 0);
	return p;
}

static struct parda_report report(uint64_t id, uint64_t instance, uint64_t sequence)
{
	return (struct parda_report){.id = id,
		.instance = instance,
		.sequence = sequence,
		.shares = 1,
		.beta = 2,
		.window = 16,
		.inside = 16,
		.latency = 25.0 * WEIR_MS,
		.ios = 640};
}

static enum parda_heard hear(struct parda *p, uint64_t id, uint64_t instance, uint64_t sequence)
{
	struct parda_report r = report(id, instance, sequence);

	return parda_hear(p, &r);
}

static struct parda_decision idle_step(struct parda *p)
{
	static weir_time now = 0;
	struct parda_measured m = {0};
	struct parda_decision d;

	parda_step(p, now += PERIOD, &m, &d);
	return d;
}

static void test_late_and_twice(void)
{
	struct parda *p = one(1, 0);
	struct parda_counts counts;

	CHECK_INT(hear(p, 2, 9, 5), PARDA_FRESH);
	CHECK_INT(hear(p, 2, 9, 5), PARDA_STALE);
	CHECK_INT(hear(p, 2, 9, 4), PARDA_STALE);
	CHECK_INT(hear(p, 2, 9, 6), PARDA_FRESH);
	CHECK_INT(hear(p, 1, 77, 1), PARDA_OWN);
	CHECK_INT(idle_step(p).peers, 1);
	/* A replayed report does not keep a dead host alive, and does not revive it after it is
	 * forgotten. */
	for (int i = 0; i < 4; i++) {
		CHECK_INT(hear(p, 2, 9, 6), PARDA_STALE);
		idle_step(p);
	}
	CHECK_INT(idle_step(p).peers, 0);
	CHECK(idle_step(p).alone);
	CHECK_INT(hear(p, 2, 9, 6), PARDA_STALE);
	CHECK_INT(idle_step(p).peers, 0);
	CHECK_INT(hear(p, 2, 9, 7), PARDA_FRESH);
	CHECK_INT(idle_step(p).peers, 1);
	parda_leave(p, 2, 8); /* not the current instance */
	CHECK_INT(idle_step(p).peers, 1);
	parda_leave(p, 2, 9);
	CHECK_INT(idle_step(p).peers, 0);
	parda_counts(p, &counts);
	CHECK_INT(counts.heard[PARDA_STALE], 7);
	CHECK_INT(counts.heard[PARDA_FRESH], 3);
	parda_free(p);
}

static void test_forged(void)
{
	struct parda *p = one(1, 0);
	struct parda_report r;
	double *fields[] = {&r.shares, &r.beta, &r.window, &r.inside, &r.latency, &r.ios};
	const double wrong[] = {-1, NAN, INFINITY, -INFINITY, 1e300};

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		for (size_t k = 0; k < sizeof(wrong) / sizeof(*wrong); k++) {
			r = report(2, 9, 1);
			*fields[i] = wrong[k];
			CHECK_INT(parda_hear(p, &r), PARDA_WRONG);
		}
	}
	CHECK_INT(hear(p, 2, 0, 1), PARDA_WRONG);
	CHECK_INT(hear(p, 2, 9, 0), PARDA_WRONG);
	CHECK_INT(idle_step(p).peers, 0);
	parda_free(p);
}

static void test_same_id(void)
{
	struct parda *p = one(1, 0);
	struct parda_decision d;

	/* A peer's name: the first instance counts, and both are reported. */
	CHECK_INT(hear(p, 2, 9, 1), PARDA_FRESH);
	CHECK_INT(hear(p, 2, 10, 1), PARDA_PENDING);
	CHECK(!idle_step(p).twice);
	CHECK_INT(hear(p, 2, 9, 2), PARDA_FRESH);
	CHECK_INT(hear(p, 2, 10, 2), PARDA_TWICE);
	d = idle_step(p);
	CHECK(d.twice);
	CHECK_INT(d.twice_id, 2);
	CHECK_INT(d.peers, 1);
	for (uint64_t i = 3; i < 20; i++) {
		CHECK_INT(hear(p, 2, 10, i), PARDA_TWICE);
		CHECK_INT(hear(p, 2, 9, i), PARDA_FRESH);
		CHECK(idle_step(p).twice);
	}
	/* The first instance is gone: the second replaces it, and the conflict ends. */
	for (uint64_t i = 20; i < 30; i++) {
		hear(p, 2, 10, i);
		d = idle_step(p);
	}
	CHECK_INT(hear(p, 2, 10, 30), PARDA_FRESH);
	CHECK(!d.twice);
	CHECK_INT(hear(p, 2, 9, 99), PARDA_STALE);
	/* Our own name. */
	CHECK_INT(hear(p, 1, 78, 1), PARDA_TWICE);
	d = idle_step(p);
	CHECK(d.twice);
	CHECK_INT(d.twice_id, 1);
	for (int i = 0; i < 5; i++)
		d = idle_step(p);
	CHECK(!d.twice);
	parda_free(p);
}

static void test_bounded(void)
{
	struct parda *p = one(1, 100);

	for (uint64_t id = 2; id < 102; id++)
		CHECK_INT(hear(p, id, 9, 1), PARDA_FRESH);
	CHECK_INT(hear(p, 102, 9, 1), PARDA_FULL);
	CHECK_INT(idle_step(p).peers, 100);
	for (int i = 0; i < 5; i++) {
		for (uint64_t id = 3; id < 102; id++)
			CHECK_INT(hear(p, id, 9, (uint64_t)i + 2), PARDA_FRESH);
		idle_step(p);
	}
	CHECK_INT(hear(p, 102, 9, 1), PARDA_FRESH); /* replaces 2 */
	CHECK_INT(idle_step(p).peers, 100);
	CHECK_INT(hear(p, 103, 9, 1), PARDA_FULL);
	for (uint64_t id = 3; id < 102; id++)
		CHECK_INT(hear(p, id, 9, 6), PARDA_STALE); /* all others are still known */
	parda_free(p);
}

/* Let a peer be silent until it is forgotten, and return after `steps` of its own and a hundred
 * messages. */
static unsigned apart_after(uint64_t steps)
{
	struct parda_report r = report(7, 1, 10);
	struct parda_peers t;
	unsigned apart;

	CHECK_INT(parda_peers_init(&t, 4, 4), 0);
	r.steps = 10;
	CHECK_INT(parda_peers_hear(&t, &r), PARDA_FRESH);
	for (int i = 0; i < 20; i++)
		parda_peers_age(&t);
	CHECK(!parda_peer_counts(&t, &t.peers[0]));
	r.sequence += 100;
	r.steps += steps;
	CHECK_INT(parda_peers_hear(&t, &r), PARDA_FRESH);
	CHECK(parda_peer_counts(&t, &t.peers[0]));
	apart = t.peers[0].apart;
	parda_peers_free(&t);
	return apart;
}

/* A stopped host has not stepped meanwhile, whatever it reports when it returns; a host that was
 * cut off has. */
static void test_apart(void)
{
	CHECK_INT(apart_after(1), 0);
	CHECK_INT(apart_after(5), 0);
	CHECK_INT(apart_after(19), PARDA_APART);
	CHECK_INT(apart_after(20), PARDA_APART);
}

/* New peers with shares get their part of the others' windows, once; a peer that was cut off, or
 * leaves and returns as the same instance, does not. */
static void test_room(void)
{
	struct parda_report r = report(2, 9, 1);
	struct parda_peers t;

	CHECK_INT(parda_peers_init(&t, 8, 4), 0);
	CHECK_NEAR(parda_peers_room(&t, 1), 1, 0);
	r.shares = 0;
	parda_peers_hear(&t, &r);
	CHECK_NEAR(parda_peers_room(&t, 1), 1, 0); /* not while it is idle */
	r.shares = 3;
	r.sequence = 2;
	parda_peers_hear(&t, &r);
	CHECK_NEAR(parda_peers_room(&t, 1), 0.25, 0.001);
	CHECK_NEAR(parda_peers_room(&t, 1), 1, 0);
	r = report(3, 9, 1);
	parda_peers_hear(&t, &r);
	CHECK_NEAR(parda_peers_room(&t, 1), 0.8, 0.001);
	/* It restarts, and is heard before it was missed: it counts from its first report on. */
	r = report(3, 10, 1);
	CHECK_INT(parda_peers_hear(&t, &r), PARDA_PENDING);
	CHECK_NEAR(parda_peers_room(&t, 1), 0.8, 0.001);
	for (int i = 0; i < 3; i++)
		parda_peers_age(&t);
	r.sequence = 2;
	CHECK_INT(parda_peers_hear(&t, &r), PARDA_FRESH);
	CHECK_NEAR(parda_peers_room(&t, 1), 1, 0);
	/* Forgotten, and replaced at once. */
	for (int i = 0; i < 6; i++)
		parda_peers_age(&t);
	r = report(3, 11, 1);
	CHECK_INT(parda_peers_hear(&t, &r), PARDA_FRESH);
	CHECK_NEAR(parda_peers_room(&t, 1), 0.5, 0.001); /* host 2 no longer counts */
	r = report(4, 9, 1);
	parda_peers_hear(&t, &r);
	parda_peers_settle(&t);
	CHECK_NEAR(parda_peers_room(&t, 1), 1, 0);
	parda_peers_free(&t);
}

/* Peers that vanished without a leave message may still run, for some time. */
static void test_vanished(void)
{
	struct parda_report a = report(2, 9, 1), b = report(3, 9, 1);
	struct parda_peers t;

	CHECK_INT(parda_peers_init(&t, 8, 4), 0);
	parda_peers_hear(&t, &a);
	parda_peers_hear(&t, &b);
	CHECK(!parda_peer_vanished(&t, &t.peers[0]));
	parda_peers_leave(&t, 3, 9);
	for (int i = 0; i < 5; i++)
		parda_peers_age(&t);
	CHECK(parda_peer_vanished(&t, &t.peers[0]) && !parda_peer_vanished(&t, &t.peers[1]));
	for (int i = 0; i < PARDA_VANISHED; i++)
		parda_peers_age(&t);
	CHECK(!parda_peer_vanished(&t, &t.peers[0]));
	parda_peers_free(&t);
}

int main(void)
{
	RUN(test_room);
	RUN(test_vanished);
	RUN(test_late_and_twice);
	RUN(test_forged);
	RUN(test_same_id);
	RUN(test_bounded);
	RUN(test_apart);
	return 0;
}
