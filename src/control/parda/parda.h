/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parda: the controller of one host's window before one resource that it shares with other hosts.
 *
 * Once a period: what the host's own gate measured and what its peers told go in, a window and β
 * come out, and a report for the peers. The laws are control/parda/law's. How reports travel is not known
 * here: whoever receives one gives it to parda_hear, in any order and as often as it comes; whoever
 * steps sends the report that parda_step leaves.
 *
 *   every period:  parda_hear (each report that came in)
 *                  parda_step → the gate's window; the report, to all peers
 *
 * LATENCY  Local: the host's own. Aggregated: the mean over the host and its peers, each weighted by
 *          its IOs: one signal for all, since local ones drive the windows apart (§4.1).
 * PEERS    A table by id, of bounded size. A report counts until its host has been silent for `age`
 *          of our own steps; periods are counted, not time, so that a step of the clock ages nobody.
 *          A report that is not newer than the last one of its host (late, duplicated, replayed)
 *          changes nothing. A host that starts again has another `instance`; it is taken in the
 *          place of the old one when that is silent. Two instances of one id that speak at the same
 *          time are told apart and reported, and the first one counts. Instances that were
 *          replaced are remembered, so that their reports cannot be played again.
 * STARTING A host that starts floods nobody: it begins at the least window, and its peers make room for
 *          its shares (control/parda/start.h). As long as latency is below half of the threshold no window
 *          more than doubles in a period. With config.window it begins there, and joins as below.
 * JOINING  A host whose tenants were all idle, or that was stopped for longer than its peers take to
 *          forget it, goes to β × the median of its peers' w/β: by the law alone it would be 15 periods
 *          on the way.
 *          Hosts that are cut off from each other keep half of what they had at least, since by local latency one
 *          would end with everything. When they are
 *          together again all go, in one step, to their parts by shares of what they have together.
 * STRANGERS Requests of others that no host under PARDA has sent are found by what latency does when windows move, and told;
 *          beside them hosts keep at least half of their fair part, up to wmax, even if latency then
 *          stays over the threshold (control/parda/stranger.h).
 * MIN      A host whose tenants have guarantees has at least the slots that these need at its latency, at
 *          most wmax, whatever its shares; the gate sees to it that they are theirs.
 * IDLE     A VM that stays idle beside a backlogged VM of its host counts less (control/parda/idle.h). A host that
 *          leaves slots unused saves them: its gate's window is larger at its next burst (control/parda/credit.h). The
 *          latency that bursts on credit add does not make windows smaller, since it ends with them. Reports
 *          have the law's window, without credit.
 * SLOTS    A slot is a request; or, where bytes are to be shared, an IO of a fixed size (§2). The law, the
 *          reports and the bounds are in slots; what the gate is told is in requests, by the mean size of
 *          those that the host has.
 * FINDING  Where no threshold is known it can be found (control/parda/knee.h): the knee of throughput over latency,
 *          of all hosts together. The host with the lowest id decides, the others follow what its
 *          reports aim at; all watch, so that the next one knows as much.
 * PROBING  With `probe` the host with the lowest id may find it sooner, by bursts of reads of its own while no host has
 *          requests inside (control/parda/knee-probe.h): of a tenth of a period and 200 ms at most, and
 *          2 % of the time. It is for the caller to see that nobody
 *          has, to read past the gate, and to count the reads for nobody. As soon as a burst has told a knee, that is
 *          what is aimed at, and the search by the hosts' own load rests.
 * ALONE    With no peer heard it goes on by its own latency; `alone` says so.
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

/* What a host tells its peers, once a period. All of it is what a codec has to carry. */
struct parda_report {
	uint64_t id;       /* of the host; the same at every start */
	uint64_t instance; /* random at start */
	uint64_t sequence; /* 1, 2, … in one instance; some may be missing */
	uint64_t steps;    /* that it has made; 0: does not say */
	bool asks;         /* whether others have requests inside: it is about to read on its own */
	bool quiet;        /* the answer: it has none */
	double shares;     /* Σ shares of its VMs, adjusted to the idle (eq. 4) */
	double beta;       /* slots: scale × shares, as used */
	double window;     /* slots, from now on */
	double inside;     /* requests inside the resource, mean over the period */
	double latency;    /* ns, averaged; 0: it had no IO yet */
	double ios;        /* completed per second in the period */
	double bytes;      /* of those, per second */
	double threshold;  /* ns: what it aims at, or from now on where it is the one who decides */
	double floor; /* slots a share that hosts should keep beside a stranger, as it sees it; 0: none */
};

enum parda_smoothing {     /* of latency, eq. 1 */
	PARDA_BY_TIME,     /* `tau` */
	PARDA_BY_IO,       /* `alpha`: weight of each new IO */
	PARDA_BY_INTERVAL, /* `alpha`: weight of the past, per period, as eq. 1 is written */
};

#define PARDA_BURST      (60 * WEIR_SEC)   /* the default where a person writes none; … */
#define PARDA_BURST_MOST (3600 * WEIR_SEC) /* … and the most: longer is no burst */

struct parda_config {
	uint64_t id, instance;
	struct parda_law law; /* threshold in ns */
	bool find;      /* the threshold is found, and law.threshold the most that it may be */
	bool probe;     /* … also by reads of its own */
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
	double size_fixed;  /* bytes: latency per 8 KiB (§4) with this fixed cost; 0: per IO */
	double window;      /* slots to begin with; 0: as STARTING says */
	bool no_floor;      /* nothing is kept beside strangers, nor are they looked for */
	bool abrupt; /* as the paper has it: windows grow by the law alone, and nobody makes room */
	enum parda_idle idle; /* what idle VMs of a host count */
	weir_time
		burst; /* credit for bursts: slots unused for so long (control/parda/credit.h); 0: none */
};

/* Over the time since the last step. */
struct parda_measured {
	uint64_t ios;               /* completed */
	double latency_ns;          /* Σ of time inside the resource, without waits in any gate */
	double bytes;               /* of those completed */
	double inside;              /* requests inside, on the mean */
	const struct parda_vm *vms; /* the host's tenants, in slots (control/parda/tenant.h) */
	size_t n_vms;
};

struct parda_decision {
	double window; /* requests: for the gate, with its credit. The report's is without, in slots */
	double beta;        /* slots */
	double latency;     /* ns: what the law was fed; 0: none is known */
	double scale;       /* slots a share */
	double threshold;   /* ns: what is aimed at */
	double knee;        /* ns, as this host sees it; 0: not known, or not asked for */
	double ios;         /* a second, of all that count */
	double inside;      /* slots in use, of all that count, on the mean */
	uint32_t peers;     /* that count */
	double credit;      /* slots × s that are saved for a burst */
	bool alone;         /* aggregated, and nobody was heard */
	bool stranger;      /* requests are inside that no host has sent: … */
	double strange;     /* … so many, about */
	double floor;       /* slots that this host keeps beside them; 0: the law gives it more */
	bool too_low;       /* wmax is less than the floor */
	bool wmax_short;    /* wmax keeps this host below its share; … */
	double wmax_wanted; /* … so many slots would do, about */
	bool unreachable; /* latency is over the threshold at any window, from the start or for long: … */
	double least;      /* … ns: the least that was seen; 0: none */
	bool twice;        /* somebody else speaks under an id that is taken, … */
	uint64_t twice_id; /* … this one; perhaps our own */
	struct parda_report report;
};

enum parda_heard {
	PARDA_FRESH,   /* counts */
	PARDA_OWN,     /* our own, come back */
	PARDA_STALE,   /* late, duplicated or replayed */
	PARDA_PENDING, /* an id that is taken by another instance, which may be dead: not yet */
	PARDA_TWICE,   /* … and is not: two hosts have one id */
	PARDA_WRONG,   /* a field that cannot be */
	PARDA_FULL,    /* more peers than peers_max */
};

struct parda_counts {                   /* since the start */
	uint64_t heard[PARDA_FULL + 1]; /* of parda_hear */
	uint64_t bursts, reads;         /* of its own */
	weir_time probed;               /* ns that bursts took, in all */
};

struct parda;
/* -EINVAL: a threshold ≤ 0, γ outside 0 … 1, bounds that cross, ε < 0; -ENOMEM. */
int parda_new(const struct parda_config *config, struct parda **ret);
void parda_free(struct parda *p);

/* Requests: for the gate, before its first client and the first step. */
double parda_start_window(const struct parda *p);

enum parda_heard parda_hear(struct parda *p, const struct parda_report *r);

/* `now` on any clock that the caller likes; it is used for spans only, and one that goes backwards
 * counts as one period. O(peers + VMs). */
void parda_step(
	struct parda *p, weir_time now, const struct parda_measured *m, struct parda_decision *ret);

/* Another threshold, or bounds, from the next step on; as in parda_new. */
int parda_set_law(struct parda *p, const struct parda_law *law);

/* The numbers of VMs mean other VMs from the next step on; what was averaged of them is forgotten. */
void parda_renumber(struct parda *p);

/* A peer said that it leaves: it no longer counts, and nobody waits for it. */
void parda_leave(struct parda *p, uint64_t id, uint64_t instance);

/* ---- reads of its own, for config.probe */

/* Is it for this host to read? The one with the lowest id of those that count. */
bool parda_probe_decides(const struct parda *p);
/* May it begin now, as far as it and time go? Then with this burst, of reads of so many bytes. `now` is on the clock of
 * the burst. */
bool parda_probe_plan(
	const struct parda *p, weir_time now, struct probe_burst *ret, uint32_t *ret_bytes);
/* Peers are asked whether they have requests inside; what they said before no longer counts. */
void parda_probe_ask(struct parda *p);
/* All of them have said that they have none, and none has said otherwise since. */
bool parda_probe_agreed(const struct parda *p);
/* The last read of the burst came back at `ended`. */
void parda_probe_learn(
	struct parda *p, const struct probe_burst *b, uint64_t reads, weir_time ended);

void parda_counts(const struct parda *p, struct parda_counts *ret);

#endif
