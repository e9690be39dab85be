/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * succeed: take over from a running gateway (handover.h has the steps).
 */
#pragma once

#include <weir/err.h>

struct gateway;
struct succession;

/* Before gateway_new: ask the process that runs with this state folder for its sockets and files. 0, with NULL if there is none; or a
 * negative errno with a message: it goes on. */
int succession_begin(const char *state, struct succession **ret, struct weir_err *err);
struct record_fds;
/* The same with what the service manager's store had for this process; the descriptors are owned. A part that cannot be read is dropped,
 * with a line in the log, and *ret is NULL: this process starts as any other. */
void succession_restart(struct record_fds *stored, struct succession **ret);
/* After gateway_new, before gateway_run: take over its clients; the other process ends, or has ended. 0, and s is freed; or a negative errno with a
 * message: then succession_fail, and this process must end. */
int succession_end(struct succession *s, struct gateway *g, struct weir_err *err);
/* Tell the other process why it goes on. Frees s; NULL is fine. */
void succession_fail(struct succession *s, const char *why);
