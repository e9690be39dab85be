/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hosts-impl: shared by the parts of hosts, which alone include it.
 *
 *   hosts.c         the map, set-up, reports, a step
 *   hosts-load.c    the loads of a host's tenants
 *   hosts-reads.c   a host's own reads
 *   hosts-faults.c  hosts that crash, stop, are cut off, or whose clock is set
 */
#pragma once

#include "base/container.h"
#include "sim/control/hosts.h"
#include "sim/control/site.h"

/* Reports of a host that are still on the way or may have been missed. */
#define KEPT 8

struct map { /* the settings of the controller, and of the network between the hosts */
	const struct controller *kind;
	const void *settings;
	uint32_t device;
	weir_time period;
	struct hosts_network network;
};

struct host {
	struct sim_site site;
	struct hosts *hosts;
	struct world_host *world;
	double window;            /* that the controller set last */
	uint64_t published;       /* reports of this instance */
	uint64_t steps;           /* of the controller, at the last look */
	bool is_down;             /* by a fault: neither steps nor lets requests pass */
	bool is_cut;              /* neither hears nor is heard */
	weir_time skew;           /* of its clock */
	struct host_reads *reads; /* NULL: it never read on its own */
	weir_time looked;         /* at the loads, and what they were then: */
	struct seen {             /* of each tenant */
		uint64_t ios, bytes;
		double inside_ns, device_ns, wanting_ns;
		double held_ns; /* by limits of the device's gate; of all tenants that share its leaf there */
		uint64_t held_ios; /* of those */
	} * seen;
};

struct hosts {
	struct map map;
	struct site_ops ops;
	struct host *hosts;
	uint32_t n;
	/* The reports of hosts, by sequence % KEPT and host, when they were sent, and how far each host is: apart from the
	 * hosts, since every host looks at all of it in every period. */
	uint8_t *sent;
	weir_time *sent_at;
	uint64_t *sequence;
	weir_time part, tick; /* of a period; the next phase */
	unsigned phase;
	size_t next_fault;
	struct site_load *rows; /* room for the tenants of any one host */
};

static inline struct host *host_of(const struct site *s)
{
	return (struct host *)container_of(s, const struct host, site.site);
}

/* hosts.c: start the host again, as another instance. */
int hosts_begin(struct host *h, struct weir_err *err);

/* hosts-load.c: site_ops.loads */
int hosts_loads(struct site *s, struct site_loads *ret);

/* hosts-reads.c: site_ops.read, forget, all_quiet */
int hosts_read(struct site *s, struct site_burst *b);
void hosts_forget(struct site *s, struct site_burst *b);
bool hosts_all_quiet(const struct site *s);

/* hosts-faults.c: read `faults`; apply those that are due. */
int hosts_faults_read(const struct scenario *s, struct hosts_network *ret, struct weir_err *err);
int hosts_faults_step(struct hosts *c, struct world *w, struct weir_err *err);
