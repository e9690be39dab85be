/* SPDX-License-Identifier: BSD-3-Clause */
/* peer-rig: hosts of one cluster inside a test, on one loop, which share a file or an export. */
#ifndef WEIR_TESTS_PORT_PEER_RIG_H
#define WEIR_TESTS_PORT_PEER_RIG_H

#include "serve/loop/log.h"
#include "serve/peer/peer.h"
#include "test.h"
#include "wire/peer-slots.h"

#define BLOCK PEER_SLOTS_BLOCK

static struct loop *loop;

struct host {
	struct peers *peers;
	unsigned heard;
	struct peer_message got;
	bool closed;
};

static inline void receive(void *arg, const struct peer_message *m, weir_time now)
{
	struct host *h = arg;

	h->heard++;
	h->got = *m;
}

static inline void closed(void *arg)
{
	((struct host *)arg)->closed = true;
}

/* with_key: a file, or NULL */
static inline int try_host(struct host *h, const char *name, const char *at, const char *with_key,
	struct weir_err *err)
{
	const char *addresses[] = {at, NULL};
	struct peer_config c = {.loop = loop,
		.addresses = addresses,
		.name = name,
		.cluster = "test",
		.key = with_key,
		.receive = receive,
		.arg = h};

	*h = (struct host){0};
	return peer_open(&c, &h->peers, err);
}

static inline void open_host_at(
	struct host *h, const char *name, const char *at, const char *with_key)
{
	struct weir_err err;

	if (try_host(h, name, at, with_key, &err) < 0)
		FAIL("%s", err.text);
}

static inline struct peer_stats stats(struct host *h)
{
	struct peer_stats s;

	peer_stats(h->peers, &s);
	return s;
}

static inline bool nudge(struct loop_turn *t, weir_time now)
{
	loop_stop(loop);
	return false;
}

/* Run rounds until it is true. */
#define UNTIL(expr)                                                                                \
	do {                                                                                       \
		struct loop_turn t_ = {.turn = nudge};                                             \
		loop_turn_add(loop, &t_);                                                          \
		while (!(expr))                                                                    \
			CHECK_INT(loop_run(loop), 0);                                              \
		loop_turn_remove(loop, &t_);                                                       \
	} while (0)

static inline uint64_t ended(
	struct host *h) /* Return the number of periods that ended, successfully or not. */
{
	struct peer_stats s = stats(h);

	return s.sent + s.failed;
}

static inline void begin(struct host *h, double window)
{
	struct peer_report r = {.resource = 1, .window = window, .beta = 1, .latency = 25e6};

	peer_send(h->peers, &r, 1);
}

static inline void period(struct host *h, double window)
{
	uint64_t before = ended(h);

	begin(h, window);
	UNTIL(ended(h) > before);
}

static inline void close_host(struct host *h)
{
	peer_close(h->peers, closed, h);
	UNTIL(h->closed);
}

#endif
