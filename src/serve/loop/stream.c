/* SPDX-License-Identifier: BSD-3-Clause */
/* stream: one recv or sendmsg if plain; tls.c does the rest. Addresses: stream-address.c. */
#include "serve/loop/stream.h"
#include "serve/loop/tls.h"
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

ssize_t stream_recv(struct stream *s, void *data, size_t n)
{
	ssize_t got;

	if (s->tls)
		return tls_recv(s->tls, data, n);
	do {
		got = recv(s->fd, data, n, 0);
	} while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

ssize_t stream_send(struct stream *s, const struct iovec *iov, int n)
{
	/* sendmsg does not modify the vectors. */
	struct msghdr m = {.msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (size_t)n};
	ssize_t sent;

	if (s->tls)
		return tls_send(s->tls, iov, n);
	if (n == 0)
		return 0;
	do {
		sent = sendmsg(s->fd, &m, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : sent;
}

bool stream_pending(const struct stream *s)
{
	return s->tls && tls_pending(s->tls);
}

void stream_close(struct stream *s)
{
	if (s->tls)
		tls_end(s->tls);
	if (s->fd >= 0)
		close(s->fd);
	*s = (struct stream){.fd = -1};
}
