/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-replies: parse the stream of an NBD server's replies. For all clients: the NBD back end and
 * `weir load`.
 */
#pragma once

#include "serve/back/cover.h"
#include "wire/nbd.h"

struct nbd_call { /* a request that awaits its reply; part of the caller's own */
	uint64_t cookie, offset;
	uint8_t *in;        /* READ: where its data go; NULL: they are discarded */
	uint8_t *lent;      /* READ: where its data are instead, in the input; NULL: in `in` */
	struct cover cover; /* READ: the bytes received */
	uint32_t length;
	uint32_t got; /* READ: bytes so far, none twice */
	int error;    /* of the chunks so far: 0 or a negative errno */
	uint8_t command;
	bool borrows; /* READ: may be lent */
	uint8_t room; /* lent: bytes of the reply's head before the data, which are no longer needed */
};

struct nbd_replies {
	uint8_t mode;       /* zero at the start of a connection, as all but the last two */
	uint8_t have, need; /* bytes in `small` */
	uint8_t small[24];
	uint32_t context; /* of the extents that follow */
	struct nbd_reply head;
	struct nbd_call *call; /* of the head */
	uint8_t *to;           /* where the data that follow go; NULL: nowhere */
	uint32_t left;         /* bytes of this chunk still missing */
	/* the caller's: structured replies were agreed on; whole data of a read may stay in the
	 * input */
	bool structured, lends;
};

struct nbd_replies_ops {
	/* Return the call of that cookie, sent on this connection; NULL: none. */
	struct nbd_call *(*find)(void *arg, uint64_t cookie);
	/* Its reply is complete. Return 0, or a number at which the parser stops and returns it. */
	int (*done)(void *arg, struct nbd_call *c);
	/* An extent of a block status. Return 0 or -EPROTO. NULL: none was asked for. */
	int (*extent)(
		void *arg, struct nbd_call *c, uint32_t context, uint32_t length, uint32_t flags);
};

/* Parse n bytes, in pieces of any size. p NULL: data that were received in place, at r->to. Return
 * 0, a number from `done`, -EPROTO: breach of the protocol, or -ENOMEM. */
int nbd_replies_input(struct nbd_replies *r, const struct nbd_replies_ops *ops, void *arg,
	const uint8_t *p, size_t n);
