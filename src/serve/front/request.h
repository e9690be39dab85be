/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request: a request on its way from a front end through a gate, and the client that sent it.
 *
 * Front ends make requests; the gateway's resources take them. Both know only this header of each
 * other.
 */
#pragma once

#include <weir/gate.h>
#include "control/shadow-device.h"
#include "serve/back/back.h"

struct client;
struct resource;

/* A request, or a piece of one. The front end's memory. The front end sets io.op, flags, offset (in
 * the back end), length, data, chunk and extents; client; done.
 *
 * A request that is not block I/O (an NFS call, a memcached command) has the op BACK_CALL or
 * BACK_CALL_WRITE. It is counted at the gate as a read or write of io.length bytes. When the gate
 * lets it pass, `call` is called instead of the back end; it does, or begins, what the client asked
 * for, and ends with front_gate.finish. */
struct request {
	struct weir_req gate; /* first: the gate hands it back. gate.user is the resource's */
	struct back_io io;
	struct client *client;
	struct request *next; /* the resource's between submit and done; then the owner's */
	void (*done)(struct request *r); /* on the loop's thread; io.error is set */
	void (*call)(struct request *r); /* of a BACK_CALL; on the loop's thread */
	void *owner;
	uint64_t user; /* the owner's */
	/* For the resource, in shadow mode: all work finished before it; work inside, including its
	 * own. */
	struct shadow_work before, inside;
	weir_time
		since; /* the resource's: when it first went to the gate, if a swap took it back */
	struct request *inside_next,
		**inside_link; /* the resource's: of its volume, while inside */
};

struct request_list { /* linked by request.next */
	struct request *first, **end;
};

static inline void request_list_clear(struct request_list *l)
{
	l->first = NULL;
	l->end = &l->first;
}
static inline void request_list_add(struct request_list *l, struct request *q)
{
	q->next = NULL;
	*l->end = q;
	l->end = &q->next;
}

/* A client as the policy sees it: a connection, or one of several users of a connection. */
struct client {
	struct client *next, **link; /* of the resource's clients */
	struct resource *resource;
	char export_[256], name[80], address[64], uid[16], tls[128]; /* "": not known */
	uint64_t offset; /* of its export, in the resource */
	weir_time since;
	int tenant;               /* index in the policy in force */
	weir_node node;           /* in the resource's gate */
	uint64_t requests, bytes; /* submitted so far */
	uint32_t in_flight;       /* submitted and not done */
	/* The resource's: `leave`, or `unread`, was called; and while there are requests to drop, its
	 * place in the list of such clients. */
	bool left, unread;
	struct client *next_left, **link_left;
	struct resource_sender *sender; /* the resource's, in shadow mode; NULL at first */
	/* The policy in force no longer admits it: disconnect it. On the loop's thread. */
	void (*refused)(struct client *c, const char *why);
	/* Call fn with the time of receipt (see front_gate.answered) of each of its requests that has
	 * no reply yet. On the loop's thread. NULL: they are not counted while they wait. */
	void (*waiting)(
		const struct client *c, void (*fn)(void *arg, weir_time received), void *arg);
};

struct front_held { /* of a client's tenant since its node was made; 0 if nothing is held */
	/* request·ns that limits (a max, a lack of tokens) held its requests; waiting ones
	 * included */
	double ns;
	uint64_t served; /* requests that completed */
};

/* A resource as front ends use it: the functions that the gateway gives them, on the resource's
 * thread. */
struct front_gate {
	/* A client arrives (its tenant already matched), and leaves. leave: its queued requests are
	 * dropped from the gate, at once or, after other clients with many requests have left, some
	 * ms later, and come back through `done` with io.error -ECANCELED; those inside the back
	 * end finish later: the client's memory must live until its in_flight is 0. */
	void (*join)(struct resource *r, struct client *c);
	void (*leave)(struct resource *r, struct client *c);
	/* The client reads no reply any more, but what it wrote is to be done: its queued requests are
	 * dropped as by leave, except writes, zeroes, trims and flushes. No further request of it may
	 * be submitted. */
	void (*unread)(struct resource *r, struct client *c);
	/* Take a request. It is passed on in this loop round's turn. */
	void (*submit)(struct resource *r, struct request *q);
	/* A BACK_CALL that passed the gate is done; q->io.error is its result. */
	void (*finish)(struct resource *r, struct request *q);
	/* The reply to a client's request has left. `received` is the return of the recv that
	 * brought the request's last byte, `finished` that of the send that accepted the last byte
	 * of its reply. Once per request of the client, however many pieces it had. */
	void (*answered)(const struct client *c, weir_time received, weir_time finished);
	void (*held)(struct resource *r, const struct client *c, struct front_held *ret_held);
	/* Call fn for each request that waits while the resource is frozen, in the order in which they are to be submitted again. */
	void (*each_waiting)(
		struct resource *r, void (*fn)(void *arg, struct request *q), void *arg);
};
