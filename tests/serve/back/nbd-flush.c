/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * back-nbd against a server whose FLUSHes fail and that loses unflushed writes when one does. A
 * FLUSH may succeed only if all writes acknowledged before it are durable; it may fail only for
 * clients whose acknowledged writes are not.
 */
#include "serve/nbd-pair.h"
#include "serve/back/nbd.h"

#define HALF (DRIVE_BLOCKS / 2)

static void set_failing(int n)
{
	peer_lock(&peer);
	peer.fail_flush = -EIO;
	peer.n_fail_flushes = n;
	peer.forgets = true;
	peer_unlock(&peer);
}

/* Start with a durable history. */
static void begin_flushed(uint16_t flags, struct back_config c)
{
	begin(flags, c);
	CHECK_INT(drive_run_flush(&d), 0);
}

static void write_block(uint64_t block)
{
	bool no_fua = d.no_fua;

	d.last_error = 0;
	d.no_fua = true;
	drive_transfer(&d, BACK_WRITE, block, 1);
	d.no_fua = no_fua;
	drive_run(&d, 0);
	CHECK_INT(d.last_error, 0);
}

/* FLUSH a range of blocks, and return the result. */
static int flush_range(uint64_t from, uint64_t n)
{
	struct drive_io *x = drive_io(&d, BACK_FLUSH);

	CHECK(x);
	d.last_error = 0;
	memset(x->covered, 0, sizeof(x->covered));
	memcpy(x->covered + from, d.acked + from, n * sizeof(x->covered[0]));
	x->io.offset = from * DRIVE_BLOCK;
	x->io.length = n * DRIVE_BLOCK;
	back_submit(d.back, &x->io);
	drive_run(&d, 0);
	return d.last_error;
}

/* One failure is hidden from the client: the kept writes are resent, then flushed. */
static void one_failure_is_repaired(void)
{
	unsigned writes;

	begin_flushed(SEVERAL, (struct back_config){0});
	write_block(3);
	peer_lock(&peer);
	writes = peer.writes;
	peer_unlock(&peer);
	set_failing(1);
	CHECK_INT(drive_run_flush(&d), 0);
	check_sure();
	peer_lock(&peer);
	CHECK(peer.writes > writes);
	CHECK_INT(drive_version(peer.sure + 3 * DRIVE_BLOCK, 3), 1);
	peer_unlock(&peer);
	CHECK_INT(d.back->flush_errors, 0);
	drive_verify(&d);
	end();
}

/* Nothing is kept, so nothing is resent: the next try does not wait. */
static void a_failure_with_nothing_kept(void)
{
	weir_time began;

	begin_flushed(SEVERAL, (struct back_config){0});
	set_failing(1);
	began = loop_clock();
	CHECK_INT(drive_run_flush(&d), 0);
	CHECK(loop_clock() - began < 10 * WEIR_SEC); /* silent upstreams are checked every 15 s */
	end();
}

/* Of two FLUSHes in flight the server reports the loss to one. The success of the other must not
 * count. */
static void two_at_once(void)
{
	begin_flushed(SEVERAL, (struct back_config){0});
	for (int round = 0; round < 50; round++) {
		write_block((uint64_t)round);
		set_failing(1);
		drive_flush(&d);
		drive_flush(&d);
		drive_flush(&d);
		drive_run(&d, 0);
		CHECK_INT(d.errors, 0);
		check_sure();
	}
	drive_verify(&d);
	end();
}

static void five_percent(uint16_t flags, bool late)
{
	begin_flushed(flags, (struct back_config){0});
	peer_lock(&peer);
	peer.fail_percent = 5; /* five in a row, which clients see, occur once in three million */
	peer.forgets = true;
	peer.late = late;
	peer_unlock(&peer);
	for (int i = 0; i < 20; i++) {
		drive_run(&d, 500);
		CHECK_INT(drive_run_flush(&d), 0);
		check_sure();
	}
	CHECK_INT(d.errors, 0);
	drive_verify(&d);
	end();
}

static void five_percent_over_one(void)
{
	five_percent(FLAGS, false);
}

static void five_percent_over_several(void)
{
	five_percent(SEVERAL, false);
}

static void five_percent_without_fua(void)
{
	five_percent(FLAGS & ~NBD_SEND_FUA, false);
}

/* Reads are answered between the loss at the server and its reply to the FLUSH: they must not
 * return the data from before the lost writes. */
static void reads_overtake_a_failed_flush(void)
{
	five_percent(SEVERAL, true);
}

/* No FLUSH succeeds: only clients whose writes are not durable get an error. */
static void only_those_not_covered(void)
{
	begin_flushed(SEVERAL, (struct back_config){0});
	write_block(3);
	set_failing(1000000);
	CHECK_INT(flush_range(0, HALF), -EIO);
	CHECK_INT(flush_range(HALF, HALF), 0);
	CHECK_INT(drive_run_flush(&d), -EIO);
	CHECK(d.back->flush_errors == 2);
	CHECK(d.back->trouble);
	write_block(HALF + 3);
	CHECK_INT(flush_range(HALF, HALF), -EIO);
	drive_verify(&d); /* acknowledged writes can still be read */
	set_failing(0);
	while (drive_run_flush(&d) != 0) /* it is not retried all the time */
		;
	CHECK(!d.back->trouble);
	check_sure();
	CHECK_INT(flush_range(0, HALF), 0);
	drive_verify(&d);
	end();
}

/* Repeated FLUSHes of clients are not all forwarded: five in 200 ms at most. Clients without
 * unflushed writes do not wait. */
static void failures_are_not_repeated(void)
{
	weir_time began;
	unsigned before;

	begin_flushed(SEVERAL, (struct back_config){0});
	write_block(3);
	set_failing(1000000);
	peer_lock(&peer);
	before = peer.flushes;
	peer_unlock(&peer);
	began = loop_clock();
	for (int i = 0; i < 4; i++) {
		CHECK_INT(drive_run_flush(&d), -EIO);
		for (int j = 0; j < 20; j++)
			CHECK_INT(flush_range(HALF, HALF), 0);
	}
	peer_lock(&peer);
	CHECK((weir_time)(peer.flushes - before) <=
		5 * ((loop_clock() - began) / (200 * WEIR_MS) + 1));
	peer_unlock(&peer);
	set_failing(0);
	while (drive_run_flush(&d) != 0)
		;
	check_sure();
	end();
}

/* A FUA write syncs, too: when it fails, earlier writes may be lost, and the next FLUSH may not
 * report it. */
static void a_failed_fua_write(void)
{
	begin_flushed(FLAGS, (struct back_config){0});
	write_block(3);
	peer_lock(&peer);
	peer.fail_fua = -EIO;
	peer.forgets = true;
	peer_unlock(&peer);
	do {
		d.last_error = 0;
		drive_transfer(&d, BACK_WRITE, 5, 1);
		drive_run(&d, 0);
	} while (!d.last_error); /* one in ten is FUA */
	CHECK_INT(d.last_error, -EIO);
	peer_lock(&peer);
	peer.fail_fua = 0;
	peer_unlock(&peer);
	CHECK_INT(drive_run_flush(&d), 0);
	check_sure();
	drive_verify(&d);
	end();
}

/* The same for FUA writes: they fail, and clients see it; writes of others must still be
 * readable. */
static void reads_overtake_a_failed_fua_write(void)
{
	begin_flushed(SEVERAL, (struct back_config){0});
	peer_lock(&peer);
	peer.fail_fua_percent = 15;
	peer.forgets = peer.late = true;
	peer_unlock(&peer);
	for (int i = 0; i < 4; i++) {
		drive_run(&d, 500);
		CHECK_INT(drive_run_flush(&d), 0);
		check_sure();
	}
	CHECK(d.errors > 0 && d.back->flush_errors == d.errors);
	drive_verify(&d);
	end();
}

/* Writes of an earlier process are not kept: their loss is reported. */
static void of_an_earlier_process(void)
{
	peer_start(&peer, path, SIZE, SEVERAL);
	peer_lock(&peer);
	peer.fail_flush = -EIO;
	peer.n_fail_flushes = 1;
	peer.forgets = true;
	peer_unlock(&peer);
	drive_open(&d, uri, &(struct back_config){0});
	write_block(3);
	CHECK_INT(drive_run_flush(&d), -EIO);
	CHECK_INT(drive_run_flush(&d), 0);
	check_sure();
	drive_verify(&d);
	end();
}

int main(void)
{
	pair_main();
	RUN(one_failure_is_repaired);
	RUN(a_failure_with_nothing_kept);
	RUN(two_at_once);
	RUN(five_percent_over_one);
	RUN(five_percent_over_several);
	RUN(five_percent_without_fua);
	RUN(reads_overtake_a_failed_flush);
	RUN(only_those_not_covered);
	RUN(failures_are_not_repeated);
	RUN(a_failed_fua_write);
	RUN(reads_overtake_a_failed_fua_write);
	RUN(of_an_earlier_process);
	return pair_end();
}
