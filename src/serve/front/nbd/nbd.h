/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd: the NBD front end.
 *
 *   serve/front/nbd/nbd.c    its table of functions: the handshake, requests
 *   serve/front/nbd/check.c  the rules of the protocol (pure)
 *   serve/front/nbd/held.c   the answers about weir:held
 *   serve/front/nbd/reply.c  replies
 */
#pragma once

#include "serve/front/front.h"
#include "wire/nbd.h"

struct front_nbd_visit {
	struct front_visit visit; /* first */
	struct nbd_hello hello;
	struct nbd_hello_ops ops;
	const char *about; /* description of the last listed export */
};

struct front_nbd_conn {
	struct front_conn conn; /* first */
	uint16_t flags;         /* enum nbd_export_flags */
	uint32_t context_id, held_id;
	bool structured, base_allocation;
	bool tells_held;         /* weir:held is negotiated, … */
	struct front_held asked; /* … its tenant's state at the last query, … */
	uint32_t told;           /* … and the last answer: µs */
	struct nbd_request request;
};

extern const struct front_ops front_nbd_ops;

/* Set up a connection by the outcome of its handshake. */
void front_nbd_agree(struct front_conn *c, const struct nbd_hello *h);

/* ---- serve/front/nbd/check.c */

struct front_nbd_rules {    /* the rules of an export */
	uint64_t size;      /* bytes */
	uint16_t flags;     /* enum nbd_export_flags, as offered */
	uint32_t block_min; /* bytes */
	bool structured, status;
};
/* Return 0 if the request may be done, else the negative errno that the protocol prescribes. Not
 * for NBD_DISC. */
int front_nbd_check(const struct front_nbd_rules *rules, const struct nbd_request *q);
/* Return the transmission flags of an export on such a back end. */
uint16_t front_nbd_flags(const struct back_info *info, bool read_only);

/* ---- serve/front/nbd/held.c */

/* Return true if the block status c->request is the query for weir:held. Then c->told is the new
 * answer. */
bool front_nbd_held(struct front_nbd_conn *c);

/* ---- serve/front/nbd/reply.c */

void front_nbd_reply(struct gather *g, struct front_job *j);
