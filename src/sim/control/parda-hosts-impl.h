/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parda-hosts-impl: what the parts of parda-hosts share. Nobody else includes it.
 *
 *   parda-hosts.c           the map, set-up, reports, a step
 *   parda-hosts-measure.c   what a host's gate measured
 *   parda-hosts-probe.c     a host's own reads
 *   parda-hosts-faults.c    hosts that crash, stop, are cut off, or whose clock is set
 */
#ifndef WEIR_SIM_CONTROL_PARDA_HOSTS_IMPL_H
#define WEIR_SIM_CONTROL_PARDA_HOSTS_IMPL_H

#include "base/rng.h"
#include "control/parda/keys.h"
#include "sim/control/parda-hosts.h"
#include "sim/world.h"

/* Reports of a host that are still on the way or may have been missed. */
#define KEPT 8

/* `without` of the settings: the one part of PARDA that is switched off, so that an experiment can show what it
 * does. In the order of the words in control/parda/keys.c. */
enum without {
	WITHOUT_NOTHING,
	WITHOUT_AGEING,    /* a host that is silent is never forgotten */
	WITHOUT_WINDOWS,   /* eq. 2: the windows stay as they are */
	WITHOUT_WEIGHTING, /* each host's latency counts the same, whatever its requests */
	WITHOUT_HELD,      /* what limits of the device's gate hold counts as its latency */
};

struct map { /* the controller's settings */
	enum without without;
	struct parda_config config;
	uint32_t device;
	weir_time period, delay;
	double loss;
	struct fault *faults; /* n_faults, in order of time; allocated */
	size_t n_faults;
};

struct sent {
	weir_time at;
	struct parda_report report; /* sequence 0: none */
};

struct host {
	struct world_host *world;
	struct parda *parda;
	struct parda_decision last;
	struct rng instances;
	weir_time stepped;         /* when last */
	bool is_down;              /* by a fault: neither steps nor lets anything pass */
	bool is_cut;               /* neither hears nor is heard */
	weir_time skew;            /* of its clock */
	struct hosts_probe *probe; /* NULL: it never read on its own */
	/* as of the last step: */
	uint64_t ios, bytes;
	double inside_ns, device_ns;
	struct seen { /* of each tenant */
		uint64_t ios, bytes;
		double wanting_ns; /* outstanding, integrated */
		double held_ns; /* by limits of the device's gate; of all who share its leaf there */
		uint64_t held_ios; /* of those */
	} * seen;
};

struct hosts {
	struct map map;
	struct host *hosts;
	uint32_t n;
	/* What hosts have sent, sequence % KEPT by host, and how far each is: apart from the hosts,
	 * since everybody looks at all of it in every period. */
	struct sent *sent[KEPT];
	uint64_t *sequence;
	unsigned phase;
	size_t next_fault;
	struct parda_vm *vms; /* room for the tenants of any one host */
	uint64_t seed;
};

/* parda-hosts.c: a host begins anew, as another instance; 0 or -ENOMEM. */
int parda_hosts_start(struct hosts *c, struct host *h);
int parda_hosts_set_window(struct host *h, struct world *w, double window, struct weir_err *err);

/* parda-hosts-measure.c: since the last step; w->now is later. */
void parda_hosts_measure(
	struct hosts *c, struct host *h, struct world *w, struct parda_measured *ret);

/* parda-hosts-probe.c: a host that may read on its own, and finds nobody's requests inside, begins to. */
int parda_hosts_probe(struct hosts *c, struct world *w);
void parda_hosts_probe_free(struct host *h);

/* parda-hosts-faults.c: `faults` of the map, and what of them is due. */
int parda_hosts_faults_read(
	const struct scenario *s, yamldoc_node map, struct map *ret, struct weir_err *err);
int parda_hosts_faults_step(struct hosts *c, struct world *w, struct weir_err *err);

#endif
