/* SPDX-License-Identifier: BSD-3-Clause */
/* bench-slow: a short handshake (NBD_OPT_EXPORT_NAME), then one thread for all clients. */
#include "bench/bench-slow.h"
#include <weir/clock.h>
#include "serve/back/nbd-link.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST  64
#define AHEAD (1u << 20) /* bytes requested and not received yet */
#define TAKES 16384      /* bytes received … */
#define EVERY (16 * WEIR_MS)

struct slow {
	struct reader {
		int fd;
		uint32_t size;  /* bytes of a request */
		uint64_t taken; /* bytes of replies */
		uint64_t asked; /* requests */
	} readers[MOST];
	unsigned n;
	pthread_t thread;
	atomic_bool stop;
};

static void send_requests(struct reader *r)
{
	uint64_t reply = r->size + NBD_SIMPLE_SIZE;

	while (r->asked * reply < r->taken + AHEAD) {
		struct nbd_request q = {.cookie = r->asked, .length = r->size, .command = NBD_READ};
		uint8_t p[NBD_REQUEST_SIZE];

		nbd_request_write(p, &q);
		if (send(r->fd, p, sizeof(p), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(p))
			return; /* the server's socket is full */
		r->asked++;
	}
}

static void *read_slowly(void *arg)
{
	const struct timespec pause = {.tv_nsec = EVERY};
	struct slow *s = arg;
	uint8_t data[TAKES];

	while (!atomic_load(&s->stop)) {
		for (unsigned i = 0; i < s->n; i++) {
			struct reader *r = &s->readers[i];
			ssize_t n = recv(r->fd, data, sizeof(data), MSG_DONTWAIT);

			r->taken += n > 0 ? (uint64_t)n : 0;
			send_requests(r);
		}
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static int connect_reader(
	struct slow *s, const char *socket, const char *export_, struct weir_err *err)
{
	struct reader *r = &s->readers[s->n];
	struct nbd_uri uri = {.tls = false};
	struct nbd_link link;
	int rc;

	snprintf(uri.address, sizeof(uri.address), "unix:%s", socket);
	snprintf(uri.name, sizeof(uri.name), "%s", export_);
	rc = nbd_link_open(&link, &uri, NULL, 10 * WEIR_SEC, false, err);
	if (rc < 0)
		return rc;
	r->fd = link.stream.fd;
	r->size = s->n++ % 2 ? 65536 : 4096;
	return 0;
}

int slow_start(const char *socket, const char *export_, unsigned n, struct slow **ret_slow,
	struct weir_err *err)
{
	struct slow *s = calloc(1, sizeof(*s));
	int rc = s ? 0 : -ENOMEM;

	while (rc == 0 && s->n < n && s->n < MOST)
		rc = connect_reader(s, socket, export_, err);
	if (rc == 0)
		rc = -pthread_create(&s->thread, NULL, read_slowly, s);
	if (rc < 0) {
		for (unsigned i = 0; s && i < s->n; i++)
			close(s->readers[i].fd);
		free(s);
		return rc;
	}
	*ret_slow = s;
	return 0;
}

void slow_stop(struct slow *s)
{
	if (!s)
		return;
	atomic_store(&s->stop, true);
	pthread_join(s->thread, NULL);
	for (unsigned i = 0; i < s->n; i++)
		close(s->readers[i].fd);
	free(s);
}
