/* SPDX-License-Identifier: BSD-3-Clause */
/* peer-slots: see peer-slots.h. A scan is O(slots); seals are checked only for changed blocks. */
#include "wire/peer-slots.h"
#include "wire/bytes.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum state { EMPTY, LEFT, HELD, TORN }; /* TORN: torn or not understood */

struct slot {
	enum state state;
	bool known;      /* scanned before */
	bool moved;      /* a new message was taken from it */
	bool namesake;   /* has our name, but is not ours */
	uint64_t digest; /* of the block, to detect changes */
	uint64_t name;   /* hash */
	uint64_t instance, sequence;
	weir_time changed;
};

struct peer_slots {
	struct peer_slots_config config;
	char name[PEER_NAME_MAX + 1];
	int mine;    /* -1: none */
	bool chosen; /* we have had a slot */
	bool first;  /* this is the first scan */
	struct peer_slots_stats stats;
	struct slot slots[];
};

int peer_slots_new(const struct peer_slots_config *c, struct peer_slots **ret_slots)
{
	struct peer_slots *s = calloc(1, sizeof(*s) + c->slots * sizeof(s->slots[0]));

	if (!s)
		return -ENOMEM;
	s->config = *c;
	strncpy(s->name, c->name, PEER_NAME_MAX);
	s->config.name = s->name;
	s->mine = -1;
	*ret_slots = s;
	return 0;
}

void peer_slots_free(struct peer_slots *s)
{
	free(s);
}

/* ---- blocks */

static bool all_zero(const uint8_t *block)
{
	return !block[0] && memcmp(block, block + 1, PEER_SLOTS_BLOCK - 1) == 0;
}

/* Return a digest of the block to detect changes: of its first word, its sequence and its seal,
 * which depends on every bit of the message. Odd multipliers keep equal words from cancelling
 * out. */
static uint64_t block_digest(const uint8_t *block)
{
	size_t length = bytes_get16(block + 6);

	if (length > PEER_SLOTS_BLOCK - PEER_SEAL)
		length = 0;
	return bytes_get64(block) * UINT64_C(0x9e3779b97f4a7c15) +
	       bytes_get64(block + 24) * UINT64_C(0xd6e8feb86659fd93) + bytes_get64(block + length);
}

static enum peer_verdict read_block(
	const struct peer_slots_config *c, const uint8_t *block, struct peer_message *ret)
{
	size_t length;
	enum peer_verdict v = peer_look(block, PEER_SLOTS_BLOCK, c->cluster, &length);

	if (v != PEER_TAKEN)
		return v;
	if (!c->sealed(c->arg, block, length))
		return PEER_FORGED;
	return peer_read(block, length, ret);
}

void peer_slots_block(
	const struct peer_slots *s, const struct peer_message *m, uint8_t block[PEER_SLOTS_BLOCK])
{
	size_t length;

	memset(block, 0, PEER_SLOTS_BLOCK);
	length = peer_write(block, m);
	s->config.seal(s->config.arg, block, length);
}

void peer_slots_header(const struct peer_slots_config *c, uint8_t block[PEER_SLOTS_BLOCK])
{
	struct peer_message m = {.kind = PEER_HEADER,
		.cluster = c->cluster,
		.instance = 1, /* the same for all hosts */
		.sequence = c->slots,
		.name = "header"};
	size_t length;

	memset(block, 0, PEER_SLOTS_BLOCK);
	length = peer_write(block, &m);
	c->seal(c->arg, block, length);
}

int peer_slots_look(const struct peer_slots_config *c, const uint8_t block[PEER_SLOTS_BLOCK])
{
	struct peer_message m;
	enum peer_verdict v;

	if (all_zero(block))
		return 0;
	v = read_block(c, block, &m);
	if (v == PEER_CLUSTER || v == PEER_FORGED)
		return -EACCES;
	if (v != PEER_TAKEN || m.kind != PEER_HEADER || m.sequence > PEER_SLOTS_MOST)
		return -EINVAL;
	return (int)m.sequence;
}

/* ---- reading */

/* Return true if a living host of this name is in another slot. */
static bool has_namesake(const struct peer_slots *s, const struct slot *of, weir_time now)
{
	if (of->namesake)
		return true;
	for (const struct slot *o = s->slots; o < s->slots + s->config.slots; o++)
		if (o != of && o->state == HELD && o->name == of->name &&
			o->instance != of->instance && o->known &&
			now - o->changed < s->config.stale)
			return true;
	return false;
}

/* Process a block that changed since the last scan. */
static enum peer_verdict process_change(
	struct peer_slots *s, struct slot *t, const struct peer_message *m, weir_time now)
{
	bool ours = m->instance == s->config.instance && strcmp(m->name, s->name) == 0;

	if (m->kind != PEER_BLOCK && m->kind != PEER_LEAVE)
		return PEER_BROKEN;
	if (t->instance == m->instance && m->sequence <= t->sequence && t->known)
		return PEER_OLD;
	t->instance = m->instance;
	t->sequence = m->sequence;
	t->name = peer_hash(m->name);
	t->namesake = !ours && strcmp(m->name, s->name) == 0;
	t->state = m->kind == PEER_LEAVE ? LEFT : HELD;
	if (ours)
		return PEER_OWN;
	if (s->first) /* its age is unknown */
		return PEER_UNPROVEN;
	t->moved = true;
	s->config.receive(s->config.arg, m, t->state == HELD && has_namesake(s, t, now));
	return PEER_TAKEN;
}

static void scan_one(struct peer_slots *s, struct slot *t, const uint8_t *block, weir_time now)
{
	struct peer_message m;
	uint64_t d = block_digest(block);
	enum peer_verdict v;

	if (t->known && d == t->digest)
		return;
	t->digest = d;
	t->changed = now;
	if (all_zero(block)) {
		*t = (struct slot){.digest = d, .changed = now, .known = true};
		return;
	}
	v = read_block(&s->config, block, &m);
	if (v == PEER_TAKEN)
		v = process_change(s, t, &m, now);
	if (v == PEER_TAKEN || v == PEER_OWN || v == PEER_UNPROVEN || v == PEER_OLD)
		t->known = true;
	else
		*t = (struct slot){.state = TORN, .digest = d, .changed = now, .known = true};
	s->stats.verdicts[v]++;
}

void peer_slots_scan(struct peer_slots *s, const uint8_t *blocks, weir_time now)
{
	s->first = !s->slots[0].known;
	for (unsigned i = 0; i < s->config.slots; i++)
		scan_one(s, &s->slots[i], blocks + (size_t)i * PEER_SLOTS_BLOCK, now);
	if (s->mine >= 0 && s->slots[s->mine].state == HELD &&
		s->slots[s->mine].instance != s->config.instance) {
		s->stats.lost++;
		s->mine = -1;
	}
}

/* ---- choosing */

static bool is_stale(const struct peer_slots *s, const struct slot *t, weir_time now)
{
	return now - t->changed >= s->config.stale;
}

/* Return the preference for a slot: lower is better, 9 means unusable. */
static int slot_rank(const struct peer_slots *s, const struct slot *t, weir_time now)
{
	if (t->namesake && (!s->chosen || is_stale(s, t, now)))
		return 0;
	if (t->state == EMPTY || t->state == LEFT)
		return 1;
	return is_stale(s, t, now) ? 2 : 9;
}

int peer_slots_choose(struct peer_slots *s, weir_time now)
{
	unsigned n = s->config.slots, at = (unsigned)(peer_hash(s->name) % n), best = 0;
	int least = 9;

	if (s->mine >= 0)
		return s->mine;
	for (unsigned i = 0; i < n; i++, at = (at + 1) % n) {
		const struct slot *t = &s->slots[at];
		int r = slot_rank(s, t, now);

		if (r < least || (r == least && r == 2 && t->changed < s->slots[best].changed)) {
			least = r;
			best = at;
		}
	}
	if (least == 9)
		return -ENOSPC;
	s->mine = (int)best;
	s->chosen = true;
	return s->mine;
}

void peer_slots_stats(
	const struct peer_slots *s, weir_time now, weir_time span, struct peer_slots_stats *ret)
{
	*ret = s->stats;
	ret->mine = s->mine;
	ret->heard = 0;
	for (const struct slot *t = s->slots; t < s->slots + s->config.slots; t++)
		ret->heard += t->state == HELD && t->moved && t->instance != s->config.instance &&
			      now - t->changed <= span;
}
