/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ssd: flash behind channels. The law is in ssd.h.
 *
 * SOURCE  Agrawal et al., "Design Tradeoffs for SSD Performance" (USENIX ATC 2008), for the parts:
 *         dies that sense and program, buses they share.
 * METHOD  Every die and every bus is a station with a FIFO and at most one page in service; a heap
 *         holds the end times. A page visits die then bus (read, holding the die until the bus has
 *         emptied its register) or bus then die (write). An IO counts its pages; the last one sends
 *         the IO through the port, which serves in order, so a list suffices.
 * DIFFERS No mapping table, no wear: an address determines its page, and garbage collection is a
 *         pause of the die every so many programs.
 * EXAMPLE One 4 KiB read: 60 µs + 4 KiB / 800 MB/s = 65 µs, + port and overhead.
 */
#include "model/ssd.h"
#include "base/heap.h"
#include "model/iolist.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define NONE UINT32_MAX

struct page { /* of one IO; from a pool of `slots` */
	struct device_io *io;
	uint32_t next; /* in a station's FIFO or the free list */
	uint32_t die;
	uint32_t bytes;
};

struct station {              /* a die or a bus */
	uint32_t busy;        /* the page in service, or NONE */
	uint32_t first, last; /* waiting */
};

struct ssd {
	struct device device;
	struct ssd_config config;
	struct rng rng;
	struct page *pages;
	uint32_t free_page;
	struct station *stations; /* the dies, then the buses */
	uint32_t n_dies;
	uint32_t *programs; /* per die, since its last pause */
	struct heap ends;   /* value: station */
	uint64_t serial;
	struct iolist waiting; /* IOs with pages that have no slot yet */
	struct iolist out;     /* `finished` set, not returned yet */
	weir_time port;        /* time from which it is free */
	double ns_byte, port_ns_byte;
};

struct ssd_config ssd_defaults(void)
{
	return (struct ssd_config){
		.channels = 8,
		.dies = 4,
		.page = 16384,
		.read = 60 * WEIR_US,     /* TLC, typical */
		.program = 600 * WEIR_US, /* the same */
		.channel_rate = 800e6,    /* ONFI 4 at 800 MT/s, 8 bits */
		.bandwidth = 3.2e9,       /* PCIe 3.0 × 4, less its overhead */
		.overhead = 8 * WEIR_US,
		.slots = 4096,
	};
}

/* Return the number of pages of an IO. Its scratch words count the pages without a slot and the
 * unfinished pages. */
static uint64_t pages_of(const struct ssd *s, const struct device_io *io)
{
	uint64_t first = io->offset / s->config.page;
	uint64_t end = io->offset + (io->bytes ? io->bytes : 1);

	return (end + s->config.page - 1) / s->config.page - first;
}

static void enqueue(struct ssd *s, uint32_t station, uint32_t page)
{
	struct station *st = &s->stations[station];

	s->pages[page].next = NONE;
	if (st->first == NONE)
		st->first = page;
	else
		s->pages[st->last].next = page;
	st->last = page;
}

static weir_time program_time(struct ssd *s, uint32_t die)
{
	const struct ssd_config *c = &s->config;
	weir_time t = c->program;

	if (c->gc_every && ++s->programs[die] >= c->gc_every) {
		s->programs[die] = 0;
		t += c->gc_random ? (weir_time)rng_exp(&s->rng, (double)c->gc_time) : c->gc_time;
	}
	return t;
}

/* Start the next page of an idle station. */
static void start_page(struct ssd *s, uint32_t station, weir_time t)
{
	struct station *st = &s->stations[station];
	uint32_t page = st->first;
	weir_time length;

	if (st->busy != NONE || page == NONE)
		return;
	st->first = s->pages[page].next;
	st->busy = page;
	if (station >= s->n_dies)
		length = (weir_time)(s->pages[page].bytes * s->ns_byte);
	else
		length = s->pages[page].io->op == 0 ? s->config.read : program_time(s, station);
	/* A die that waits for its bus is held, too, but that time is the bus's. */
	s->pages[page].io->busy += length;
	(void)heap_push(&s->ends, /* cannot fail: room for every station was reserved */
		(struct heap_item){.key = t + length, .serial = s->serial++, .value = station});
}

static void send_out(struct ssd *s, weir_time t, struct device_io *io)
{
	t += s->config.overhead;
	if (t < s->port)
		t = s->port;
	t += (weir_time)(io->bytes * s->port_ns_byte);
	s->port = t;
	io->finished = t;
	iolist_append(&s->out, io);
}

/* Give slots to pages of the oldest IOs, as long as there are free ones. */
static void issue_pages(struct ssd *s, weir_time t)
{
	const struct ssd_config *c = &s->config;

	while (s->waiting.first && s->free_page != NONE) {
		struct device_io *io = s->waiting.first;
		uint64_t left = io->scratch[0],
			 number = io->offset / c->page + pages_of(s, io) - left;
		uint64_t begin = number * c->page, end = begin + c->page;
		uint32_t p = s->free_page, bus = (uint32_t)(number % c->channels);

		if (begin < io->offset)
			begin = io->offset;
		if (end > io->offset + io->bytes)
			end = io->offset + io->bytes;
		s->free_page = s->pages[p].next;
		s->pages[p].io = io;
		s->pages[p].bytes = (uint32_t)(end - begin);
		s->pages[p].die = bus * c->dies + (uint32_t)(number / c->channels % c->dies);
		enqueue(s, io->op == 0 ? s->pages[p].die : s->n_dies + bus, p);
		start_page(s, io->op == 0 ? s->pages[p].die : s->n_dies + bus, t);
		io->scratch[0] = left - 1;
		if (left == 1)
			(void)iolist_take(&s->waiting);
	}
}

static void ssd_submit(struct device *d, weir_time now, struct device_io *io)
{
	struct ssd *s = (struct ssd *)d;

	io->arrived = now;
	io->busy = 0;
	if (io->op > 1) { /* flush and trim: no page is needed */
		send_out(s, now, io);
		return;
	}
	io->scratch[0] = io->scratch[1] = pages_of(s, io);
	iolist_append(&s->waiting, io);
	issue_pages(s, now);
}

static void page_done(struct ssd *s, weir_time t, uint32_t page)
{
	struct device_io *io = s->pages[page].io;

	s->pages[page].next = s->free_page;
	s->free_page = page;
	if (--io->scratch[1] == 0)
		send_out(s, t, io);
	issue_pages(s, t);
}

/* End a page's service at a station: send it to its second station, or finish it. */
static void end_service(struct ssd *s, weir_time t, uint32_t station)
{
	uint32_t page = s->stations[station].busy, die = s->pages[page].die;
	uint32_t bus = s->n_dies + die / s->config.dies;
	bool read = s->pages[page].io->op == 0;

	if (station == die && read) { /* sensed; the die holds the page until the bus is free */
		enqueue(s, bus, page);
		start_page(s, bus, t);
		return;
	}
	s->stations[station].busy = NONE;
	if (station == bus && !read) {
		enqueue(s, die, page);
		start_page(s, die, t);
	} else {
		s->stations[die].busy = NONE;
		page_done(s, t, page);
		start_page(s, die, t);
	}
	start_page(s, station, t);
}

static weir_time ssd_next(const struct device *d)
{
	const struct ssd *s = (const struct ssd *)d;
	const struct heap_item *min = heap_min(&s->ends);
	weir_time t = min ? min->key : WEIR_NEVER;

	return s->out.first && s->out.first->finished < t ? s->out.first->finished : t;
}

static struct device_io *ssd_step(struct device *d, weir_time now)
{
	struct ssd *s = (struct ssd *)d;
	struct iolist done = {NULL, NULL};

	while (s->ends.n && heap_min(&s->ends)->key <= now) {
		struct heap_item item = heap_pop(&s->ends);

		end_service(s, item.key, (uint32_t)item.value);
	}
	while (s->out.first && s->out.first->finished <= now)
		iolist_append(&done, iolist_take(&s->out));
	return done.first;
}

static void ssd_free(struct device *d)
{
	struct ssd *s = (struct ssd *)d;

	heap_free(&s->ends);
	free(s->pages);
	free(s->stations);
	free(s->programs);
	free(s);
}

static const struct device_ops ssd_ops = {
	.name = "ssd",
	.submit = ssd_submit,
	.next = ssd_next,
	.step = ssd_step,
	.free = ssd_free,
	.tells_busy = true,
};

static int check_config(const struct ssd_config *c, struct weir_err *err)
{
	if (c->channels < 1 || c->dies < 1)
		return weir_err_set(
			err, -EINVAL, "%s: must be at least 1", c->dies < 1 ? "dies" : "channels");
	if ((uint64_t)c->channels * c->dies > 65536)
		return weir_err_set(err, -EINVAL, "dies, channels: there may be 65536 dies in all");
	if (c->page < 512)
		return weir_err_set(err, -EINVAL, "page: must be at least 512 bytes");
	if (c->read < 0 || c->program < 0 || c->overhead < 0 || c->gc_time < 0)
		return weir_err_set(err, -EINVAL, "%s: must not be negative",
			c->read < 0       ? "read"
			: c->program < 0  ? "program"
			: c->overhead < 0 ? "overhead"
					  : "gc_time");
	if (!(c->channel_rate > 0) || !isfinite(c->channel_rate))
		return weir_err_set(err, -EINVAL, "channel_rate: must be > 0");
	if (!(c->bandwidth >= 0) || !isfinite(c->bandwidth))
		return weir_err_set(err, -EINVAL, "bandwidth: must not be negative");
	if (c->slots < 1 || c->slots > 1u << 24)
		return weir_err_set(err, -EINVAL, "slots: must be between 1 and 16777216");
	return 0;
}

int ssd_new(const struct ssd_config *config, uint64_t seed, const char *name, struct device **ret,
	struct weir_err *err)
{
	int error = check_config(config, err);
	uint32_t stations;
	struct ssd *s;

	if (error)
		return error;
	s = calloc(1, sizeof(*s));
	if (!s)
		return weir_err_set(err, -ENOMEM, "ssd: out of memory");
	s->device.ops = &ssd_ops;
	s->config = *config;
	s->n_dies = config->channels * config->dies;
	stations = s->n_dies + config->channels;
	heap_init(&s->ends, NULL);
	s->pages = calloc(config->slots, sizeof(*s->pages));
	s->stations = calloc(stations, sizeof(*s->stations));
	s->programs = calloc(s->n_dies, sizeof(*s->programs));
	if (!s->pages || !s->stations || !s->programs || heap_reserve(&s->ends, stations) < 0) {
		ssd_free(&s->device);
		return weir_err_set(err, -ENOMEM, "ssd: out of memory");
	}
	for (uint32_t i = 0; i < config->slots; i++)
		s->pages[i].next = i + 1 < config->slots ? i + 1 : NONE;
	for (uint32_t i = 0; i < stations; i++)
		s->stations[i] = (struct station){NONE, NONE, NONE};
	s->ns_byte = 1e9 / config->channel_rate;
	s->port_ns_byte = config->bandwidth > 0 ? 1e9 / config->bandwidth : 0;
	rng_init(&s->rng, seed, name);
	*ret = &s->device;
	return 0;
}
