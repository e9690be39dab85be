/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * front: the two timestamps of a request. `received` is taken when the recv of its last byte
 * has returned, `finished` when the send of the last byte of its reply has.
 *
 * The system calls of the worker's thread are interposed here: each records when it was called,
 * when it returned, and how many bytes of the stream had passed by then. The call that completed a
 * request, or its reply, follows from the number of bytes alone.
 *
 * A timestamp must lie after that call's return and before the thread's next system call, for every
 * request, however busy the machine is. It must be within 20 µs of the return for nine in ten: a
 * thread may be preempted between the two.
 */
#include "serve/front-rig.h"
#include <pthread.h>
#include <sys/syscall.h>

#define NEAR  (20 * WEIR_US)
#define CALLS 65536
#define MOST  1024 /* requests of one test */
#define MIB   (1u << 20)
#define PIECE (256u << 10)

struct call {
	weir_time entry, exit;
	uint64_t bytes; /* of its direction, so far */
	bool out;
};

static struct call calls[CALLS];
static unsigned n_calls;
static uint64_t n_bytes[2]; /* in, out */
static pthread_t tester;

static struct {
	weir_time received, finished;
} stamps[MOST];
static unsigned n_stamps;

static uint8_t buffer[4 * MIB];

/* ---- interposed functions of the C library */

static ssize_t note(weir_time entry, ssize_t n, bool out)
{
	int error = errno;

	if (!pthread_equal(pthread_self(), tester) && n > 0) {
		CHECK(n_calls < CALLS);
		n_bytes[out] += (uint64_t)n;
		calls[n_calls++] = (struct call){entry, loop_clock(), n_bytes[out], out};
	}
	errno = error;
	return n;
}

ssize_t recv(int fd, void *data, size_t n, int flags)
{
	weir_time entry = loop_clock();

	return note(entry, syscall(SYS_recvfrom, fd, data, n, flags, NULL, NULL), false);
}

ssize_t readv(int fd, const struct iovec *iov, int n)
{
	weir_time entry = loop_clock();

	return note(entry, syscall(SYS_readv, fd, iov, n), false);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	weir_time entry = loop_clock();

	return note(entry, syscall(SYS_sendmsg, fd, m, flags), true);
}

/* The linker wraps the resource's own function (--wrap). */
void __real_resource_answered(const struct client *c, weir_time received, weir_time finished);
void __wrap_resource_answered(const struct client *c, weir_time received, weir_time finished);
void __wrap_resource_answered(const struct client *c, weir_time received, weir_time finished)
{
	CHECK(n_stamps < MOST);
	stamps[n_stamps].received = received;
	stamps[n_stamps++].finished = finished;
	__real_resource_answered(c, received, finished);
}

/* ---- expected timestamps */

/* Return the call in which byte `bytes` of the stream passed. */
static unsigned call_of(uint64_t bytes, bool out)
{
	unsigned i = 0;

	while (i < n_calls && (calls[i].out != out || calls[i].bytes < bytes))
		i++;
	CHECK(i < n_calls);
	return i;
}

/* Check a timestamp, and return true if it is also near. */
static bool want_stamp(weir_time at, unsigned call)
{
	CHECK(at >= calls[call].exit);
	CHECK(call + 1 == n_calls || at <= calls[call + 1].entry);
	return at - calls[call].exit <= NEAR;
}

struct ask {              /* in the order of the replies */
	uint64_t in, out; /* bytes of the streams at the end of the request and of its reply */
};

static void want_stamps(const struct ask *asks, unsigned n)
{
	unsigned near = 0;

	CHECK_INT(n_stamps, n);
	for (unsigned i = 0; i < n; i++) {
		near += want_stamp(stamps[i].received, call_of(asks[i].in, false));
		near += want_stamp(stamps[i].finished, call_of(asks[i].out, true));
	}
	CHECK(10 * near >= 9 * 2 * n);
}

/* ---- the client */

static struct ask asks[MOST];
static unsigned n_asks;
static uint64_t asked, answered; /* bytes of the streams so far */

static void begin(struct rig *r, int *fd, struct rig_options o)
{
	rig_new(r, NULL, NULL, 8 << 20);
	n_calls = n_stamps = n_asks = 0;
	n_bytes[0] = n_bytes[1] = asked = answered = 0;
	*fd = rig_connect(r, o);
}

static void end(struct rig *r, int fd)
{
	struct weir_hist *h;
	weir_time sum = 0;

	/* The last reply may have arrived before its send returned. */
	for (int i = 0; i < 1000 && n_stamps < n_asks; i++)
		rig_settle(r);
	want_stamps(asks, n_asks);
	/* And they are the ones shown. */
	resource_drain(r->resource);
	h = r->resource->totals[r->resource->nodes[0]];
	for (unsigned i = 0; i < n_stamps; i++)
		sum += stamps[i].finished - stamps[i].received;
	CHECK(h && h->count == n_asks);
	CHECK_NEAR((double)h->sum, (double)sum, 1e-9);
	close(fd);
	rig_free(r);
}

static void want(uint32_t in, uint32_t out)
{
	asked += in;
	answered += out;
	CHECK(n_asks < MOST);
	asks[n_asks++] = (struct ask){asked, answered};
}

static void read_some(int fd, uint32_t length, uint32_t reply)
{
	ask(fd, NBD_READ, 0, n_asks, 0, length);
	want(NBD_REQUEST_SIZE, reply);
	get_all(fd, buffer, reply);
}

static void write_some(int fd, uint32_t length)
{
	ask(fd, NBD_WRITE, 0, n_asks, 0, length);
	put_all(fd, buffer, length);
	want(NBD_REQUEST_SIZE + length, NBD_SIMPLE_SIZE);
	get_all(fd, buffer, NBD_SIMPLE_SIZE);
}

/* ---- tests */

static void test_one_by_one(void)
{
	struct rig r;
	int fd;

	begin(&r, &fd, (struct rig_options){0});
	for (int i = 0; i < 100; i++) {
		read_some(fd, 4096, NBD_SIMPLE_SIZE + 4096);
		write_some(fd, 4096);
	}
	end(&r, fd);
}

/* Through a socket with a small buffer: many sends per reply. */
static void test_large(void)
{
	struct rig r;
	int fd;

	begin(&r, &fd, (struct rig_options){.sndbuf = 65536});
	for (int i = 0; i < 20; i++) {
		read_some(fd, 64 << 10, NBD_SIMPLE_SIZE + (64 << 10));
		read_some(fd, MIB, NBD_SIMPLE_SIZE + MIB);
		write_some(fd, 64 << 10);
		write_some(fd, MIB + 100);
	}
	end(&r, fd);
}

/* The pieces are answered one by one: the request ends with the last of them. */
static void test_structured(void)
{
	struct rig r;
	int fd;

	begin(&r, &fd, (struct rig_options){.structured = true, .sndbuf = 65536});
	for (int i = 0; i < 20; i++)
		read_some(fd, MIB, 4 * (NBD_DATA_SIZE + PIECE));
	end(&r, fd);
}

/* Many requests with one recv and one send: all have the timestamps of the shared calls. */
static void test_pipelined(void)
{
	uint8_t stream[64 * NBD_REQUEST_SIZE];
	struct rig r;
	int fd;

	begin(&r, &fd, (struct rig_options){0});
	for (int k = 0; k < 8; k++) {
		for (uint64_t i = 0; i < 64; i++) {
			struct nbd_request q = {i, i * 512, 512, 0, NBD_READ};

			nbd_request_write(stream + i * NBD_REQUEST_SIZE, &q);
			want(NBD_REQUEST_SIZE, NBD_SIMPLE_SIZE + 512);
		}
		put_all(fd, stream, sizeof(stream));
		get_all(fd, buffer, 64 * (NBD_SIMPLE_SIZE + 512));
	}
	end(&r, fd);
}

/* Requests that wait for memory still have the time of their receipt. */
static void test_waiting(void)
{
	struct held *held = held_new();
	struct rig r;
	int fd;

	rig_new(&r, NULL, held, 4 << 20);
	n_calls = n_stamps = n_asks = 0;
	n_bytes[0] = n_bytes[1] = asked = answered = 0;
	fd = rig_connect(&r, (struct rig_options){0});
	for (uint64_t i = 0; i < 12; i++) {
		ask(fd, NBD_READ, 0, i, i * PIECE, PIECE);
		want(NBD_REQUEST_SIZE, NBD_SIMPLE_SIZE + PIECE);
	}
	while (worker_call(&r.worker, held_count, held) < 2)
		rig_settle(&r);
	CHECK(worker_call(&r.worker, held_count, held) < 12); /* the others wait */
	while (n_stamps < 12) {
		/* One at a time, so that replies come in the order of the requests. */
		while (worker_call(&r.worker, held_count, held) > 0)
			worker_call(&r.worker, held_release_oldest, held);
		if (recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT) < 0)
			rig_settle(&r);
	}
	end(&r, fd);
}

int main(void)
{
	tester = pthread_self();
	RUN(test_one_by_one);
	RUN(test_large);
	RUN(test_structured);
	RUN(test_pipelined);
	RUN(test_waiting);
	return 0;
}
