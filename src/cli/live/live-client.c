/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live-client: the command line of a workload: fio for a closed loop of one size, weir load for others, weir replay for open
 * ones, whose requests live-lab.c has written to a trace.
 */
#include "cli/live/live-impl.h"
#include "load/load.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>

/* Clients are ended by the run's time; they must not end by themselves before. */
#define LONGER (60 * WEIR_SEC)

static bool by_fio(const struct workload_config *c)
{
	return c->arrivals == WORKLOAD_CLOSED && c->n_sizes == 1 && c->zipf <= 0;
}

/* Return the part of a closed workload that no client supports, or NULL. */
static const char *unsupported(const struct workload_config *c)
{
	if (c->arrivals != WORKLOAD_CLOSED)
		return NULL;
	if (c->think > 0)
		return "think";
	if (c->on > 0 || c->off > 0)
		return "on and off";
	if (!by_fio(c) && c->sequential > 0 && c->sequential < 1)
		return "sequential, beside a zipf or several sizes, other than 0 or 1";
	if (c->zipf > 0 && c->sequential > 0)
		return "sequential beside zipf";
	for (unsigned i = 0; i < c->n_sizes; i++)
		if (c->sizes[i].bytes > LIVE_PIECE)
			return "a size over 256 KiB, which a gateway divides into pieces";
	return NULL;
}

int live_client_check(const struct live_client *c, struct weir_err *err)
{
	const char *what = unsupported(&c->workload->config);

	return what ? weir_err_at(err, -EINVAL, yamldoc_place(c->workload->node),
			      "workload %s cannot run live: %s", c->name, what)
		    : 0;
}

/* ---- command lines */

/* Return the seed of a client: different for each, the same for the same seed of the run. */
static uint64_t seed_of(const struct live *l, const struct live_client *c)
{
	struct rng rng;

	rng_init(&rng, l->seed, c->name);
	return rng_u64(&rng) >> 1; /* fio's is signed */
}

/* Return the offset of its part in its tenant's export. */
static uint64_t offset_of(const struct live *l, const struct live_client *c)
{
	return c->workload->config.base +
	       c->workload->spread * l->s->hosts[c->tenant->host].replica - c->tenant->low;
}

static int64_t run_ms(const struct live *l)
{
	return (l->s->duration + LONGER) / WEIR_MS;
}

static void fio_words(
	struct live *l, const struct live_client *c, const char *uri, struct live_words *w)
{
	const struct workload_config *k = &c->workload->config;
	const char *order = k->sequential >= 1 ? "" : "rand";

	live_words_add(w, "fio");
	live_words_add(w, "--name=%s", c->workload->name);
	live_words_add(w, "--thread"); /* one process: it ends with its parent */
	live_words_add(w,
		"--clocksource=clock_gettime"); /* else it first calibrates other clocks, on all cores */
	live_words_add(w, "--ioengine=nbd");
	live_words_add(w, "--uri=%s", uri);
	live_words_add(w, "--rw=%s%s", order,
		k->reads >= 1  ? "read"
		: k->reads > 0 ? "rw"
			       : "write");
	if (k->reads > 0 && k->reads < 1)
		live_words_add(w, "--rwmixread=%ld", lround(k->reads * 100));
	if (k->sequential > 0 && k->sequential < 1)
		live_words_add(w, "--percentage_random=%ld", lround((1 - k->sequential) * 100));
	live_words_add(w, "--bs=%u", k->sizes[0].bytes);
	live_words_add(w, "--iodepth=%u", k->outstanding);
	live_words_add(w, "--offset=%" PRIu64, offset_of(l, c));
	live_words_add(w, "--size=%" PRIu64, k->region);
	live_words_add(w, "--norandommap");
	live_words_add(w, "--randseed=%" PRIu64, seed_of(l, c));
	live_words_add(w, "--time_based");
	live_words_add(w, "--runtime=%" PRId64 "ms", run_ms(l));
	live_words_add(w, "--eta=never");
	live_words_add(w, "--output=/dev/null"); /* errors go to standard error */
}

static void load_words(
	struct live *l, const struct live_client *c, const char *uri, struct live_words *w)
{
	const struct workload_config *k = &c->workload->config;
	const char *sizes = "";

	live_words_add(w, "weir");
	live_words_add(w, "load");
	live_words_add(w, "--depth=%u", k->outstanding);
	for (unsigned i = 0; i < k->n_sizes; i++)
		sizes = live_text(l, "%s%s%uB:%.17g", sizes, i ? "," : "", k->sizes[i].bytes,
			k->sizes[i].share);
	live_words_add(w, "--size=%s", sizes);
	live_words_add(w, "--reads=%.17g%%", k->reads * 100);
	if (k->zipf > 0)
		live_words_add(w, "--order=zipf:%.17g", k->zipf);
	else
		live_words_add(w, "--order=%s", k->sequential >= 1 ? "sequential" : "random");
	live_words_add(w, "--offset=%" PRIu64 "B", offset_of(l, c));
	live_words_add(w, "--length=%" PRIu64 "B", k->region);
	live_words_add(w, "--seed=%" PRIu64, seed_of(l, c));
	live_words_add(w, "--duration=%" PRId64 "ms", run_ms(l));
	live_words_add(w, "%s", uri);
}

static void replay_words(
	struct live *l, const struct live_client *c, const char *uri, struct live_words *w)
{
	live_words_add(w, "weir");
	live_words_add(w, "replay");
	live_words_add(w, "--depth=%d", LOAD_DEPTH_MAX); /* requests wait at the gate */
	live_words_add(w, "%s", c->trace);
	live_words_add(w, "%s", uri);
}

int live_client_start(struct live *l, struct live_client *c, struct weir_err *err)
{
	const struct live_server *v = &l->servers[c->tenant->server];
	struct live_words w = {0};
	char uri[512];
	int r = -ENOMEM;

	snprintf(uri, sizeof(uri), "nbd+unix:///%s?socket=%s", c->tenant->export_, v->socket);
	(*c->trace                             ? replay_words
		: by_fio(&c->workload->config) ? fio_words
					       : load_words)(l, c, uri, &w);
	if (w.failed || l->memory.failed)
		weir_err_set(err, r, "out of memory");
	else
		r = peer_start(&c->peer, (const char *const *)w.word, -1, NULL, c->log, err);
	live_words_free(&w);
	if (r == -ENOENT)
		weir_err_set(err, r, "fio is not installed: live runs need it for their clients");
	if (r == 0)
		c->state = LIVE_RUNS;
	return r;
}

void live_client_end(struct live_client *c)
{
	if (c->state != LIVE_RUNS)
		return;
	peer_signal(&c->peer, SIGTERM);
	c->state = LIVE_ENDS;
}
