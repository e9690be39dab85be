/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dial: connects to an address without holding up a loop.
 *
 * To find a host's address and connect to it may block for seconds, so a thread does it, and says by an
 * eventfd that it has ended. Nobody waits for that thread: whoever of the two, the thread and the loop,
 * lets go of the attempt last, frees it.
 */
#ifndef WEIR_SERVE_LOOP_DIAL_H
#define WEIR_SERVE_LOOP_DIAL_H

#include <weir/err.h>
#include "serve/loop/loop.h"

struct dial;

/* On the loop's thread: a non-blocking socket (the callee's), or a negative errno and why. The attempt is
 * over: do not drop it. */
typedef void dial_done(void *arg, int fd, const struct weir_err *err);

/* address: as in stream.h, copied. 0, -ENOMEM, or what the system says. */
int dial_start(struct loop *l, const char *address, weir_time timeout, dial_done *done, void *arg,
	struct dial **ret_dial);
/* done is not called any more. NULL: nothing. */
void dial_drop(struct dial *d);

#endif
