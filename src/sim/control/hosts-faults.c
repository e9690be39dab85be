/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hosts-faults: hosts that crash, are stopped, are cut off from the others, or whose clock is set.
 *
 *   crash      nothing passes its gate and it says nothing; then it begins anew, as another instance
 *   pause      the same, but it goes on as the one that it was (SIGSTOP, a suspended machine)
 *   partition  it goes on, and neither hears nor is heard
 *   clock      its clock is ahead of what it was by `by`, or behind with `back: true`
 *
 * Its clients wait meanwhile. What was inside the device comes back. Faults are looked at in each of the
 * HOSTS_PHASES parts of a period.
 */
#include "base/no-memory.h"
#include "sim/control/hosts-impl.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum kind { CRASH, PAUSE, PARTITION, CLOCK };
static const char *const kinds[] = {"crash", "pause", "partition", "clock", NULL};
static const char *const keys[] = {"kind", "host", "time", "for", "by", "back", NULL};

struct fault {
	weir_time at;
	enum kind kind;
	bool ends;
	weir_time by;     /* CLOCK: ns */
	const char *host; /* the scenario's */
};

/* ---- the map */

static int read_one(yamldoc_node map, struct fault *ret, weir_time *ret_span, struct weir_err *err)
{
	bool back = false;
	int kind, r;

	if ((r = yamldoc_map(map, keys, err)) ||
		(r = yamldoc_choice(map, "kind", kinds, &kind, err)) ||
		(r = yamldoc_string(map, "host", &ret->host, err)) ||
		(r = yamldoc_time(map, "time", &ret->at, err)))
		return r == -ENOENT ? yamldoc_error(map, err, "needs kind, host and time") : r;
	ret->kind = (enum kind)kind;
	r = yamldoc_time(map, kind == CLOCK ? "by" : "for", ret_span, err);
	if (r == -ENOENT || (r == 0 && *ret_span <= 0))
		return yamldoc_error(
			map, err, kind == CLOCK ? "a clock is set 'by' a time" : "needs a 'for'");
	if (r == 0)
		r = yamldoc_bool(map, "back", &back, err);
	if (r && r != -ENOENT)
		return r;
	if (kind == CLOCK)
		ret->by = back ? -*ret_span : *ret_span;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct fault *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static bool is_host(const struct scenario *s, const char *name)
{
	for (uint32_t i = 0; i < s->n_hosts; i++)
		if (strcmp(s->hosts[i].name, name) == 0)
			return true;
	return false;
}

int hosts_faults_read(
	const struct scenario *s, yamldoc_node map, struct map *ret, struct weir_err *err)
{
	yamldoc_node list = yamldoc_get(map, "faults");
	size_t n = list.id ? yamldoc_size(list) : 0;
	int r = 0;

	if (list.id && yamldoc_kind(list) != YAMLDOC_LIST)
		return yamldoc_error(list, err, "must be a list");
	ret->faults = calloc(2 * n + 1, sizeof(*ret->faults));
	if (!ret->faults)
		return no_memory(err);
	for (size_t i = 0; i < n && r == 0; i++) {
		yamldoc_node one = yamldoc_at(list, i);
		struct fault *f = &ret->faults[ret->n_faults];
		weir_time span;

		r = read_one(one, f, &span, err);
		if (r == 0 && !is_host(s, f->host))
			r = yamldoc_error(one, err, "no host is named '%s'", f->host);
		if (r)
			break;
		ret->n_faults++;
		if (f->kind == CLOCK)
			continue;
		ret->faults[ret->n_faults] = *f;
		ret->faults[ret->n_faults].at += span;
		ret->faults[ret->n_faults++].ends = true;
	}
	if (r) {
		free(ret->faults);
		ret->faults = NULL;
		return r;
	}
	qsort(ret->faults, ret->n_faults, sizeof(*ret->faults), by_time);
	return 0;
}

/* ---- what is due */

/* What was counted before is not the new instance's. */
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

static int strike(struct host *h, const struct fault *f, struct weir_err *err)
{
	int r = 0;

	switch (f->kind) {
	case PARTITION:
		h->is_cut = !f->ends;
		return 0;
	case CLOCK:
		h->skew += f->by;
		return 0;
	default:
		h->is_down = !f->ends;
		if (f->ends && f->kind == CRASH)
			r = restart(h, err);
		h->site.due = WEIR_NEVER; /* it steps in its own phase */
		set_window(h, f->ends ? h->window : 0);
		return r;
	}
}

int hosts_faults_step(struct hosts *c, struct world *w, struct weir_err *err)
{
	int r = 0;

	for (; c->next_fault < c->map.n_faults; c->next_fault++) {
		const struct fault *f = &c->map.faults[c->next_fault];

		if (f->at > w->now || r)
			return r;
		for (uint32_t i = 0; i < c->n && r == 0; i++)
			if (strcmp(c->hosts[i].world->name, f->host) == 0)
				r = strike(&c->hosts[i], f, err);
	}
	return r;
}
