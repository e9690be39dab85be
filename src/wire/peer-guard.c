/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer-guard: see peer-guard.h for the checks.
 *
 * METHOD  A hash table by name, so that the instances of one name share a chain. O(1) per message;
 *         only a newcomer to a full table costs a scan of it.
 */
#include "wire/peer-guard.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DRIFT     1000 /* 1/1000: two clocks, each slewed by up to 500 ppm, the maximum of NTP */
#define FORGOTTEN (60 * WEIR_SEC) /* ns: silent for so long, a sender may be dropped */
/* Alternations of two instances of one name before `same` is reported: the last message of a
 * restarted host may arrive after the first one of its successor, but not three times. */
#define TURNS 3
#define NONE  UINT32_MAX

struct sender {
	char name[PEER_NAME_MAX + 1];
	uint64_t instance, sequence; /* 0: none */
	uint32_t next;               /* in the hash chain */
	unsigned turns;              /* alternations with another instance of the same name */
	bool proven, asked, left;
	weir_time least; /* ns: arrival − sent of the fastest message, plus drift; when proven */
	weir_time heard; /* when a message was last taken; when proven */
	weir_time seen;  /* when a message last arrived */
	weir_time ask;   /* when it was last challenged */
	uint8_t nonce[PEER_NONCE];
};

struct peer_guard {
	struct peer_guard_config config;
	char name[PEER_NAME_MAX + 1];
	uint32_t n, mask;
	uint32_t *chains;
	struct sender *senders;
	weir_time second; /* start of the current second of talk */
	unsigned talk;    /* challenges and answers in that second */
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

static uint32_t *chain_of(struct peer_guard *g, const char *name)
{
	return &g->chains[peer_hash(name) & g->mask];
}

static struct sender *find_sender(struct peer_guard *g, const struct peer_message *m)
{
	for (uint32_t i = *chain_of(g, m->name); i != NONE; i = g->senders[i].next)
		if (g->senders[i].instance == m->instance &&
			strcmp(g->senders[i].name, m->name) == 0)
			return &g->senders[i];
	return NULL;
}

/* Return the sender to drop for a newcomer: one that left or is unproven, else one long silent;
 * among equals the longest silent. NULL: all are alive. */
static struct sender *choose_victim(struct peer_guard *g, weir_time now)
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
	uint32_t *at = chain_of(g, s->name);

	while (*at != (uint32_t)(s - g->senders))
		at = &g->senders[*at].next;
	*at = s->next;
}

static struct sender *add_sender(struct peer_guard *g, const struct peer_message *m, weir_time now)
{
	struct sender *s = g->n < g->config.most ? &g->senders[g->n] : choose_victim(g, now);
	uint32_t *at = chain_of(g, m->name);

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

/* ---- challenges and answers */

static bool may_talk(struct peer_guard *g, weir_time now)
{
	if (now - g->second >= WEIR_SEC) {
		g->second = now;
		g->talk = 0;
	}
	return g->talk < PEER_GUARD_TALK && ++g->talk;
}

static void ask_sender(struct peer_guard *g, struct sender *s, weir_time now,
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

static bool is_answer(const struct sender *s, const struct peer_message *m, weir_time now)
{
	return m->kind == PEER_ANSWER && s->asked && now - s->ask < PEER_GUARD_ANSWER &&
	       memcmp(s->nonce, m->nonce, PEER_NONCE) == 0;
}

/* ---- names */

/* Return true if this sender and another one of its name were heard alternately. */
static bool in_turn(struct peer_guard *g, struct sender *s)
{
	if (strcmp(s->name, g->name) == 0) /* our own name, and we are alive */
		return true;
	for (uint32_t i = s->proven ? *chain_of(g, s->name) : NONE; i != NONE;
		i = g->senders[i].next) {
		const struct sender *o = &g->senders[i];

		if (o != s && o->proven && !o->left && s->heard < o->heard &&
			strcmp(o->name, s->name) == 0)
			return ++s->turns >= TURNS;
	}
	return false;
}

static enum peer_verdict accept_message(struct peer_guard *g, struct sender *s,
	const struct peer_message *m, weir_time now, struct peer_guard_advice *advice)
{
	weir_time delay = now - m->sent;
	weir_time grown = s->least + (now - s->heard) / DRIFT;

	if (is_answer(s, m, now)) {
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
	if (m->kind == PEER_BLOCK || m->kind == PEER_HEADER)
		return PEER_BROKEN;
	s = find_sender(g, m);
	if (!s)
		s = add_sender(g, m, now);
	if (!s)
		return PEER_CROWD;
	s->seen = now;
	if (m->sequence <= s->sequence)
		return PEER_OLD;
	if (is_answer(s, m, now))
		return accept_message(g, s, m, now, ret_advice);
	if (m->kind == PEER_ANSWER)
		return PEER_OLD;
	if (s->proven && now - m->sent - (s->least + (now - s->heard) / DRIFT) <= g->config.late)
		return accept_message(g, s, m, now, ret_advice);
	if (m->kind != PEER_LEAVE)
		ask_sender(g, s, now, nonce, ret_advice);
	return s->proven ? PEER_LATE : PEER_UNPROVEN;
}

unsigned peer_guard_heard(const struct peer_guard *g, weir_time now, weir_time span)
{
	unsigned n = 0;

	for (const struct sender *s = g->senders; s < g->senders + g->n; s++)
		n += s->proven && !s->left && now - s->heard <= span;
	return n;
}
