/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer: exchange reports with the other hosts of a cluster, once a period.
 *
 * Two transports, behind one table of functions:
 *
 *   peer-udp.c    datagrams: to a list of hosts, to a broadcast address or to a multicast group
 *   peer-file.c   a file that all hosts can read and write, with a block for each; or a block
 *                 device, or an export of an NBD server
 *
 * Messages may be lost, late, doubled, forged or replayed. Those that reach `receive` are fresh and
 * genuine: sealed with the cluster's key by a host that is live now, and delivered once, newest
 * last (wire/peer-guard.h, wire/peer-slots.h). All others are counted by reason.
 *
 * Everything happens on the loop's thread, and nothing there blocks.
 */
#pragma once

#include <weir/err.h>
#include "serve/loop/loop.h"
#include "wire/peer.h"
#include <stdbool.h>
#include <stdint.h>

struct sockaddr_storage;

struct peer_config {
	struct loop *loop;
	/* "udp:10.0.0.2:7000" any number of times, or one of "udp-broadcast:10.0.0.255:7000",
	 * "udp-multicast:239.192.7.1:7000%eth0", "file:/shared/peers", "nbd://array/peers";
	 * NULL-terminated */
	const char *const *addresses;
	/* udp: our socket, "udp:10.0.0.1:7000"; NULL: every address, and the port of the first of
	 * the list; for a group: any port */
	const char *listen;
	const char *name;    /* of this host; see peer_name_check */
	const char *cluster; /* NULL: "weir" */
	const char *key;     /* a file with the cluster's key; NULL: none, only for a file */
	weir_time late;      /* udp: ns after which a message is too late; 0: 4 s */
	weir_time stale;     /* file: ns after which a silent host's block may be reused; 0: 60 s */
	/* Receive a message of another host. m lives until it returns; kind is REPORT, ANSWER,
	 * BLOCK or LEAVE. */
	void (*receive)(void *arg, const struct peer_message *m, weir_time now);
	/* udp: receive a message with words, and the address of its sender; NULL: such are counted as broken. */
	void (*hear)(void *arg, const struct peer_message *m, const struct sockaddr_storage *from,
		weir_time now);
	void *arg;
};

struct peer_stats {
	uint64_t verdicts[PEER_VERDICTS]; /* of received messages, by outcome */
	uint64_t sent, sent_bytes;        /* messages, with their seals */
	uint64_t received_bytes;          /* udp: of all datagrams; file: read */
	uint64_t failed;                  /* sends, reads and writes that the system refused */
	uint64_t missed; /* file: periods skipped because the last one's I/O was in flight */
	uint64_t lost;   /* file: times that another host had taken our block */
	uint64_t full;   /* file: periods without a block for us */
	uint64_t same;   /* messages of either of two live hosts of one name */
	char same_name[PEER_NAME_MAX + 1]; /* the last such name; "": none */
	unsigned heard;                    /* hosts heard in the last 10 s */
};

struct peers;
/* Check that the list of addresses is well formed. Opens nothing. */
int peer_check(const char *const *addresses, struct weir_err *err);
/* Check an address for receiving datagrams (peer_config.listen). */
int peer_listen_check(const char *listen, struct weir_err *err);
/* Return the index of the first of a list of hosts, udp, that is an address of this machine with a free port. May block. ret_at:
 * all addresses. -EADDRNOTAVAIL: there is none; -EADDRINUSE: its port is not free. */
int peer_own(const char *const *addresses, struct sockaddr_storage *ret_at, struct weir_err *err);
/* May block (names are resolved, an NBD server is connected): call before the loop runs. A missing
 * file is made. Errors name the address or file. */
int peer_open(const struct peer_config *config, struct peers **ret_peers, struct weir_err *err);
/* Send our reports; n ≤ PEER_REPORTS_MAX. Call it once a period. */
void peer_send(struct peers *p, const struct peer_report *reports, unsigned n);
/* udp: send n ≤ PEER_WORDS_MAX words of a kind that has words, to one address, or with NULL to all. */
void peer_tell(struct peers *p, const struct sockaddr_storage *to, enum peer_kind kind,
	const uint64_t *words, unsigned n);
void peer_stats(const struct peers *p, struct peer_stats *ret);
uint64_t peer_instance(const struct peers *p); /* ours */
/* Send a farewell and free it. closed (may be NULL) is called when all is done: at once, or when
 * I/O in flight has completed, for which the loop has to run. */
void peer_close(struct peers *p, void (*closed)(void *arg), void *arg);
