/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer-guard: see peer-guard.h for what is checked.
 *
 * METHOD  A hash table by name, so that the instances of one name stand in one chain. O(1) a message;
 *         only when the table is full does a newcomer cost a walk over it.
 */
#include "wire/peer-guard.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DRIFT     1000 /* 1/1000: two clocks, each slewed by 500 ppm, which is NTP's most */
#define FORGOTTEN (60 * WEIR_SEC) /* ns: so long silent, a sender may be dropped to make room */
/* Times that two instances of a name were heard in turn before it is said: the last message of a host
 * that was restarted may come behind the first of its successor, but no three. */
#define TURNS 3
#define NONE  UINT32_MAX

struct sender {
	char name[PEER_NAME_MAX + 1];
	uint64_t instance, sequence; /* 0: none */
	uint32_t next;               /* in its chain */
	unsigned turns;              /* times that it and a namesake were heard in turn */
	bool proven, asked, left;
	weir_time least; /* ns: arrival − sent of the fastest message, plus drift; when proven */
	weir_time heard; /* when one was last taken; when proven */
	weir_time seen;  /* when one came at all */
	weir_time ask;   /* when it was last asked */
	uint8_t nonce[PEER_NONCE];
};

struct peer_guard {
	struct peer_guard_config config;
	char name[PEER_NAME_MAX + 1];
	uint32_t n, mask;
	uint32_t *chains;
	struct sender *senders;
	weir_time second; /* when the present second of talk began */
	unsigned talk;    /* questions and answers in it */
};

int peer_guard_new(const struct peer_guard_config *c, struct peer_guard **ret_guard)
{
	struct peer_guard *g = calloc(1, sizeof(*g));
	uint32_t chains = 16;

	while (chains < c->most && chains < UINT32_C(1) << 30)
		chains *= 2;
	if (!g)
		return -ENOMEM;
	g->config = *c;
	strncpy(g->name, c->name, PEER_NAME_MAX);
	g->mask = chains - 1;
	g->senders = calloc(c->most, sizeof(*g->senders));
	g->chains = malloc(chains * sizeof(*g->chains));
	if (!g->senders || !g->chains) {
		peer_guard_free(g);
		return -ENOMEM;
	}
	memset(g->chains, 0xff, chains * sizeof(*g->chains)); /* NONE */
	*ret_guard = g;
	return 0;
}

void peer_guard_free(struct peer_guard *g)
{
	if (!g)
		return;
	free(g->senders);
	free(g->chains);
	free(g);
}

/* ---- the table */

static uint32_t *chain(struct peer_guard *g, const char *name)
{
	return &g->chains[peer_hash(name) & g->mask];
}

static struct sender *find(struct peer_guard *g, const struct peer_message *m)
{
	for (uint32_t i = *chain(g, m->name); i != NONE; i = g->senders[i].next)
		if (g->senders[i].instance == m->instance &&
			strcmp(g->senders[i].name, m->name) == 0)
			return &g->senders[i];
	return NULL;
}

/* Whom to drop for a newcomer: one that left or never proved anything, else one long silent; of those
 * the longest silent. NULL: all are alive. */
static struct sender *dropped(struct peer_guard *g, weir_time now)
{
	struct sender *worst = NULL;
	bool idle = false;

	for (struct sender *s = g->senders; s < g->senders + g->n; s++) {
		bool is_idle = s->left || !s->proven;

		if (!is_idle && (idle || now - s->heard < FORGOTTEN))
			continue;
		if (!worst || is_idle > idle || s->seen < worst->seen) {
			worst = s;
			idle = is_idle;
		}
	}
	return worst;
}

static void unlink_sender(struct peer_guard *g, struct sender *s)
{
	uint32_t *at = chain(g, s->name);

	while (*at != (uint32_t)(s - g->senders))
		at = &g->senders[*at].next;
	*at = s->next;
}

static struct sender *add(struct peer_guard *g, const struct peer_message *m, weir_time now)
{
	struct sender *s = g->n < g->config.most ? &g->senders[g->n] : dropped(g, now);
	uint32_t *at = chain(g, m->name);

	if (!s)
		return NULL;
	if (g->n < g->config.most)
		g->n++;
	else
		unlink_sender(g, s);
	*s = (struct sender){.instance = m->instance, .next = *at};
	memcpy(s->name, m->name, sizeof(s->name));
	*at = (uint32_t)(s - g->senders);
	return s;
}

/* ---- questions and answers */

static bool may_talk(struct peer_guard *g, weir_time now)
{
	if (now - g->second >= WEIR_SEC) {
		g->second = now;
		g->talk = 0;
	}
	return g->talk < PEER_GUARD_TALK && ++g->talk;
}

static void ask(struct peer_guard *g, struct sender *s, weir_time now,
	const uint8_t nonce[PEER_NONCE], struct peer_guard_advice *advice)
{
	if (s->asked && now - s->ask < PEER_GUARD_ANSWER)
		return;
	if (!may_talk(g, now))
		return;
	s->asked = true;
	s->ask = now;
	memcpy(s->nonce, nonce, PEER_NONCE);
	advice->ask = true;
}

static bool answers(const struct sender *s, const struct peer_message *m, weir_time now)
{
	return m->kind == PEER_ANSWER && s->asked && now - s->ask < PEER_GUARD_ANSWER &&
	       memcmp(s->nonce, m->nonce, PEER_NONCE) == 0;
}

/* ---- names */

/* Were this sender and another of its name heard in turn? */
static bool in_turn(struct peer_guard *g, struct sender *s)
{
	if (strcmp(s->name, g->name) == 0) /* ours, and we know that we are there */
		return true;
	for (uint32_t i = s->proven ? *chain(g, s->name) : NONE; i != NONE;
		i = g->senders[i].next) {
		const struct sender *o = &g->senders[i];

		if (o != s && o->proven && !o->left && s->heard < o->heard &&
			strcmp(o->name, s->name) == 0)
			return ++s->turns >= TURNS;
	}
	return false;
}

static enum peer_verdict take(struct peer_guard *g, struct sender *s, const struct peer_message *m,
	weir_time now, struct peer_guard_advice *advice)
{
	weir_time delay = now - m->sent;
	weir_time grown = s->least + (now - s->heard) / DRIFT;

	if (answers(s, m, now)) {
		s->least = delay;
		s->asked = false;
	} else {
		s->least = delay < grown ? delay : grown;
	}
	advice->same = in_turn(g, s);
	s->proven = true;
	s->sequence = m->sequence;
	s->heard = now;
	s->left = m->kind == PEER_LEAVE;
	return PEER_TAKEN;
}

enum peer_verdict peer_guard_judge(struct peer_guard *g, const struct peer_message *m,
	weir_time now, const uint8_t nonce[PEER_NONCE], struct peer_guard_advice *ret_advice)
{
	struct sender *s;

	*ret_advice = (struct peer_guard_advice){0};
	if (m->instance == g->config.instance && strcmp(m->name, g->name) == 0)
		return PEER_OWN;
	if (m->kind == PEER_CHALLENGE)
		return may_talk(g, now) ? PEER_TAKEN : PEER_CROWD;
	if (m->kind != PEER_REPORT && m->kind != PEER_ANSWER && m->kind != PEER_LEAVE)
		return PEER_BROKEN;
	s = find(g, m);
	if (!s)
		s = add(g, m, now);
	if (!s)
		return PEER_CROWD;
	s->seen = now;
	if (m->sequence <= s->sequence)
		return PEER_OLD;
	if (answers(s, m, now))
		return take(g, s, m, now, ret_advice);
	if (m->kind == PEER_ANSWER)
		return PEER_OLD;
	if (s->proven && now - m->sent - (s->least + (now - s->heard) / DRIFT) <= g->config.late)
		return take(g, s, m, now, ret_advice);
	if (m->kind != PEER_LEAVE)
		ask(g, s, now, nonce, ret_advice);
	return s->proven ? PEER_LATE : PEER_UNPROVEN;
}

unsigned peer_guard_heard(const struct peer_guard *g, weir_time now, weir_time span)
{
	unsigned n = 0;

	for (const struct sender *s = g->senders; s < g->senders + g->n; s++)
		n += s->proven && !s->left && now - s->heard <= span;
	return n;
}
