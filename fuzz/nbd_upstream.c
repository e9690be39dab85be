/* SPDX-License-Identifier: BSD-3-Clause */
/* Answer with any bytes to eight requests, one of each kind, that an upstream was really sent.
 * The first byte chooses where the stream is cut. The cookies are the same each time, so that
 * inputs can name them. For every input, each request completes once, none with more data than
 * it asked for, and an upstream that then answers correctly completes the rest. */
#include "fuzz.h"
#include "serve/back/nbd.h"
#include "serve/loop/log.h"
#include "wire/bytes.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SIZE     (1u << 20)
#define REQUESTS 8
#define EXTENTS  4
#define SLOTS    1024 /* more than so few requests ever need */

static struct nbd *nbd;
static struct loop *loop;
static atomic_int upstream = -1; /* the server's end */
static struct back_io ios[REQUESTS];
static uint8_t data[REQUESTS][65536];
static struct back_extent extents[EXTENTS];
static bool done[REQUESTS];
static unsigned n_done;

/* ---- the upstream: completes the handshake, then sends the input */

static int find(void *arg, const char *name, struct nbd_export *ret)
{
	*ret = (struct nbd_export){.size = SIZE,
		.flags = NBD_SEND_FLUSH | NBD_SEND_FUA | NBD_SEND_TRIM | NBD_SEND_WRITE_ZEROES |
			 NBD_SEND_CACHE | NBD_SEND_DF};
	return 0;
}

static const char *list(void *arg, size_t i)
{
	return NULL;
}

static void shake_hands(int fd)
{
	static const struct nbd_hello_ops ops = {.find = find, .list = list};
	static struct nbd_hello h;
	static uint8_t out[NBD_HELLO_OUT];
	enum nbd_hello_state state = NBD_HELLO_MORE;
	size_t used, made;
	uint8_t byte;

	nbd_hello_init(&h, &ops, false, false);
	made = nbd_hello_start(&h, out);
	do {
		if (made && send(fd, out, made, MSG_NOSIGNAL) < 0)
			break;
		made = 0;
		if (state != NBD_HELLO_MORE || recv(fd, &byte, 1, 0) != 1)
			break;
		state = nbd_hello_input(&h, &byte, 1, &used, out, sizeof(out), &made);
	} while (true);
}

static void *serve(void *arg)
{
	int listener = *(int *)arg, fd;

	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		shake_hands(fd);
		fd = atomic_exchange(&upstream, fd);
		if (fd >= 0)
			close(fd);
	}
	return NULL;
}

/* ---- the requests */

static void is_done(void *arg, struct back_io *io)
{
	size_t i = (size_t)(io - ios);

	MUST(i < REQUESTS && !done[i]);
	MUST(io->error <= 0);
	MUST(io->op != BACK_STATUS || io->error ||
		(io->n_extents >= 1 && io->n_extents <= EXTENTS));
	done[i] = true;
	n_done++;
}

static bool stop(struct loop_turn *t, weir_time now)
{
	loop_stop(loop);
	return true;
}

static void begin(void)
{
	static struct loop_turn turn = {.turn = stop};
	static int listener;
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct back_config config = {.connections = 1};
	struct chunk_pool *pool;
	struct back *back;
	pthread_t thread;
	char uri[160];

	log_open(LOG_LEVEL_ERROR, LOG_FORM_TEXT);
	snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "weir-fuzz-%ld", (long)getpid());
	snprintf(uri, sizeof(uri), "nbd+unix:///?socket=@%s", at.sun_path + 1);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	MUST(bind(listener, (struct sockaddr *)&at,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				 strlen(at.sun_path + 1))) == 0);
	MUST(listen(listener, 8) == 0);
	MUST(pthread_create(&thread, NULL, serve, &listener) == 0);
	MUST(loop_new(&loop) == 0 && chunk_pool_new(64 << 20, &pool) == 0);
	config.loop = loop;
	config.pool = pool;
	MUST(back_open(uri, &config, &back, NULL) == 0);
	back->done = is_done;
	nbd = nbd_of(back);
	MUST(back->ops->start(back) == 0);
	loop_turn_add(loop, &turn);
}

/* Allocate the lowest slot first, and restart the serial numbers, so that cookies repeat. */
static void same_cookies(void)
{
	struct slot *by_number[SLOTS] = {NULL}, *next;

	for (struct slot *s = nbd->free_slots; s; s = next) {
		next = s->next;
		MUST((uint32_t)s->call.cookie < SLOTS);
		by_number[(uint32_t)s->call.cookie] = s;
	}
	nbd->free_slots = NULL;
	for (size_t i = SLOTS; i-- > 0;)
		if (by_number[i]) {
			by_number[i]->next = nbd->free_slots;
			nbd->free_slots = by_number[i];
		}
	nbd->serial = 0;
}

static void ask(void)
{
	static const struct {
		uint8_t op, flags;
		uint32_t offset, length;
	} what[REQUESTS] = {{BACK_READ, 0, 0, 4096}, {BACK_READ, 0, 65536, 65536},
		{BACK_WRITE, 0, 4096, 4096}, {BACK_FLUSH, 0, 0, 0}, {BACK_TRIM, 0, 16384, 4096},
		{BACK_ZERO, BACK_FUA, 32768, 4096}, {BACK_STATUS, 0, 0, SIZE},
		{BACK_CACHE, 0, 0, 4096}};

	for (size_t i = 0; i < REQUESTS; i++) {
		ios[i] = (struct back_io){.op = what[i].op,
			.flags = what[i].flags,
			.offset = what[i].offset,
			.length = what[i].length,
			.data = data[i],
			.extents = extents,
			.n_extents = what[i].op == BACK_STATUS ? EXTENTS : 0,
			.next = i + 1 < REQUESTS ? &ios[i + 1] : NULL};
		done[i] = false;
	}
	n_done = 0;
	back_submit(&nbd->back, ios);
}

static void drain(void)
{
	static uint8_t bytes[65536];
	int fd = atomic_load(&upstream);

	while (fd >= 0 && recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static void run_loop(void)
{
	MUST(loop_run(loop) == 0);
	drain();
}

/* Answer every request in flight correctly. */
static void answer_all(struct conn *c)
{
	static uint8_t zeroes[65536];
	uint8_t head[NBD_SIMPLE_SIZE];

	memset(&c->replies, 0, sizeof(c->replies));
	while (c->link.state == NBD_LINK_READY && !c->broken && c->flight.first) {
		struct slot *s = c->flight.first;
		uint32_t length = s->op == BACK_READ ? s->call.length : 0;

		s->call.got = 0; /* as if the request had been sent again */
		cover_clear(&s->call.cover);
		nbd_simple_write(head, s->call.cookie, s->op == BACK_STATUS ? -EIO : 0);
		MUST(back_nbd_conn_input(c, head, sizeof(head)) == 0);
		if (length)
			MUST(back_nbd_conn_input(c, zeroes, length) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t len)
{
	struct conn *c;
	size_t cut, at = 1;

	if (len == 0)
		return 0;
	if (!nbd)
		begin();
	c = &nbd->conns[0];
	same_cookies();
	ask();
	run_loop();
	nbd->back.ops->ask(&nbd->back); /* weir:held, after the other requests */
	run_loop();
	MUST(c->link.state == NBD_LINK_READY && c->flight.n > 0);
	cut = 1 + input[0];
	while (at < len && !c->broken) {
		size_t n = len - at < cut ? len - at : cut;

		if (back_nbd_conn_input(c, input + at, n) < 0)
			break; /* the back end would give up here; let the next input try again */
		at += n;
	}
	while (n_done < REQUESTS || nbd->phase != NBD_PHASE_UP || nbd->under_way) {
		answer_all(c);
		run_loop();
	}
	MUST(nbd->inside == 0);
	return 0;
}
