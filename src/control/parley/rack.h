/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rack: one machine's broker of its rack's links: what it says to the others, what it hears, and its own part.
 *
 * SOURCE  Parley §3.2.2, §3.3, §5.2.
 * LAW     Each second a machine reports what services use, and every machine divides both links of the rack by all reports (broker.h):
 *         from the same reports all come to the same division, of which each keeps its own part. So usages are rounded as in
 *         messages (wire/usage.h), the machine's own too.
 *         A report has the services that moved by more than USAGE_MOVED, in this round and again in the next, since messages are
 *         lost; and of the others a thirty-second part in turn, 32 at least. A service that used nothing for RACK_IDLE rounds is
 *         left out. Half a second later the first RACK_BEAT words are sent again, if all fit in one message: of ten messages in 5 s one arrives, even if half of
 *         all are lost.
 *         A machine is alive for PARLEY_RACK after its last message; then it counts with its mins.
 *         Limits of the fabric's broker count as maxes of the service in the rack, each until its time has passed.
 * DIFFERS The paper sends all heavy services each time: 3 Mbit/s a machine at 40 machines with 1,000 services. Ten machines that
 *         restart hear all within 32 rounds.
 *
 * Pure: no clock; memory is taken when it is made.
 */
#pragma once

#include "control/parley/broker.h"
#include "wire/peer.h"
#include "wire/usage.h"

#define RACK_IDLE 80 /* rounds */
#define RACK_BEAT 16 /* words */
/* Return the number of words to send again, of a report of n. */
static inline size_t rack_beat(size_t n)
{
	return n > PEER_WORDS_MAX ? 0 : n < RACK_BEAT ? n : RACK_BEAT;
}

enum rack_dir {
	RACK_DOWN,
	RACK_UP,
	RACK_DIRS
}; /* into the rack, which machines receive; out of it */

struct rack_config {
	const uint32_t *ids; /* of services, as in messages */
	const struct parley_service *services[RACK_DIRS];
	size_t n_services;
	size_t machines, own;
	double link[RACK_DIRS]; /* bytes/s */
	double nic;             /* bytes/s: no machine carries more in a direction */
};

struct rack;
/* All is copied. 0, -ENOMEM, -EINVAL for a parent that does not come first, or -EEXIST for two services with one id. */
int rack_new(const struct rack_config *c, struct rack **ret);
void rack_free(struct rack *r); /* NULL is allowed */
/* Take over what another rack of the same machines was told about services that both have. */
void rack_adopt(struct rack *r, const struct rack *from);
/* Return the service with an id, or n_services. */
size_t rack_find(const struct rack *r, uint32_t id);

/* Take this machine's own usage, bytes/s by service. Return the number of words of its report; ret has room for one a service. */
size_t rack_report(
	struct rack *r, const double *const usage[RACK_DIRS], weir_time now, uint64_t *ret);

enum rack_heard {
	RACK_TAKEN,
	RACK_CLAIMS, /* more than a machine can carry: not used */
	RACK_HEARDS
};
/* Hear words of another machine's report. Services that are not known here are counted by rack_unknown. */
enum rack_heard rack_hear(
	struct rack *r, size_t machine, const uint64_t *words, size_t n, weir_time now);
uint64_t rack_unknown(const struct rack *r);
bool rack_alive(const struct rack *r, size_t machine, weir_time now);

/* Take the fabric's limit of a service in the rack; INFINITY: none. */
void rack_fabric(struct rack *r, int dir, size_t service, double limit, weir_time until);
/* Divide the links. *ret_scaled, by direction: the mins did not fit, and were scaled. */
void rack_step(struct rack *r, weir_time now, bool ret_scaled[RACK_DIRS]);

/* Get this machine's cap of a service, bytes/s; INFINITY: not limited. */
double rack_cap(const struct rack *r, int dir, size_t service);
/* Get what the division gave a service in all the rack, and what it used, bytes/s. */
double rack_rate(const struct rack *r, int dir, size_t service);
double rack_usage(const struct rack *r, int dir, size_t service);
enum rack_bound { RACK_BOUND_LINK, RACK_BOUND_MAX, RACK_BOUND_FABRIC };
/* Get which limit of the rack keeps a service that has a cap from more. */
enum rack_bound rack_bound(const struct rack *r, int dir, size_t service);
