/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hosts-faults: hosts that crash, are stopped, are cut off from the others, or whose clock is set.
 *
 *   crash      nothing passes the host's gate and it sends nothing; then it starts again, as another instance
 *   pause      the same, but the same instance continues (SIGSTOP, a suspended machine)
 *   partition  the host continues, and neither receives nor sends reports
 *   clock      its clock jumps ahead by `by`, or back with `back: true`
 *
 * The host's clients wait meanwhile, and its requests inside the device come back. Faults are checked in each of the
 * HOSTS_PHASES parts of a period.
 */
#include "base/no-memory.h"
#include "sim/control/hosts-impl.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {"crash", "pause", "partition", "clock", NULL};
static const char *const keys[] = {"kind", "host", "time", "for", "by", "back", NULL};

/* ---- the map */

static int read_host(
	const struct scenario *s, yamldoc_node map, uint32_t *ret, struct weir_err *err)
{
	const char *name;
	int r = yamldoc_string(map, "host", &name, err);

	for (uint32_t i = 0; r == 0 && i < s->n_hosts; i++)
		if (strcmp(s->hosts[i].name, name) == 0) {
			*ret = i;
			return 0;
		}
	return r ? r : yamldoc_error(map, err, "no host is named '%s'", name);
}

static int read_one(const struct scenario *s, yamldoc_node map, struct hosts_fault *ret,
	weir_time *ret_span, struct weir_err *err)
{
	bool back = false;
	int kind, r;

	if ((r = yamldoc_map(map, keys, err)) ||
		(r = yamldoc_choice(map, "kind", kinds, &kind, err)) ||
		(r = read_host(s, map, &ret->host, err)) ||
		(r = yamldoc_time(map, "time", &ret->at, err)))
		return r == -ENOENT ? yamldoc_error(map, err, "needs kind, host and time") : r;
	ret->kind = (enum hosts_fault_kind)kind;
	ret->node = map;
	r = yamldoc_time(map, kind == HOSTS_CLOCK ? "by" : "for", ret_span, err);
	if (r == -ENOENT || (r == 0 && *ret_span <= 0))
		return yamldoc_error(map, err,
			kind == HOSTS_CLOCK ? "a clock is set 'by' a time" : "needs a 'for'");
	if (r == 0)
		r = yamldoc_optional(yamldoc_bool(map, "back", &back, err));
	if (kind == HOSTS_CLOCK)
		ret->by = back ? -*ret_span : *ret_span;
	return r;
}

static int by_time(const void *a, const void *b)
{
	const struct hosts_fault *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

int hosts_faults_read(const struct scenario *s, struct hosts_network *ret, struct weir_err *err)
{
	yamldoc_node list = yamldoc_get(yamldoc_root(s->doc), "faults");
	size_t n = list.id ? yamldoc_size(list) : 0;
	int r = list.id ? yamldoc_list(list, err) : 0;

	if (r)
		return r;
	ret->faults = calloc(2 * n + 1, sizeof(*ret->faults));
	if (!ret->faults)
		return no_memory(err);
	for (size_t i = 0; i < n && r == 0; i++) {
		struct hosts_fault *f = &ret->faults[ret->n_faults];
		weir_time span;

		r = read_one(s, yamldoc_at(list, i), f, &span, err);
		ret->n_faults++;
		if (r || f->kind == HOSTS_CLOCK)
			continue;
		f[1] = *f;
		f[1].at += span;
		f[1].ends = true;
		ret->n_faults++;
	}
	if (r) {
		free(ret->faults);
		ret->faults = NULL;
		return r;
	}
	qsort(ret->faults, ret->n_faults, sizeof(*ret->faults), by_time);
	return 0;
}

/* ---- faults that are due */

/* Start the new instance's counters at the present values. */
static int restart(struct host *h, struct weir_err *err)
{
	struct site_loads before;

	hosts_loads(&h->site.site, &before);
	return hosts_begin(h, err);
}

static void set_window(struct host *h, double window)
{
	sim_site_ops.set_window(&h->site.site, window);
}

static int strike(struct host *h, const struct hosts_fault *f, struct weir_err *err)
{
	int r = 0;

	switch (f->kind) {
	case HOSTS_PARTITION:
		h->is_cut = !f->ends;
		return 0;
	case HOSTS_CLOCK:
		h->skew += f->by;
		return 0;
	default:
		h->is_down = !f->ends;
		if (f->ends && f->kind == HOSTS_CRASH)
			r = restart(h, err);
		h->site.due = WEIR_NEVER; /* it steps in its own phase */
		set_window(h, f->ends ? h->window : 0);
		return r;
	}
}

int hosts_faults_step(struct hosts *c, struct world *w, struct weir_err *err)
{
	int r = 0;

	for (; c->next_fault < c->map.network.n_faults; c->next_fault++) {
		const struct hosts_fault *f = &c->map.network.faults[c->next_fault];

		if (f->at > w->now || r)
			return r;
		for (uint32_t i = 0; i < c->n && r == 0; i++)
			if (c->hosts[i].world == &w->hosts[f->host])
				r = strike(&c->hosts[i], f, err);
	}
	return r;
}
