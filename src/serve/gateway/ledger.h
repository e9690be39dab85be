/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ledger: keep AdapTBF's loans at every resource across a restart.
 *
 * Main thread, except for restore. Without a state folder nothing is kept.
 */
#pragma once

#include <jansson.h>

struct gateway;
struct gateway_resource;

/* GET /v1/ledger of weir-api(7). Workers run. 0 or -ENOMEM. */
int gateway_ledger(struct gateway *g, json_t **ret_json);

/* Read the saved state before the threads start. 0 or -ENOMEM; a damaged file is renamed. */
int gateway_ledger_start(struct gateway *g);
/* Restore a resource: on its thread, when it has its policy and before its first step, while the
 * main thread waits. */
int gateway_ledger_restore(struct gateway *g, struct gateway_resource *r);
/* All resources are restored, and clients can come: start saving. Not earlier: this gateway may
 * fail to start because another one runs, which may be saving its own ledger. */
int gateway_ledger_run(struct gateway *g);
/* Write it for the process that replaces this one, while every resource is frozen; and read it there, in place of the one in the
 * file, before the main loop runs. Without a state folder nothing is written. 0; or -EBADMSG, or -ENOMEM. */
struct record_in;
struct record_out;
void gateway_ledger_keep(struct gateway *g, struct record_out *o);
int gateway_ledger_take(struct gateway *g, struct record_in *in);
/* Save once more; the main loop does not run. */
void gateway_ledger_stop(struct gateway *g);
