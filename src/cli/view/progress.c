/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/view/progress.h"
#include "serve/loop/loop.h"
#include <stdio.h>
#include <unistd.h>

#define PATIENCE (2 * WEIR_SEC)  /* shorter work needs no progress line */
#define REDRAW   (200 * WEIR_MS) /* smooth, and cheap over ssh */

void progress_start(struct progress *p, const char *what, double total)
{
	*p = (struct progress){what, total, loop_clock(), 0, isatty(STDERR_FILENO) == 1};
}

void progress_tick(struct progress *p, double done)
{
	if (!p->terminal)
		return;
	weir_time t = loop_clock();
	if (t - p->started < PATIENCE || t - p->drawn < REDRAW)
		return;
	p->drawn = t;
	fprintf(stderr, "\r%s: ", p->what);
	if (p->total > 0)
		fprintf(stderr, "%.0f %%, ", 100 * (done < p->total ? done / p->total : 1));
	fprintf(stderr, "%lld s\033[K", (long long)((t - p->started) / WEIR_SEC));
	fflush(stderr);
}

void progress_end(struct progress *p)
{
	if (p->drawn)
		fprintf(stderr, "\r\033[K");
	p->drawn = 0;
}
