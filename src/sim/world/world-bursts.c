/* SPDX-License-Identifier: BSD-3-Clause */
/* world-bursts: the bursts of workloads with fixed on- and off-phases. */
#include "sim/world/world.h"
#include <string.h>

void world_burst_issue(struct world *w, struct world_load *l, struct world_io *io)
{
	struct world_bursts *b = l->bursts;
	weir_time cycle = l->config->config.on + l->config->config.off;
	struct world_burst *last;

	io->phase = (uint32_t)((w->now - l->config->config.start) / cycle);
	last = b->n_open ? &b->open[b->n_open - 1] : NULL;
	if (!last || last->phase != io->phase) {
		if (b->n_open == sizeof(b->open) / sizeof(b->open[0])) {
			b->lost += b->open[0].first >= w->warmup;
			memmove(b->open, b->open + 1, sizeof(b->open) - sizeof(b->open[0]));
			b->n_open--;
		}
		last = &b->open[b->n_open++];
		*last = (struct world_burst){.phase = io->phase, .first = w->now};
	}
	last->inside++;
}

/* Count the bursts of which all IOs are done and no more can come as finished. */
void world_load_sweep(struct world *w, struct world_load *l)
{
	const struct workload_config *c = &l->config->config;
	struct world_bursts *b = l->bursts;
	unsigned kept = 0;

	for (unsigned i = 0; i < b->n_open; i++) {
		struct world_burst *x = &b->open[i];
		weir_time phase_end = c->start + (weir_time)x->phase * (c->on + c->off) + c->on;

		if (x->inside > 0 || w->now < phase_end) {
			b->open[kept++] = *x;
		} else if (x->first >= w->warmup) {
			b->finished++;
			b->total_ns += (double)(x->last - x->first);
		}
	}
	b->n_open = kept;
}

void world_burst_complete(struct world *w, struct world_load *l, const struct world_io *io)
{
	struct world_bursts *b = l->bursts;

	for (unsigned i = 0; i < b->n_open; i++) {
		if (b->open[i].phase == io->phase) {
			b->open[i].inside--;
			b->open[i].last = w->now;
		}
	}
	world_load_sweep(w, l);
}
