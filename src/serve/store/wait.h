/* SPDX-License-Identifier: BSD-3-Clause */
/* wait: a store whose caller waits for each answer: a verb, or a process that starts. Its loop has nothing else. */
#pragma once

#include "serve/store/store.h"

struct store_wait { /* zero it */
	struct loop *loop;
	struct store *store;
	/* of the last call */
	bool done;
	int rc;
	struct weir_err err;
};

/* Open a store. 0, or as store_open. */
int store_wait_open(struct store_wait *w, const char *name, struct weir_err *err);
void store_wait_close(struct store_wait *w); /* after store_wait_open only */

/* Wait, after a call, until its function calls store_wait_end. Return the rc given there; below 0 with the message in `err`. */
int store_wait(struct store_wait *w);
void store_wait_end(struct store_wait *w, int rc, const struct weir_err *err);
