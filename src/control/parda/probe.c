/* SPDX-License-Identifier: BSD-3-Clause */
/* probe: when a host may send its own reads to find the threshold, and their result. See parda.h,
 * PROBING. */
#include "control/parda/impl.h"
#include <math.h>

#define SIZE_LEAST 4096.0
#define SIZE_MOST  (256 * 1024.0)
#define SIZE       8192.0 /* without requests so far */
#define SIZE_KEEP  0.9    /* weight of the past in the mean size, per step */

void parda_probe_size(struct parda *p, const struct parda_measured *m)
{
	double size = m->ios ? m->bytes / (double)m->ios : 0;

	if (!p->probe || !(size > 0))
		return;
	p->io_bytes = p->io_bytes > 0 ? SIZE_KEEP * p->io_bytes + (1 - SIZE_KEEP) * size : size;
}

bool parda_probe_decides(const struct parda *p)
{
	if (!p->probe || p->config.local)
		return false;
	for (uint32_t i = 0; i < p->peers.n; i++) {
		const struct parda_peer *peer = &p->peers.peers[i];

		if (parda_peer_counts(&p->peers, peer) && peer->last.id < p->config.id)
			return false;
	}
	return true;
}

bool parda_probe_plan(
	const struct parda *p, weir_time now, struct probe_burst *ret, uint32_t *ret_bytes)
{
	double size = p->io_bytes > 0 ? p->io_bytes : SIZE;

	if (!parda_probe_decides(p) || now < p->probe_next)
		return false;
	probe_plan(p->probe, ret);
	*ret_bytes = (uint32_t)(round(fmax(SIZE_LEAST, fmin(size, SIZE_MOST)) / SIZE_LEAST) *
				SIZE_LEAST);
	return true;
}

void parda_probe_ask(struct parda *p)
{
	for (uint32_t i = 0; i < p->peers.n; i++)
		p->peers.peers[i].last.quiet = false;
}

bool parda_probe_agreed(const struct parda *p)
{
	for (uint32_t i = 0; i < p->peers.n; i++) {
		const struct parda_peer *peer = &p->peers.peers[i];

		if (parda_peer_counts(&p->peers, peer) && !peer->last.quiet)
			return false;
	}
	return true;
}

void parda_probe_learn(
	struct parda *p, const struct probe_burst *b, uint64_t reads, weir_time ended)
{
	weir_time length = ended > b->started ? ended - b->started : 0;

	if (!p->probe)
		return;
	/* Time spent waiting for others is not lost, up to one burst. */
	if (p->probe_next < b->started - PROBE_PART * p->probe->burst)
		p->probe_next = b->started - PROBE_PART * p->probe->burst;
	p->probe_next += PROBE_PART * length;
	if (p->probe_next < ended)
		p->probe_next = ended;
	p->counts.bursts++;
	p->counts.reads += reads;
	p->counts.probed += length;
	if (length > p->counts.longest)
		p->counts.longest = length;
	probe_learn(p->probe, b);
}
