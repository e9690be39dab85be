/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * back-nbd against a server that dies and loses data. Checked all the time: reads return the last
 * acknowledged data; after a successful FLUSH the data acknowledged before it are durable at the
 * server.
 */
#include "serve/nbd-pair.h"
#include "serve/back/nbd.h"

/* ---- the server dies */

static uint32_t next_death, every;

static void kill_at_times(struct drive *x)
{
	if (x->done < next_death)
		return;
	next_death = x->done + 1 + (uint32_t)rng_below(&x->rng, every);
	peer_lock(&peer);
	peer_die(&peer, false);
	peer_unlock(&peer);
	if (rng_below(&x->rng, 4) == 0 && x->inside < DRIVE_DEPTH)
		drive_flush(x);
}

static void run_with_deaths(uint32_t requests, uint32_t each)
{
	every = each;
	next_death = 100;
	d.step = kill_at_times;
	drive_run(&d, requests);
	d.step = NULL;
	drive_verify(&d);
	CHECK_INT(d.errors, 0);
	CHECK(d.back->lost >= requests / each / 2);
	check_sure();
	CHECK_INT(drive_run_flush(&d), 0);
	check_sure();
	CHECK(d.flushes > 0);
}

static void dies_and_forgets(void)
{
	begin(SEVERAL, (struct back_config){0});
	run_with_deaths(10000, 300);
	end();
}

static void dies_over_one(void)
{
	begin(FLAGS, (struct back_config){0});
	run_with_deaths(5000, 200);
	end();
}

static void dies_without_fua(void)
{
	begin(SEVERAL & ~NBD_SEND_FUA, (struct back_config){0});
	run_with_deaths(5000, 200);
	end();
}

static void dies_with_little_kept(void)
{
	unsigned flushes;

	/* 1 MiB: it must flush all the time by itself, and writes wait for it. */
	begin(SEVERAL, (struct back_config){.keep = BACK_KEEP_LEAST});
	run_with_deaths(6000, 300);
	peer_lock(&peer);
	flushes = peer.flushes;
	peer_unlock(&peer);
	CHECK(flushes > 50);
	end();
}

/* No memory to keep a write without a chunk: such a write is acknowledged when it is flushed. */
static void dies_without_memory(void)
{
	begin(SEVERAL, (struct back_config){0});
	nbd_of(d.back)->pool = NULL;
	run_with_deaths(2000, 60);
	end();
}

/* One connection of several is cut while the others have requests in flight. */
static void cut_one(struct drive *x)
{
	if (x->done < next_death)
		return;
	next_death = x->done + 1 + (uint32_t)rng_below(&x->rng, every);
	peer_lock(&peer);
	for (int i = 0; i < PEER_CONNS; i++)
		if (peer.conns[i].ready) {
			shutdown(peer.conns[i].fd, SHUT_RDWR);
			break;
		}
	peer_unlock(&peer);
}

static void one_connection_is_cut(void)
{
	begin(SEVERAL, (struct back_config){0});
	every = 300;
	next_death = 100;
	d.step = cut_one;
	drive_run(&d, 6000);
	d.step = NULL;
	drive_verify(&d);
	CHECK_INT(drive_run_flush(&d), 0);
	check_sure();
	CHECK_INT(d.errors, 0);
	CHECK(d.back->lost > 10);
	end();
}

/* Two concurrent writes to one place: the winner stays, also after a resend. */
static void overlapping_writes(void)
{
	uint8_t first[DRIVE_BLOCK];

	begin(SEVERAL, (struct back_config){0});
	for (int round = 0; round < 60; round++) {
		for (uint32_t i = 0; i < 24; i++) {
			drive_transfer(&d, BACK_WRITE, 7, 1 + i % 3);
			memset(d.busy, 0, sizeof(d.busy));
		}
		drive_run(&d, 0);
		peer_lock(&peer);
		memcpy(first, peer.is + 7 * DRIVE_BLOCK, sizeof(first));
		peer_die(&peer, false);
		peer_unlock(&peer);
		memset(d.unsure, true, sizeof(d.unsure));
		drive_transfer(&d, BACK_READ, 7, 1);
		drive_run(&d, 0);
		peer_lock(&peer);
		CHECK(memcmp(first, peer.is + 7 * DRIVE_BLOCK, sizeof(first)) == 0);
		peer_unlock(&peer);
	}
	CHECK_INT(d.errors, 0);
	end();
}

/* After a loss, writes are resent first: else a read that saw a write before the loss could be
 * followed by one that does not. */
static bool read_done;

static void writes_first(void *arg, struct back_io *io)
{
	if (io->op == BACK_READ)
		read_done = true;
	else
		CHECK(!read_done);
	drive_done(arg, io);
}

static void kill_with_all_under_way(struct drive *x)
{
	if (nbd_of(x->back)->under_way == 16)
		set_mode(PEER_WELL, true);
	else if (!read_done) /* it sends after us: check again */
		loop_set(x->loop, &x->tick, loop_clock() + WEIR_MS);
}

static void writes_are_sent_again_before_reads(void)
{
	begin(FLAGS, (struct back_config){0});
	CHECK_INT(drive_run_flush(&d), 0); /* its own FLUSH at the start is done */
	d.back->done = writes_first;
	d.step = kill_with_all_under_way;
	for (int round = 0; round < 20; round++) {
		set_mode(PEER_IGNORES, false);
		read_done = false;
		for (uint64_t i = 0; i < 8; i++) {
			drive_transfer(&d, BACK_READ, i, 1);
			drive_transfer(&d, BACK_WRITE, 100 + i, 1);
		}
		drive_run(&d, 0);
		CHECK(read_done);
	}
	CHECK_INT(d.back->lost, 20);
	CHECK_INT(d.errors, 0);
	d.step = NULL;
	drive_verify(&d);
	end();
}

/* ---- no false FLUSH */

/* It comes back and refuses acknowledged writes: FLUSH fails until they are in place. */
static void refuses_acknowledged_writes(void)
{
	unsigned flushes;

	begin(SEVERAL, (struct back_config){0});
	CHECK_INT(drive_run_flush(&d), 0);
	d.no_fua = true;
	drive_transfer(&d, BACK_WRITE, 3, 1);
	drive_run(&d, 0);
	peer_lock(&peer);
	memcpy(peer.is, peer.sure, SIZE); /* lose all of it */
	peer.fail_writes = -ENOSPC;
	peer.n_fail_writes = 1000;
	flushes = peer.flushes;
	peer_die(&peer, false);
	peer_unlock(&peer);
	drive_await(&d, BACK_LOST);
	drive_await(&d, BACK_UP);
	CHECK_INT(drive_run_flush(&d), -EIO);
	drive_transfer(&d, BACK_READ, 3, 1); /* must not return the old data, either */
	drive_run(&d, 0);
	CHECK_INT(d.last_error, -EIO);
	d.last_error = 0;
	drive_transfer(&d, BACK_READ, 4, 1); /* other blocks can be read */
	drive_run(&d, 0);
	CHECK_INT(d.last_error, 0);
	peer_lock(&peer);
	peer.n_fail_writes = 0;
	CHECK_INT(peer.flushes, flushes);
	peer_unlock(&peer);
	while (drive_run_flush(&d) != 0) /* it is not retried all the time */
		;
	check_sure();
	drive_verify(&d);
	end();
}

/* No FLUSH succeeds: writes wait for room, then fail, and nothing hangs. */
static void cannot_flush_when_full(void)
{
	begin(SEVERAL, (struct back_config){.keep = BACK_KEEP_LEAST});
	peer_lock(&peer);
	peer.fail_flush = -EIO;
	peer.n_fail_flushes = 1000000;
	peer_unlock(&peer);
	for (uint64_t b = 0; b + 32 <= DRIVE_BLOCKS; b += 32)
		drive_transfer(&d, BACK_WRITE, b, 32);
	for (int i = 0; i < 20; i++) {
		drive_run(&d, 0);
		drive_transfer(&d, BACK_WRITE, (uint64_t)i, 16);
		if (d.errors)
			break;
	}
	CHECK(d.errors > 0);
	CHECK_INT(d.last_error, -EIO);
	drive_run(&d, 0);
	end();
}

int main(void)
{
	pair_main();
	RUN(dies_and_forgets);
	RUN(dies_over_one);
	RUN(dies_without_fua);
	RUN(dies_with_little_kept);
	RUN(dies_without_memory);
	RUN(one_connection_is_cut);
	RUN(overlapping_writes);
	RUN(writes_are_sent_again_before_reads);
	RUN(refuses_acknowledged_writes);
	RUN(cannot_flush_when_full);
	return pair_end();
}
