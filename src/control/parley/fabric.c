/* SPDX-License-Identifier: BSD-3-Clause */
/* METHOD  New racks wait until the next division, for which both brokers are made again, with what they knew. */
#include "control/parley/fabric.h"
#include "control/ids.h"
#include "base/array.h"
#include "wire/peer.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEADS 2 /* periods for which a leader that is silent remains it */

struct member {
	char name[PEER_NAME_MAX + 1], leader[PEER_NAME_MAX + 1];
	weir_time heard;
	uint64_t reports, led;
	double *usage; /* by direction and service */
};

struct fabric {
	size_t n, n_racks, divided; /* services; racks; racks of the last division */
	weir_time period;
	uint32_t *of;                               /* ids, by service */
	struct ids services, racks;                 /* by id; by peer_hash of the name */
	struct parley_service *bounds[FABRIC_DIRS]; /* by service */
	struct parley_broker *broker[FABRIC_DIRS];  /* NULL: there was no division */
	struct member *members;
};

/* ---- from start to end */

static int make(struct fabric *f, const struct fabric_config *c)
{
	int r = ids_reserve(&f->services, c->n_services);

	f->of = calloc(c->n_services + 1, sizeof(*f->of));
	if (r || !f->of)
		return -ENOMEM;
	memcpy(f->of, c->ids, c->n_services * sizeof(*f->of));
	for (size_t i = 0; i < c->n_services; i++) {
		if (ids_find(&f->services, c->ids[i]) != SIZE_MAX)
			return -EEXIST;
		if (ids_add(&f->services, c->ids[i], (uint32_t)i) < 0)
			return -ENOMEM;
		for (int d = 0; d < FABRIC_DIRS; d++)
			if (c->services[d][i].parent >= (int)i)
				return -EINVAL;
	}
	for (int d = 0; d < FABRIC_DIRS; d++) {
		f->bounds[d] = calloc(c->n_services + 1, sizeof(*f->bounds[d]));
		if (!f->bounds[d])
			return -ENOMEM;
		memcpy(f->bounds[d], c->services[d], c->n_services * sizeof(*f->bounds[d]));
	}
	return 0;
}

int fabric_new(const struct fabric_config *c, struct fabric **ret)
{
	struct fabric *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	*f = (struct fabric){.n = c->n_services, .period = c->period};
	r = make(f, c);
	if (r) {
		fabric_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

void fabric_free(struct fabric *f)
{
	if (!f)
		return;
	for (int d = 0; d < FABRIC_DIRS; d++) {
		parley_broker_free(f->broker[d]);
		free(f->bounds[d]);
	}
	for (size_t i = 0; i < f->n_racks; i++)
		free(f->members[i].usage);
	free(f->members);
	free(f->of);
	ids_free(&f->services);
	ids_free(&f->racks);
	free(f);
}

/* ---- racks */

/* Return the number of a rack, which is new if need be; -ENOMEM. */
static int64_t add_rack(struct fabric *f, const char *name)
{
	size_t at = fabric_find(f, name);
	struct member *m;

	if (at != SIZE_MAX)
		return (int64_t)at;
	if (array_resize(&f->members, f->n_racks + 1) < 0)
		return -ENOMEM;
	m = &f->members[f->n_racks];
	*m = (struct member){.usage = calloc(FABRIC_DIRS * f->n + 1, sizeof(*m->usage))};
	if (!m->usage || ids_add(&f->racks, peer_hash(name), (uint32_t)f->n_racks) < 0) {
		free(m->usage);
		return -ENOMEM;
	}
	strncpy(m->name, name, PEER_NAME_MAX);
	return (int64_t)f->n_racks++;
}

static bool is_led(
	const struct fabric *f, const struct member *m, const char *machine, weir_time now)
{
	return m->heard && strcmp(m->leader, machine) < 0 && now - m->heard <= LEADS * f->period;
}

int fabric_hear(struct fabric *f, const char *rack, const char *machine, const uint64_t *words,
	size_t n, weir_time now)
{
	int64_t at = add_rack(f, rack);
	struct member *m;

	if (at < 0)
		return (int)at;
	m = &f->members[at];
	m->reports++;
	if (is_led(f, m, machine, now)) {
		m->led++;
		return FABRIC_LED;
	}
	memset(m->leader, 0, sizeof(m->leader));
	strncpy(m->leader, machine, PEER_NAME_MAX);
	m->heard = now;
	memset(m->usage, 0, FABRIC_DIRS * f->n * sizeof(*m->usage));
	for (size_t i = 0; i < n; i++) {
		struct usage u = usage_unpack(words[i]);
		size_t s = ids_find(&f->services, u.service);

		if (s == SIZE_MAX)
			continue;
		m->usage[FABRIC_IN * f->n + s] = u.in;
		m->usage[FABRIC_OUT * f->n + s] = u.out;
	}
	return FABRIC_TAKEN;
}

int fabric_adopt(struct fabric *f, const struct fabric *from)
{
	for (size_t i = 0; i < from->n_racks; i++) {
		const struct member *was = &from->members[i];
		int64_t at = add_rack(f, was->name);
		struct member *m;

		if (at < 0)
			return (int)at;
		m = &f->members[at];
		memcpy(m->leader, was->leader, sizeof(m->leader));
		m->heard = was->heard;
		m->reports = was->reports;
		m->led = was->led;
		for (size_t s = 0; s < f->n; s++) {
			size_t old = ids_find(&from->services, f->of[s]);

			for (size_t d = 0; old != SIZE_MAX && d < FABRIC_DIRS; d++)
				m->usage[d * f->n + s] = was->usage[d * from->n + old];
		}
	}
	return 0;
}

/* ---- divisions */

/* Make both brokers for all racks of now. */
static int grow(struct fabric *f)
{
	struct parley_broker *next[FABRIC_DIRS] = {NULL, NULL};
	int r = 0;

	for (int d = 0; r == 0 && d < FABRIC_DIRS; d++)
		r = parley_broker_new(
			f->bounds[d], f->n, f->n_racks, FABRIC_STALE * f->period, &next[d]);
	for (int d = 0; d < FABRIC_DIRS; d++) {
		if (r) {
			parley_broker_free(next[d]);
			continue;
		}
		for (size_t s = 0; f->broker[d] && s < f->n; s++)
			parley_broker_adopt(next[d], s, f->broker[d], s);
		parley_broker_free(f->broker[d]);
		f->broker[d] = next[d];
	}
	f->divided = r ? f->divided : f->n_racks;
	return r;
}

int fabric_step(struct fabric *f, weir_time now)
{
	int r = f->divided < f->n_racks ? grow(f) : 0;

	for (int d = 0; r == 0 && f->divided && d < FABRIC_DIRS; d++) {
		for (size_t i = 0; i < f->n_racks; i++)
			parley_broker_hear(f->broker[d], i, f->members[i].usage + (size_t)d * f->n,
				f->members[i].heard);
		parley_broker_step(f->broker[d], INFINITY, now);
	}
	return r;
}

/* ---- what it came to */

size_t fabric_racks(const struct fabric *f)
{
	return f->n_racks;
}

size_t fabric_find(const struct fabric *f, const char *rack)
{
	return ids_find(&f->racks, peer_hash(rack));
}

void fabric_rack(const struct fabric *f, size_t rack, struct fabric_rack *ret)
{
	const struct member *m = &f->members[rack];

	*ret = (struct fabric_rack){m->name, m->leader, m->heard, m->reports, m->led};
}

static double part(const struct fabric *f, int dir, size_t rack, size_t service)
{
	double cap = parley_broker_cap(f->broker[dir], rack, service);

	return cap < USAGE_MAX ? cap : USAGE_MAX;
}

size_t fabric_limits(const struct fabric *f, size_t rack, uint64_t *ret)
{
	size_t n = 0;

	for (size_t i = 0; rack < f->divided && i < f->n; i++)
		ret[n++] = usage_pack(&(struct usage){
			f->of[i], part(f, FABRIC_IN, rack, i), part(f, FABRIC_OUT, rack, i)});
	return n;
}

double fabric_rate(const struct fabric *f, int dir, size_t service)
{
	return f->divided ? parley_broker_rate(f->broker[dir], service) : 0;
}

double fabric_usage(const struct fabric *f, int dir, size_t service)
{
	double sum = 0;

	for (size_t i = 0; i < f->n_racks; i++)
		sum += f->members[i].usage[(size_t)dir * f->n + service];
	return sum;
}
