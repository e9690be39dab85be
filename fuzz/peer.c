/* SPDX-License-Identifier: BSD-3-Clause */
/* Decode any bytes as a message from another host: as a datagram, and as a shared file's blocks.
 * A message that is accepted has a usable name and usable numbers, and encodes to bytes with the
 * same meaning. The seal is assumed to be valid, as if the key were known. */
#include "fuzz.h"
#include "wire/bytes.h"
#include "wire/peer-guard.h"
#include "wire/peer-slots.h"
#include "wire/usage.h"
#include <math.h>
#include <string.h>

#define SLOTS 3

static void check(const struct peer_message *m)
{
	MUST(m->kind && m->kind < PEER_KINDS && m->instance && m->sequence && m->sent >= 0);
	MUST(peer_name_check(m->name) == 0);
	if (peer_has_words(m->kind)) {
		MUST(m->n_reports <= PEER_WORDS_MAX);
		for (unsigned i = 0; i < m->n_reports; i++) {
			struct usage u = usage_unpack(m->words[i]), again;

			MUST(u.in >= 0 && u.in <= USAGE_MAX && u.out >= 0 && u.out <= USAGE_MAX);
			again = usage_unpack(usage_pack(&u));
			MUST(again.service == u.service && again.in == u.in && again.out == u.out);
		}
		return;
	}
	MUST(m->n_reports <= PEER_REPORTS_MAX);
	for (unsigned i = 0; i < m->n_reports; i++) {
		const struct peer_report *r = &m->reports[i];

		MUST(isfinite(r->beta) && r->beta >= 0 && isfinite(r->window) && r->window >= 0);
		MUST(isfinite(r->latency) && r->latency >= 0 && r->period >= 0);
	}
}

static void datagram(const uint8_t *data, size_t len, struct peer_guard *g)
{
	uint8_t once[PEER_MAX], again[PEER_MAX], nonce[PEER_NONCE] = {1};
	uint64_t cluster = len >= PEER_HEAD ? bytes_get64(data + 8) : 0;
	struct peer_guard_advice advice;
	struct peer_message m, back;
	size_t n;

	if (peer_look(data, len, cluster, &n) != PEER_TAKEN)
		return;
	MUST(n + PEER_SEAL <= len);
	if (peer_read(data, n, &m) != PEER_TAKEN)
		return;
	check(&m);
	n = peer_write(once, &m);
	MUST(peer_read(once, n, &back) == PEER_TAKEN);
	MUST(peer_write(again, &back) == n && memcmp(once, again, n) == 0);
	/* Nothing else is accepted from a host that has not answered a challenge. */
	MUST(m.kind == PEER_CHALLENGE ||
		peer_guard_judge(g, &m, WEIR_SEC, nonce, &advice) != PEER_TAKEN);
}

static bool sealed(void *arg, const uint8_t *in, size_t n)
{
	return true;
}

static void seal(void *arg, uint8_t *out, size_t n)
{
	memset(out + n, 0x55, PEER_SEAL);
}

static void receive(void *arg, const struct peer_message *m, bool same)
{
	check(m);
}

static void file(const uint8_t *data, size_t len)
{
	static uint8_t blocks[SLOTS * PEER_SLOTS_BLOCK];
	struct peer_slots_config c = {.name = "us",
		.instance = 1,
		.cluster = len >= PEER_HEAD ? bytes_get64(data + 8) : 0,
		.stale = WEIR_SEC,
		.slots = SLOTS,
		.sealed = sealed,
		.seal = seal,
		.receive = receive};
	struct peer_slots *s;
	int at;

	memset(blocks, 0, sizeof(blocks));
	MUST(peer_slots_new(&c, &s) == 0);
	peer_slots_scan(s, blocks, 0);
	memcpy(blocks, data, len < sizeof(blocks) ? len : sizeof(blocks));
	at = peer_slots_look(&c, blocks);
	MUST(at <= PEER_SLOTS_MOST);
	peer_slots_scan(s, blocks, 1);
	at = peer_slots_choose(s, 2);
	MUST(at < SLOTS);
	peer_slots_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct peer_guard_config c = {.name = "us", .instance = 1, .late = WEIR_SEC, .most = 4};
	struct peer_guard *g;

	MUST(peer_guard_new(&c, &g) == 0);
	datagram(data, len, g);
	peer_guard_free(g);
	file(data, len);
	return 0;
}
