/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * impl: what the parts of control/parda/parda share. Nobody else includes it.
 *
 *   parda.c        set-up, hearing, and the order of a step
 *   control/parda/sums.c   what the host and its peers have together
 *   control/parda/move.c   the window, from that
 *   control/parda/probe.c  the threshold, by reads of the host's own
 */
#ifndef WEIR_CONTROL_PARDA_IMPL_H
#define WEIR_CONTROL_PARDA_IMPL_H

#include "control/parda/knee.h"
#include "control/parda/knee-probe.h"
#include "control/parda/credit.h"
#include "control/parda/peers.h"
#include "control/parda/start.h"
#include "control/parda/stranger.h"
#include "control/parda/warn.h"
#include "control/parda/parda.h"

struct parda {
	struct parda_config config;
	struct parda_law law; /* the config's, with the threshold that is fed to eq. 2 */
	struct parda_peers peers;
	struct knee *knee;    /* NULL: the threshold is given */
	struct probe *probe;  /* NULL: not by reads of our own */
	weir_time probe_next; /* not before */
	double io_bytes;      /* of a request, averaged; 0: none was seen */
	double *ratios;       /* room for a value of each peer and of the host */
	uint32_t ratios_room;
	bool started, idle;
	struct parda_start start;
	struct parda_stranger stranger;
	struct parda_warn warn;
	struct parda_idle_table idle_vms;
	struct parda_credit credit;
	double inside;     /* of all, averaged as latency is */
	bool was_at_floor; /* beside a stranger, and what hosts have was not yet divided anew */
	unsigned joining;  /* steps for which it still may join */
	double together;   /* slots a share, of all, when some were apart; 0: none were */
	weir_time last;    /* the step before */
	uint64_t sequence;
	double window, latency; /* own; slots, ns */
	double size;            /* slots of a request, averaged; 0: none is known */
	double threshold;       /* aimed at */
	double decided;         /* by our own knee, in the last step */
	double scale;           /* of the last step that could tell one */
	unsigned twice;         /* steps for which to say that our own id is used twice */
	struct parda_counts counts;
};

/* β is the shares themselves, at the threshold itself. */
static inline bool parda_is_literal(const struct parda *p)
{
	return p->config.local || p->config.epsilon <= 0;
}

struct parda_sums { /* over the host and the peers that count */
	double shares;
	double used_shares, slots; /* of those that use their windows, for the scale */
	double ios;
	double latency;      /* the mean, weighted by ios; 0: none is known */
	double inside;       /* slots */
	double on_credit;    /* slots inside that hosts have above their windows */
	double windows;      /* of those with shares, … */
	double used_windows; /* … and that use them */
	bool add_up, merge;  /* some were apart from us, and it is time */
	uint32_t hosts;      /* with shares */
	uint32_t peers, now; /* those that count; those heard since the last step */
	double least;        /* shares of the host with the least, but not none; 0: none has any */
	bool at_work;        /* a peer with shares no longer starts */
	double ratio;        /* most slots a share of a peer that uses them */
	double vanished;     /* slots in use of peers that are forgotten and did not leave, … */
	double vanished_shares; /* … and their shares */
};

/* own: the host's report of this step, with the window that it had until now. */
struct parda_sums parda_sums_of(const struct parda *p, const struct parda_report *own);
/* The median of w/shares over the peers that use their slots; 0: there is none. It is that of w/β times the scale, but
 * does not depend on whose scale: the host that joins does not know it yet. */
double parda_sums_ratio(struct parda *p);
/* Slots a share that hosts keep beside a stranger: the upper median of what they have found, so that all keep the same.
 * *ret_common: more than half of them have found some. */
double parda_sums_floor(struct parda *p, double own, bool *ret_common);

/* Moves p->window by what this step has found. own: but for window and floor, as it is told; floor is set. ret: latency
 * is known; what is kept beside a stranger is set. */
void parda_move(struct parda *p, const struct parda_sums *s, const struct parda_measured *m,
	weir_time span, struct parda_report *own, struct parda_decision *ret);

/* Of the requests of a step, which its own reads are to resemble. */
void parda_probe_size(struct parda *p, const struct parda_measured *m);

#endif
