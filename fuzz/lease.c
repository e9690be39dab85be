/* SPDX-License-Identifier: BSD-3-Clause */
/* Decode any bytes as a frame between a server and its controller. A frame that is accepted has
 * numbers in range, and encodes to bytes with the same meaning. The seal is assumed to be valid,
 * as if the key were known. */
#include "fuzz.h"
#include "wire/bytes.h"
#include "wire/lease.h"
#include <stdlib.h>
#include <string.h>

static bool tokens_in_range(int64_t v)
{
	return v >= 0 && v <= LEASE_TOKENS_MAX;
}

static bool limit_in_range(int64_t v)
{
	return v == LEASE_NO_LIMIT || tokens_in_range(v);
}

static void check(const struct lease_message *m)
{
	MUST(m->instance && m->sequence && m->sent >= 0 && peer_name_check(m->name) == 0);
	MUST(m->n <= LEASE_ENTRIES_MAX);
	for (size_t i = 0; m->kind == LEASE_REPORT && i < m->n; i++) {
		const struct lease_demand *d = &m->demands[i];

		MUST(tokens_in_range(d->used) && tokens_in_range(d->queue));
		MUST(tokens_in_range(d->arriving) && tokens_in_range(d->serving));
		MUST(limit_in_range(d->cap) && limit_in_range(d->limit));
		MUST(tokens_in_range(d->reserved) && tokens_in_range(d->static_part));
	}
	for (size_t i = 0; m->kind == LEASE_GRANT && i < m->n; i++) {
		const struct lease_tokens *t = &m->tokens[i];

		MUST(tokens_in_range(t->claim) && limit_in_range(t->cap));
		MUST(tokens_in_range(t->reserved) && limit_in_range(t->limit));
	}
	MUST(m->kind != LEASE_GRANT || (m->grant.length > 0 && m->grant.togo <= m->grant.length));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint64_t cluster = len >= PEER_HEAD ? bytes_get64(data + 8) : 0;
	struct lease_message m = {0}, back = {0};
	uint8_t *once, *again;
	size_t n;

	if (len < PEER_HEAD || lease_look(data, cluster, &n) != PEER_TAKEN || n > len)
		return 0;
	if (lease_read(data, n, &m) == PEER_TAKEN) {
		check(&m);
		once = malloc(LEASE_FRAME(m.n));
		again = malloc(LEASE_FRAME(m.n));
		MUST(once && again);
		n = lease_write(once, &m);
		MUST(lease_read(once, n, &back) == PEER_TAKEN && back.n == m.n);
		MUST(lease_write(again, &back) == n && memcmp(once, again, n) == 0);
		free(once);
		free(again);
	}
	lease_message_free(&m);
	lease_message_free(&back);
	return 0;
}
