/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer: what hosts tell each other, as bytes and structs.
 *
 * A message is one datagram, or one block of a shared file. All numbers are in network order, and a real
 * number is the 64 bits of an IEEE 754 double.
 *
 *     0   4  magic "WEIR"
 *     4   1  version, 1
 *     5   1  kind
 *     6   2  length: bytes before the seal
 *     8   8  cluster: a hash of its name, so that a stray neighbour is told from a forger
 *    16   8  instance: a random number of each start of a host; never 0
 *    24   8  sequence: 1, 2, … of an instance, over all its messages
 *    32   8  sent: ns of the sender's own clock, which runs on and is never set
 *    40  16  nonce: random in a challenge, the challenge's in an answer, else 0
 *    56  64  the host's name, 0 behind it
 *   120   2  reports that follow
 *   122   2  bytes of each
 *   124   4  0; a reader does not look
 *   128      the reports
 *         32  the seal: a keyed hash of all before it
 *
 * A later version appends to a report, and an older reader skips what it does not know: for that each
 * message says how long its reports are. What changes the meaning of what is there has a new version,
 * which is refused. Other protocols (over streams) have kinds of their own behind the same 128 bytes.
 *
 * Whoever receives goes in this order: peer_look, which costs nothing; then the seal, which is
 * the caller's (hashing is a library's work, and keys are no business of a codec); then peer_read, which
 * trusts nobody all the same. Whether it is fresh: peer-guard.h for datagrams, peer-slots.h for files.
 *
 * Pure: nothing here reads a socket, waits or allocates.
 */
#ifndef WEIR_WIRE_PEER_H
#define WEIR_WIRE_PEER_H

#include "base/clock.h"
#include <stddef.h>
#include <stdint.h>

#define PEER_NAME_MAX                                                                              \
	63 /* bytes of a host's name, which is not empty and has no control characters */
#define PEER_NONCE       16 /* bytes; never guessed, never met twice */
#define PEER_HEAD        128
#define PEER_REPORT_SIZE 88
/* With 12 of them and the seal a message has 1,216 bytes: every network passes a datagram of up to
 * 1,232 in one piece (1,280, the least that IPv6 asks for, without its headers). */
#define PEER_REPORTS_MAX 12
#define PEER_SEAL        32
#define PEER_MAX         (PEER_HEAD + PEER_REPORTS_MAX * PEER_REPORT_SIZE) /* bytes, without seal */

enum peer_kind {
	PEER_REPORT = 1, /* one a period */
	PEER_CHALLENGE,  /* prove that you are there now; no reports */
	PEER_ANSWER,     /* the proof, with the reports last sent */
	PEER_BLOCK,      /* in a shared file: as PEER_REPORT */
	PEER_HEADER, /* in a shared file: its first block; sequence says how many slots follow */
	PEER_LEAVE,  /* in good order: do not wait for more */
	PEER_KINDS
};

/* What became of a message. All but the first mean that it changed nothing. */
enum peer_verdict {
	PEER_TAKEN,
	PEER_NOISE,    /* not one of these messages, or cut */
	PEER_VERSION,  /* of a version that is not known here */
	PEER_CLUSTER,  /* of another cluster */
	PEER_FORGED,   /* its seal is not by our key */
	PEER_BROKEN,   /* sealed well, and yet not well formed */
	PEER_OWN,      /* our own, come back */
	PEER_OLD,      /* a duplicate, overtaken, or replayed */
	PEER_LATE,     /* newer than what was heard, but held up for too long */
	PEER_UNPROVEN, /* of an instance that has not proven to be there */
	PEER_CROWD,    /* more senders than there is room for */
	PEER_VERDICTS
};
/* "taken", "noise", … */
const char *peer_verdict_name(enum peer_verdict v);

struct peer_report {       /* what a host says about one resource */
	uint64_t resource; /* peer_hash of the name that the hosts have for it */
	double shares;     /* of its tenants there, adjusted to the idle */
	double beta;       /* slots */
	double window;     /* slots, from now on */
	double inside;     /* requests inside the resource, mean over the period */
	double latency;    /* ns, averaged; 0: it had no requests yet */
	double ios;        /* requests/s that ended in the period */
	double bytes;      /* bytes/s of those */
	double threshold;  /* ns: the latency that it aims at; 0: none */
	weir_time period;  /* ns */
	uint64_t flags;    /* the controller's */
};

struct peer_message {
	enum peer_kind kind;
	uint64_t cluster, instance, sequence;
	weir_time sent; /* ns, 0 … 2^62 */
	uint8_t nonce[PEER_NONCE];
	char name[PEER_NAME_MAX + 1];
	unsigned n_reports;
	struct peer_report reports[PEER_REPORTS_MAX];
};

/* Of a cluster's or a resource's name. Not for secrets. */
uint64_t peer_hash(const char *name);
/* May a host be called this? */
int peer_name_check(const char *name); /* 0 or -EINVAL */

/* Writes the message, without its seal: bytes, ≤ PEER_MAX. The message is well formed (name, numbers). */
size_t peer_write(uint8_t out[PEER_MAX], const struct peer_message *m);
/* Puts another nonce into a message that was written, before it is sealed. */
void peer_write_nonce(uint8_t *out, const uint8_t nonce[PEER_NONCE]);

/* Is this worth looking at its seal? PEER_TAKEN, and how many bytes come before the seal (n bytes hold
 * both); or NOISE, VERSION, CLUSTER. In a file's block bytes may follow the seal, in a datagram not:
 * compare with n. */
enum peer_verdict peer_look(const uint8_t *in, size_t n, uint64_t cluster, size_t *ret_length);
/* Reads what peer_look let pass; n is the length that it gave. PEER_TAKEN or PEER_BROKEN; *ret is set
 * only when taken. */
enum peer_verdict peer_read(const uint8_t *in, size_t n, struct peer_message *ret);
/* The same of the first PEER_HEAD bytes alone, of any kind: for the protocols that have bodies of their
 * own behind them (wire/lease.h). */
enum peer_verdict peer_read_head(const uint8_t *in, struct peer_message *ret);

#endif
