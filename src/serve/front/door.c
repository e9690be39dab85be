/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * door: a new connection until its export is known.
 *
 * METHOD  The protocol makes the replies (front_ops.hello); here are the socket, TLS, the clock and
 *         the policy.
 *         Output is produced only when the previous output was sent, so a client that reads nothing
 *         costs one buffer. When the client has chosen its export, the socket goes to the export's
 *         worker. A client that asks for an export whose storage was never reached waits for the
 *         reply until it is, for as long as the resource's `timeout`.
 * LIMITS  10 s for the handshake, without that wait, however active the client is; 4,096 at once:
 *         one more, and the oldest is disconnected, so that silent clients do not lock out others.
 */
#include "base/container.h"
#include "serve/front/front.h"
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

struct visits { /* by age */
	struct front_visit *oldest, *newest;
	size_t n;
};

struct front_door { /* of one gateway */
	const struct front_site *site;
	struct gateway *gateway;
	struct loop *loop;
	struct visits talking, waiting;
	struct loop_timer timer; /* expires with the time of the oldest handshake */
	uint8_t out[FRONT_HELLO_OUT];
};

/* ---- permissions */

static struct weir_who identity_of(const struct front_visit *v, const char *name)
{
	return (struct weir_who){.export_ = name,
		.client = *v->peer.address ? v->peer.address : NULL,
		.uid = *v->uid ? v->uid : NULL,
		.tls = *v->tls ? v->tls : NULL};
}

/* Return the next export for this client from *at on, and advance *at; NULL: no more. */
static const char *next_export(struct front_visit *v, size_t *at, struct front_place *ret)
{
	const char *name;

	while ((name = v->door->site->export_(v->door->gateway, *at))) {
		struct weir_who w = identity_of(v, name);

		++*at;
		if (v->door->site->find(v->door->gateway, &w, ret) == 0)
			return name;
	}
	return NULL;
}

/* Exports whose storage was never reached are omitted: their properties are unknown, and clients
 * that query each export, as qemu-nbd --list does, would stop there. */
const char *front_list(struct front_visit *v, size_t i, const char **ret_about)
{
	struct front_place place;
	const char *name;

	if (i != v->listed) /* not where the last call ended */
		v->listed = v->list_at = 0;
	while ((name = next_export(v, &v->list_at, &place))) {
		if (place.known && v->listed++ == i) {
			*ret_about = place.description;
			return name;
		}
	}
	return NULL;
}

/* The empty name is the default export: the one of that name, or else the only one. */
static int resolve(struct front_visit *v, const char *name, struct front_place *ret)
{
	struct weir_who w = identity_of(v, name);
	int rc = -ENOENT;

	if (strlen(name) < sizeof(v->export_))
		rc = v->door->site->find(v->door->gateway, &w, ret);
	if (rc == -ENOENT && !*name) {
		struct front_place second;
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

static void count(const struct front_door *d, int refused, int broken)
{
	d->site->count(d->gateway, 0, refused, broken);
}

static void count_refused(struct front_visit *v, const char *name, const char *why)
{
	if (v->refused)
		return;
	v->refused = true;
	count(v->door, 1, 0);
	log_event(LOG_LEVEL_WARNING, "client-refused", "client", v->peer.name, "export", name,
		"why", why, NULL);
}

int front_enter(struct front_visit *v)
{
	struct weir_who w = identity_of(v, v->export_);
	const struct front_site *site = v->door->site;

	if (v->late || !site->admit || site->admit(v->door->gateway, &w) == 0)
		return 0;
	v->timeout = TIME_LIMIT; /* it has to wait, but not for ever */
	return -EAGAIN;
}

int front_find(struct front_visit *v, const char *name, struct front_place *ret)
{
	int rc = resolve(v, name, ret);

	if (rc == -EACCES)
		count_refused(v, name, "the policy has no tenant for it");
	if (rc == 0 && !ret->known) {
		v->timeout = ret->timeout ? ret->timeout : WAIT_LIMIT;
		return v->late ? -ETIMEDOUT : -EAGAIN;
	}
	return rc;
}

/* ---- arrival and departure */

static void set_timer(struct front_door *d)
{
	const struct front_visit *oldest = d->talking.oldest;

	loop_set(d->loop, &d->timer, oldest ? oldest->until : WEIR_NEVER);
}

static void link_visit(struct front_visit *v, struct visits *to)
{
	v->next = NULL;
	v->prev = to->newest;
	*(v->prev ? &v->prev->next : &to->oldest) = v;
	to->newest = v;
	if (to->n++ == 0)
		set_timer(v->door);
}

static void unlink_visit(struct front_visit *v)
{
	struct front_door *d = v->door;
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
		loop_set(v->door->loop, &v->patience, WEIR_NEVER);
	else if (oldest)
		set_timer(d);
}

/* Release the socket, which another owner takes over. */
static void free_visit(struct front_visit *v)
{
	loop_remove(v->door->loop, &v->fd);
	unlink_visit(v);
	free(v->out);
	free(v);
}

static void end_visit(struct front_visit *v)
{
	struct stream stream = v->stream;

	free_visit(v);
	stream_close(&stream);
}

static void end_broken(struct front_visit *v, const char *why)
{
	log_event(LOG_LEVEL_WARNING, "client-broken", "client", v->peer.name, "why", why, NULL);
	count(v->door, 0, 1);
	end_visit(v);
}

static void on_time_over(struct loop_timer *t, weir_time now)
{
	struct front_door *d = container_of(t, struct front_door, timer);

	if (d->talking.oldest && d->talking.oldest->until > now)
		set_timer(d); /* too early */
	for (struct front_visit *v = d->talking.oldest, *next; v && v->until <= now; v = next) {
		next = v->next;
		if (now - v->since < (weir_time)v->listed * ASK_LIMIT) {
			unlink_visit(v);
			v->until = now + TIME_LIMIT;
			link_visit(v, &d->talking);
			continue;
		}
		end_broken(
			v, "the handshake took more than 10 s"); /* sets the timer for the next */
	}
}

static void client_of(
	const struct front_visit *v, const struct front_place *place, struct client *ret)
{
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->export_, v->export_, sizeof(ret->export_));
	memcpy(ret->name, v->peer.name, sizeof(ret->name));
	memcpy(ret->address, v->peer.address, sizeof(ret->address));
	memcpy(ret->uid, v->uid, sizeof(ret->uid));
	memcpy(ret->tls, v->tls, sizeof(ret->tls));
	ret->tenant = place->tenant;
}

static bool keep_waiting(struct front_visit *v, uint32_t events);

static void hand_over(struct front_visit *v)
{
	struct front_start s = {.ops = v->ops,
		.stream = v->stream,
		.early = v->in + v->in_at,
		.n_early = v->in_n - v->in_at};
	struct front_conn *c;

	/* Look it up again: the list may have changed v->export_, or a change the policy. */
	if (resolve(v, v->name, &s.place) < 0 || !s.place.known) {
		end_visit(v);
		return;
	}
	if (front_enter(v) < 0) {
		v->ready = true;
		v->state = FRONT_HELLO_WAIT;
		keep_waiting(v, 0);
		return;
	}
	client_of(v, &s.place, &s.client);
	log_event(LOG_LEVEL_INFO, "client-joined", "client", s.client.name, "export",
		s.client.export_, "tenant", s.place.tenant_path, "tls", *v->tls ? v->tls : NULL,
		NULL);
	c = front_conn_new(&s);
	if (!c) {
		end_visit(v);
		return;
	}
	if (v->ops->agree)
		v->ops->agree(c, v);
	free_visit(v); /* before the worker owns the socket: this loop must not use it again */
	front_conn_start(c);
}

/* ---- the handshake. Each function returns false if nothing more can be done now, or the visit is
 * over. */

static bool watch_for(struct front_visit *v, uint32_t events)
{
	if (events != v->events)
		loop_change(v->door->loop, &v->fd, events);
	v->events = events;
	return false;
}

static bool end_and_stop(struct front_visit *v)
{
	end_visit(v);
	return false;
}

static bool send_out(struct front_visit *v)
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

static bool set_out(struct front_visit *v, size_t n)
{
	if (n == 0)
		return true;
	v->out = malloc(n);
	if (!v->out)
		return end_and_stop(v);
	memcpy(v->out, v->door->out, n);
	v->out_at = 0;
	v->out_n = n;
	return true;
}

static bool receive(struct front_visit *v)
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

static bool handle_input(struct front_visit *v)
{
	struct front_door *d = v->door;
	size_t used, made;

	v->state = v->ops->hello(
		v, v->in + v->in_at, v->in_n - v->in_at, &used, d->out, sizeof(d->out), &made);
	v->in_at += used;
	if (made)
		return set_out(v, made);
	return v->state != FRONT_HELLO_MORE || used || receive(v);
}

static bool start_tls(struct front_visit *v)
{
	struct front_door *d = v->door;
	bool required;

	/* Data received before TLS started are not protected by it. */
	if (v->in_at < v->in_n) {
		end_broken(v, "data after STARTTLS");
		return false;
	}
	if (tls_start(d->site->tls(d->gateway, &required), &v->stream, NULL) < 0)
		return end_and_stop(v);
	v->shaking = true;
	return true;
}

static bool do_tls_handshake(struct front_visit *v)
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
	v->state = FRONT_HELLO_MORE;
	v->denied = tls_refusal(&v->stream);
	if (v->denied)
		count_refused(v, "", v->denied);
	if (v->ops->secured)
		v->ops->secured(v);
	return true;
}

/* ---- waiting for storage that was never reached */

static void on_ready(struct loop_fd *fd, uint32_t events);

static void resume_visit(struct front_visit *v)
{
	struct front_door *d = v->door;

	unlink_visit(v);
	v->waiting = false;
	v->until = loop_now(v->door->loop) + TIME_LIMIT;
	v->state = v->ready ? FRONT_HELLO_READY : FRONT_HELLO_MORE;
	link_visit(v, &d->talking);
	on_ready(&v->fd, 0);
}

static void on_patience_over(struct loop_timer *t, weir_time now)
{
	struct front_visit *v = container_of(t, struct front_visit, patience);

	v->late = true;
	resume_visit(v);
}

/* Return true if the visit waits from now on. */
static bool begin_wait(struct front_visit *v)
{
	struct front_door *d = v->door;
	weir_time now = loop_now(v->door->loop);

	v->patience.due = on_patience_over;
	if (loop_set(v->door->loop, &v->patience, now + v->timeout) < 0)
		return false;
	if (d->waiting.n >= MOST)
		end_broken(d->waiting.oldest, "too many clients wait for their storage");
	unlink_visit(v);
	v->waiting = true;
	link_visit(v, &d->waiting);
	return true;
}

void front_known(struct front_door *d)
{
	/* Visits that wait for another resource return to the end of the list. */
	for (size_t n = d ? d->waiting.n : 0; n > 0 && d->waiting.oldest; n--)
		resume_visit(d->waiting.oldest);
}

/* The client sends nothing more before the reply: only watch for its departure. */
static bool keep_waiting(struct front_visit *v, uint32_t events)
{
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR) || (!v->waiting && !begin_wait(v)))
		return end_and_stop(v);
	return watch_for(v, EPOLLRDHUP);
}

/* Do one step. */
static bool step(struct front_visit *v, uint32_t events)
{
	if (v->shaking)
		return do_tls_handshake(v);
	if (!send_out(v))
		return false;
	switch (v->state) {
	case FRONT_HELLO_MORE:
		return handle_input(v);
	case FRONT_HELLO_TLS:
		return start_tls(v);
	case FRONT_HELLO_WAIT:
		return keep_waiting(v, events);
	case FRONT_HELLO_READY:
		hand_over(v);
		return false;
	case FRONT_HELLO_END:
		break;
	}
	if (v->fault)
		end_broken(v, v->fault);
	else
		end_visit(v);
	return false;
}

static void on_ready(struct loop_fd *fd, uint32_t events)
{
	struct front_visit *v = container_of(fd, struct front_visit, fd);

	while (step(v, events))
		;
}

int front_door_new(const struct front_site *site, struct gateway *g, struct loop *loop,
	struct front_door **ret_door)
{
	struct front_door *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->site = site;
	d->gateway = g;
	d->loop = loop;
	d->timer.due = on_time_over;
	*ret_door = d;
	return 0;
}

static void init_visit(
	struct front_visit *v, struct front_door *d, const struct front_ops *ops, int fd)
{
	v->fd = (struct loop_fd){.fd = fd, .ready = on_ready};
	v->ops = ops;
	v->door = d;
	v->since = loop_now(d->loop);
	v->until = v->since + TIME_LIMIT;
	v->stream = (struct stream){.fd = fd};
	v->events = EPOLLIN;
	v->state = FRONT_HELLO_MORE;
	v->tls_offered = d->site->tls(d->gateway, &v->tls_required) != NULL;
	stream_peer(fd, &v->peer);
	if (v->peer.uid >= 0)
		snprintf(v->uid, sizeof(v->uid), "%u", (unsigned)v->peer.uid);
}

void front_accept(struct front_door *d, const struct front_ops *ops, int fd)
{
	struct front_visit *v = calloc(1, ops->visit_size);
	struct stream stream = {.fd = fd};

	if (v)
		init_visit(v, d, ops, fd);
	if (!v || loop_add(d->loop, &v->fd, EPOLLIN) < 0) {
		free(v);
		stream_close(&stream);
		return;
	}
	if (d->talking.n >= MOST)
		end_broken(d->talking.oldest, "too many handshakes at once");
	link_visit(v, &d->talking);
	if (!set_out(v, ops->greet(v, d->out)))
		return;
	on_ready(&v->fd, EPOLLIN);
}

size_t front_door_talking(const struct front_door *d)
{
	return d->talking.n;
}

bool front_door_evict(struct front_door *d)
{
	if (!d->talking.oldest)
		return false;
	end_broken(d->talking.oldest, "its file descriptor is needed for a new client");
	return true;
}

static void end_visits(struct visits *all)
{
	for (struct front_visit *v = all->oldest, *next; v; v = next) {
		next = v->next;
		end_visit(v);
	}
}

void front_door_free(struct front_door *d)
{
	if (!d)
		return;
	end_visits(&d->talking);
	end_visits(&d->waiting);
	loop_set(d->loop, &d->timer, WEIR_NEVER);
	free(d);
}
