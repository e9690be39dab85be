/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pass: METHOD  The system passes 253 descriptors in one message at most; so a message with more of them comes after others, with
 *               the word "more". A folder's path may be too long for a socket's address: it is reached through /proc.
 */
#include "serve/handover/pass.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define MOST 200 /* descriptors in one message */
#define NAME "replace.sock"
#define MORE "more"

struct wire {
	char word[32], text[480];
	uint32_t memfd; /* 1: the last descriptor is that */
};

union control { /* aligned */
	struct cmsghdr head;
	char room[CMSG_SPACE((MOST + 1) * sizeof(int))];
};

/* ---- the socket */

/* Return an open folder, by which `ret` is reached. */
static int address(const char *folder, struct sockaddr_un *ret)
{
	int dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (dir < 0)
		return -errno;
	snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/" NAME, dir);
	return dir;
}

static void wait_at_most(int fd)
{
	struct timeval two = {.tv_sec = 2};

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &two, sizeof(two));
}

int pass_listen(const char *folder, int *ret_fd)
{
	struct sockaddr_un at;
	int fd, dir = address(folder, &at), rc = 0;
	mode_t mask;

	if (dir < 0)
		return dir;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		rc = -errno;
	mask = umask(0177);
	if (rc == 0 && unlink(at.sun_path) < 0 && errno != ENOENT)
		rc = -errno;
	if (rc == 0 && (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 4) < 0))
		rc = -errno;
	umask(mask);
	close(dir);
	if (rc < 0 && fd >= 0)
		close(fd);
	if (rc == 0)
		*ret_fd = fd;
	return rc;
}

int pass_accept(int listening)
{
	int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (fd < 0)
		return -errno;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 ||
		(peer.uid != geteuid() && peer.uid != 0)) {
		close(fd);
		return -EPERM;
	}
	wait_at_most(fd);
	return fd;
}

int pass_connect(const char *folder, int *ret_fd)
{
	struct sockaddr_un at;
	int fd, dir = address(folder, &at), rc = 0;

	if (dir < 0)
		return dir;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		rc = errno == ECONNREFUSED ? -ENOENT : -errno;
	close(dir);
	if (rc < 0) {
		if (fd >= 0)
			close(fd);
		return rc;
	}
	wait_at_most(fd);
	*ret_fd = fd;
	return 0;
}

/* ---- messages */

static int send_one(int sock, struct wire *w, const int *fds, size_t n)
{
	union control c;
	struct iovec iov = {w, sizeof(*w)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	memset(&c, 0, sizeof(c));
	if (n) {
		m.msg_control = &c;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c.head.cmsg_level = SOL_SOCKET;
		c.head.cmsg_type = SCM_RIGHTS;
		c.head.cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(&c.head), fds, n * sizeof(int));
	}
	while (sendmsg(sock, &m, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

int pass_send(int sock, const char *word, const char *text, int memfd, const struct record_fds *fds)
{
	struct wire w = {.word = MORE};
	int batch[MOST + 1], rc = 0;
	size_t n = 0;

	for (size_t i = 0; rc == 0 && fds && i < fds->n; i++) {
		batch[n++] = fds->all[i].fd;
		if (n == MOST) {
			rc = send_one(sock, &w, batch, n);
			n = 0;
		}
	}
	snprintf(w.word, sizeof(w.word), "%s", word);
	snprintf(w.text, sizeof(w.text), "%s", text ? text : "");
	w.memfd = memfd >= 0;
	if (memfd >= 0)
		batch[n++] = memfd;
	return rc < 0 ? rc : send_one(sock, &w, batch, n);
}

static int take_fds(struct msghdr *m, struct record_fds *to)
{
	int rc = m->msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EBADMSG : 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (rc == 0)
				rc = record_fds_add(to, fd);
			if (rc < 0)
				close(fd);
		}
	}
	return rc;
}

static int recv_one(int sock, int ms, struct wire *w, struct record_fds *to)
{
	union control c;
	struct iovec iov = {w, sizeof(*w)};
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)};
	struct pollfd p = {.fd = sock, .events = POLLIN};
	ssize_t n;
	int rc = poll(&p, 1, ms);

	if (rc <= 0)
		return rc < 0 && errno != EINTR ? -errno : -EAGAIN;
	n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : errno == EINTR ? -EAGAIN : -errno;
	rc = take_fds(&m, to);
	if (rc < 0 || n == 0)
		return rc < 0 ? rc : -EPIPE;
	if (n != sizeof(*w))
		return -EBADMSG;
	w->word[sizeof(w->word) - 1] = w->text[sizeof(w->text) - 1] = 0;
	return 0;
}

int pass_recv(int sock, int ms, struct pass_message *ret)
{
	struct wire w;
	int rc;

	*ret = (struct pass_message){.memfd = -1};
	do {
		rc = recv_one(sock, ms, &w, &ret->fds);
	} while (rc == 0 && strcmp(w.word, MORE) == 0);
	if (rc == 0 && w.memfd && ret->fds.n == 0)
		rc = -EBADMSG;
	if (rc < 0) {
		pass_message_free(ret);
		return rc;
	}
	if (w.memfd)
		ret->memfd = ret->fds.all[--ret->fds.n].fd;
	memcpy(ret->word, w.word, sizeof(ret->word));
	memcpy(ret->text, w.text, sizeof(ret->text));
	return 0;
}

void pass_message_free(struct pass_message *m)
{
	if (m->memfd >= 0)
		close(m->memfd);
	m->memfd = -1;
	record_fds_close(&m->fds);
}
