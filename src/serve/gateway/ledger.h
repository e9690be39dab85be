/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ledger: who lent whom at every resource under AdapTBF, and that a restart knows it.
 *
 * Main thread, but for restore. Without a state folder nothing is kept.
 */
#ifndef WEIR_SERVE_GATEWAY_LEDGER_H
#define WEIR_SERVE_GATEWAY_LEDGER_H

#include <jansson.h>

struct gateway;
struct gateway_resource;

/* GET /v1/ledger of weir-api(7). Workers run. 0 or -ENOMEM. */
int gateway_ledger(struct gateway *g, json_t **ret_json);

/* Before the threads start: reads what was kept. 0 or -ENOMEM; a file that is not good is set aside. */
int gateway_ledger_start(struct gateway *g);
/* On a resource's thread, when it has its policy and before its first step, while the main thread waits. */
int gateway_ledger_restore(struct gateway *g, struct gateway_resource *r);
/* All resources have been restored, and clients can come: from now on it is kept. Not before: another gateway
 * that is there already, because of which this one does not start, may be keeping its own. */
int gateway_ledger_run(struct gateway *g);
/* Keeps it once more; the main loop does not run. */
void gateway_ledger_stop(struct gateway *g);

#endif
