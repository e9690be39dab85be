/* SPDX-License-Identifier: BSD-3-Clause */
/* Send any bytes after the handshake to the NBD front end over a socket, with a resource and a
 * memory disk behind it. The first byte chooses the form of the replies, where the stream is cut
 * and how much a socket accepts. For every input, the connection ends and leaves no job, chunk
 * or request behind. */
#include "fuzz.h"
#include "serve/front/impl.h"
#include "serve/front/nbd/nbd.h"
#include "serve/gateway/impl.h"
#include "serve/resource/impl.h"
#include "serve/loop/log.h"
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define SIZE (1u << 20)

static struct gateway gateway;
static struct worker worker;
static struct resource *resource;
static struct back *back;

struct user {
	struct loop_fd fd; /* first */
	const uint8_t *data;
	size_t len, at, cut;
};

/* Read and drop replies; send the input in pieces of `cut` bytes. */
static void ready(struct loop_fd *f, uint32_t events)
{
	struct user *u = (struct user *)(void *)f;
	static uint8_t bytes[65536];
	size_t n = u->len - u->at < u->cut ? u->len - u->at : u->cut;
	ssize_t some;

	while (recv(f->fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	if (events & (EPOLLHUP | EPOLLERR)) {
		loop_remove(worker.loop, f);
		return;
	}
	if (!(events & EPOLLOUT))
		return;
	some = n ? send(f->fd, u->data + u->at, n, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
	u->at += some > 0 ? (size_t)some : 0;
	if (u->at == u->len) {
		shutdown(f->fd, SHUT_WR);
		loop_change(worker.loop, f, EPOLLIN);
	}
}

static bool over(struct loop_turn *t, weir_time now)
{
	if (front_count(worker.front) == 0 && !resource_busy(resource))
		loop_stop(worker.loop);
	return true; /* the front end runs after this task: poll, never sleep */
}

static void begin(void)
{
	static const char text[] = "tenants: [{name: a, match: {export: \"*\"}}]\n";
	static struct loop_turn turn = {.turn = over};
	struct weir_resource spec;
	struct weir_policy *policy;
	struct resource_config config = {.spec = &spec};
	struct back_config back_config = {0};

	log_open(LOG_LEVEL_ERROR, LOG_FORM_TEXT);
	MUST(worker_init(&worker, &gateway, 0, 4 << 20, -1) == 0);
	back_config.loop = worker.loop;
	back_config.pool = worker.pool;
	MUST(back_open("memory:1M", &back_config, &back, NULL) == 0);
	MUST(weir_policy_parse(text, strlen(text), "fuzz", &policy, NULL) == 0);
	policy_resource_default("disk", &spec);
	config.back = back;
	config.loop = worker.loop;
	MUST(resource_new(&config, &resource) == 0);
	MUST(resource_swap(resource, policy, NULL) == 0);
	MUST(resource_start(resource) == 0);
	loop_turn_add(worker.loop, &turn);
}

static void start(int fd, uint8_t how)
{
	static struct nbd_hello hello;
	struct front_start s = {.ops = &front_nbd_ops,
		.stream = {.fd = fd},
		.place = {.front = worker.front,
			.gate = &resource_gate,
			.resource = resource,
			.info = resource_info(resource),
			.size = SIZE}};
	struct front_conn *c;

	hello.structured = how & 1;
	hello.base_allocation = how & 2;
	hello.held = how & 64;
	hello.context_id = 1;
	hello.held_id = 2;
	s.place.read_only = (how & 12) == 12;
	strcpy(s.client.export_, "disk");
	strcpy(s.client.name, "fuzz");
	c = front_conn_new(&s);
	MUST(c);
	front_nbd_agree(c, &hello);
	front_conn_start(c);
}

static bool is_empty(const struct front_ring *r)
{
	return r->next == r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const size_t cuts[] = {1, 27, 4096, SIZE};
	static const int buffer = 4096;
	struct user u = {.fd = {.ready = ready}};
	int fd[2];

	if (len == 0)
		return 0;
	if (!resource)
		begin();
	u.data = data + 1;
	u.len = len - 1;
	u.cut = cuts[data[0] >> 4 & 3];
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) == 0);
	if (data[0] & 64)
		setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
	start(fd[0], data[0]);
	u.fd.fd = fd[1];
	MUST(loop_add(worker.loop, &u.fd, EPOLLIN | EPOLLOUT) == 0);
	MUST(loop_run(worker.loop) == 0);
	loop_remove(worker.loop, &u.fd);
	close(fd[1]);
	MUST(chunk_held(worker.pool) == 0);
	MUST(worker.front->n_used == 0 && worker.front->rest_bytes == 0);
	MUST(!worker.front->todo && is_empty(&worker.front->waiting) &&
		is_empty(&worker.front->looked));
	MUST(resource->n_clients == 0 && resource->inside == 0 && resource->queued == 0);
	return 0;
}
