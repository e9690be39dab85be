/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * impl: shared by the files of PARDA's controller.
 *
 *   parda.c   set-up, hearing, and the order of a step
 *   sums.c    sums over the host and its peers
 *   move.c    the new window
 *   probe.c   the threshold, by the host's own reads
 */
#pragma once

#include "control/parda/knee.h"
#include "control/parda/knee-probe.h"
#include "control/parda/credit.h"
#include "control/parda/peers.h"
#include "control/parda/start.h"
#include "control/parda/stranger.h"
#include "control/parda/warn.h"
#include "control/parda/parda.h"

#define PARDA_IN_USE 0.8 /* part of a window: its host is limited by it */

struct parda {
	struct parda_config config;
	struct parda_law law; /* the config's, with the threshold of eq. 2 */
	struct parda_peers peers;
	struct knee *knee;    /* NULL: the threshold is given */
	struct probe *probe;  /* NULL: not by reads of our own */
	weir_time probe_next; /* not before */
	double io_mean;       /* bytes of a request of all hosts, averaged; 0: none was seen */
	double io_bytes;      /* of a request, averaged; 0: none was seen */
	double *ratios;       /* room for a value of each peer and of the host */
	uint32_t ratios_room;
	bool started, idle;
	struct parda_start start;
	struct parda_stranger stranger;
	struct parda_warn warn;
	struct parda_idle_table idle_vms;
	struct parda_credit credit;
	double inside;     /* of all hosts, averaged like latency */
	bool was_at_floor; /* beside a stranger, and slots were not yet divided again */
	unsigned joining;  /* steps for which it may still join */
	double together;   /* slots a share, of all hosts, when some were cut off; 0: none were */
	weir_time last;    /* the step before */
	uint64_t sequence;
	double window, latency; /* own; slots, ns */
	double size;            /* slots of a request, averaged; 0: none is known */
	double threshold;       /* aimed at */
	double decided;         /* by our own knee, in the last step */
	double scale;           /* of the last step that could compute it */
	unsigned twice;         /* steps for which to report that our own id is used twice */
	struct parda_counts counts;
};

/* Return true if β is the shares themselves, at the threshold itself. */
static inline bool parda_is_literal(const struct parda *p)
{
	return p->config.local || p->config.epsilon <= 0;
}

struct parda_sums { /* over the host and the peers that count */
	double shares;
	double used_shares, slots; /* of hosts that use their windows, for the scale */
	double ios, bytes;         /* a second, of hosts with a latency */
	double done;               /* … in slots */
	double latency;            /* the mean, weighted by ios; 0: none is known */
	double inside;             /* slots */
	double on_credit;          /* slots inside above the hosts' windows */
	double limited;      /* slots inside of hosts that their windows limit, at most those */
	double windows;      /* of hosts with shares, … */
	double used_windows; /* … that use them */
	bool add_up, merge;  /* some were cut off from us, and it is time to act */
	uint32_t hosts;      /* with shares */
	uint32_t peers, now; /* peers that count; peers heard since the last step */
	double least;        /* least shares of a host that has some; 0: none has any */
	bool at_work;        /* a peer with shares no longer starts */
	double ratio;        /* most slots a share of a peer that uses them */
	double vanished;     /* slots in use by peers that are forgotten and did not leave, … */
	double vanished_shares; /* … and their shares */
};

/* Add up. own: the host's report of this step, with the window that it had until now. */
struct parda_sums parda_sums_of(const struct parda *p, const struct parda_report *own);
/* Return the slots a second that the host would have beside what the others want now: max-min by shares. all: of all. */
double parda_sums_part(const struct parda *p, const struct parda_report *own, double all);
/* Return the median of w/shares over the peers that use their slots; 0: none. It equals the median
 * of w/β times the scale, but does not depend on the scale, which a joining host does not know
 * yet. */
double parda_sums_ratio(struct parda *p);
/* Return the slots a share that hosts keep beside a stranger: the upper median of their findings,
 * so that all keep the same. *ret_common: more than half of the hosts have found a stranger. */
double parda_sums_floor(struct parda *p, double own, bool *ret_common);

/* Move p->window by the result of this step. own: as reported, except window and floor; floor is
 * set. ret: latency is known; the floor beside a stranger is set. */
void parda_move(struct parda *p, const struct parda_sums *s, const struct parda_measured *m,
	weir_time span, struct parda_report *own, struct parda_decision *ret);

/* Record the sizes of a step's requests, which the host's own reads imitate. */
void parda_probe_size(struct parda *p, const struct parda_measured *m);
