/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd: the Network Block Device protocol, as bytes and structs; both sides.
 *
 * SOURCE  The NBD protocol (doc/proto.md of the NBD project), fixed newstyle.
 *
 * Pure: bytes in, structs out. Nothing here reads a socket, waits, or allocates.
 *
 *   nbd.c          requests, replies, errors
 *   nbd-hello.c    the server's side of the handshake
 *   nbd-greet.c    the client's side of the handshake
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NBD_PORT        10809
#define NBD_NAME_MAX    4096        /* bytes of an export's name; the protocol's limit */
#define NBD_PAYLOAD_MAX (32u << 20) /* bytes: the most in one request, as server and as client */

/* ---- transmission phase */

enum nbd_command {
	NBD_READ = 0,
	NBD_WRITE = 1,
	NBD_DISC = 2,
	NBD_FLUSH = 3,
	NBD_TRIM = 4,
	NBD_CACHE = 5,
	NBD_WRITE_ZEROES = 6,
	NBD_BLOCK_STATUS = 7,
};

enum nbd_command_flags {
	NBD_FUA = 1,
	NBD_NO_HOLE = 2,
	NBD_DF = 4, /* do not fragment */
	NBD_REQ_ONE = 8,
	NBD_FAST_ZERO = 16,
};

/* Transmission flags of an export. */
enum nbd_export_flags {
	NBD_HAS_FLAGS = 1 << 0,
	NBD_READ_ONLY = 1 << 1,
	NBD_SEND_FLUSH = 1 << 2,
	NBD_SEND_FUA = 1 << 3,
	NBD_ROTATIONAL = 1 << 4,
	NBD_SEND_TRIM = 1 << 5,
	NBD_SEND_WRITE_ZEROES = 1 << 6,
	NBD_SEND_DF = 1 << 7,
	NBD_MULTI_CONN = 1 << 8,
	NBD_SEND_CACHE = 1 << 10,
	NBD_SEND_FAST_ZERO = 1 << 11,
};

#define NBD_REQUEST_SIZE 28
struct nbd_request {
	uint64_t cookie, offset;
	uint32_t length;
	uint16_t flags, command; /* as sent; the caller refuses unknown ones */
};
/* Parse NBD_REQUEST_SIZE bytes. Return 0, or -EPROTO if the magic is wrong. */
int nbd_request_read(const uint8_t *p, struct nbd_request *ret);
void nbd_request_write(uint8_t *p, const struct nbd_request *r);

#define NBD_SIMPLE_SIZE 16
#define NBD_CHUNK_SIZE  20
enum nbd_chunk_flags { NBD_CHUNK_DONE = 1 };
enum nbd_chunk_type {
	NBD_CHUNK_NONE = 0,
	NBD_CHUNK_DATA = 1,              /* 8 bytes of offset, then data */
	NBD_CHUNK_HOLE = 2,              /* 8 bytes of offset, 4 of length */
	NBD_CHUNK_STATUS = 5,            /* 4 bytes of context id, then extents of 4 + 4 */
	NBD_CHUNK_ERROR = 0x8001,        /* 4 of error, 2 of message length, message */
	NBD_CHUNK_ERROR_OFFSET = 0x8002, /* the same, then 8 of offset */
};
/* For servers. `error`: 0 or a negative errno. Each function writes its header and returns its
 * size. */
size_t nbd_simple_write(uint8_t *p, uint64_t cookie, int error);
size_t nbd_chunk_write(
	uint8_t *p, uint64_t cookie, enum nbd_chunk_type type, uint16_t flags, uint32_t length);
/* The start of a structured reply to a read, up to its data: header and offset; 28 bytes. */
#define NBD_DATA_SIZE (NBD_CHUNK_SIZE + 8)
size_t nbd_data_write(uint8_t *p, uint64_t cookie, uint64_t offset, uint32_t length);
/* A final error chunk without a message; 26 bytes. */
#define NBD_ERROR_SIZE (NBD_CHUNK_SIZE + 6)
size_t nbd_error_write(uint8_t *p, uint64_t cookie, int error);

/* For clients. */
struct nbd_reply { /* head of a simple reply or of one chunk */
	uint64_t cookie;
	bool structured;
	uint16_t flags, type; /* chunks */
	uint32_t length; /* chunks: bytes that follow. Simple: 0; data of a read follow if !error */
	int error;       /* simple: 0 or a negative errno */
};
/* ---- weir:held
 *
 * A metadata context of Weir: how long the server's limits hold the requests of a client. A client
 * that takes latency as a sign of load, as PARDA does, must not count the time in which a limit
 * held its requests. If a client negotiated the context, a block status has one extent of it, whose
 * 32 bits are
 *
 * µs, the mean over the requests of the client's tenant, for which a max or a lack of tokens held
 * each (waiting for the device or for a turn does not count), since the previous query on the same
 * connection; NBD_HELD_MOST: that or more.
 *
 * The query is a block status of the first block_min bytes with NBD_REQ_ONE. The server answers it
 * at once, and reports base:allocation as data, which is always allowed. In any other block status
 * the bits repeat the last answer. A client that does not know the context ignores it, as the
 * protocol demands. */
#define NBD_HELD_MOST UINT32_MAX

/* Parse n bytes. Return the size of the head (16 or 20), 0: more bytes are needed, or -EPROTO: not
 * a reply. */
int nbd_reply_read(const uint8_t *p, size_t n, struct nbd_reply *ret);

/* Convert a negative errno to the protocol's error, and back. Errors unknown to the protocol become
 * EIO. */
uint32_t nbd_error_of(int negative_errno);
int nbd_errno_of(uint32_t nbd_error);

/* ---- the handshake, server side */

struct nbd_export { /* an export as described to a client */
	uint64_t size;
	uint16_t flags; /* enum nbd_export_flags; NBD_HAS_FLAGS is added */
	uint32_t block_min, block_preferred, block_max;
	const char *description; /* or NULL */
};

struct nbd_hello_ops {
	/* Look up the export of that name ("" is the default export) for this client. Return 0;
	 * -ENOENT; -EACCES: not allowed for this client; -EAGAIN: its storage is not reachable and
	 * the client has to wait (NBD_HELLO_WAIT; only GO and EXPORT_NAME do); -ETIMEDOUT: it
	 * waited long enough; others (-ENODEV, -ESHUTDOWN): it cannot be served. */
	int (*find)(void *arg, const char *name, struct nbd_export *ret);
	/* The client is about to use the export that `find` found (GO, EXPORT_NAME). Return 0, or
	 * -EAGAIN: the client has to wait, and `find` is called again first. Optional. */
	int (*enter)(void *arg);
	/* Return the i-th name of the list, or NULL. Valid until the next call. */
	const char *(*list)(void *arg, size_t i);
	/* Return the description of the name that `list` returned last, or NULL. Optional. */
	const char *(*describe)(void *arg);
	void *arg;
};

enum nbd_hello_state {
	NBD_HELLO_MORE,  /* send the output, give more input */
	NBD_HELLO_TLS,   /* send the output, do the TLS handshake, then call nbd_hello_secure */
	NBD_HELLO_READY, /* send the output; requests follow */
	NBD_HELLO_WAIT,  /* send the output, and call again without input when `find` may succeed */
	NBD_HELLO_END,   /* send the output, then close: the client left or broke the protocol */
};

#define NBD_HELLO_IN (NBD_NAME_MAX + 256) /* the longest option that the server parses */
struct nbd_hello {
	/* the outcome, when READY */
	char name[NBD_NAME_MAX + 1];
	struct nbd_export export_;
	bool structured, base_allocation;
	uint32_t context_id; /* of base:allocation, when negotiated */
	bool held;           /* weir:held is negotiated, … */
	uint32_t held_id;    /* … with this context id */
	/* the reason (END); NULL if the client left by NBD_OPT_ABORT or before its first option */
	const char *fault;
	/* internal */
	const struct nbd_hello_ops *ops;
	bool tls_offered, tls_required, secure, fixed, no_zeroes;
	/* After nbd_hello_secure: why every option of this client is refused, or NULL. */
	const char *denied;
	bool waits; /* `find` returned -EAGAIN: the option is still in `in` */
	uint8_t step;
	uint32_t have, skip, option, length;
	unsigned options; /* options so far, to bound them */
	size_t listed;    /* names listed so far */
	uint8_t in[NBD_HELLO_IN];
};
void nbd_hello_init(
	struct nbd_hello *h, const struct nbd_hello_ops *ops, bool tls_offered, bool tls_required);
/* Write the server's greeting to out (≥ 32 bytes) and return its size: the server speaks first. */
size_t nbd_hello_start(struct nbd_hello *h, uint8_t *out);
/* Process input until the output is full, the input is used up or the state is not MORE. *used:
 * bytes consumed. *made: bytes written to out, which has `room` bytes (≥ NBD_HELLO_OUT). A longer
 * list continues at the next call, also without input: so while the state is MORE, send the output
 * and call again with the rest, until a call neither consumes nor writes anything. After READY the
 * rest of the input is the first requests. */
#define NBD_HELLO_OUT 16384
enum nbd_hello_state nbd_hello_input(struct nbd_hello *h, const uint8_t *in, size_t n, size_t *used,
	uint8_t *out, size_t room, size_t *made);
void nbd_hello_secure(struct nbd_hello *h); /* call when the TLS handshake is done */

/* ---- the handshake, client side */

enum nbd_greet_state { NBD_GREET_MORE, NBD_GREET_TLS, NBD_GREET_READY, NBD_GREET_FAILED };
struct nbd_greet {
	/* the outcome, when READY */
	struct nbd_export export_;
	bool structured, base_allocation, held; /* held: weir:held */
	uint32_t context_id, held_id;
	/* when FAILED: a negative errno (-ENOENT, -EACCES, -EPROTO, …) and a sentence */
	int error;
	char fault[200];
	/* internal */
	const char *name; /* borrowed */
	bool want_tls, want_structured, want_allocation, secure, no_zeroes, told;
	bool want_held; /* set by the caller after init */
	bool only_info; /* the same: ask for the export's size without becoming its client */
	uint8_t step;
	unsigned answers; /* answers so far, to bound them */
	uint32_t have, skip, option, length, reply_type;
	uint8_t in[1024];
};
/* name: of the export. tls: request STARTTLS first. structured, allocation: request them, and use
 * them if the server has them. */
void nbd_greet_init(
	struct nbd_greet *g, const char *name, bool tls, bool structured, bool allocation);
/* As nbd_hello_input; room ≥ NBD_GREET_OUT. The server speaks first, so the first call has its bytes. */
#define NBD_GREET_OUT (NBD_NAME_MAX + 256)
enum nbd_greet_state nbd_greet_input(struct nbd_greet *g, const uint8_t *in, size_t n, size_t *used,
	uint8_t *out, size_t room, size_t *made);
/* Call when the TLS handshake is done; writes the first option under TLS. */
void nbd_greet_secure(struct nbd_greet *g, uint8_t *out, size_t room, size_t *made);
