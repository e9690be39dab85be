/* SPDX-License-Identifier: BSD-3-Clause */
/* sent: numbered reads of clients at a resource, so that a test detects a lost, doubled or
 * reordered request. */
#ifndef WEIR_TESTS_PORT_SENT_H
#define WEIR_TESTS_PORT_SENT_H

#include "serve/resource/resource.h"
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct sent {
	struct request q; /* first */
	unsigned client, serial;
	bool away;
};

static inline struct sent *sent_of(struct back_io *io)
{
	return (struct sent *)(void *)((char *)io - offsetof(struct request, io));
}

/* Submit it from the client `from`, which has the number `client`; `done` is called with it in
 * the end. */
static inline void sent_submit(struct resource *r, struct sent *s, struct client *from,
	unsigned client, unsigned serial, void (*done)(struct request *q))
{
	memset(&s->q, 0, sizeof(s->q));
	s->q.io.op = BACK_READ;
	s->q.io.length = 4096;
	s->q.client = from;
	s->q.done = done;
	s->client = client;
	s->serial = serial;
	s->away = true;
	resource_submit(r, &s->q);
}

#endif
