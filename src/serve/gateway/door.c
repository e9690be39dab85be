/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * door: a new connection until its export is known.
 *
 * METHOD  wire/nbd-hello.c makes the replies; here are the socket, TLS, the clock and the policy.
 *         Output is produced only when the previous output was sent, so a client that reads nothing
 *         costs one buffer. When the client has chosen its export, the socket goes to the export's
 *         worker. A client that asks for an export whose storage was never reached waits for the
 *         reply until it is, for as long as the resource's `timeout`.
 * LIMITS  10 s for the handshake, without that wait, however active the client is; 4,096 at once: one
 *         more, and the oldest is disconnected, so that silent clients do not lock out others.
 */
#include "base/container.h"
#include "serve/front/nbd/impl.h"
#include "serve/loop/log.h"
#include "serve/loop/tls.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define TIME_LIMIT (10 * WEIR_SEC)
#define ASK_LIMIT  (10 * WEIR_MS) /* added for each export in the client's list */
#define MOST       4096
#define WAIT_LIMIT                                                                                 \
	(60 * WEIR_SEC) /* for storage that was never reached, unless its timeout is set */
#define IN 512 /* bytes received at once: options are short, and the rest goes to the worker */

struct visit {             /* one connection */
	struct loop_fd fd; /* first */
	struct gateway *gateway;
	struct visit *next, *prev; /* next: younger */
	weir_time since, until;
	struct stream stream;
	struct stream_peer peer;
	char uid[16], tls[128];
	char export_[256]; /* name in the policy */
	struct nbd_hello hello;
	struct nbd_hello_ops ops;
	enum nbd_hello_state state; /* once `out` is sent */
	bool shaking;               /* in the TLS handshake */
	bool waiting;               /* for the storage of its export, in the door's other list */
	bool late;                  /* it waited long enough */
	weir_time timeout;          /* of that resource */
	struct loop_timer patience;
	bool refused; /* was counted */
	uint32_t events;
	size_t listed, list_at; /* the listed-th name for this client is the list_at-th of all */
	const char *about;      /* of the last one: owned by the policy, not to be kept */
	uint8_t in[IN];
	size_t in_at, in_n;
	uint8_t *out; /* produced but not sent yet */
	size_t out_at, out_n;
};

struct visits { /* by age */
	struct visit *oldest, *newest;
	size_t n;
};

struct door { /* of one gateway */
	struct gateway *gateway;
	struct visits talking, waiting;
	struct loop_timer timer; /* expires with the time of the oldest handshake */
	uint8_t out[NBD_HELLO_OUT];
};

/* ---- permissions */

static struct weir_who identity_of(const struct visit *v, const char *name)
{
	return (struct weir_who){.export_ = name,
		.client = *v->peer.address ? v->peer.address : NULL,
		.uid = *v->uid ? v->uid : NULL,
		.tls = *v->tls ? v->tls : NULL};
}

/* Return the next export for this client from *at on, and advance *at; NULL: there is none. */
static const char *next_export(struct visit *v, size_t *at, struct gateway_place *ret)
{
	const char *name;

	while ((name = gateway_export(v->gateway, *at))) {
		struct weir_who w = identity_of(v, name);

		++*at;
		if (gateway_find(v->gateway, &w, ret) == 0)
			return name;
	}
	return NULL;
}

/* Exports whose storage was never reached are omitted: their properties are unknown, and clients
 * that query each export, as qemu-nbd --list does, would stop there. */
static const char *list_exports(void *arg, size_t i)
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

/* The empty name is the default export: the one of that name, or else the only one. */
static int resolve(struct visit *v, const char *name, struct gateway_place *ret)
{
	struct weir_who w = identity_of(v, name);
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

static int find_export(void *arg, const char *name, struct nbd_export *ret)
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

/* ---- arrival and departure */

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

/* Release the socket, which another owner takes over. */
static void free_visit(struct visit *v)
{
	loop_remove(gateway_loop(v->gateway), &v->fd);
	unlink_visit(v);
	free(v->out);
	free(v);
}

static void end_visit(struct visit *v)
{
	struct stream stream = v->stream;

	free_visit(v);
	stream_close(&stream);
}

static void end_broken(struct visit *v, const char *why)
{
	log_event(LOG_LEVEL_WARNING, "client-broken", "client", v->peer.name, "why", why, NULL);
	gateway_count(v->gateway, 0, 0, 1);
	end_visit(v);
}

static void on_time_over(struct loop_timer *t, weir_time now)
{
	struct door *d = container_of(t, struct door, timer);

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
		end_broken(
			v, "the handshake took more than 10 s"); /* sets the timer for the next */
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

	/* Look it up again: the list may have changed v->export_, or a change the policy. */
	if (resolve(v, v->hello.name, &s.place) < 0 || !s.place.known) {
		end_visit(v);
		return;
	}
	client_of(v, &s.place, &s.client);
	log_event(LOG_LEVEL_INFO, "client-joined", "client", s.client.name, "export",
		s.client.export_, "tenant",
		gateway_policy(v->gateway)->tenants[s.place.tenant].path, "tls",
		*v->tls ? v->tls : NULL, NULL);
	/* Before the worker owns it: the loop must not use the socket again. */
	loop_remove(gateway_loop(v->gateway), &v->fd);
	if (front_nbd_start(v->gateway, &s) < 0)
		stream_close(&s.stream);
	unlink_visit(v);
	free(v->out);
	free(v);
}

/* ---- the handshake. Each function returns false if nothing more can be done now, or the visit is
 * over. */

static bool watch_for(struct visit *v, uint32_t events)
{
	if (events != v->events)
		loop_change(gateway_loop(v->gateway), &v->fd, events);
	v->events = events;
	return false;
}

static bool end_and_stop(struct visit *v)
{
	end_visit(v);
	return false;
}

static bool send_out(struct visit *v)
{
	while (v->out_at < v->out_n || stream_pending(&v->stream)) {
		struct iovec iov = {v->out + v->out_at, v->out_n - v->out_at};
		ssize_t n = stream_send(&v->stream, &iov, iov.iov_len > 0);

		if (n == -EAGAIN || (n == 0 && v->out_at == v->out_n))
			return watch_for(v, EPOLLOUT);
		if (n < 0)
			return end_and_stop(v);
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
		return end_and_stop(v);
	memcpy(v->out, v->gateway->doors->out, n);
	v->out_at = 0;
	v->out_n = n;
	return true;
}

static bool receive(struct visit *v)
{
	ssize_t n = stream_recv(&v->stream, v->in, sizeof(v->in));

	if (n == -EAGAIN)
		return watch_for(v, EPOLLIN);
	if (n <= 0)
		return end_and_stop(v);
	v->in_at = 0;
	v->in_n = (size_t)n;
	return true;
}

static bool handle_input(struct visit *v)
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

	/* Data received before TLS started are not protected by it. */
	if (v->in_at < v->in_n) {
		end_broken(v, "data after STARTTLS");
		return false;
	}
	if (tls_start(gateway_tls(v->gateway, &required), &v->stream, NULL) < 0)
		return end_and_stop(v);
	v->shaking = true;
	return true;
}

static bool do_tls_handshake(struct visit *v)
{
	struct weir_err err = {""};
	uint32_t want = EPOLLIN;
	const char *name;
	int rc = tls_handshake(&v->stream, &want, &err);

	if (rc == -EAGAIN)
		return watch_for(v, want);
	if (rc < 0) {
		end_broken(v, *err.text ? err.text : "TLS failed");
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

static void on_ready(struct loop_fd *fd, uint32_t events);

static void resume_visit(struct visit *v)
{
	struct door *d = v->gateway->doors;

	unlink_visit(v);
	v->waiting = false;
	v->until = loop_now(gateway_loop(v->gateway)) + TIME_LIMIT;
	v->state = NBD_HELLO_MORE;
	link_visit(v, &d->talking);
	on_ready(&v->fd, 0);
}

static void on_patience_over(struct loop_timer *t, weir_time now)
{
	struct visit *v = container_of(t, struct visit, patience);

	v->late = true;
	resume_visit(v);
}

/* Return true if the visit waits from now on. */
static bool begin_wait(struct visit *v)
{
	struct door *d = v->gateway->doors;
	weir_time now = loop_now(gateway_loop(v->gateway));

	v->patience.due = on_patience_over;
	if (loop_set(gateway_loop(v->gateway), &v->patience, now + v->timeout) < 0)
		return false;
	if (d->waiting.n >= MOST)
		end_broken(d->waiting.oldest, "too many clients wait for their storage");
	unlink_visit(v);
	v->waiting = true;
	link_visit(v, &d->waiting);
	return true;
}

void door_known(struct gateway *g)
{
	struct visit *v = g->doors ? g->doors->waiting.oldest : NULL;
	/* Visits that wait for another resource return to the end of the list. */
	size_t n = v ? g->doors->waiting.n : 0;

	for (; n > 0 && (v = g->doors->waiting.oldest); n--)
		resume_visit(v);
}

/* The client sends nothing more before the reply: only watch for its departure. */
static bool keep_waiting(struct visit *v, uint32_t events)
{
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR) || (!v->waiting && !begin_wait(v)))
		return end_and_stop(v);
	return watch_for(v, EPOLLRDHUP);
}

/* Do one step. */
static bool step(struct visit *v, uint32_t events)
{
	if (v->shaking)
		return do_tls_handshake(v);
	if (!send_out(v))
		return false;
	switch (v->state) {
	case NBD_HELLO_MORE:
		return handle_input(v);
	case NBD_HELLO_TLS:
		return start_tls(v);
	case NBD_HELLO_WAIT:
		return keep_waiting(v, events);
	case NBD_HELLO_READY:
		hand_over(v);
		return false;
	case NBD_HELLO_END:
		break;
	}
	if (v->hello.fault)
		end_broken(v, v->hello.fault);
	else
		end_visit(v);
	return false;
}

static void on_ready(struct loop_fd *fd, uint32_t events)
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
	d->timer.due = on_time_over;
	g->doors = d;
	return d;
}

static void init_visit(struct visit *v, struct gateway *g, int fd)
{
	bool required;
	struct tls *tls = gateway_tls(g, &required);

	v->fd = (struct loop_fd){.fd = fd, .ready = on_ready};
	v->gateway = g;
	v->since = loop_now(gateway_loop(g));
	v->until = v->since + TIME_LIMIT;
	v->stream = (struct stream){.fd = fd};
	v->events = EPOLLIN;
	v->state = NBD_HELLO_MORE;
	stream_peer(fd, &v->peer);
	if (v->peer.uid >= 0)
		snprintf(v->uid, sizeof(v->uid), "%u", (unsigned)v->peer.uid);
	v->ops = (struct nbd_hello_ops){
		.find = find_export, .list = list_exports, .describe = describe, .arg = v};
	nbd_hello_init(&v->hello, &v->ops, tls != NULL, required);
}

void door_accept(struct gateway *g, int fd)
{
	struct door *d = door_of(g);
	struct visit *v = d ? calloc(1, sizeof(*v)) : NULL;
	struct stream stream = {.fd = fd};

	if (v)
		init_visit(v, g, fd);
	if (!v || loop_add(gateway_loop(g), &v->fd, EPOLLIN) < 0) {
		free(v);
		stream_close(&stream);
		return;
	}
	if (d->talking.n >= MOST)
		end_broken(d->talking.oldest, "too many handshakes at once");
	link_visit(v, &d->talking);
	if (!set_out(v, nbd_hello_start(&v->hello, d->out)))
		return;
	on_ready(&v->fd, EPOLLIN);
}

static void end_visits(struct visits *all)
{
	for (struct visit *v = all->oldest, *next; v; v = next) {
		next = v->next;
		end_visit(v);
	}
}

void door_close_all(struct gateway *g)
{
	struct door *d = g->doors;

	if (!d)
		return;
	end_visits(&d->talking);
	end_visits(&d->waiting);
	loop_set(gateway_loop(g), &d->timer, WEIR_NEVER);
	free(d);
	g->doors = NULL;
}
