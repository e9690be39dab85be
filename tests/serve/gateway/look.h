/* SPDX-License-Identifier: BSD-3-Clause */
/* look.h: a snapshot of a gateway whose loop the test runs. */
#ifndef WEIR_TESTS_SERVE_GATEWAY_LOOK_H
#define WEIR_TESTS_SERVE_GATEWAY_LOOK_H

#include "serve/gateway/gateway.h"
#include "serve/loop/loop.h"
#include "test.h"

struct looking {
	struct gateway *gateway;
	struct snapshot *snapshot;
};

static inline void looked(void *arg, struct snapshot *s)
{
	struct looking *l = arg;

	l->snapshot = s;
	loop_stop(gateway_loop(l->gateway));
}

static inline struct snapshot *look_at(struct gateway *g)
{
	struct looking l = {g, NULL};

	CHECK_INT(gateway_look(g, NULL, looked, &l), 0);
	CHECK_INT(loop_run(gateway_loop(g)), 0);
	CHECK(l.snapshot);
	return l.snapshot;
}

#endif
