/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd: ordinary requests, and servers that are away, broken or different when they come back.
 * Losses: tests/serve/back/nbd-loss.c; with a real server: tests/serve/back/nbd-kill.c.
 */
#include "serve/nbd-pair.h"
#include "serve/back/nbd.h"

/* ---- properties */

static void info(void)
{
	begin(SEVERAL | NBD_SEND_CACHE, (struct back_config){0});
	CHECK_INT(d.back->info.size, SIZE);
	CHECK(d.back->info.can_flush && d.back->info.can_fua && d.back->info.can_trim);
	CHECK(d.back->info.can_zero && !d.back->info.can_fast_zero && d.back->info.can_cache);
	CHECK(!d.back->info.read_only && d.back->info.multi_conn && !d.back->info.lends);
	CHECK_INT(d.back->info.block_min, 1);
	CHECK_INT(d.back->info.depth, 128);
	end();
	begin(NBD_READ_ONLY, (struct back_config){0});
	CHECK(d.back->info.read_only && !d.back->info.can_flush && !d.back->info.can_fua);
	CHECK_INT(d.back->info.depth, 32);
	end();
}

static int try_open(const char *name)
{
	struct back_config c = {.timeout = 100 * WEIR_MS};
	struct back *b;
	struct weir_err err = {""};
	int r = back_open(name, &c, &b, &err);

	CHECK(r == 0 || strncmp(err.text, name, strlen(name)) == 0);
	if (!r)
		back_free(b);
	return r;
}

/* A value below the minimum is refused, not raised. */
static void keeps_too_little(void)
{
	struct back_config c = {.keep = BACK_KEEP_LEAST - 1};
	struct weir_err err = {""};
	struct back *b;

	peer_start(&peer, path, SIZE, SEVERAL);
	CHECK_INT(back_open(uri, &c, &b, &err), -EINVAL);
	CHECK(strstr(err.text, "keep must be at least 1048576 bytes"));
	peer_stop(&peer);
}

static void cannot_be_opened(void)
{
	char other[300];

	CHECK(try_open(uri) < 0); /* no server is listening */
	peer_start(&peer, path, SIZE, SEVERAL);
	CHECK_INT(try_open(uri), 0);
	snprintf(other, sizeof(other), "nbd+unix:///none?socket=%s", path);
	CHECK_INT(try_open(other), -ENOENT);
	peer_lock(&peer);
	peer.mode = PEER_HANGS_UP;
	peer_unlock(&peer);
	CHECK(try_open(uri) < 0);
	peer_stop(&peer);
}

/* ---- normal operation */

static unsigned accepted(void)
{
	unsigned n;

	peer_lock(&peer);
	n = peer.accepted;
	peer_unlock(&peer);
	return n;
}

/* Run load until all connections were made: the further ones connect beside it. */
static void connect_all(void)
{
	for (int i = 0; i < 200 && accepted() < 4; i++)
		drive_run(&d, 500);
}

static void carries(void)
{
	begin(SEVERAL, (struct back_config){0});
	drive_run(&d, 5000);
	connect_all();
	drive_verify(&d);
	CHECK_INT(drive_run_flush(&d), 0);
	check_sure();
	CHECK_INT(d.errors, 0);
	CHECK(d.borrowed > 0 && d.borrowed < d.reads);
	CHECK(d.headed > 0 && d.headed <= d.borrowed);
	CHECK_INT(accepted(), 4);
	end();
}

static void carries_over_one(void)
{
	begin(FLAGS, (struct back_config){0});
	drive_run(&d, 2000);
	drive_verify(&d);
	peer_lock(&peer);
	CHECK_INT(peer.accepted, 1);
	peer_unlock(&peer);
	CHECK_INT(d.errors, 0);
	end();
}

static void without_fua(void)
{
	unsigned before;

	/* FUA is then a write and a FLUSH. */
	begin(SEVERAL & ~NBD_SEND_FUA, (struct back_config){0});
	CHECK(d.back->info.can_fua);
	drive_run(&d, 2000);
	check_sure();
	peer_lock(&peer);
	before = peer.flushes;
	peer_unlock(&peer);
	CHECK(before > d.flushes);
	CHECK_INT(d.errors, 0);
	end();
}

static void refusals(void)
{
	struct drive_io *x;

	begin(NBD_READ_ONLY | NBD_SEND_FLUSH, (struct back_config){0});
	CHECK_INT(drive_run_flush(&d), 0);
	drive_transfer(&d, BACK_WRITE, 0, 1);
	CHECK_INT(d.last_error, -EPERM);
	x = drive_io(&d, BACK_CACHE); /* a hint that the upstream does not support */
	x->io.length = 512;
	d.last_error = 0;
	back_submit(d.back, &x->io);
	CHECK_INT(d.last_error, 0);
	x = drive_io(&d, BACK_READ);
	x->io.offset = SIZE - 512;
	x->io.length = 1024;
	back_submit(d.back, &x->io);
	CHECK_INT(d.last_error, -EINVAL);
	CHECK_INT(d.inside, 0);
	end();
	begin(0, (struct back_config){0});
	x = drive_io(&d, BACK_TRIM);
	x->io.length = 512;
	back_submit(d.back, &x->io);
	CHECK_INT(d.last_error, -ENOTSUP);
	CHECK_INT(drive_run_flush(&d), -ENOTSUP); /* not offered */
	end();
}

/* base:allocation, as reported by the server, as much as fits. */
static void status(void)
{
	struct back_extent e[3];
	struct drive_io *x;

	begin(SEVERAL, (struct back_config){0});
	CHECK(d.back->info.can_status);
	for (uint32_t room = 1; room <= 3; room++) {
		x = drive_io(&d, BACK_STATUS);
		x->io.offset = 4096;
		x->io.length = 65536;
		x->io.extents = e;
		x->io.n_extents = room;
		back_submit(d.back, &x->io);
		drive_run(&d, 0);
		CHECK_INT(d.errors, 0);
		CHECK_INT(x->io.n_extents, room < 2 ? room : 2); /* the peer reports two */
		CHECK_INT(e[0].length, 512);
		CHECK_INT(e[0].flags, 3);
		CHECK(room < 2 || (e[1].length == 65024 && e[1].flags == 0));
	}
	end();
}

/* weir:held: queried separately, without disturbing other requests. */
static void held(void)
{
	begin(SEVERAL, (struct back_config){0});
	CHECK_INT(d.back->held, 0);
	for (int i = 0; i < 3; i++) {
		d.back->ops->ask(d.back);
		d.back->ops->ask(d.back); /* the first one is in flight: one is enough */
		drive_run(&d, 200);
		CHECK_INT(d.back->held, PEER_HELD * WEIR_US);
		d.back->held = 0;
	}
	CHECK_INT(d.errors, 0);
	CHECK_INT(d.back->lost, 0);
	end();
}

/* The upstream is lost while the query is in flight: it is not resent. */
static void held_lost(void)
{
	begin(SEVERAL, (struct back_config){0});
	d.back->ops->ask(d.back);
	peer_lock(&peer);
	peer_die(&peer, true);
	peer_unlock(&peer);
	drive_await(&d, BACK_LOST);
	d.back->ops->ask(d.back); /* no upstream */
	peer_lock(&peer);
	peer_return(&peer);
	peer_unlock(&peer);
	drive_await(&d, BACK_UP);
	drive_run(&d, 200);
	d.back->ops->ask(d.back);
	drive_run(&d, 200);
	CHECK_INT(d.back->held, PEER_HELD * WEIR_US);
	end();
}

/* ---- failures */

/* Away, or unusable; the time-out expires. */
static void fails_and_comes_back(void)
{
	begin(SEVERAL, (struct back_config){.timeout = 200 * WEIR_MS});
	drive_run(&d, 500);
	peer_lock(&peer);
	peer_die(&peer, true);
	peer_unlock(&peer);
	drive_await(&d, BACK_LOST);
	drive_transfer(&d, BACK_READ, 0, 1); /* waits inside until given up */
	CHECK_INT(d.inside, 1);
	drive_run(&d, 0);
	CHECK_INT(d.back->state, BACK_FAILED);
	CHECK_INT(d.errors, 1);
	CHECK_INT(d.last_error, -EIO);
	drive_transfer(&d, BACK_READ, 0, 1); /* now fails at once */
	CHECK_INT(d.inside, 0);
	CHECK_INT(drive_run_flush(&d), -EIO);
	CHECK_INT(d.errors, 3);
	peer_lock(&peer);
	peer_return(&peer);
	peer_unlock(&peer);
	drive_await(&d, BACK_UP);
	drive_verify(&d); /* acknowledged writes are present */
	CHECK_INT(drive_run_flush(&d), 0);
	check_sure();
	CHECK_INT(d.back->lost, 1);
	end();
}

/* The process ends while the upstream is away: no request waits, and the loss is known. */
static void is_left(void)
{
	begin(SEVERAL, (struct back_config){0});
	CHECK(!d.back->ops->abandon(d.back)); /* reachable: nothing changes */
	d.no_fua = true;
	drive_transfer(&d, BACK_WRITE, 0, 4);
	drive_run(&d, 0);
	drive_transfer(&d, BACK_WRITE, 2, 4); /* two of them again */
	drive_run(&d, 0);
	CHECK_INT(d.errors, 0);
	CHECK_INT(d.back->ops->unflushed(d.back), 6 * DRIVE_BLOCK);
	peer_lock(&peer);
	peer_die(&peer, true);
	peer_unlock(&peer);
	drive_transfer(&d, BACK_WRITE, 0, 1); /* possibly sent to a dead server */
	drive_transfer(&d, BACK_READ, 9, 1);
	drive_run(&d, 0);
	CHECK_INT(d.errors, 2);
	CHECK_INT(d.last_error, -ESHUTDOWN);
	CHECK(d.back->ops->abandon(d.back));
	CHECK_INT(drive_run_flush(&d), -ESHUTDOWN);
	CHECK_INT(d.back->ops->unflushed(d.back), 6 * DRIVE_BLOCK);
	peer_lock(&peer);
	peer_return(&peer); /* just in time */
	peer_unlock(&peer);
	drive_await(&d, BACK_UP);
	CHECK_INT(drive_run_flush(&d), 0);
	CHECK_INT(d.back->ops->unflushed(d.back), 0);
	end();
}

static void is_of_no_use(enum peer_mode mode)
{
	begin(SEVERAL, (struct back_config){.timeout = 200 * WEIR_MS});
	drive_run(&d, 500);
	set_mode(mode, true);
	drive_await(&d, BACK_LOST);
	drive_transfer(&d, BACK_WRITE, 0, 1);
	drive_await(&d, BACK_FAILED);
	CHECK_INT(d.last_error, -EIO);
	CHECK_INT(d.inside, 0);
	set_mode(PEER_WELL, false);
	drive_await(&d, BACK_UP);
	drive_verify(&d);
	CHECK_INT(drive_run_flush(&d), 0);
	check_sure();
	end();
}

static void never_greets(void)
{
	is_of_no_use(PEER_MUTE);
}

static void hangs_up_in_the_handshake(void)
{
	is_of_no_use(PEER_HANGS_UP);
}

static void never_answers(void)
{
	/* The upstream is reachable and accepts requests. */
	begin(SEVERAL, (struct back_config){.timeout = 200 * WEIR_MS});
	drive_run(&d, 500);
	set_mode(PEER_IGNORES, false);
	drive_transfer(&d, BACK_WRITE, 0, 1);
	drive_transfer(&d, BACK_READ, 9, 1);
	drive_run(&d, 0);
	CHECK_INT(d.errors, 2);
	CHECK_INT(d.back->state, BACK_FAILED);
	set_mode(PEER_WELL, true);
	drive_await(&d, BACK_UP);
	drive_verify(&d);
	end();
}

/* Replies that break the protocol end the connection, and the request is resent. */
static void answers_nonsense(enum peer_mode mode)
{
	begin(SEVERAL, (struct back_config){0});
	drive_run(&d, 500);
	CHECK_INT(d.back->lost, 0);
	set_mode(mode, false);
	drive_transfer(&d, BACK_READ, 0, 2);
	drive_await(&d, BACK_LOST);
	set_mode(PEER_WELL, false);
	drive_run(&d, 500);
	drive_verify(&d);
	CHECK_INT(d.errors, 0);
	CHECK(d.back->lost >= 1);
	end();
}

static void answers_garbage(void)
{
	answers_nonsense(PEER_GARBAGE);
}

static void answers_unknown_requests(void)
{
	answers_nonsense(PEER_STRANGER);
}

static void answers_too_little(void)
{
	answers_nonsense(PEER_SHORT_READ);
}

static void answers_a_part_twice(void)
{
	answers_nonsense(PEER_TWICE);
}

static void answers_without_end(void)
{
	answers_nonsense(PEER_ENDLESS);
}

static void shuts_down(void)
{
	answers_nonsense(PEER_LEAVES);
}

/* With arbitrary input, nothing is written out of place, and nothing hangs. */
static void corrupt(void)
{
	begin(SEVERAL, (struct back_config){.timeout = 100 * WEIR_MS});
	set_mode(PEER_CORRUPT, false);
	d.blind = true;
	drive_run(&d, 3000);
	CHECK(d.back->lost > 0);
	end();
}

/* A request that breaks the connection each time is given up after the time-out. */
static void poison(void)
{
	begin(SEVERAL, (struct back_config){.timeout = 300 * WEIR_MS});
	set_mode(PEER_SHORT_READ, false);
	drive_transfer(&d, BACK_READ, 0, 2);
	drive_run(&d, 0);
	CHECK_INT(d.last_error, -EIO);
	CHECK(d.back->lost >= 8);
	end();
}

static void comes_back_as(uint64_t size, uint16_t flags)
{
	begin(SEVERAL, (struct back_config){.timeout = 60 * WEIR_SEC});
	drive_run(&d, 500);
	peer_lock(&peer);
	peer.size = size;
	peer.flags = flags;
	peer_die(&peer, false);
	peer_unlock(&peer);
	drive_await(&d, BACK_FAILED); /* at once: not after a minute */
	CHECK_INT(drive_run_flush(&d), -EIO);
	peer_lock(&peer);
	peer.size = SIZE;
	peer.flags = SEVERAL;
	peer_unlock(&peer);
	drive_await(&d, BACK_UP);
	drive_verify(&d);
	CHECK_INT(drive_run_flush(&d), 0);
	check_sure();
	end();
}

static void comes_back_smaller(void)
{
	comes_back_as(SIZE / 2, SEVERAL);
}

static void comes_back_read_only(void)
{
	comes_back_as(SIZE, SEVERAL | NBD_READ_ONLY);
}

static void comes_back_without_flush(void)
{
	comes_back_as(SIZE, SEVERAL & ~NBD_SEND_FLUSH);
}

static void comes_back_with_one_connection(void)
{
	begin(SEVERAL, (struct back_config){0});
	drive_run(&d, 1000);
	connect_all(); /* one that is still being made would count below */
	peer_lock(&peer);
	peer.flags = FLAGS;
	peer.accepted = 0;
	peer_die(&peer, false);
	peer_unlock(&peer);
	drive_run(&d, 1000);
	drive_verify(&d);
	peer_lock(&peer);
	CHECK_INT(peer.accepted, 1);
	peer_unlock(&peer);
	CHECK_INT(d.errors, 0);
	end();
}

int main(void)
{
	pair_main();
	RUN(info);
	RUN(keeps_too_little);
	RUN(cannot_be_opened);
	RUN(carries);
	RUN(carries_over_one);
	RUN(without_fua);
	RUN(refusals);
	RUN(status);
	RUN(held);
	RUN(held_lost);
	RUN(fails_and_comes_back);
	RUN(is_left);
	RUN(never_greets);
	RUN(hangs_up_in_the_handshake);
	RUN(never_answers);
	RUN(answers_garbage);
	RUN(answers_unknown_requests);
	RUN(answers_too_little);
	RUN(answers_a_part_twice);
	RUN(answers_without_end);
	RUN(shuts_down);
	RUN(corrupt);
	RUN(poison);
	RUN(comes_back_smaller);
	RUN(comes_back_read_only);
	RUN(comes_back_without_flush);
	RUN(comes_back_with_one_connection);
	return pair_end();
}
