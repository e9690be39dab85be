/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/parda/idle.h"
#include "base/array.h"
#include <math.h>
#include <stdlib.h>

/* part of its slots: a VM that never stops has a gap between two requests */
#define BACKLOGGED 0.95

void parda_idle_clear(struct parda_idle_table *t)
{
	free(t->used);
	*t = (struct parda_idle_table){0};
}

static int make_room(struct parda_idle_table *t, const struct parda_vm *vms, size_t n)
{
	uint32_t most = t->n;

	for (size_t k = 0; k < n; k++)
		most = vms[k].number >= most ? vms[k].number + 1 : most;
	if (most == t->n)
		return 0;
	if (array_resize(&t->used, most) < 0)
		return -1;
	while (t->n < most)
		t->used[t->n++] = 1;
	return 0;
}

/* Return the part of its slots that a VM wanted. */
static double part_of(const struct parda_vm *vm, double all, double window)
{
	double slots = vm->shares / all * window; /* eq. 4 */

	return vm->outstanding < slots ? vm->outstanding / slots : 1;
}

static double average(double *past, double part, double keep)
{
	*past = keep * *past + (1 - keep) * part;
	return fmax(*past, part);
}

double parda_idle_shares(struct parda_idle_table *t, const struct parda_vm *vms, size_t n,
	double window, weir_time span)
{
	double keep = exp(-(double)span / (double)PARDA_IDLE_TAU), all = 0, unused = 0;
	double unused_backlogged = 0; /* of the only VM that is backlogged */
	size_t backlogged = 0;

	for (size_t k = 0; k < n; k++)
		all += vms[k].shares;
	if (make_room(t, vms, n) < 0)
		return all;
	for (size_t k = 0; k < n; k++) {
		double part = part_of(&vms[k], all, window);
		double less = vms[k].shares * (1 - average(&t->used[vms[k].number], part, keep));

		unused += less;
		if (part >= BACKLOGGED) {
			backlogged++;
			unused_backlogged = less;
		}
	}
	if (backlogged == 0)
		return all;
	/* The only backlogged VM keeps its own shares: no other VM profits. */
	return all - unused + (backlogged == 1 ? unused_backlogged : 0);
}
