/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * door: a new connection until it knows its export.
 *
 * METHOD  wire/nbd-hello.c says what to answer; here are the socket, TLS, the clock and the policy. What
 *         is sent is made only when everything before it was taken, so a client that reads nothing
 *         costs one buffer. When the client has its export, the socket goes to the export's worker.
 *         A client that asks for an export whose storage was never reached waits for the answer until
 *         it is, as long as the resource's `timeout`.
 * LIMITS  10 s for all of it, without that, however busy the client is; 4,096 at once: one more, and the oldest is cut
 *         off, so that clients that say nothing do not keep out those that do.
 */
#include "port/front-nbd-impl.h"
#include "port/log.h"
#include "port/tls.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define TIME_LIMIT (10 * WEIR_SEC)
#define ASK_LIMIT  (10 * WEIR_MS) /* more for each export that the client was told of */
#define MOST       4096
#define WAIT_LIMIT                                                                                 \
	(60 * WEIR_SEC) /* for storage that was never reached, unless its timeout says else */
#define IN 512 /* bytes received at once: options are short, and the rest goes to the worker */

struct visit {             /* one connection */
	struct loop_fd fd; /* first */
	struct gateway *gateway;
	struct visit *next, *prev; /* the next is younger */
	weir_time since, until;
	struct stream stream;
	struct stream_peer peer;
	char uid[16], tls[128];
	char export_[256]; /* as the policy knows it */
	struct nbd_hello hello;
	struct nbd_hello_ops ops;
	enum nbd_hello_state state; /* as soon as `out` is sent */
	bool shaking;               /* TLS hands */
	bool waiting;               /* for the storage of its export, in the door's other list */
	bool late;                  /* it waited long enough */
	weir_time timeout;          /* of that resource */
	struct loop_timer patience;
	bool refused; /* was counted */
	uint32_t events;
	size_t listed, list_at; /* the listed-th name of this client's is the list_at-th of all */
	const char *about;      /* the last one: the policy's, not to be kept */
	uint8_t in[IN];
	size_t in_at, in_n;
	uint8_t *out; /* made and not sent yet */
	size_t out_at, out_n;
};

struct visits { /* by age */
	struct visit *oldest, *newest;
	size_t n;
};

struct door { /* of one gateway */
	struct gateway *gateway;
	struct visits talking, waiting;
	struct loop_timer timer; /* when the oldest's time to talk is over */
	uint8_t out[NBD_HELLO_OUT];
};

/* ---- who may use what */

static struct weir_who who(const struct visit *v, const char *name)
{
	return (struct weir_who){.export_ = name,
		.client = *v->peer.address ? v->peer.address : NULL,
		.uid = *v->uid ? v->uid : NULL,
		.tls = *v->tls ? v->tls : NULL};
}

/* The next export of this client's from *at on, which is then behind it; NULL: there is none. */
static const char *next_export(struct visit *v, size_t *at, struct gateway_place *ret)
{
	const char *name;

	while ((name = gateway_export(v->gateway, *at))) {
		struct weir_who w = who(v, name);

		++*at;
		if (gateway_find(v->gateway, &w, ret) == 0)
			return name;
	}
	return NULL;
}

/* Exports whose storage was never reached are left out: there is nothing to say about them, and clients
 * that ask after each, as qemu-nbd --list does, would stop there. */
static const char *list(void *arg, size_t i)
{
	struct visit *v = arg;
	struct gateway_place place;
	const char *name;

	if (i != v->listed) /* not where the last call ended */
		v->listed = v->list_at = 0;
	while ((name = next_export(v, &v->list_at, &place))) {
		if (place.known && v->listed++ == i) {
			v->about = place.description;
			return name;
		}
	}
	return NULL;
}

static const char *describe(void *arg)
{
	return ((struct visit *)arg)->about;
}

/* The empty name is the default export: the one of that name, or else the only one there is. */
static int resolve(struct visit *v, const char *name, struct gateway_place *ret)
{
	struct weir_who w = who(v, name);
	int rc = strlen(name) < sizeof(v->export_) ? gateway_find(v->gateway, &w, ret) : -ENOENT;

	if (rc == -ENOENT && !*name) {
		struct gateway_place second;
		size_t at = 0;
		const char *only = next_export(v, &at, ret);

		if (only && !next_export(v, &at, &second)) {
			name = only;
			rc = 0;
		}
	}
	if (rc == 0)
		snprintf(v->export_, sizeof(v->export_), "%s", name);
	return rc;
}

static void count_refused(struct visit *v, const char *name, const char *why)
{
	if (v->refused)
		return;
	v->refused = true;
	gateway_count(v->gateway, 0, 1, 0);
	log_event(LOG_LEVEL_WARNING, "client-refused", "client", v->peer.name, "export", name,
		"why", why, NULL);
}

static int find(void *arg, const char *name, struct nbd_export *ret)
{
	struct visit *v = arg;
	struct gateway_place place;
	const struct back_info *info;
	int rc = resolve(v, name, &place);

	if (rc == -EACCES)
		count_refused(v, name, "the policy has no tenant for it");
	if (rc < 0)
		return rc;
	if (!place.known) {
		v->timeout = place.timeout ? place.timeout : WAIT_LIMIT;
		return v->late ? -ETIMEDOUT : -EAGAIN;
	}
	info = resource_info(place.resource);
	*ret = (struct nbd_export){.size = place.size,
		.flags = front_nbd_flags(info, place.read_only),
		.block_min = info->block_min ? info->block_min : 1,
		.block_preferred = info->block_preferred ? info->block_preferred : 4096,
		.block_max = NBD_PAYLOAD_MAX,
		.description = place.description};
	return 0;
}

/* ---- coming and going */

static void set_timer(struct door *d)
{
	const struct visit *oldest = d->talking.oldest;

	loop_set(gateway_loop(d->gateway), &d->timer, oldest ? oldest->until : WEIR_NEVER);
}

static void link_visit(struct visit *v, struct visits *to)
{
	v->next = NULL;
	v->prev = to->newest;
	*(v->prev ? &v->prev->next : &to->oldest) = v;
	to->newest = v;
	if (to->n++ == 0)
		set_timer(v->gateway->doors);
}

static void unlink_visit(struct visit *v)
{
	struct door *d = v->gateway->doors;
	struct visits *from = v->waiting ? &d->waiting : &d->talking;
	bool oldest = from->oldest == v;

	if (oldest)
		from->oldest = v->next;
	else
		v->prev->next = v->next;
	if (from->newest == v)
		from->newest = v->prev;
	else
		v->next->prev = v->prev;
	from->n--;
	if (v->waiting)
		loop_set(gateway_loop(v->gateway), &v->patience, WEIR_NEVER);
	else if (oldest)
		set_timer(d);
}

/* The socket is somebody else's from now on. */
static void let_go(struct visit *v)
{
	loop_remove(gateway_loop(v->gateway), &v->fd);
	unlink_visit(v);
	free(v->out);
	free(v);
}

static void end(struct visit *v)
{
	struct stream stream = v->stream;

	let_go(v);
	stream_close(&stream);
}

static void broken(struct visit *v, const char *why)
{
	log_event(LOG_LEVEL_WARNING, "client-broken", "client", v->peer.name, "why", why, NULL);
	gateway_count(v->gateway, 0, 0, 1);
	end(v);
}

static void time_over(struct loop_timer *t, weir_time now)
{
	struct door *d = (struct door *)(void *)((char *)t - offsetof(struct door, timer));

	if (d->talking.oldest && d->talking.oldest->until > now)
		set_timer(d); /* too early */
	for (struct visit *v = d->talking.oldest, *next; v && v->until <= now; v = next) {
		next = v->next;
		if (now - v->since < (weir_time)v->hello.listed * ASK_LIMIT) {
			unlink_visit(v);
			v->until = now + TIME_LIMIT;
			link_visit(v, &d->talking);
			continue;
		}
		broken(v, "the handshake took more than 10 s"); /* sets the timer for the next */
	}
}

static void client_of(const struct visit *v, const struct gateway_place *place, struct client *ret)
{
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->export_, v->export_, sizeof(ret->export_));
	memcpy(ret->name, v->peer.name, sizeof(ret->name));
	memcpy(ret->address, v->peer.address, sizeof(ret->address));
	memcpy(ret->uid, v->uid, sizeof(ret->uid));
	memcpy(ret->tls, v->tls, sizeof(ret->tls));
	ret->tenant = place->tenant;
}

static void hand_over(struct visit *v)
{
	struct front_nbd_start s = {.stream = v->stream,
		.structured = v->hello.structured,
		.base_allocation = v->hello.base_allocation,
		.held = v->hello.held,
		.context_id = v->hello.context_id,
		.held_id = v->hello.held_id,
		.early = v->in + v->in_at,
		.n_early = v->in_n - v->in_at};

	/* Asked again: the list may have been asked for since, or the policy changed. */
	if (resolve(v, v->hello.name, &s.place) < 0 || !s.place.known) {
		end(v);
		return;
	}
	client_of(v, &s.place, &s.client);
	log_event(LOG_LEVEL_INFO, "client-joined", "client", s.client.name, "export",
		s.client.export_, "tenant",
		gateway_policy(v->gateway)->tenants[s.place.tenant].path, "tls",
		*v->tls ? v->tls : NULL, NULL);
	/* Before the worker has it: the loop must not see the socket again. */
	loop_remove(gateway_loop(v->gateway), &v->fd);
	if (front_nbd_start(v->gateway, &s) < 0)
		stream_close(&s.stream);
	unlink_visit(v);
	free(v->out);
	free(v);
}

/* ---- the conversation. Each returns false when nothing more can be done now, or the visit is over. */

static bool await(struct visit *v, uint32_t events)
{
	if (events != v->events)
		loop_change(gateway_loop(v->gateway), &v->fd, events);
	v->events = events;
	return false;
}

static bool over(struct visit *v)
{
	end(v);
	return false;
}

static bool send_out(struct visit *v)
{
	while (v->out_at < v->out_n || stream_pending(&v->stream)) {
		struct iovec iov = {v->out + v->out_at, v->out_n - v->out_at};
		ssize_t n = stream_send(&v->stream, &iov, iov.iov_len > 0);

		if (n == -EAGAIN || (n == 0 && v->out_at == v->out_n))
			return await(v, EPOLLOUT);
		if (n < 0)
			return over(v);
		v->out_at += (size_t)n;
	}
	free(v->out);
	v->out = NULL;
	v->out_at = v->out_n = 0;
	return true;
}

static bool set_out(struct visit *v, size_t n)
{
	if (n == 0)
		return true;
	v->out = malloc(n);
	if (!v->out)
		return over(v);
	memcpy(v->out, v->gateway->doors->out, n);
	v->out_at = 0;
	v->out_n = n;
	return true;
}

static bool receive(struct visit *v)
{
	ssize_t n = stream_recv(&v->stream, v->in, sizeof(v->in));

	if (n == -EAGAIN)
		return await(v, EPOLLIN);
	if (n <= 0)
		return over(v);
	v->in_at = 0;
	v->in_n = (size_t)n;
	return true;
}

static bool converse(struct visit *v)
{
	struct door *d = v->gateway->doors;
	size_t used, made;

	v->state = nbd_hello_input(&v->hello, v->in + v->in_at, v->in_n - v->in_at, &used, d->out,
		sizeof(d->out), &made);
	v->in_at += used;
	if (made)
		return set_out(v, made);
	return v->state != NBD_HELLO_MORE || used || receive(v);
}

static bool start_tls(struct visit *v)
{
	bool required;

	/* What came in before the keys were agreed on was not protected by them. */
	if (v->in_at < v->in_n) {
		broken(v, "data behind STARTTLS");
		return false;
	}
	if (tls_start(gateway_tls(v->gateway, &required), &v->stream, NULL) < 0)
		return over(v);
	v->shaking = true;
	return true;
}

static bool shake(struct visit *v)
{
	struct weir_err err = {""};
	uint32_t want = EPOLLIN;
	const char *name;
	int rc = tls_handshake(&v->stream, &want, &err);

	if (rc == -EAGAIN)
		return await(v, want);
	if (rc < 0) {
		broken(v, *err.text ? err.text : "TLS failed");
		return false;
	}
	name = tls_identity(&v->stream);
	snprintf(v->tls, sizeof(v->tls), "%s", name ? name : "");
	v->shaking = false;
	v->state = NBD_HELLO_MORE;
	nbd_hello_secure(&v->hello);
	v->hello.denied = tls_refusal(&v->stream);
	if (v->hello.denied)
		count_refused(v, "", v->hello.denied);
	return true;
}

/* ---- waiting for storage that was never reached */

static void ready(struct loop_fd *fd, uint32_t events);

static void go_on(struct visit *v)
{
	struct door *d = v->gateway->doors;

	unlink_visit(v);
	v->waiting = false;
	v->until = loop_now(gateway_loop(v->gateway)) + TIME_LIMIT;
	v->state = NBD_HELLO_MORE;
	link_visit(v, &d->talking);
	ready(&v->fd, 0);
}

static void too_late(struct loop_timer *t, weir_time now)
{
	struct visit *v = (struct visit *)(void *)((char *)t - offsetof(struct visit, patience));

	v->late = true;
	go_on(v);
}

/* True: it waits from now on. */
static bool begin_wait(struct visit *v)
{
	struct door *d = v->gateway->doors;
	weir_time now = loop_now(gateway_loop(v->gateway));

	v->patience.due = too_late;
	if (loop_set(gateway_loop(v->gateway), &v->patience, now + v->timeout) < 0)
		return false;
	if (d->waiting.n >= MOST)
		broken(d->waiting.oldest, "too many wait for their storage");
	unlink_visit(v);
	v->waiting = true;
	link_visit(v, &d->waiting);
	return true;
}

void door_known(struct gateway *g)
{
	struct visit *v = g->doors ? g->doors->waiting.oldest : NULL;
	/* Those that wait for another resource come back to the end of the list. */
	size_t n = v ? g->doors->waiting.n : 0;

	for (; n > 0 && (v = g->doors->waiting.oldest); n--)
		go_on(v);
}

/* It asks for nothing more before it is answered: what can be heard is that it leaves. */
static bool wait_on(struct visit *v, uint32_t events)
{
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR) || (!v->waiting && !begin_wait(v)))
		return over(v);
	return await(v, EPOLLRDHUP);
}

/* One step. */
static bool step(struct visit *v, uint32_t events)
{
	if (v->shaking)
		return shake(v);
	if (!send_out(v))
		return false;
	switch (v->state) {
	case NBD_HELLO_MORE:
		return converse(v);
	case NBD_HELLO_TLS:
		return start_tls(v);
	case NBD_HELLO_WAIT:
		return wait_on(v, events);
	case NBD_HELLO_READY:
		hand_over(v);
		return false;
	case NBD_HELLO_END:
		break;
	}
	if (v->hello.fault)
		broken(v, v->hello.fault);
	else
		end(v);
	return false;
}

static void ready(struct loop_fd *fd, uint32_t events)
{
	struct visit *v = (struct visit *)(void *)fd;

	while (step(v, events))
		;
}

static struct door *door_of(struct gateway *g)
{
	struct door *d = g->doors;

	if (d)
		return d;
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->gateway = g;
	d->timer.due = time_over;
	g->doors = d;
	return d;
}

static void fill(struct visit *v, struct gateway *g, int fd)
{
	bool required;
	struct tls *tls = gateway_tls(g, &required);

	v->fd = (struct loop_fd){.fd = fd, .ready = ready};
	v->gateway = g;
	v->since = loop_now(gateway_loop(g));
	v->until = v->since + TIME_LIMIT;
	v->stream = (struct stream){.fd = fd};
	v->events = EPOLLIN;
	v->state = NBD_HELLO_MORE;
	stream_peer(fd, &v->peer);
	if (v->peer.uid >= 0)
		snprintf(v->uid, sizeof(v->uid), "%u", (unsigned)v->peer.uid);
	v->ops = (struct nbd_hello_ops){.find = find, .list = list, .describe = describe, .arg = v};
	nbd_hello_init(&v->hello, &v->ops, tls != NULL, required);
}

void door_accept(struct gateway *g, int fd)
{
	struct door *d = door_of(g);
	struct visit *v = d ? calloc(1, sizeof(*v)) : NULL;
	struct stream stream = {.fd = fd};

	if (v)
		fill(v, g, fd);
	if (!v || loop_add(gateway_loop(g), &v->fd, EPOLLIN) < 0) {
		free(v);
		stream_close(&stream);
		return;
	}
	if (d->talking.n >= MOST)
		broken(d->talking.oldest, "too many handshakes at once");
	link_visit(v, &d->talking);
	if (!set_out(v, nbd_hello_start(&v->hello, d->out)))
		return;
	ready(&v->fd, EPOLLIN);
}

void door_close_all(struct gateway *g)
{
	struct door *d = g->doors;

	if (!d)
		return;
	while (d->talking.oldest || d->waiting.oldest)
		end(d->talking.oldest ? d->talking.oldest : d->waiting.oldest);
	loop_set(gateway_loop(g), &d->timer, WEIR_NEVER);
	free(d);
	g->doors = NULL;
}
