/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live-fault: `faults` of a scenario: for a crash the host's gateway is killed, with its
 * clients, and both are restarted when the fault ends (live.c). Other kinds cannot run live.
 */
#include "base/no-memory.h"
#include "cli/live/live-impl.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The scenario was read before: its faults are well formed. */
static int read_one(struct live *l, yamldoc_node map, struct weir_err *err)
{
	const char *kind = yamldoc_text(yamldoc_get(map, "kind"));
	const char *host = yamldoc_text(yamldoc_get(map, "host"));
	struct live_fault *f = &l->faults[l->n_faults];
	weir_time span = 0;

	if (strcmp(kind, "crash") != 0)
		return yamldoc_error(map, err, "cannot run live: only the fault 'crash' can");
	*f = (struct live_fault){.server = -1};
	for (uint32_t h = 0; h < l->s->n_hosts; h++)
		if (strcmp(l->s->hosts[h].name, host) == 0)
			f->server = l->host_server[h];
	if (f->server < 0)
		return yamldoc_error(map, err, "cannot run live: host '%s' has no gateway", host);
	(void)yamldoc_time(map, "time", &f->from, NULL);
	(void)yamldoc_time(map, "for", &span, NULL);
	f->to = f->from + span;
	l->n_faults++;
	return 0;
}

int live_fault_plan(struct live *l, struct weir_err *err)
{
	yamldoc_node list = yamldoc_get(yamldoc_root(l->s->doc), "faults");
	size_t n = list.id ? yamldoc_size(list) : 0;
	struct live_fault *more = realloc(l->faults, (l->n_faults + n + 1) * sizeof(*more));
	int r = 0;

	if (!more)
		return no_memory(err);
	l->faults = more;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = read_one(l, yamldoc_at(list, i), err);
	return r;
}

weir_time live_fault_next(const struct live *l, weir_time now)
{
	weir_time next = WEIR_NEVER;

	for (size_t i = 0; i < l->n_faults; i++) {
		const struct live_fault *f = &l->faults[i];
		weir_time at = f->state == LIVE_FAULT_TO_COME ? f->from : f->to;

		if (f->state != LIVE_FAULT_OVER && at < next)
			next = at;
	}
	return next;
}
