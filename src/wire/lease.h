/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lease: what the servers of a cluster and its pShift controller tell each other, as bytes and structs.
 *
 * Messages go over a stream, one behind the other, each in its frame. A frame begins with the 128 bytes
 * that every message of ours begins with (wire/peer.h: magic, version, cluster, instance, sequence, sent,
 * nonce, name), has a kind of its own, says at 124 how long its body is, and ends with the seal:
 *
 *     0  128  as peer.h; length is 128, no reports
 *   124    4  bytes of the body
 *   128       the body: 64 bits each for what stands in the struct, in its order (`wants` is the
 *           second bit of `full`), then the entries
 *         32  the seal: a keyed hash of all before it
 *
 * In an entry the bucket is 64 bits, then come flags, and each number in as few bytes as it needs, seven
 * bits a byte, the least first: most are small. A reader refuses what it does not know: a later layout
 * is a new version.
 *
 * Whoever receives goes in this order: lease_look at the first 128 bytes, which says how many belong to
 * the frame; then the seal, which is the caller's; then lease_read, which trusts nobody all the same.
 *
 * FRESH   `nonce` is what the other side sent when the connection began, chosen by it at random, and
 *         `sequence` grows in a connection: so nothing of an earlier connection can be played again.
 *         Both sides begin with LEASE_HELLO, which carries the nonce that they want to see.
 *
 * Pure: nothing here reads a socket or waits; only lease_message_room allocates.
 */
#ifndef WEIR_WIRE_LEASE_H
#define WEIR_WIRE_LEASE_H

#include "wire/peer.h"
#include <stdbool.h>

/* A server with more buckets than that is several servers. 60 MB at most. */
#define LEASE_ENTRIES_MAX (UINT32_C(1) << 20)
#define LEASE_TOKENS_MAX  (INT64_C(1) << 53) /* of any number of tokens, as alg/pshift's */
#define LEASE_NO_LIMIT    INT64_MAX
#define LEASE_BODY        (12 * 8) /* bytes of a body before its entries */
#define LEASE_ENTRY_MAX   (8 + 1 + 8 * 8)
/* Bytes of a frame with n entries, at most; the seal included. */
#define LEASE_FRAME(n) (PEER_HEAD + LEASE_BODY + (size_t)(n)*LEASE_ENTRY_MAX + PEER_SEAL)

enum lease_kind {
	LEASE_HELLO = 32, /* the first of each side; a body without meaning */
	LEASE_REPORT,     /* server → controller */
	LEASE_ASK, /* controller → server: follow me (generation 0: do not), and report in full */
	LEASE_GRANT, /* controller → server */
	LEASE_KINDS
};

enum lease_state { /* of a server; see ctl/pshift.h */
	LEASE_BLIND,
	LEASE_LEASED,
	LEASE_HELD,
	LEASE_STATIC,
	LEASE_STATES
};

struct lease_report {                    /* what a server says of itself */
	uint64_t generation, controller; /* whom it follows: generation and instance; 0: nobody */
	uint64_t accepted; /* sequence of the last grant that it took of that one; 0: none */
	uint64_t period;   /* number of the QoS period that it is in; 0: it knows none */
	uint64_t granted;  /* the period in which it last took a grant; 0: never */
	weir_time left;    /* ns until that period ends for it; 0: it has ended */
	weir_time length;  /* ns of a period, as it was told last, or by its own policy */
	uint64_t capacity; /* tokens a second that it can serve */
	uint64_t state;    /* enum lease_state */
	uint64_t full;     /* 1: all its buckets, with what they hold */
	uint64_t asked;    /* sequence of the last LEASE_ASK that it took of whom it follows */
	uint64_t wants;    /* 1: it follows nobody, and some bucket waits for its reservation */
};

struct lease_demand { /* of one bucket at one server; tokens */
	uint64_t bucket;
	int64_t used;     /* served in this period */
	int64_t queue;    /* waiting now */
	int64_t arriving; /* a second */
	int64_t serving;  /* a second */
	bool closed;      /* more would come if more were served */
	/* What it holds; only where `holds`, as in every entry of a full report. */
	bool holds;
	int64_t cap;             /* of this period, or LEASE_NO_LIMIT */
	int64_t reserved, limit; /* of a whole period: its entitlement, as last told */
	int64_t static_part;     /* of the limit, when nobody is there to tell */
};

struct lease_grant {
	uint64_t generation;
	uint64_t base;      /* `accepted` as far as known; holds all that changed since */
	uint64_t heard;     /* sequence of the last report that was received, … */
	weir_time echo;     /* … when it was sent, by the server's clock, … */
	weir_time left;     /* … and ns from its arrival to the end of the period */
	weir_time togo;     /* ns from the sending of this to the end of the period */
	uint64_t period;    /* its number, ≥ 1 */
	weir_time length;   /* ns of a period */
	weir_time interval; /* ns between two reports, at least */
	uint64_t hold, gap; /* periods: see ctl/pshift.h */
};

struct lease_tokens { /* of one bucket at one server */
	uint64_t bucket;
	int64_t claim;           /* served first until so many were served in this period */
	int64_t cap;             /* served at all until so many were, or LEASE_NO_LIMIT */
	int64_t reserved, limit; /* the same of each period that follows; limit as cap */
};

struct lease_message {
	enum lease_kind kind;
	uint64_t cluster, instance, sequence;
	weir_time sent;
	uint8_t nonce[PEER_NONCE];
	char name[PEER_NAME_MAX + 1];
	union {
		struct lease_report report;
		struct lease_grant grant; /* ASK: only its generation */
	};
	size_t n; /* entries */
	union {
		struct lease_demand *demands; /* REPORT */
		struct lease_tokens *tokens;  /* GRANT */
	};
	size_t room; /* of entries that were allocated; 0: they are another's */
};

/* Room for n entries of either sort, which is the message's: 0 or -ENOMEM. What was there is lost. */
int lease_message_room(struct lease_message *m, size_t n);
void lease_message_free(struct lease_message *m); /* only its entries */

/* Bytes without the seal; `out` has LEASE_FRAME(m->n). The message is well formed. */
size_t lease_write(uint8_t *out, const struct lease_message *m);

/* Of the first PEER_HEAD bytes: PEER_TAKEN and the bytes of the frame before its seal; or NOISE, VERSION,
 * CLUSTER: then the stream is of no use any more. */
enum peer_verdict lease_look(const uint8_t *in, uint64_t cluster, size_t *ret_length);
/* Reads a frame whose seal was right; n as lease_look gave it. *ret keeps and reuses its room; begin with
 * zeroes. PEER_TAKEN, PEER_BROKEN, or PEER_CROWD: no memory. */
enum peer_verdict lease_read(const uint8_t *in, size_t n, struct lease_message *ret);

#endif
