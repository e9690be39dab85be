/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link: one direction of a network link, with its transmit buffer. The law is in link.h.
 *
 * METHOD  One list per class, one for packets on the wire (the delay is constant, so they arrive in
 *         the order they were sent) and one for dropped packets; step merges the last two by time.
 * EXAMPLE 1 Gbit/s, 10 µs: a packet of 1,250 bytes is sent in 10 µs and arrives after 20.
 */
#include "model/link.h"
#include "model/iolist.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct link {
	struct device device;
	struct link_config config;
	struct iolist waiting[LINK_CLASSES];
	unsigned classes; /* bit i: a packet waits in class i */
	uint32_t rest
		[LINK_CLASSES]; /* bytes of the class's first IO that are left, if a part was sent; else 0 */
	struct device_io *sending;
	unsigned class;       /* of it */
	uint32_t bytes_now;   /* … of which so many are sent now … */
	weir_time began;      /* … since then */
	weir_time sent;       /* end of the transmission; WEIR_NEVER: none */
	struct iolist flying; /* on the wire, `finished` set */
	struct iolist dropped;
	uint64_t bytes, packets; /* in the buffer, including the packet in transmission */
};

struct link_config link_defaults(void)
{
	return (struct link_config){.rate = 1.25e9, .delay = 10 * WEIR_US};
}

static void send_next(struct link *l, weir_time t)
{
	unsigned class;

	l->sent = WEIR_NEVER;
	if (!l->classes)
		return;
	l->class = class = (unsigned)__builtin_ctz(l->classes);
	l->sending = iolist_take(&l->waiting[class]);
	if (!l->waiting[class].first)
		l->classes &= ~(1u << class);
	l->bytes_now = l->rest[class] ? l->rest[class] : l->sending->bytes;
	l->rest[class] = 0;
	l->began = t;
	l->sent = t + (weir_time)(l->bytes_now * 1e9 / l->config.rate + 0.5);
}

/* End the transmission with its current packet; the rest comes first in its class. */
static void interrupt(struct link *l, weir_time now)
{
	double mtu = (double)l->config.mtu, rate = l->config.rate;
	double packets = ceil((double)(now - l->began) * rate / 1e9 / mtu);
	double bytes = (packets > 1 ? packets : 1) * mtu;

	if (bytes >= l->bytes_now)
		return;
	l->rest[l->class] = l->bytes_now - (uint32_t)bytes;
	l->bytes_now = (uint32_t)bytes;
	l->sent = l->began + (weir_time)(bytes * 1e9 / rate + 0.5);
}

static void link_submit(struct device *d, weir_time now, struct device_io *io)
{
	struct link *l = (struct link *)d;
	const struct link_config *c = &l->config;
	unsigned class = 0;

	io->arrived = now;
	io->dropped = c->buffer && l->bytes + io->bytes > c->buffer;
	io->marked = !io->dropped && ((c->ecn_bytes && l->bytes >= c->ecn_bytes) ||
					     (c->ecn_packets && l->packets >= c->ecn_packets));
	if (io->dropped) {
		io->finished = now;
		iolist_append(&l->dropped, io);
		return;
	}
	l->bytes += io->bytes;
	l->packets++;
	if (c->strict)
		class = io->priority < LINK_CLASSES ? io->priority : LINK_CLASSES - 1;
	iolist_append(&l->waiting[class], io);
	l->classes |= 1u << class;
	if (l->sent == WEIR_NEVER)
		send_next(l, now);
	else if (c->mtu && class < l->class && !l->rest[l->class])
		interrupt(l, now);
}

static weir_time head_time(const struct iolist *l)
{
	return l->first ? l->first->finished : WEIR_NEVER;
}

static weir_time link_next(const struct device *d)
{
	const struct link *l = (const struct link *)d;
	weir_time t = l->sent;

	if (head_time(&l->flying) < t)
		t = head_time(&l->flying);
	return head_time(&l->dropped) < t ? head_time(&l->dropped) : t;
}

static void all_sent(struct link *l, weir_time now)
{
	while (l->sent <= now) {
		struct device_io *io = l->sending;

		if (l->rest[l->class]) {
			iolist_return(&l->waiting[l->class], io);
			l->classes |= 1u << l->class;
			send_next(l, l->sent);
			continue;
		}
		io->finished = l->sent + l->config.delay;
		l->bytes -= io->bytes;
		l->packets--;
		iolist_append(&l->flying, io);
		send_next(l, l->sent);
	}
}

static struct device_io *link_step(struct device *d, weir_time now)
{
	struct link *l = (struct link *)d;
	struct iolist out = {NULL, NULL};

	if (now == WEIR_NEVER)
		now--;
	all_sent(l, now);
	for (;;) {
		struct iolist *from =
			head_time(&l->flying) <= head_time(&l->dropped) ? &l->flying : &l->dropped;

		if (head_time(from) > now)
			return out.first;
		iolist_append(&out, iolist_take(from));
	}
}

static void link_free(struct device *d)
{
	free(d);
}

static const struct device_ops link_ops = {
	.name = "link",
	.submit = link_submit,
	.next = link_next,
	.step = link_step,
	.free = link_free,
};

int link_set_rate(struct device *d, weir_time now, double rate)
{
	struct link *l = (struct link *)d;

	if (!(rate > 0) || !isfinite(rate))
		return -EINVAL;
	if (l->sent != WEIR_NEVER) {
		l->bytes_now -= (uint32_t)((double)(now - l->began) * l->config.rate / 1e9);
		l->began = now;
		l->sent = now + (weir_time)((double)(l->sent - now) * l->config.rate / rate + 0.5);
	}
	l->config.rate = rate;
	return 0;
}

uint64_t link_queued(const struct device *d)
{
	return ((const struct link *)d)->bytes;
}

int link_new(const struct link_config *config, struct device **ret, struct weir_err *err)
{
	struct link *l;

	if (!(config->rate > 0) || !isfinite(config->rate))
		return weir_err_set(err, -EINVAL, "rate: must be > 0");
	if (config->delay < 0)
		return weir_err_set(err, -EINVAL, "delay: must not be negative");
	l = calloc(1, sizeof(*l));
	if (!l)
		return weir_err_set(err, -ENOMEM, "link: out of memory");
	l->device.ops = &link_ops;
	l->config = *config;
	l->sent = WEIR_NEVER;
	*ret = &l->device;
	return 0;
}
