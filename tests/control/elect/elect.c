/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * elect: controllers, and a store that is slow, loses answers, goes away, and is restored from a backup, in virtual time.
 *
 *   - At no time two controllers trust their leases.
 *   - Under each generation one controller leads; each is above all that servers had reported.
 *   - A new leader is there 8 s after the last one ended, and at once if that gave its lease back.
 *   - A leader that the store does not answer trusts its lease 4 s from its last keep-alive, and no longer.
 */
#include "base/rng.h"
#include "control/elect/elect.h"
#include "test.h"
#include <errno.h>

#define CONTROLLERS 3
#define STEP        (10 * WEIR_MS)
#define TTL         (ELECT_TTL * WEIR_SEC)
#define LEASES      64

static struct world {
	struct rng rng;
	weir_time now;
	/* the store */
	bool away;
	uint64_t revision, leases;
	weir_time ends[LEASES];  /* by number of the lease, modulo; 0: it has ended */
	uint64_t lease, created; /* of the leader's key; lease 0: none */
	uint64_t offset, offset_changed;
	/* the controllers */
	struct one {
		struct elect e;
		bool up, paused;
		weir_time arrives, back; /* the request at the store, its answer here; 0: none */
		enum elect_act act;
		struct elect e_sent;
		int rc;
		struct elect_answer a;
		uint64_t generation; /* under which it leads */
	} all[CONTROLLERS];
	uint64_t highest; /* generation that the servers report */
	weir_time led;    /* when one last led and was trusted */
	weir_time delay;  /* of a message, at most */
	double loss;      /* of answers */
} w;

static void begin(uint64_t seed)
{
	w = (struct world){.now = WEIR_SEC, .revision = 10, .delay = 20 * WEIR_MS};
	rng_init(&w.rng, seed, "elect");
	for (size_t i = 0; i < CONTROLLERS; i++)
		w.all[i] = (struct one){.e = {.ttl = TTL}, .up = true};
}

static weir_time delay(void)
{
	return 1 + (weir_time)(rng_double(&w.rng) * (double)w.delay);
}

/* ---- the store */

static void store_turn(void)
{
	if (w.away)
		return;
	for (size_t i = 0; i < LEASES; i++)
		if (w.ends[i] && w.now >= w.ends[i]) {
			w.ends[i] = 0;
			if (w.lease % LEASES == i && w.lease) {
				w.lease = 0;
				w.revision++;
			}
		}
}

static int store_do(enum elect_act act, const struct elect *e, struct elect_answer *ret)
{
	*ret = (struct elect_answer){.ttl = TTL};
	switch (act) {
	case ELECT_GRANT:
		ret->lease = ++w.leases;
		w.ends[w.leases % LEASES] = w.now + TTL;
		return 0;
	case ELECT_KEEP:
		if (!w.ends[e->lease % LEASES])
			return -ENOENT;
		w.ends[e->lease % LEASES] = w.now + TTL;
		return 0;
	case ELECT_CAMPAIGN:
		if (!w.ends[e->lease % LEASES])
			return -ENOENT;
		ret->held = !w.lease && w.offset_changed == e->offset_changed;
		if (ret->held) {
			w.lease = e->lease;
			w.created = ret->revision = ++w.revision;
		}
		return 0;
	case ELECT_RAISE:
		ret->held =
			w.lease && w.created == e->created && w.offset_changed == e->offset_changed;
		if (ret->held) {
			w.offset = e->raise;
			w.offset_changed = ret->revision = ++w.revision;
		}
		return 0;
	default:
		ret->lease = w.lease;
		ret->created = w.lease ? w.created : 0;
		ret->offset = w.offset;
		ret->offset_changed = w.offset_changed;
		return 0;
	}
}

/* ---- a controller */

/* Return the highest generation that was used up. */
static uint64_t used(const struct one *o)
{
	return o->generation && o->generation == w.highest ? w.highest - 1 : w.highest;
}

static void lead(struct one *o)
{
	uint64_t g = elect_generation(&o->e, w.now, used(o));

	if (!o->e.created)
		o->generation = 0;
	if (!g || g == o->generation)
		return;
	/* its own is reported, too */
	CHECK(g > w.highest);
	o->generation = w.highest = g;
}

static void turn(struct one *o)
{
	enum elect_act act;
	weir_time at;

	if (o->arrives && w.now >= o->arrives) {
		o->arrives = 0;
		o->rc = w.away ? -EAGAIN : store_do(o->act, &o->e_sent, &o->a);
		/* the answer is lost: it is not known whether the store did it */
		if (rng_double(&w.rng) < w.loss)
			o->rc = -ETIMEDOUT;
		o->back = w.now + (o->rc < 0 && o->rc != -ENOENT ? 2 * WEIR_SEC : delay());
	}
	if (!o->up || o->paused)
		return;
	if (o->back && w.now >= o->back) {
		o->back = 0;
		elect_end(&o->e, w.now, o->rc, &o->a);
	}
	lead(o);
	act = elect_next(&o->e, w.now, used(o), &at);
	if (act != ELECT_WAIT) {
		o->act = act;
		o->arrives = w.now + delay();
		o->e_sent = o->e;
	}
}

static void check(void)
{
	size_t trusting = 0;

	for (size_t i = 0; i < CONTROLLERS; i++) {
		const struct one *o = &w.all[i];

		if (!o->up || !elect_trusts(&o->e, w.now))
			continue;
		trusting++;
		if (o->generation)
			w.led = w.now;
	}
	CHECK(trusting <= 1);
}

static void run(weir_time span)
{
	for (weir_time end = w.now + span; w.now < end; w.now += STEP) {
		store_turn();
		for (size_t i = 0; i < CONTROLLERS; i++)
			turn(&w.all[i]);
		check();
	}
}

static struct one *leader(void)
{
	for (size_t i = 0; i < CONTROLLERS; i++)
		if (w.all[i].up && w.all[i].generation && elect_trusts(&w.all[i].e, w.now))
			return &w.all[i];
	return NULL;
}

static void restart(struct one *o)
{
	*o = (struct one){.e = {.ttl = TTL}, .up = true};
}

/* ---- */

static void leaders_end(uint64_t seed)
{
	begin(seed);
	run(8 * WEIR_SEC);
	for (unsigned i = 0; i < 20; i++) {
		struct one *was = leader();

		CHECK(was);
		was->up = false;
		run(8 * WEIR_SEC);
		CHECK(leader() && leader() != was);
		restart(was);
		run(6 * WEIR_SEC);
	}
}

static void a_lease_is_given_back(void)
{
	struct one *was;

	begin(3);
	run(8 * WEIR_SEC);
	was = leader();
	CHECK(was);
	was->up = false;
	w.ends[w.lease % LEASES] = w.now; /* as revoked */
	run(4 * WEIR_SEC);
	CHECK(leader() && leader() != was);
}

static void the_store_is_away(void)
{
	struct one *was;
	uint64_t g;

	begin(4);
	run(8 * WEIR_SEC);
	was = leader();
	CHECK(was);
	g = was->generation;
	w.away = true;
	run(5 * WEIR_SEC);
	/* it goes on, and does not trust its lease */
	CHECK(!leader() && was->generation == g);
	run(60 * WEIR_SEC);
	CHECK(was->generation == g);
	w.away = false;
	run(12 * WEIR_SEC);
	CHECK(leader());
	CHECK(was->generation == 0 || was == leader());
}

/* Revisions and the offset are those of the backup; servers have obeyed higher generations, and a stand-in's. */
static void the_store_is_restored(uint64_t seed)
{
	begin(seed);
	run(8 * WEIR_SEC);
	w.revision = 500;
	for (unsigned i = 0; i < 5; i++) {
		uint64_t offset = w.offset, changed = w.offset_changed, before;

		leader()->up = false;
		run(12 * WEIR_SEC);
		CHECK(leader());
		before = w.highest;
		/* longer than a lease */
		w.away = true;
		run(6 * WEIR_SEC);
		w.away = false;
		w.revision = 20 + i;
		w.offset = offset;
		w.offset_changed = changed;
		w.lease = 0;
		for (size_t k = 0; k < LEASES; k++)
			w.ends[k] = 0;
		w.highest += 100;
		run(15 * WEIR_SEC);
		CHECK(leader());
		CHECK(leader()->generation > before + 100);
		for (size_t k = 0; k < CONTROLLERS; k++)
			if (!w.all[k].up)
				restart(&w.all[k]);
	}
}

/* Everything at once; `check` judges. */
static void at_random(uint64_t seed)
{
	begin(seed);
	w.loss = 0.05;
	w.delay = (weir_time)(rng_double(&w.rng) * 3e9) + WEIR_MS;
	for (unsigned i = 0; i < 300; i++) {
		struct one *o = &w.all[rng_below(&w.rng, CONTROLLERS)];

		switch (rng_below(&w.rng, 6)) {
		case 0:
			restart(o);
			break;
		case 1:
			o->paused = true;
			break;
		case 2:
			w.away = !w.away;
			break;
		case 3:
			w.highest += rng_below(&w.rng, 50);
			break;
		default:
			o->paused = false;
		}
		run((weir_time)(rng_double(&w.rng) * 3e9));
	}
}

int main(void)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		leaders_end(seed);
		the_store_is_restored(seed);
	}
	a_lease_is_given_back();
	the_store_is_away();
	for (uint64_t seed = 1; seed <= 50; seed++)
		at_random(seed);
	return 0;
}
