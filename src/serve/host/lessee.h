/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lessee: pShift at one resource: it is a server of the cluster, and holds leases of its tenants' tokens.
 *
 * control/pshift/server decides; here it is given what the gate counted, at its times, and what it grants is
 * put into the gate. A bucket is a leaf of the policy that can come here, known by its path: it outlives
 * changes of the policy. All of it on the resource's thread. Messages come and go through the main thread
 * (cluster.c): what is to be sent is handed to `post` as a frame, what came is handed over by a task.
 */
#ifndef WEIR_SERVE_HOST_LESSEE_H
#define WEIR_SERVE_HOST_LESSEE_H

#include "control/pshift/server.h"

struct resource;
struct snapshot;

/* A frame for the controllers, without nonce and seal but with room for the seal; malloc'ed, the callee's.
 * On the resource's thread; returns at once. */
typedef void lessee_post(void *arg, uint8_t *frame, size_t n);

/* From now on, or (NULL) no longer. */
void lessee_connect(struct resource *r, lessee_post *post, void *arg);
/* What a controller said; that one has connected, and wants to know what this server holds; that the connection to one
 * (by its instance) was closed. */
void lessee_receive(struct resource *r, const struct lease_message *m);
void lessee_met(struct resource *r);
void lessee_lost(struct resource *r, uint64_t controller);

#endif
