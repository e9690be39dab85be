/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handover: a gateway is replaced by another process, and its clients notice a pause.
 *
 * The process that replaces (weir serve --replace) and the one that is replaced talk by a socket in the state folder
 * (serve/handover/pass.h):
 *
 *   new: replace    it has read its policy's file. The old one refuses changes of the policy from now on
 *   old: offer      sockets that listen, and locked files: the new one opens everything, beside the old one
 *   new: ready      it could serve now
 *   old: state      with the record of what its clients have. Before that the old one goes on until no handshake is under way and
 *                   clients with TLS are drained (5 s at most), flushes upstreams, and then reads from no client any more until
 *                   the back ends have returned what they have: here the pause begins
 *   new: taken      the record's mark was changed (serve/handover/record.h): from now on it serves, and the old one ends at once
 *
 * In a restart by the service manager (serve/handover/store.h) the old process does the same, puts everything into the manager's
 * store and ends; the new one finds it there when it starts, and removes it when it serves.
 *
 * If anything fails before the mark is changed, the old process goes on, with all its clients and requests, and logs the reason.
 *
 *   serve/gateway/handover.c  what the record holds: written by the one, read by the other
 *   serve/gateway/replace.c   the process that is replaced
 *   serve/gateway/succeed.c   the process that replaces it
 */
#pragma once

#include "serve/handover/record.h"
#include <weir/clock.h>

struct gateway;

/* ---- replace.c */

/* Wait for a process that replaces this one, in the state folder, if there is one. A failure is logged. */
void gateway_replace_start(struct gateway *g);
void gateway_replace_stop(struct gateway *g);
/* The process is to end. If the service is being restarted: pass everything on through the service manager's store
 * (serve/handover/store.h), or else stop after all. Return false: it is no restart, or nothing can be passed on. */
bool gateway_replace_store(struct gateway *g);
/* Return true while another process reads what is in force: then no policy may be changed. */
bool gateway_is_replaced(const struct gateway *g);

/* ---- handover.c */

/* Write the sockets that listen and the files that are locked; read them into serve/loop/inherit.h. 0 or a negative errno. */
void handover_put_inherited(struct record_out *o);
int handover_get_inherited(struct record_in *in);

/* Write the clients that have tenants of templates; read them, and ask for these tenants. Return true if the main loop must run to
 * make them. */
void handover_put_senders(struct gateway *g, struct record_out *o);
bool handover_get_senders(struct gateway *g, struct record_in *in);

/* Every resource is frozen and quiet. Write what its clients have. began: of the pause. */
void handover_keep(struct gateway *g, weir_time began, struct record_out *o);

struct handover_taken {         /* read, and not started */
	weir_time began, quiet; /* of the pause; when the back ends had returned everything */
	struct record_in ledger;
	size_t n, room;
	struct handover_part *parts;
	bool whole; /* front_take */
};
/* Read it, before the loop runs. whole: -EAGAIN if a client's storage was not reached yet; else such clients are disconnected. 0, or a
 * negative errno with a message. */
int handover_take(struct gateway *g, struct record_in *in, bool whole, struct handover_taken *ret,
	struct weir_err *err);
void handover_start(struct gateway *g, struct handover_taken *t); /* and free */
void handover_drop(struct gateway *g, struct handover_taken *t);
