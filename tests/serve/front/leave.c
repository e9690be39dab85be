/* SPDX-License-Identifier: BSD-3-Clause */
/* front: clients that leave at any point of the protocol. Nothing of them may remain:
 * connections, descriptors, jobs and memory return to their previous numbers. */
#include "serve/front-rig.h"
#include <dirent.h>

#define PIECE (256u << 10)
#define WRITE 600 /* bytes of the script's write */

enum how { CLOSE, SHUT_THEN_CLOSE, HALF_CLOSE, WAYS };

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void leave(struct rig *r, int fd, enum how how)
{
	if (how == SHUT_THEN_CLOSE) {
		/* The socket hangs up while sent data still fill it: it is not writable. */
		shutdown(fd, SHUT_RDWR);
		rig_settle(r);
	} else if (how == HALF_CLOSE) {
		shutdown(fd, SHUT_WR);
		rig_settle(r);
	}
	close(fd);
}

static void want_nothing_left(struct rig *r)
{
	/* Each settle is several rounds; a connection whose end was detected needs two. */
	for (int i = 0; i < 2000 && front_count(r->worker.front); i++)
		rig_settle(r);
	CHECK_INT(front_count(r->worker.front), 0);
	CHECK_INT(r->worker.front->n_used, 0);
	CHECK_INT(r->worker.front->rest_bytes, 0);
	CHECK_INT(chunk_held(r->worker.pool), 0);
	CHECK_INT(r->resource->n_clients, 0);
}

/* Replies are blocked when the client sends NBD_DISC and hangs up. */
static void test_disc_while_blocked(void)
{
	struct rig r;
	int before;

	rig_new(&r, NULL, NULL, 64 << 20);
	before = count_fds();
	for (int i = 0; i < 3 * 8; i++) {
		int fd = rig_connect(&r, (struct rig_options){.sndbuf = 8192});

		for (uint64_t k = 0; k < 8; k++)
			ask(fd, NBD_READ, 0, k, k * PIECE, PIECE);
		ask(fd, NBD_DISC, 0, 9, 0, 0);
		rig_settle(&r);
		leave(&r, fd, (enum how)(i % WAYS));
	}
	want_nothing_left(&r);
	CHECK_INT(count_fds(), before);
	rig_free(&r);
}

static size_t put_request(uint8_t *p, uint16_t command, uint64_t cookie, uint32_t length)
{
	struct nbd_request q = {cookie, 0, length, 0, command};

	nbd_request_write(p, &q);
	return NBD_REQUEST_SIZE;
}

/* Every command, with small and large replies, and NBD_DISC. */
static size_t script(uint8_t *p)
{
	size_t n = 0;

	n += put_request(p + n, NBD_WRITE, 1, WRITE);
	memset(p + n, 7, WRITE);
	n += WRITE;
	n += put_request(p + n, NBD_READ, 2, 4096);
	n += put_request(p + n, NBD_READ, 3, 3 * PIECE);
	n += put_request(p + n, NBD_FLUSH, 4, 0);
	n += put_request(p + n, NBD_TRIM, 5, 4096);
	n += put_request(p + n, NBD_READ, 6, UINT32_MAX); /* refused */
	n += put_request(p + n, NBD_DISC, 7, 0);
	return n;
}

/* A client leaves after each byte of the script, in each way; its requests finished, or still
 * inside. */
static void leave_everywhere(bool structured, bool inside)
{
	static uint8_t bytes[4096];
	size_t n = script(bytes);
	int before, i = 0;
	struct rig r;

	rig_new(&r, NULL, inside ? held_new() : NULL, 64 << 20);
	before = count_fds();
	for (size_t cut = 0; cut <= n; cut += cut > 40 && cut < WRITE ? 41 : 1)
		for (int how = 0; how < WAYS; how++) {
			int fd = rig_connect(
				&r, (struct rig_options){.sndbuf = 8192, .structured = structured});

			put_all(fd, bytes, cut);
			if (i++ % 2)
				rig_settle(&r);
			leave(&r, fd, (enum how)how);
			if (inside && i % 16 == 0)
				worker_call(&r.worker, held_release, r.held);
		}
	if (inside)
		worker_call(&r.worker, held_open, r.held);
	want_nothing_left(&r);
	CHECK_INT(count_fds(), before);
	rig_free(&r);
}

static void test_everywhere(void)
{
	leave_everywhere(false, false);
	leave_everywhere(true, false);
}

static void test_everywhere_inside(void)
{
	leave_everywhere(false, true);
	leave_everywhere(true, true);
}

int main(void)
{
	RUN(test_disc_while_blocked);
	RUN(test_everywhere);
	RUN(test_everywhere_inside);
	return 0;
}
