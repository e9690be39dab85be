/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer: the other hosts of a cluster: what they tell us, and what we tell them, once a period.
 *
 * Two ways, behind one table of functions:
 *
 *   peer-udp.c    datagrams: to a list of hosts, to a broadcast address or to a multicast group
 *   peer-file.c   a file that all hosts can read and write, with a block for each; or a block
 *                 device, or an export of an NBD server
 *
 * Messages may be lost, late, doubled, forged or played again. What reaches `receive` is none of
 * these, but for the first: it was sealed with the cluster's key by a host that is there now, and each
 * comes once, newest last (wire/peer-guard.h, wire/peer-slots.h). All else is counted by its reason.
 *
 * Everything happens on the loop's thread, and nothing there waits.
 */
#ifndef WEIR_SERVE_HOST_PEER_H
#define WEIR_SERVE_HOST_PEER_H

#include <weir/err.h>
#include "serve/loop/loop.h"
#include "wire/peer.h"
#include <stdbool.h>
#include <stdint.h>

struct peer_config {
	struct loop *loop;
	/* "udp:10.0.0.2:7000" any number of times, or one of "udp-broadcast:10.0.0.255:7000",
	 * "udp-multicast:239.192.7.1:7000%eth0", "file:/shared/peers", "nbd://array/peers";
	 * NULL-terminated */
	const char *const *addresses;
	const char *
		listen; /* udp: where our socket is, "udp:10.0.0.1:7000"; NULL: every address, and the port
	                        of the first of the list; of a group: any port */
	const char *name;    /* of this host; see peer_name_check */
	const char *cluster; /* NULL: "weir" */
	const char *key;     /* a file with the cluster's key; NULL: none, only for a file */
	weir_time late;      /* udp: ns after which a message is too late; 0: 4 s */
	weir_time stale;     /* file: ns after which a silent host's block is another's; 0: 60 s */
	/* From another host. m lives until it returns; kind is REPORT, ANSWER, BLOCK or LEAVE. */
	void (*receive)(void *arg, const struct peer_message *m, weir_time now);
	void *arg;
};

struct peer_stats {
	uint64_t verdicts[PEER_VERDICTS]; /* of messages that came, by what became of them */
	uint64_t sent, sent_bytes;        /* messages, with their seals */
	uint64_t received_bytes;          /* udp: of all datagrams; file: read */
	uint64_t failed;                  /* sends, reads and writes that the system refused */
	uint64_t missed; /* file: periods in which the last one's I/O was not yet done */
	uint64_t lost;   /* file: times that another had taken our block */
	uint64_t full;   /* file: periods without a block for us */
	uint64_t same;   /* messages by one of two living hosts of one name */
	char same_name[PEER_NAME_MAX + 1]; /* the last such name; "": none */
	unsigned heard;                    /* hosts that were heard in the last 10 s */
};

struct peers;
/* Is the list of addresses well formed? Opens nothing. */
int peer_check(const char *const *addresses, struct weir_err *err);
/* Is that where datagrams can be heard (peer_config.listen)? */
int peer_listen_check(const char *listen, struct weir_err *err);
/* May block (names are looked up, an NBD server is connected to): before the loop runs. A file is
 * made when there is none. Errors name the address or file. */
int peer_open(const struct peer_config *config, struct peers **ret_peers, struct weir_err *err);
/* Tells the others; n ≤ PEER_REPORTS_MAX. Call it once a period. */
void peer_send(struct peers *p, const struct peer_report *reports, unsigned n);
void peer_stats(const struct peers *p, struct peer_stats *ret);
uint64_t peer_instance(const struct peers *p); /* ours */
/* Takes leave of the others and frees it. closed (may be NULL) is called when all is done: at
 * once, or when I/O that is under way came back, for which the loop has to run. */
void peer_close(struct peers *p, void (*closed)(void *arg), void *arg);

#endif
