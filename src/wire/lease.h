/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lease: the messages between the servers of a cluster and its controller, as bytes and structs:
 * pShift's tokens, and the cluster's plan; and between a rack's leader and the fabric's broker.
 *
 * Messages follow each other on a stream, each in its frame. A frame begins with the 128 bytes that
 * start every Weir message (wire/peer.h: magic, version, cluster, instance, sequence, sent, nonce,
 * name), has a kind of its own, has the length of its body at 124, and ends with the seal:
 *
 *     0  128  as peer.h; length is 128, no reports
 *   124    4  bytes of the body
 *   128       the body: 64 bits for each field of the struct, in order (`wants` is the second bit of
 *             `full`), then the entries
 *         32  the seal: a keyed hash of all bytes before it
 *
 * In an entry the bucket takes 64 bits; flags follow, then each number in as few bytes as it needs,
 * seven bits a byte, the lowest first: most numbers are small. A reader refuses unknown content: a
 * later layout gets a new version.
 *
 * A receiver calls lease_look on the first 128 bytes, which returns the length of the frame; then
 * checks the seal itself; then calls lease_read, which still validates every field.
 *
 * FRESH   `nonce` is the random number that the other side sent when the connection began, and
 *         `sequence` grows within a connection: so no message of an earlier connection can be
 *         replayed. Both sides begin with LEASE_HELLO, which carries the nonce that they expect.
 *         The kinds that carry bytes have a sequence of their own.
 * FABRIC  Its two kinds go over connections of their own, which have no other kind: USAGE from a
 *         leader, LIMITS to it. Their bytes are words of usage.h, eight bytes each.
 * REVISION The sequence of a HELLO is the revision that its sender speaks, which every revision
 *         reads. 1: without plans; LEASE_REVISION: with them. No message of a later revision goes to
 *         a peer of an earlier one.
 *
 * Pure: nothing here reads a socket or waits; only lease_message_room allocates.
 */
#pragma once

#include "wire/peer.h"
#include <stdbool.h>

/* A server with more buckets must be split into several servers. A frame has 77 MB at most. */
#define LEASE_ENTRIES_MAX (UINT32_C(1) << 20)
#define LEASE_TOKENS_MAX                                                                           \
	(INT64_C(1) << 53) /* limit of every number of tokens, as in control/pshift/alloc */
#define LEASE_NO_LIMIT  INT64_MAX
#define LEASE_BODY      (12 * 8) /* bytes of a body before its entries */
#define LEASE_ENTRY_MAX (8 + 1 + 8 * 8)
/* Most bytes of a frame with n entries, the seal included. */
#define LEASE_FRAME(n) (PEER_HEAD + LEASE_BODY + (size_t)(n)*LEASE_ENTRY_MAX + PEER_SEAL)

enum lease_kind {
	LEASE_HELLO = 32, /* the first message of each side; its body is empty */
	LEASE_REPORT,     /* server → controller */
	LEASE_ASK, /* controller → server: follow me (generation 0: do not), and report in full */
	LEASE_GRANT, /* controller → server */
	LEASE_PLAN, /* controller → server: a part of a plan, or its announcement without bytes */
	LEASE_HAS,  /* server → controller: the plan that it has, and the part that it wants */
	LEASE_USAGE,  /* leader → broker: what services use in its rack */
	LEASE_LIMITS, /* broker → leader: what they may use there */
	LEASE_KINDS
};

#define LEASE_REVISION 2                   /* from which on there are plans */
#define LEASE_DIGEST   32                  /* bytes of a SHA-256 */
#define LEASE_PART     (UINT32_C(1) << 16) /* most bytes of a part of a plan */
#define LEASE_PLAN_MAX (UINT64_C(1) << 26) /* of a plan */
#define LEASE_WHY_MAX  1000                /* of a reason */
/* Most bytes of a frame that carries n bytes, the seal included. */
#define LEASE_BYTES_FRAME(n) (PEER_HEAD + LEASE_BODY + (size_t)(n) + PEER_SEAL)

enum lease_state { /* state of a server; see control/pshift/pshift.h */
	LEASE_BLIND,
	LEASE_LEASED,
	LEASE_HELD,
	LEASE_STATIC,
	LEASE_STATES
};
const char *lease_state_name(uint64_t state); /* as a word */

static inline bool lease_has_bytes(enum lease_kind kind)
{
	return kind >= LEASE_PLAN;
}

struct lease_report {                    /* a server's report about itself */
	uint64_t generation, controller; /* of the controller followed; 0: none */
	uint64_t accepted; /* sequence of the last grant accepted from that controller; 0: none */
	uint64_t period;   /* number of the current QoS period; 0: unknown */
	uint64_t granted;  /* period of the last accepted grant; 0: never */
	weir_time left;    /* ns until that period ends at the server; 0: it has ended */
	weir_time length;  /* ns of a period: of the last grant, or of the server's own policy */
	uint64_t capacity; /* tokens/s that the server can serve */
	uint64_t state;    /* enum lease_state */
	uint64_t full;     /* 1: all its buckets, with their holdings */
	uint64_t asked;    /* sequence of the last LEASE_ASK accepted from its controller */
	uint64_t wants; /* 1: it follows no controller, and some bucket waits for its reservation */
};

struct lease_demand { /* demand for one bucket at one server; tokens */
	uint64_t bucket;
	int64_t used;     /* served in this period */
	int64_t queue;    /* waiting now */
	int64_t arriving; /* a second */
	int64_t serving;  /* a second */
	bool closed;      /* more would come if more were served */
	/* The holdings, present only if `holds`; every entry of a full report has them. */
	bool holds;
	int64_t cap;             /* for this period, or LEASE_NO_LIMIT */
	int64_t reserved, limit; /* for a whole period: the entitlement of the last grant */
	int64_t static_part;     /* part of the limit to use without a controller */
};

struct lease_grant {
	uint64_t generation;
	uint64_t base;      /* `accepted` as far as known; the grant holds all changes since */
	uint64_t heard;     /* sequence of the last report received, … */
	weir_time echo;     /* … when it was sent, by the server's clock, … */
	weir_time left;     /* … and ns from its arrival to the end of the period */
	weir_time togo;     /* ns from the sending of this grant to the end of the period */
	uint64_t period;    /* number of the period, ≥ 1 */
	weir_time length;   /* ns of a period */
	weir_time interval; /* least ns between two reports */
	uint64_t hold, gap; /* periods: see control/pshift/pshift.h */
};

struct lease_tokens { /* grant of one bucket at one server */
	uint64_t bucket;
	int64_t claim;           /* served first until so many tokens were served in this period */
	int64_t cap;             /* served at all until so many were served, or LEASE_NO_LIMIT */
	int64_t reserved, limit; /* claim and cap of each later period */
	/* demand has moved between servers: make up for the claim even beyond the limit's pace */
	bool moved;
};

struct lease_plan {
	uint64_t
		number; /* a later plan has a higher one; 0: there is none, and the server tells its own */
	uint64_t length;               /* bytes of the whole; 0: no plan is to be in force */
	uint64_t offset;               /* of this part */
	uint8_t digest[LEASE_DIGEST];  /* SHA-256 of the whole */
	uint8_t tenants[LEASE_DIGEST]; /* of the file of tenants for which it was made */
};

struct lease_has {
	uint64_t number;              /* of the last plan that the server took; 0: none */
	uint8_t digest[LEASE_DIGEST]; /* of the one in force; zeroes: none is */
	uint64_t wanted,
		offset; /* the number of the plan of which it wants a part, and from where; 0: none */
	uint64_t
		refused; /* the number of the plan that it refused last; the bytes are the reason; 0: none */
};

struct lease_rack {                   /* USAGE, LIMITS */
	char name[PEER_NAME_MAX + 1]; /* of the rack */
	weir_time span; /* USAGE: of which it is the mean; LIMITS: for which they hold; ns */
};

struct lease_message {
	enum lease_kind kind;
	uint64_t cluster, instance, sequence;
	weir_time sent;
	uint8_t nonce[PEER_NONCE];
	char name[PEER_NAME_MAX + 1];
	union {
		struct lease_report report;
		struct lease_grant grant; /* ASK: only the generation */
		struct lease_plan plan;
		struct lease_has has;
		struct lease_rack rack;
	};
	size_t n; /* entries; or bytes: lease_has_bytes */
	union {
		struct lease_demand *demands; /* REPORT */
		struct lease_tokens *tokens;  /* GRANT */
		uint8_t *bytes;
	};
	size_t room; /* entries allocated by this message; 0: the caller owns the entries */
};

/* Allocate room for n entries of either kind, owned by the message. Old entries are lost. Return 0
 * or -ENOMEM. */
int lease_message_room(struct lease_message *m, size_t n);
void lease_message_free(struct lease_message *m); /* frees only the entries */

/* Write the message without the seal and return its size; `out` has LEASE_FRAME(m->n) bytes, or
 * LEASE_BYTES_FRAME(m->n). The message must be well formed. */
size_t lease_write(uint8_t *out, const struct lease_message *m);

/* Check the first PEER_HEAD bytes. Return PEER_TAKEN and the bytes of the frame before its seal; or
 * NOISE, VERSION, CLUSTER: the stream is then unusable. */
enum peer_verdict lease_look(const uint8_t *in, uint64_t cluster, size_t *ret_length);
/* Read a frame whose seal was right; n is the length from lease_look. *ret keeps and reuses its
 * room; begin with zeroes. Return PEER_TAKEN, PEER_BROKEN, or PEER_CROWD: no memory. */
enum peer_verdict lease_read(const uint8_t *in, size_t n, struct lease_message *ret);
