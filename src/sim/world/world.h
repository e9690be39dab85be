/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world: the running state of a scenario: hosts, gates, devices, links, workloads, and their common
 * time.
 *
 *   workload → host's gate → [links] → [device's gate] → device → [links] → workload
 *
 * A link may have a gate, too. It decides the class in which a request is sent: its priority if it fits its profile.
 *
 * METHOD  One event queue. A device has one event armed, for its next(); a gate one, for its
 *         wake-up; an open workload one, for its next arrival; an IO that pauses (think time, a
 *         retry) one. All events of one time are handled first, and only then weir_gate_next is
 *         called for the gates that they touched: so a gate decides with all arrivals and
 *         completions of that time, whatever their order.
 * COST    Per IO: one submit, next and done at each gate, one submit and (a part of) one step at
 *         each station, one or two records in a ring. Nothing is allocated once the pool has as
 *         many IOs as are ever in flight at once.
 *
 * Controllers see this struct (controller.h) and may read all of it; they change gates through
 * world_gate_set.
 */
#pragma once

#include <weir/hist.h>
#include <weir/gate.h>
#include "control/controller.h"
#include "control/meister/curve.h"
#include "model/device.h"
#include "sim/event.h"
#include "sim/metrics.h"
#include "sim/scenario/scenario.h"

struct world;
struct world_host;
struct world_gate;

/* Bytes of a request or a reply on a link besides its data: Ethernet, IP and TCP headers and those
 * of a small protocol. */
#define WORLD_HEADER 96

#define WORLD_CHUNK 256 /* IOs: about 100 KB */

struct world_io { /* one IO, from its workload to its completion */
	/* At the host's gate; has its own cache line. */
	_Alignas(64) struct weir_req req;
	struct device_io dev;    /* in a station */
	struct world_load *load; /* NULL: req.user is a world_own */
	uint32_t index;          /* in the pool: its event's id is world.io_events + index */
	uint32_t phase;          /* of an on-off workload: the burst's number */
	uint32_t bytes;          /* its length; req.bytes is its cost */
	uint8_t hop;             /* the station that it is at or waits for */
	bool waits;              /* issued, and not completed */
	bool pausing;            /* not yet issued: waits for its workload's think time or phase */
	struct weir_req at_station; /* at the gate of the device, or of a link */
};

/* A controller's own reads of a device: they bypass all gates and links, and are in no tenant's
 * figures. */
struct world_own {
	void (*done)(struct world_own *o, struct world *w, weir_time latency);
};

struct world_count { /* one tenant, device or link, since the start */
	uint64_t done, bytes;
	double latency_ns; /* sum */
	double inside_ns;  /* of a tenant: the part of latency_ns beyond the host's gate */
};

struct world_bursts { /* bursts of a workload with fixed on- and off-phases */
	struct world_burst {
		uint32_t phase, inside; /* IOs issued and not completed */
		weir_time first, last;  /* first issue, last completion */
	} open[8]; /* not yet finished, oldest first; with more than 8 the oldest is lost */
	unsigned n_open;
	uint64_t finished, lost; /* bursts that began after the warm-up */
	double total_ns;         /* Σ last − first of the finished */
};

struct world_load {
	struct workload *source;
	const struct scenario_workload *config;
	struct world_tenant *tenant;
	struct world_gate *gate;            /* its host's, and … */
	const struct scenario_group *group; /* … its host's; copied here, since every IO needs it */
	uint32_t event;                     /* open workloads: the next arrival */
	bool closed, running;
	uint32_t parked;             /* closed: slots that wait until the workload is started */
	struct workload_io next;     /* open: the IO that arrives at that event */
	struct world_bursts *bursts; /* NULL: not on-off */
};

struct world_plan { /* of a tenant, by world_plan */
	uint64_t ios;
	double load, ca2,
		peak; /* of its trace: work per second in all and within any second, in s */
	double bound; /* s, or INFINITY */
	uint32_t priority;
	struct meister_pair pair[POLICY_LAB_PROFILES]; /* at the host's gate: of work, in s */
	int pairs;
	double loss; /* by leaving out the border's other pairs */
	struct {
		const char *name;
		uint32_t priority;
	} links[2 * SCENARIO_HOPS]; /* those that are planned */
	unsigned n_links;
};

struct world_tenant { /* a leaf at a host's gate */
	struct world_host *host;
	weir_node node;
	weir_node device_node; /* its leaf at the device's gate */
	uint32_t index;        /* in the gate's policy */
	uint32_t number;       /* in world.tenants: the `source` of its IOs */
	uint8_t link_priority;
	struct estimate_past past;
	struct world_count count;
	weir_time slo_latency; /* 0: it has no slo */
	struct site_slo slo, slo_sampled,
		slo_begun; /* now, at the last sample, after the warm-up */
	int slo_series;
	struct world_load *loads;
	size_t n_loads;
	struct world_plan *plan;        /* NULL: not planned */
	struct measure_tenant *measure; /* histograms; allocated at the first completion */
};

struct world_gate {
	struct weir_gate *gate;
	const struct scenario_gate *config;
	weir_node *nodes;                 /* by index of the policy's tenant */
	const struct weir_policy *policy; /* the config's, or `own`; never NULL */
	struct weir_policy
		*own; /* the config's with its own tenants; NULL before the first change */
	struct scenario_knobs *knobs; /* by tenant, allocated with `own` */
	struct world_host *host;      /* the host of a host gate, else NULL */
	struct world_station *station;
	uint32_t event;
	bool dirty;
};

struct world_host {
	const char *name;
	const struct scenario_group *group;
	struct world_gate *gate;
	struct world_tenant *tenants; /* leaves only */
	uint32_t n_tenants;
};

struct world_station {
	struct device *device;
	const struct scenario_station *config;
	struct world_gate *gate; /* NULL: none */
	uint32_t event;
	struct world_count count;
	uint64_t drops, marks;
	uint32_t inside;
	uint32_t own;           /* of these, reads of a controller */
	uint64_t own_beside;    /* … that began while a tenant's request was inside */
	bool has_own;           /* there was such a read */
	weir_time inside_since; /* when `inside` last changed */
	double inside_ns;       /* ∫ inside dt */
	double capacity;        /* learned, IOs per s; 0: unknown */
};

struct world_controller {
	const struct scenario_controller *config;
	void *state;
};

struct world {
	const struct scenario *scenario;
	uint64_t seed;
	weir_time now, end, warmup;
	struct event_queue events;
	/* first event ids of each sort, in this order; station i has id i */
	uint32_t gate_events, load_events, other_events, io_events;

	struct world_station *stations;
	struct world_gate *gates; /* the hosts', in order, then the stations' */
	weir_node
		*link_nodes; /* of tenant t at link l: [t · links + l], for links that have gates */
	uint32_t n_gates;
	struct world_host *hosts;
	struct world_tenant *tenants;
	uint32_t n_tenants;
	struct world_load *loads;
	uint32_t n_loads;
	struct world_controller *controllers;

	uint32_t *dirty; /* ring of gates to pump; each at most once */
	uint32_t dirty_head, dirty_n;

	struct world_io **chunks; /* the pool: WORLD_CHUNK each */
	uint32_t n_chunks;
	struct world_io *free_ios; /* linked by req.user */
	uint64_t submitted, completed;

	size_t next_moment;
	struct measure *measure;
	int failed;          /* error, sticky: the run cannot continue … */
	struct weir_err why; /* … and its message; "" if the errno says it all */
};

/* event ids after other_events: the next moment of `at:`, the sample, the end of the warm-up, then
 * the controllers */
enum { WORLD_EVENT_MOMENT, WORLD_EVENT_SAMPLE, WORLD_EVENT_WARMUP, WORLD_EVENT_CONTROLLERS };

/* world-build.c. `end` and `warmup` are set from the scenario; the caller may change them before
 * world_run. */
int world_new(const struct scenario *s, uint64_t seed, struct world **ret, struct weir_err *err);
void world_free(struct world *w);

/* Make the generator of a tenant's workload, which begins at time 0; `shift`: later by so much than the file says. */
int world_load_source(const struct world *w, const struct world_tenant *t,
	const struct scenario_workload *config, weir_time shift, struct workload **ret,
	struct weir_err *err);

/* Return the place of a tenant's leaf at the gate of a link. */
static inline weir_node *world_link_node(
	const struct world *w, const struct world_tenant *t, uint32_t link)
{
	uint32_t links = w->scenario->n_stations - w->scenario->n_devices;

	return &w->link_nodes[(size_t)t->number * links + link - w->scenario->n_devices];
}

/* world-plan.c: set the knobs that the `lab` of policies asks a planner for. */
int world_plan(struct world *w, struct weir_err *err);

/* world.c: set the costs of a request of r->bytes at a gate. past: of its sender; NULL: none is known. */
void world_costs(const struct scenario_gate *g, struct estimate_past *past, struct weir_req *r);
/* Return the bytes of a request on a link towards the device, or of its reply. */
uint32_t world_link_bytes(bool request, uint8_t op, uint32_t bytes);
/* Run until `until` (events at that very time excluded) or w->end if that is sooner. */
int world_run(struct world *w, weir_time until);
/* Start or stop a workload; does nothing if it is in that state already. */
void world_load_run(struct world *w, struct world_load *l, bool run);
/* Start one read now, and call o->done at its end. Return 0 or -ENOMEM. */
int world_own_read(struct world *w, struct world_own *o, struct world_station *st, uint64_t offset,
	uint32_t bytes);
/* Note that a gate has changed: weir_gate_next is called for it before time moves on. */
void world_touch(struct world *w, struct world_gate *g);
/* Step a station up to now, as before its model is changed; and arm its next event. */
void world_station_step(struct world *w, struct world_station *st);
void world_station_look(struct world *w, struct world_station *st);

/* world-bursts.c: of a workload that has bursts. */
void world_burst_issue(struct world *w, struct world_load *l, struct world_io *io);
void world_burst_complete(struct world *w, struct world_load *l, const struct world_io *io);
/* Count the bursts that are over by now. */
void world_load_sweep(struct world *w, struct world_load *l);

/* world-knobs.c */
int world_gate_build(struct world *w, struct world_gate *g, struct weir_err *err);
int world_gate_set(struct world *w, struct world_gate *g, const struct weir_knob *knobs, size_t n,
	struct weir_err *err);
/* Change the settings of a tenant that `from` gives. */
int world_gate_change(struct world *w, struct world_gate *g, size_t tenant,
	const struct scenario_knobs *from, struct weir_err *err);
void world_link_priorities(struct world *w);
int world_change(struct world *w, const struct scenario_moment *m, struct weir_err *err);
