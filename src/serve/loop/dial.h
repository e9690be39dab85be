/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dial: connect to an address without blocking a loop.
 *
 * Resolving a name and connecting may block for seconds, so a thread does it, and signals its end
 * by an eventfd. Neither the thread nor the loop waits for the other: the last one to release the
 * attempt frees it.
 */
#pragma once

#include <weir/err.h>
#include "serve/loop/loop.h"

struct dial;

/* Called on the loop's thread with a non-blocking socket (owned by the callee), or a negative errno
 * and a message. The attempt is over: do not drop it. */
typedef void dial_done(void *arg, int fd, const struct weir_err *err);

/* Start an attempt. address: as in stream.h, copied. 0, -ENOMEM, or the system's error. */
int dial_start(struct loop *l, const char *address, weir_time timeout, dial_done *done, void *arg,
	struct dial **ret_dial);
/* Cancel: done is not called any more. NULL is fine. */
void dial_drop(struct dial *d);
