/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controller-impl: PARDA behind the plug (control/controller.h). Only these files include it:
 *
 *   controller.c        its life, and a period
 *   controller-reads.c  its own reads, by which it finds the threshold
 *   controller-tell.c   the log
 */
#pragma once

#include "control/parda/keys.h"

struct parda_reads {
	struct site_burst burst;
	struct probe_burst plan;
	enum { PARDA_READS_NONE, PARDA_READS_ASKED, PARDA_READS_READING } state;
	weir_time look;   /* when to look next */
	weir_time since;  /* ASKED: when */
	weir_time looked; /* the last look, … */
	bool still;       /* … and whether it found no activity */
	weir_time busy;   /* the last look that found activity, … */
	bool seen;        /* … and whether the one before it was near */
	weir_time watch;  /* until when peers are told that a client has come; 0: they are not */
	bool confirming; /* nothing was inside; peers are told so if the next look finds the same */
	uint64_t activity; /* of the site, at the last look */
};

struct parda_control { /* an instance */
	struct site *site;
	struct parda *parda; /* NULL: before the first version */
	struct parda_settings settings;
	struct controller_peers peers;
	struct parda_decision last; /* of the last step */
	double held;                /* ns, of the last step: site_loads.held */
	uint64_t steps;
	weir_time due; /* of the next step */
	bool asked;    /* the upstream, for that step */
	struct parda_vm *vms;
	size_t vms_room;
	struct parda_reads reads;
	struct { /* events that were told, each once until the state changes */
		bool any, alone, stranger;
		bool too_low, wmax, unreachable; /* of these bounds and this threshold */
	} said;
};

/* ---- controller-reads.c */
void parda_reads_init(struct parda_control *c);
/* Do what is due; return when to be called again. */
weir_time parda_reads_step(struct parda_control *c, weir_time now);
/* A peer's report that is new. */
void parda_reads_hear(struct parda_control *c, const struct parda_report *heard);

/* ---- controller-tell.c: after a step */
void parda_tell(struct parda_control *c);
