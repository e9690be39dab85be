/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric: the broker over racks: the usage of racks in, the limits of their services out.
 *
 * SOURCE  Parley §3.2.3, §5.3.
 * LAW     Each period one machine of each rack, its leader, reports what services used in the rack (wire/usage.h: a service that
 *         is not in the report used nothing). The fabric has no link of its own: the services' mins, maxes and weights there
 *         are divided among racks (broker.h), and each rack is told its part of all services.
 *         A rack is a member from its first report on. For five periods after its last one it counts with what it used then;
 *         after that with its mins. Its limits hold as long.
 *         If several machines report for a rack, that with the lowest name of those heard in the last two periods counts.
 * SYMBOLS T period, 10 s in the paper; 5·T its time-out.
 *
 * Pure: no clock; memory is taken for services when it is made, and for racks at their first report.
 */
#pragma once

#include "control/parley/broker.h"
#include "wire/usage.h"

#define FABRIC_PERIOD (10 * WEIR_SEC)
#define FABRIC_STALE  5 /* periods */

enum fabric_dir { FABRIC_IN, FABRIC_OUT, FABRIC_DIRS };

struct fabric_config {
	const uint32_t *ids; /* of services, as in messages */
	const struct parley_service *services[FABRIC_DIRS];
	size_t n_services;
	weir_time period;
};

struct fabric;
/* All is copied. 0, -ENOMEM, -EINVAL for a parent that does not come first, or -EEXIST for two services with one id. */
int fabric_new(const struct fabric_config *c, struct fabric **ret);
void fabric_free(struct fabric *f); /* NULL is allowed */
/* Take over the racks of another broker, with what they reported about services that both have. 0 or -ENOMEM. */
int fabric_adopt(struct fabric *f, const struct fabric *from);

enum fabric_heard { FABRIC_TAKEN, FABRIC_LED /* another machine leads the rack: not used */ };
/* Take a report of n words of a machine about its rack. enum fabric_heard or -ENOMEM. */
int fabric_hear(struct fabric *f, const char *rack, const char *machine, const uint64_t *words,
	size_t n, weir_time now);
/* Divide. 0, or -ENOMEM: the limits are those of before. */
int fabric_step(struct fabric *f, weir_time now);

/* A rack by its number, from 0 in the order of first reports. */
struct fabric_rack {
	const char *name, *leader;
	weir_time heard;
	uint64_t reports, led; /* of them FABRIC_LED */
};
size_t fabric_racks(const struct fabric *f);
size_t fabric_find(const struct fabric *f, const char *rack); /* its number; or SIZE_MAX */
void fabric_rack(const struct fabric *f, size_t rack, struct fabric_rack *ret);
/* Write the limits of all services in a rack, USAGE_MAX for none; ret has room for n_services words. Return how many; 0: there was no
 * fabric_step since its first report. */
size_t fabric_limits(const struct fabric *f, size_t rack, uint64_t *ret);
/* The limits of a service in all racks together, and its usage, bytes/s. */
double fabric_rate(const struct fabric *f, int dir, size_t service);
double fabric_usage(const struct fabric *f, int dir, size_t service);
