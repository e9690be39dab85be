/* SPDX-License-Identifier: BSD-3-Clause */
/* replay-next: what a percentile may be when the traces go on (replay.h, INTERVAL). */
#include "plan/replay-impl.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define BLOCKS 20    /* s is known within a sixth, and a block of a ten-minute trace has 30 s */
#define T      2.539 /* Student's, 99 % on one side, BLOCKS - 1 degrees of freedom */

struct late { /* a request */
	double latency;
	unsigned block;
};

struct blocks {
	double n[BLOCKS], late[BLOCKS];   /* requests */
	double sum, nn, sum_late, ll, nl; /* Σn, Σn², Σe, Σe², Σe n */
};

static unsigned block_of(const struct trace *t, uint32_t record)
{
	double end = (double)t->records[t->n - 1].at + 1;

	return (unsigned)((double)t->records[record].at / end * BLOCKS);
}

static void add_late(struct blocks *b, unsigned block)
{
	b->ll += 2 * b->late[block]++ + 1;
	b->nl += b->n[block];
	b->sum_late++;
}

/* Return the share of requests that may be late in a span to come. */
static double share(const struct blocks *b)
{
	double p = b->sum_late / b->sum, squares = b->ll - 2 * p * b->nl + p * p * b->nn;

	return p + T * sqrt(2.0 * BLOCKS / (BLOCKS - 1) * fmax(0, squares)) / b->sum;
}

static int compare_late(const void *a, const void *b)
{
	const struct late *x = a, *y = b;

	return x->latency < y->latency ? 1 : x->latency > y->latency ? -1 : 0;
}

/* Count the requests of each block; list those from the percentile on. Return their number. */
static size_t list_late(const struct replay_sample *s, const struct replay_tenant *of, double at,
	struct blocks *b, struct late *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		unsigned block = block_of(of->trace, s->born[i].record);

		b->n[block]++;
		if (s->latency[i] >= at)
			ret[n++] = (struct late){s->latency[i], block};
	}
	for (unsigned i = 0; i < BLOCKS; i++) {
		b->sum += b->n[i];
		b->nn += b->n[i] * b->n[i];
	}
	return n;
}

int replay_next(
	const struct replay_sample *s, const struct replay_tenant *of, double at, double *ret_next)
{
	struct late *late = malloc((s->n + 1) * sizeof(*late));
	double most = 1 - of->percentile / 100;
	struct blocks b = {0};
	size_t n, i = 0;

	if (!late)
		return -ENOMEM;
	n = list_late(s, of, at, &b, late);
	qsort(late, n, sizeof(*late), compare_late);
	for (add_late(&b, late[0].block); i + 1 < n && share(&b) <= most;)
		add_late(&b, late[++i].block);
	*ret_next = late[i].latency;
	free(late);
	return 0;
}
