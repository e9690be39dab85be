/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server: k equal servers behind one FIFO, for IOs of any kind.
 *
 * SOURCE  Kleinrock, "Queueing Systems" I (1975): M/M/1 §3.2, M/M/m §3.5, M/G/1 §5.
 * LAW     server.h. PARDA, §3.2, simulates an array as one exponential server.
 * METHOD  A heap of the end times of the services in progress, at most k; the other IOs wait in a
 *         list.
 * EXAMPLE k = 1, rate 1,000/s, arrivals 800/s: mean response 1 / (1000 − 800) = 5 ms.
 */
#include "model/server.h"
#include "base/heap.h"
#include "model/iolist.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct server {
	struct device device;
	struct server_config config;
	struct rng rng;
	double mean;    /* ns of service of one server */
	double ns_byte; /* ns per byte of one server */
	struct heap busy;
	uint64_t serial; /* of starts: ties end in order of arrival */
	struct iolist waiting;
};

struct server_config server_defaults(void)
{
	return (struct server_config){.servers = 1, .rate = 1000, .service = SERVER_EXPONENTIAL};
}

static void start_service(struct server *s, weir_time t, struct device_io *io)
{
	double ns = s->config.service == SERVER_FIXED ? s->mean : rng_exp(&s->rng, s->mean);

	ns += s->ns_byte * io->bytes;
	io->scratch[0] = (uint64_t)t;
	(void)heap_push(&s->busy, /* cannot fail: room for k was reserved */
		(struct heap_item){
			.key = t + (weir_time)(ns + 0.5),
			.serial = s->serial++,
			.value = (uintptr_t)io,
		});
}

static void server_submit(struct device *d, weir_time now, struct device_io *io)
{
	struct server *s = (struct server *)d;

	io->arrived = now;
	if (s->busy.n < s->config.servers) {
		start_service(s, now, io);
		return;
	}
	iolist_append(&s->waiting, io);
}

static weir_time server_next(const struct device *d)
{
	const struct heap_item *min = heap_min(&((const struct server *)d)->busy);

	return min ? min->key : WEIR_NEVER;
}

static struct device_io *server_step(struct device *d, weir_time now)
{
	struct server *s = (struct server *)d;
	struct iolist done = {NULL, NULL};

	while (s->busy.n && heap_min(&s->busy)->key <= now) {
		struct heap_item item = heap_pop(&s->busy);
		struct device_io *io = (struct device_io *)(uintptr_t)item.value;

		if (s->waiting.first)
			start_service(s, item.key, iolist_take(&s->waiting));
		io->finished = item.key;
		io->busy = item.key - (weir_time)io->scratch[0];
		iolist_append(&done, io);
	}
	return done.first;
}

static void server_free(struct device *d)
{
	heap_free(&((struct server *)d)->busy);
	free(d);
}

static const struct device_ops server_ops = {
	.name = "server",
	.submit = server_submit,
	.next = server_next,
	.step = server_step,
	.free = server_free,
	.tells_busy = true,
};

int server_set_rate(struct device *d, weir_time now, double rate)
{
	struct server *s = (struct server *)d;
	double factor;

	if (!(rate > 0) || !isfinite(rate))
		return -EINVAL;
	factor = s->config.rate / rate;
	/* Stretching every end by one factor around `now` keeps the heap's order. */
	for (size_t i = 0; i < s->busy.n; i++) {
		struct heap_item *item = &s->busy.items[i];

		item->key = now + (weir_time)((double)(item->key - now) * factor);
	}
	s->config.rate = rate;
	s->mean *= factor;
	return 0;
}

int server_new(const struct server_config *config, uint64_t seed, const char *name,
	struct device **ret, struct weir_err *err)
{
	struct server *s;

	if (config->servers < 1)
		return weir_err_set(err, -EINVAL, "servers: must be at least 1");
	if (!(config->rate > 0) || !isfinite(config->rate))
		return weir_err_set(err, -EINVAL, "rate: must be > 0");
	if (!(config->bytes_per_s >= 0) || !isfinite(config->bytes_per_s))
		return weir_err_set(err, -EINVAL, "bandwidth: must not be negative");
	if (config->service != SERVER_EXPONENTIAL && config->service != SERVER_FIXED)
		return weir_err_set(err, -EINVAL, "service: must be exponential or fixed");
	s = calloc(1, sizeof(*s));
	if (!s)
		return weir_err_set(err, -ENOMEM, "server: out of memory");
	heap_init(&s->busy, NULL);
	if (heap_reserve(&s->busy, config->servers) < 0) {
		free(s);
		return weir_err_set(err, -ENOMEM, "server: out of memory");
	}
	s->device.ops = &server_ops;
	s->config = *config;
	s->mean = 1e9 * config->servers / config->rate;
	s->ns_byte = config->bytes_per_s > 0 ? 1e9 * config->servers / config->bytes_per_s : 0;
	rng_init(&s->rng, seed, name);
	*ret = &s->device;
	return 0;
}
