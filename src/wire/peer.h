/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer: the messages between hosts, as bytes and structs.
 *
 * A message is one datagram, or one block of a shared file. All numbers are in network order, and a real
 * number is the 64 bits of an IEEE 754 double.
 *
 *     0   4  magic "WEIR"
 *     4   1  version, 1
 *     5   1  kind
 *     6   2  length: bytes before the seal
 *     8   8  cluster: a hash of its name, which tells another cluster's message from a forgery
 *    16   8  instance: a random number for each start of a host; never 0
 *    24   8  sequence: 1, 2, … within an instance, over all its messages
 *    32   8  sent: ns of the sender's monotonic clock
 *    40  16  nonce: random in a challenge, the challenge's in an answer, else 0
 *    56  64  the host's name, padded with zeroes
 *   120   2  number of reports, or of words
 *   122   2  bytes of each
 *   124   4  0; readers ignore it
 *   128      the reports, or the words: 64 bits each
 *         32  the seal: a keyed hash of all bytes before it
 *
 * A later version may append fields to a report, and an older reader skips them: hence the report
 * size in each message. A change of meaning takes a new version, which readers refuse. Other
 * protocols (over streams) use kinds of their own after the same 128 bytes.
 *
 * A receiver calls peer_look, which is cheap; then checks the seal itself (hashing is a library's
 * work, and a codec has no keys); then calls peer_read, which still validates every field.
 * Freshness: peer-guard.h for datagrams, peer-slots.h for files.
 *
 * Pure: nothing here reads a socket, waits or allocates.
 */
#pragma once

#include <weir/clock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PEER_NAME_MAX                                                                              \
	63 /* bytes of a host's name, which is not empty and has no control characters */
#define PEER_NONCE       16 /* bytes; unpredictable and never reused */
#define PEER_HEAD        128
#define PEER_REPORT_SIZE 88
/* With 12 reports and the seal a message has 1,216 bytes: every network passes a datagram of up to
 * 1,232 bytes unfragmented (1,280, the minimum MTU of IPv6, less the headers). */
#define PEER_REPORTS_MAX 12
#define PEER_SEAL        32
/* With 161 words and the seal a message has 1,448 bytes: an Ethernet frame of 1,500 less the headers of IPv6 and UDP has
 * room for 1,452. Messages of words stay inside a data centre. */
#define PEER_WORDS_MAX 161
#define PEER_MAX       (PEER_HEAD + PEER_WORDS_MAX * 8) /* bytes, no seal */

enum peer_kind {
	PEER_REPORT = 1, /* one per period */
	PEER_CHALLENGE,  /* asks for a proof of presence; no reports */
	PEER_ANSWER,     /* the proof, with the latest reports */
	PEER_BLOCK,      /* in a shared file: as PEER_REPORT */
	PEER_HEADER,     /* in a shared file: its first block; sequence is the number of slots */
	PEER_LEAVE,      /* orderly leave: expect no more messages */
	/* Between machines that shape links (serve/shape/talk.h); these have words. */
	PEER_USAGE,    /* what services use (wire/usage.h) */
	PEER_FEEDBACK, /* from a receiver: the rates at which a sender may send */
	PEER_LIMITS,   /* from the leader of a rack: the fabric's limits */
	PEER_KINDS
};

static inline bool peer_has_words(enum peer_kind kind)
{
	return kind == PEER_USAGE || kind == PEER_FEEDBACK || kind == PEER_LIMITS;
}

/* Outcome of a message. Only a message that was TAKEN changes anything. */
enum peer_verdict {
	PEER_TAKEN,
	PEER_NOISE,    /* not a peer message, or truncated */
	PEER_VERSION,  /* unknown version */
	PEER_CLUSTER,  /* another cluster */
	PEER_FORGED,   /* sealed with another key */
	PEER_BROKEN,   /* sealed well, but not well formed */
	PEER_OWN,      /* our own message, returned */
	PEER_OLD,      /* a duplicate, overtaken, or replayed */
	PEER_LATE,     /* newer than the last message, but delayed for too long */
	PEER_UNPROVEN, /* from an instance that has not proven its presence */
	PEER_CROWD,    /* no room for more senders */
	PEER_VERDICTS
};
/* "taken", "noise", … */
const char *peer_verdict_name(enum peer_verdict v);

struct peer_report {       /* a host's report about one resource */
	uint64_t resource; /* peer_hash of the resource's cluster-wide name */
	double shares;     /* of its tenants on this host, adjusted for idle ones */
	double beta;       /* slots */
	double window;     /* slots, from now on */
	double inside;     /* requests inside the resource, mean over the period */
	double latency;    /* ns, averaged; 0: no requests yet */
	double ios;        /* completed requests/s in the period */
	double bytes;      /* bytes/s of those requests */
	double threshold;  /* ns: the latency target; 0: none */
	weir_time period;  /* ns */
	uint64_t flags;    /* defined by the controller */
};

struct peer_message {
	enum peer_kind kind;
	uint64_t cluster, instance, sequence;
	weir_time sent; /* ns, 0 … 2^62 */
	uint8_t nonce[PEER_NONCE];
	char name[PEER_NAME_MAX + 1];
	unsigned n_reports; /* or words */
	union {
		struct peer_report reports[PEER_REPORTS_MAX];
		uint64_t words[PEER_WORDS_MAX];
	};
};

/* Hash the name of a cluster or a resource. Not for secrets. */
uint64_t peer_hash(const char *name);
/* Check a host's name. */
int peer_name_check(const char *name); /* 0 or -EINVAL */

/* Write the message without its seal and return its size, ≤ PEER_MAX. The message must be well
 * formed (name, numbers). */
size_t peer_write(uint8_t out[PEER_MAX], const struct peer_message *m);
/* Replace the nonce of a written message that is not yet sealed. */
void peer_write_nonce(uint8_t *out, const uint8_t nonce[PEER_NONCE]);

/* Check a message before its seal. Return PEER_TAKEN and the number of bytes before the seal (n
 * bytes hold both); or NOISE, VERSION, CLUSTER. In a file's block bytes may follow the seal, in a
 * datagram they may not: compare with n. */
enum peer_verdict peer_look(const uint8_t *in, size_t n, uint64_t cluster, size_t *ret_length);
/* Read a message that passed peer_look; n is the length from peer_look. Return PEER_TAKEN or
 * PEER_BROKEN; *ret is set only when taken. */
enum peer_verdict peer_read(const uint8_t *in, size_t n, struct peer_message *ret);
/* The same for the first PEER_HEAD bytes alone, of any kind: for protocols with bodies of their own
 * (wire/lease.h). */
enum peer_verdict peer_read_head(const uint8_t *in, struct peer_message *ret);
