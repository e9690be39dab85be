/* SPDX-License-Identifier: BSD-3-Clause */
/* peer-slots: hosts on one file: slots claimed and lost, torn blocks, namesakes, old content. */
#include "test.h"
#include "wire/peer-slots.h"
#include "base/rng.h"
#include <errno.h>

#define SEC   WEIR_SEC
#define BLOCK PEER_SLOTS_BLOCK
#define SLOTS 8

static uint8_t file[SLOTS][BLOCK];

struct host {
	struct peer_slots *slots;
	struct peer_message m;   /* the message that it writes */
	unsigned heard, same;    /* calls of receive */
	struct peer_message got; /* the last message received */
};

/* A seal that any change breaks: not a keyed hash, but sufficient here. */
static void sum(const uint8_t *p, size_t n, uint8_t out[PEER_SEAL])
{
	uint64_t h = 1469598103934665603u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 1099511628211u;
	memset(out, 0x11, PEER_SEAL);
	memcpy(out, &h, sizeof(h));
}

static bool sealed(void *arg, const uint8_t *in, size_t n)
{
	uint8_t want[PEER_SEAL];

	sum(in, n, want);
	return memcmp(want, in + n, PEER_SEAL) == 0;
}

static void seal(void *arg, uint8_t *out, size_t n)
{
	sum(out, n, out + n);
}

static void receive(void *arg, const struct peer_message *m, bool same)
{
	struct host *h = arg;

	h->heard++;
	h->same += same;
	h->got = *m;
}

static struct peer_slots_config config(struct host *h, const char *name, uint64_t instance)
{
	return (struct peer_slots_config){.name = name,
		.instance = instance,
		.cluster = 5,
		.stale = 60 * SEC,
		.slots = SLOTS,
		.sealed = sealed,
		.seal = seal,
		.receive = receive,
		.arg = h};
}

static void start(struct host *h, const char *name, uint64_t instance)
{
	struct peer_slots_config c = config(h, name, instance);

	*h = (struct host){.m = {.kind = PEER_BLOCK, .instance = instance, .cluster = 5}};
	strcpy(h->m.name, name);
	CHECK_INT(peer_slots_new(&c, &h->slots), 0);
}

static void stop(struct host *h)
{
	peer_slots_free(h->slots);
	h->slots = NULL;
}

static void reads(struct host *h, weir_time now)
{
	peer_slots_scan(h->slots, file[0], now);
}

/* Return the slot written, or the error of choose. */
static int writes(struct host *h, weir_time now)
{
	int at = peer_slots_choose(h->slots, now);

	h->m.sequence++;
	h->m.sent = now;
	if (at >= 0)
		peer_slots_block(h->slots, &h->m, file[at]);
	return at;
}

static int period(struct host *h, weir_time now)
{
	reads(h, now);
	return writes(h, now);
}

static struct peer_slots_stats stats(struct host *h, weir_time now)
{
	struct peer_slots_stats s;

	peer_slots_stats(h->slots, now, 60 * SEC, &s);
	return s;
}

static void hear_each_other(void)
{
	struct host a, b;
	int at;

	memset(file, 0, sizeof(file));
	start(&a, "a", 1);
	start(&b, "b", 2);
	CHECK_INT(stats(&a, 0).mine, -1);
	at = period(&a, SEC);
	CHECK(at >= 0);
	CHECK(period(&b, SEC) != at);
	CHECK_INT(b.heard, 0); /* a message found at the first scan may be old */
	for (int i = 1; i <= 5; i++) {
		CHECK_INT(period(&a, (1 + 2 * i) * SEC), at);
		CHECK_STR(a.got.name, "b");
		CHECK(a.got.sequence == b.m.sequence);
		period(&b, (1 + 2 * i) * SEC);
		CHECK_INT(b.heard, i);
	}
	CHECK_INT(a.heard, 5);
	CHECK_INT(a.same + b.same, 0);
	CHECK_INT(stats(&a, 11 * SEC).heard, 1);
	reads(&a, 12 * SEC); /* b's last */
	CHECK_INT(a.heard, 6);
	reads(&a, 13 * SEC); /* nothing new */
	CHECK_INT(a.heard, 6);
	CHECK_INT(stats(&a, 80 * SEC).heard, 0);
	stop(&a);
	stop(&b);
}

/* Both read, then both write, into the same slot. */
static void race_for_a_slot(void)
{
	char name[2] = "b";
	struct host a, b;
	int at;

	memset(file, 0, sizeof(file));
	start(&a, "a", 1);
	while (peer_hash(name) % SLOTS != peer_hash("a") % SLOTS) /* both start at the same slot */
		name[0]++;
	start(&b, name, 2);
	reads(&a, SEC);
	reads(&b, SEC);
	at = writes(&a, SEC);
	CHECK_INT(writes(&b, SEC), at); /* overwrites it */
	reads(&a, 3 * SEC);
	reads(&b, 3 * SEC);
	CHECK(writes(&a, 3 * SEC) != at);
	CHECK_INT(writes(&b, 3 * SEC), at);
	CHECK_INT(stats(&a, 3 * SEC).lost, 1);
	CHECK_INT(stats(&b, 3 * SEC).lost, 0);
	reads(&a, 5 * SEC);
	reads(&b, 5 * SEC);
	CHECK_STR(a.got.name, name);
	CHECK_STR(b.got.name, "a");
	CHECK_INT(a.same + b.same, 0);
	stop(&a);
	stop(&b);
}

static void restart_takes_its_own(void)
{
	struct host a, b, again;
	int at;

	memset(file, 0, sizeof(file));
	start(&a, "a", 1);
	start(&b, "b", 2);
	at = period(&a, SEC);
	period(&b, SEC);
	period(&b, 3 * SEC);
	stop(&a);
	start(&again, "a", 3);
	CHECK_INT(period(&again, 4 * SEC), at);
	period(&b, 5 * SEC);
	CHECK_INT(b.heard, 1);
	CHECK(b.got.instance == 3);
	CHECK_INT(b.same, 0);
	stop(&b);
	stop(&again);
}

static void two_of_one_name(void)
{
	struct host a, twin, c;
	int at;

	memset(file, 0, sizeof(file));
	start(&a, "a", 1);
	start(&twin, "a", 2);
	start(&c, "c", 3);
	at = period(&a, SEC);
	period(&c, SEC);
	CHECK_INT(period(&twin, 2 * SEC), at); /* as if restarted */
	CHECK(period(&a, 3 * SEC) != at);      /* a moves on, … */
	for (int i = 2; i < 6; i++) {
		period(&c, (2 * i) * SEC);
		CHECK_INT(period(&twin, 2 * i * SEC), at); /* … for good */
		CHECK(period(&a, 2 * i * SEC + 1) != at);
	}
	CHECK(a.same >= 4 && twin.same >= 3); /* both report it, … */
	CHECK(c.same >= 4);                   /* … and so do the others */
	CHECK(c.heard >= 8);                  /* both are heard */
	stop(&a);
	stop(&twin);
	stop(&c);
}

static void torn_writes(void)
{
	struct host a, b;
	uint8_t whole[BLOCK];
	unsigned torn = 0;
	int at;

	memset(file, 0, sizeof(file));
	start(&a, "a", 1);
	start(&b, "b", 2);
	a.m.n_reports = 4;
	reads(&b, 0);
	at = period(&a, SEC);
	reads(&b, SEC);
	CHECK_INT(b.heard, 1);
	memcpy(whole, file[at], BLOCK);
	for (int i = 1; i < 8; i++) { /* the first bytes are new, the rest old */
		uint8_t old[BLOCK];

		memcpy(old, file[at], BLOCK);
		CHECK_INT(period(&a, 2 * i * SEC), at);
		memcpy(file[at] + 64 * i, old + 64 * i, (size_t)(BLOCK - 64 * i));
		b.heard = 0;
		reads(&b, 2 * i * SEC);
		torn += b.heard == 0;
		peer_slots_block(a.slots, &a.m, file[at]);
		reads(&b, 2 * i * SEC + 1);
		CHECK_INT(b.heard, 1);
	}
	CHECK_INT(torn, 7);
	CHECK_INT(stats(&b, 0).verdicts[PEER_FORGED], 7);
	/* A host rewrites its own torn block in place, … */
	memset(file[at] + 100, 0xee, 20);
	CHECK_INT(period(&a, 20 * SEC), at);
	/* … and a wiped one. */
	memset(file[at], 0, BLOCK);
	CHECK_INT(period(&a, 22 * SEC), at);
	stop(&a);
	stop(&b);
}

/* Old content is restored to the slot. */
static void old_content(void)
{
	struct host a, b;
	uint8_t old[BLOCK];
	int at;

	memset(file, 0, sizeof(file));
	start(&a, "a", 1);
	start(&b, "b", 2);
	reads(&b, 0);
	at = period(&a, SEC);
	memcpy(old, file[at], BLOCK);
	reads(&b, SEC);
	period(&a, 3 * SEC);
	reads(&b, 3 * SEC);
	CHECK_INT(b.heard, 2);
	memcpy(file[at], old, BLOCK);
	reads(&b, 4 * SEC);
	CHECK_INT(b.heard, 2);
	CHECK_INT(stats(&b, 0).verdicts[PEER_OLD], 1);
	CHECK_INT(period(&a, 5 * SEC), at);
	reads(&b, 5 * SEC);
	CHECK_INT(b.heard, 3);
	stop(&a);
	stop(&b);
}

static void full_and_stale(void)
{
	struct host hosts[SLOTS], late;

	memset(file, 0, sizeof(file));
	for (int i = 0; i < SLOTS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "h%d", i);
		start(&hosts[i], name, (uint64_t)i + 1);
		CHECK(period(&hosts[i], SEC) >= 0);
	}
	start(&late, "late", 99);
	CHECK_INT(period(&late, SEC), -ENOSPC);
	for (int t = 3; t < 61; t += 2) /* one host falls silent; its slot is kept until stale */
		for (int i = 0; i < SLOTS; i++)
			if (i != 3)
				CHECK(period(&hosts[i], t * SEC) >= 0);
	CHECK_INT(period(&late, 60 * SEC), -ENOSPC);
	CHECK_INT(period(&late, 61 * SEC), stats(&hosts[3], 0).mine);
	/* The silent host returns: its slot is taken, and no other is free. */
	CHECK_INT(period(&hosts[3], 62 * SEC), -ENOSPC);
	/* Another host leaves in good order. */
	hosts[5].m.kind = PEER_LEAVE;
	CHECK(period(&hosts[5], 63 * SEC) >= 0);
	CHECK_INT(period(&hosts[3], 64 * SEC), stats(&hosts[5], 0).mine);
	for (int i = 0; i < SLOTS; i++)
		stop(&hosts[i]);
	stop(&late);
}

static void header(void)
{
	struct host h = {0};
	struct peer_slots_config c = config(&h, "a", 1), other = config(&h, "b", 2);
	uint8_t block[BLOCK] = {0}, again[BLOCK];

	CHECK_INT(peer_slots_look(&c, block), 0);
	peer_slots_header(&c, block);
	CHECK_INT(peer_slots_look(&c, block), SLOTS);
	peer_slots_header(&other, again);
	CHECK(memcmp(block, again, BLOCK) == 0); /* every host writes the same header */
	other.cluster = 6;
	CHECK_INT(peer_slots_look(&other, block), -EACCES);
	block[24] ^= 1;
	CHECK_INT(peer_slots_look(&c, block), -EACCES);
	memset(block, 'x', BLOCK);
	CHECK_INT(peer_slots_look(&c, block), -EINVAL);
	memset(block, 0, BLOCK);
	block[BLOCK - 1] = 1; /* foreign data that begins with zeroes */
	CHECK_INT(peer_slots_look(&c, block), -EINVAL);
	c.slots = PEER_SLOTS_MOST + 1;
	peer_slots_header(&c, block);
	CHECK_INT(peer_slots_look(&c, block), -EINVAL);
}

static void something_else_in_a_slot(void)
{
	struct host a;
	struct peer_slots_config c;

	memset(file, 0, sizeof(file));
	start(&a, "a", 1);
	c = config(&a, "a", 1);
	reads(&a, 0);
	memset(file[0], 'x', BLOCK);
	peer_slots_header(&c, file[1]); /* sealed, but not a report */
	CHECK(period(&a, SEC) >= 0);
	CHECK_INT(a.heard, 0);
	CHECK_INT(stats(&a, 0).verdicts[PEER_NOISE], 1);
	CHECK_INT(stats(&a, 0).verdicts[PEER_BROKEN], 1);
	stop(&a);
}

/* Six hosts read and write at random times, with pauses between the two: afterwards, with regular
 * periods, each has a slot and hears all the others. */
static void any_order(void)
{
	enum { HOSTS = 6 };
	struct host hosts[HOSTS];
	weir_time now = 0;
	struct rng r;

	memset(file, 0, sizeof(file));
	rng_init(&r, 1, "order");
	for (int i = 0; i < HOSTS; i++) {
		char name[4] = {'h', (char)('0' + i)};

		start(&hosts[i], name, (uint64_t)i + 1);
		reads(&hosts[i], now);
	}
	for (int step = 0; step < 20000; step++) {
		struct host *h = &hosts[rng_below(&r, HOSTS)];

		now += SEC / 4;
		if (rng_below(&r, 2))
			reads(h, now);
		else
			writes(h, now);
	}
	for (int turn = 0; turn < 10; turn++) {
		now += 2 * SEC;
		for (int i = 0; i < HOSTS; i++) {
			if (turn == 5)
				hosts[i].heard = 0;
			CHECK(period(&hosts[i], now) >= 0);
		}
	}
	for (int i = 0; i < HOSTS; i++) {
		CHECK_INT(hosts[i].heard, 5 * (HOSTS - 1));
		CHECK_INT(hosts[i].same, 0);
		stop(&hosts[i]);
	}
}

int main(void)
{
	RUN(hear_each_other);
	RUN(race_for_a_slot);
	RUN(restart_takes_its_own);
	RUN(two_of_one_name);
	RUN(torn_writes);
	RUN(old_content);
	RUN(full_and_stale);
	RUN(header);
	RUN(something_else_in_a_slot);
	RUN(any_order);
	return 0;
}
