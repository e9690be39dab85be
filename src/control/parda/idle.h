/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle: equation 4 for long-term behaviour: a host's shares, without those of VMs that stay idle.
 *
 * The paper (§3.4) reduces a host's β so that a backlogged VM does not profit from the shares of an
 * idle VM on the same host. Taken literally (parda_shares) every period, the equation also takes
 * the weight of a host whose VMs are idle only between two bursts, and the next burst finds a
 * window that is too small. Here
 *
 *   - a VM counts with the part of its slots that it used, averaged over PARDA_IDLE_TAU. A VM that
 *     uses more than its average counts at once with its present use;
 *   - its shares are reduced only while another VM of the host is backlogged, that is, wants all of
 *     its own slots. Otherwise no VM on the host could profit.
 *
 * So a host with one VM always has all of its shares.
 */
#pragma once

#include "control/parda/law.h"
#include <weir/clock.h>

#define PARDA_IDLE_TAU (60 * WEIR_SEC)

enum parda_idle {
	PARDA_IDLE_AVERAGE, /* as above */
	PARDA_IDLE_LITERAL, /* equation 4 as written, by each period alone */
	PARDA_IDLE_IGNORE,  /* idle VMs count as others do */
};

struct parda_idle_table { /* {0} to begin with */
	double *used;     /* by number of the VM: used part of its slots, 0 … 1, averaged */
	uint32_t n;
};

/* Return Σ shares of the VMs after `span` ns in which their host had a window of `window` slots. A
 * VM with a new number begins as one that used all of its slots; without memory, none is
 * reduced. */
double parda_idle_shares(struct parda_idle_table *t, const struct parda_vm *vms, size_t n,
	double window, weir_time span);
/* Forget all: the numbers mean other VMs from now on. */
void parda_idle_clear(struct parda_idle_table *t);
