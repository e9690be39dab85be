/* SPDX-License-Identifier: BSD-3-Clause */
/* nbd-hello: shared by the two files of the server's handshake; internal to them. */
#pragma once

#include "wire/nbd.h"
#include "wire/nbd-options.h"

enum { /* nbd_hello.step; the steps up to DATA may produce an answer */
	NBD_HELLO_AT_FLAGS,
	NBD_HELLO_AT_HEAD,
	NBD_HELLO_AT_DATA,
	NBD_HELLO_AT_SKIP,
	NBD_HELLO_AT_LIST,
	NBD_HELLO_AT_TLS,
	NBD_HELLO_AT_READY,
	NBD_HELLO_AT_ENDED,
};

/* The longest answer, to INFO: a name, a description, two items of fixed size, and the ACK. */
#define NBD_HELLO_ANSWER (2 * (NBD_ANSWER_SIZE + 2 + NBD_NAME_MAX) + 3 * (NBD_ANSWER_SIZE + 14))
_Static_assert(NBD_HELLO_ANSWER <= NBD_HELLO_OUT, "an answer must fit the output");

struct nbd_hello_out {
	uint8_t *p;
	size_t room, made;
};

void nbd_hello_end(struct nbd_hello *h, const char *fault);
/* Send an error with a message for the client's user. */
void nbd_hello_refuse(struct nbd_hello *h, struct nbd_hello_out *o, uint32_t type, const char *why);
/* Answer the option whose data are complete in h->in, and set the next step. */
void nbd_hello_option(struct nbd_hello *h, struct nbd_hello_out *o);
/* Continue the list of exports. Return false if the output has no room. */
bool nbd_hello_list(struct nbd_hello *h, struct nbd_hello_out *o);
