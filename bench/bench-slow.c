/* SPDX-License-Identifier: BSD-3-Clause */
/* bench-slow: a short handshake (NBD_OPT_EXPORT_NAME), then one thread for all clients. */
#include "bench/bench-slow.h"
#include <weir/clock.h>
#include "serve/loop/stream.h"
#include "wire/bytes.h"
#include "wire/nbd.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* Send and receive a small message as a whole; the socket blocks. */
static int exchange_bytes(int fd, const void *out, size_t n_out, void *in, size_t n_in)
{
	if (send(fd, out, n_out, MSG_NOSIGNAL) != (ssize_t)n_out)
		return -EPIPE;
	return recv(fd, in, n_in, MSG_WAITALL) == (ssize_t)n_in ? 0 : -EPROTO;
}

static int do_handshake(int fd, const char *export_)
{
	const uint64_t option = UINT64_C(0x49484156454f5054); /* "IHAVEOPT" */
	size_t len = strlen(export_);
	uint8_t hello[18], out[4 + 16 + 256], info[10];

	if (len > 256 || recv(fd, hello, sizeof(hello), MSG_WAITALL) != sizeof(hello))
		return -EPROTO;
	bytes_put32(out, 3); /* fixed newstyle, no zeroes */
	bytes_put64(out + 4, option);
	bytes_put32(out + 12, 1); /* NBD_OPT_EXPORT_NAME */
	bytes_put32(out + 16, (uint32_t)len);
	memcpy(out + 20, export_, len);
	return exchange_bytes(fd, out, 20 + len, info, sizeof(info));
}

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
	struct timeval patience = {.tv_sec = 10};
	char address[140];
	int rc;

	snprintf(address, sizeof(address), "unix:%s", socket);
	rc = stream_connect(address, 10 * WEIR_SEC, &r->fd, err);
	if (rc < 0)
		return rc;
	r->size = s->n % 2 ? 65536 : 4096;
	s->n++;
	fcntl(r->fd, F_SETFL, fcntl(r->fd, F_GETFL) & ~O_NONBLOCK);
	setsockopt(r->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	rc = do_handshake(r->fd, export_);
	return rc < 0 ? weir_err_set(err, rc, "a slow reader: the handshake failed") : 0;
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
