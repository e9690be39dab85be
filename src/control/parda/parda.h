/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parda: the controller of one host's window in front of one resource that it shares with other
 * hosts.
 *
 * Once a period it takes the measurements of the host's own gate and the reports of its peers, and
 * returns a window, β, and a report for the peers. The laws are in control/parda/law.h. The
 * transport of reports is the caller's: parda_hear takes each received report, in any order and any
 * number of times; the caller of parda_step sends the report that it returns.
 *
 *   every period:  parda_hear (each received report)
 *                  parda_step → the gate's window; the report, to all peers
 *
 * LATENCY  Local: the host's own. Aggregated: the mean over the host and its peers, each weighted
 *          by its IOs: one signal for all, since local ones drive the windows apart (§4.1).
 *          The threshold is for requests of up to 16 KiB; where they are larger on the mean of all
 *          hosts it is higher (control/parda/law.h).
 * PEERS    A table by id, of bounded size. A report counts until its host has been silent for `age`
 *          of our own steps; periods are counted, not time, so that setting the clock ages no peer.
 *          A report that is not newer than the last one of its host (late, duplicated, replayed)
 *          changes nothing. A restarted host has another `instance`; it replaces the old one when
 *          that is silent. Two live instances of one id are reported, and the first one counts.
 *          Replaced instances are remembered, so that their reports cannot be replayed.
 * STARTING A host that starts does not flood the array: it begins at the least window, and its
 *          peers make room for its shares (control/parda/start.h). As long as latency is below half
 *          of the threshold no window more than doubles in a period. With config.window it begins
 *          there, and joins as below.
 * JOINING  A host whose tenants were all idle, or that was stopped for longer than its peers take
 *          to forget it, goes to β × the median of its peers' w/β: the law alone would take 15
 *          periods. Hosts that are cut off from each other keep at least half of their slots, since
 *          by local latency one host would end with everything. When they are connected again all
 *          go, in one step, to their parts by shares of all their slots.
 * STRANGERS Requests that no host under PARDA has sent are detected by how latency follows the
 *           windows, and reported; beside them hosts keep at least half of their fair part, up to
 *           wmax, even if latency then stays over the threshold (control/parda/stranger.h).
 * MIN      A host whose tenants have guarantees has at least the slots that these need at its
 *          latency, at most wmax, whatever its shares; the gate gives these slots to the tenants.
 * IDLE     A VM that stays idle beside a backlogged VM of its host counts less
 *          (control/parda/idle.h). A host that leaves slots unused saves them: its gate's window is
 *          larger at its next burst (control/parda/credit.h). The latency that bursts on credit add
 *          does not make windows smaller, since it ends with them. Reports have the law's window,
 *          without credit.
 * SLOTS    A slot is a request; or, if bytes are shared, an IO of a fixed size (§2). The law, the
 *          reports and the bounds are in slots; the gate's window is in requests, by the mean size
 *          of the host's requests.
 * FINDING  A threshold that is not configured can be found (control/parda/knee.h): the knee of
 *          throughput over latency, of all hosts together. The host with the lowest id decides, the
 *          others follow the threshold in its reports; all of them observe, so that the next one
 *          knows as much.
 * PROBING  With `probe` the host with the lowest id may find it sooner, by bursts of its own reads
 *          while no host has requests inside (control/parda/knee-probe.h): at most a tenth of a
 *          period and 200 ms each, and 2 % of the time; a burst into which a client comes back sends
 *          no more, but its last reads take as long as the client's requests. The caller checks that no host has requests
 *          inside, sends the reads past the gate, and counts them for no tenant. Once a burst has
 *          found a knee, that is the threshold, and the search by the hosts' load pauses.
 * ALONE    Without any peer it uses its own latency; `alone` reports that.
 *
 * Nothing here locks, reads a clock or, after parda_new, fails. One instance belongs to one thread.
 */
#ifndef WEIR_CONTROL_PARDA_PARDA_H
#define WEIR_CONTROL_PARDA_PARDA_H

#include "control/parda/law.h"
#include "control/parda/knee-probe.h"
#include <weir/clock.h>
#include "control/parda/idle.h"
#include <stdbool.h>
#include <stdint.h>

/* A host's report to its peers, once a period. A codec has to carry all of it. */
struct parda_report {
	uint64_t id;       /* of the host; the same at every start */
	uint64_t instance; /* random at start */
	uint64_t sequence; /* 1, 2, … in one instance; some may be missing */
	uint64_t steps;    /* of its controller so far; 0: not reported */
	bool asks;         /* asks whether others have requests inside: it is about to read */
	bool quiet;        /* the answer: it has none */
	bool bursts;       /* it has credit: its window does not limit it */
	double shares;     /* Σ shares of its VMs, adjusted to the idle (eq. 4) */
	double beta;       /* slots: scale × shares, as used */
	double window;     /* slots, from now on */
	double inside;     /* requests inside the resource, mean over the period */
	double latency;    /* ns, averaged; 0: it had no IO yet */
	double ios;        /* completed per second in the period */
	double bytes;      /* of those, per second */
	double threshold;  /* ns: its threshold, or the new one if it is the host that decides */
	/* slots a share that hosts should keep beside a stranger, by its own estimate; 0: none */
	double floor;
};

enum parda_smoothing {     /* of latency, eq. 1 */
	PARDA_BY_TIME,     /* `tau` */
	PARDA_BY_IO,       /* `alpha`: weight of each new IO */
	PARDA_BY_INTERVAL, /* `alpha`: weight of the past, per period, as eq. 1 is written */
};

#define PARDA_BURST      (60 * WEIR_SEC)   /* the policy's default; … */
#define PARDA_BURST_MOST (3600 * WEIR_SEC) /* … and the most: longer is no burst */

struct parda_config {
	uint64_t id, instance;
	struct parda_law law; /* threshold in ns */
	bool find;            /* find the threshold; law.threshold is the largest allowed */
	bool probe;           /* … also by its own reads */
	double epsilon; /* ε of control/parda/law.h; 0: literal, β = unit × shares at 𝓛 itself */
	double unit;    /* slots a share, when literal; 0: 1 */
	weir_time period; /* 0: 2 s */
	enum parda_smoothing smoothing;
	double alpha;       /* 0: 0.002 */
	weir_time tau;      /* 0: 1 s */
	bool local;         /* own latency only; β is then literal, and reports are ignored */
	bool unweighted;    /* the mean of hosts' latencies, not of requests': for experiments */
	unsigned age;       /* own periods of silence after which a peer is forgotten; 0: 4 */
	uint32_t peers_max; /* peers remembered; 0: 4096 */
	double slot;        /* bytes of an IO that a slot stands for; 0: any request is one */
	double size_fixed; /* bytes: cost of a request besides its own (§4); 0: size does not count */
	double window;     /* initial slots; 0: see STARTING */
	bool no_floor;     /* neither detect strangers nor keep slots beside them */
	bool abrupt; /* as in the paper: windows grow by the law alone, and no host makes room */
	enum parda_idle idle; /* how idle VMs of a host count */
	/* credit for bursts: slots unused for so long (control/parda/credit.h); 0: none */
	weir_time burst;
};

/* Measurements since the last step. */
struct parda_measured {
	uint64_t ios;               /* completed */
	double latency_ns;          /* Σ of time inside the resource, without waits in any gate */
	double bytes;               /* of those completed */
	double inside;              /* requests inside, on the mean, … */
	double held;                /* … without those that an upstream's limits hold: these */
	const struct parda_vm *vms; /* the host's tenants, in slots (control/parda/tenant.h) */
	size_t n_vms;
};

struct parda_decision {
	/* requests: for the gate, with its credit. The report's is without, in slots */
	double window;
	double beta;        /* slots */
	double latency;     /* ns: input of the law; 0: not known */
	double scale;       /* slots a share */
	double threshold;   /* ns: in force */
	double knee;        /* ns, as this host sees it; 0: not known, or not wanted */
	double ios;         /* a second, of all that count */
	double inside;      /* mean slots in use, of all that count */
	uint32_t peers;     /* that count */
	double credit;      /* slots that are saved for a burst */
	bool alone;         /* aggregated, and no peer was heard */
	bool stranger;      /* requests are inside that no host has sent: … */
	double strange;     /* … so many, about */
	double floor;       /* slots that this host keeps beside them; 0: the law gives it more */
	bool too_low;       /* wmax is less than the floor */
	bool wmax_short;    /* wmax keeps this host below its share; … */
	double wmax_wanted; /* … about so many slots would suffice */
	/* latency is over the threshold at any window, from the start or for long: … */
	bool unreachable;
	double least;      /* … ns: the least observed; 0: none */
	bool twice;        /* another host uses an id that is taken, … */
	uint64_t twice_id; /* … this one; perhaps our own */
	struct parda_report report;
};

enum parda_heard {
	PARDA_FRESH,   /* counts */
	PARDA_OWN,     /* our own report, returned */
	PARDA_STALE,   /* late, duplicated or replayed */
	PARDA_PENDING, /* an id that another instance has, which may be dead: not yet */
	PARDA_TWICE,   /* … and is not: two hosts have one id */
	PARDA_WRONG,   /* an impossible value */
	PARDA_FULL,    /* more peers than peers_max */
};

struct parda_counts {                   /* since the start */
	uint64_t heard[PARDA_FULL + 1]; /* of parda_hear */
	uint64_t bursts, reads;         /* of its own */
	weir_time probed;               /* ns that bursts took, in all */
	weir_time longest;              /* ns of the longest of them */
};

struct parda;
/* -EINVAL: a threshold ≤ 0, γ outside 0 … 1, bounds that cross, ε < 0; -ENOMEM. */
int parda_new(const struct parda_config *config, struct parda **ret);
void parda_free(struct parda *p);

/* Return the window in requests for the gate, before its first client and the first step. */
double parda_start_window(const struct parda *p);

enum parda_heard parda_hear(struct parda *p, const struct parda_report *r);

/* Run one step. `now` is on any clock; only spans count, and one that goes backwards counts as one
 * period. O(peers + VMs). */
void parda_step(
	struct parda *p, weir_time now, const struct parda_measured *m, struct parda_decision *ret);

/* Change threshold or bounds from the next step on; errors as in parda_new. */
int parda_set_law(struct parda *p, const struct parda_law *law);

/* The numbers of VMs mean other VMs from the next step on; forget their averages. */
void parda_renumber(struct parda *p);

/* A peer leaves: it no longer counts, and its return is not expected. */
void parda_leave(struct parda *p, uint64_t id, uint64_t instance);

/* ---- reads of its own, for config.probe */

/* Return true if this host decides: it has the lowest id of those that count. */
bool parda_probe_decides(const struct parda *p);
/* Return true if it may begin a burst now; then get the burst, and the bytes of a read. `now` is on
 * the clock of the burst. */
bool parda_probe_plan(
	const struct parda *p, weir_time now, struct probe_burst *ret, uint32_t *ret_bytes);
/* Ask peers whether they have requests inside; earlier answers no longer count. */
void parda_probe_ask(struct parda *p);
/* Return true if all of them have answered that they have none, and none has reported otherwise
 * since. */
bool parda_probe_agreed(const struct parda *p);
/* Record a burst whose last read completed at `ended`. */
void parda_probe_learn(
	struct parda *p, const struct probe_burst *b, uint64_t reads, weir_time ended);

void parda_counts(const struct parda *p, struct parda_counts *ret);

#endif
