/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * back-nbd: a later connection must not lead to another server. The upstream's host loses power and
 * is back at once: the old connection is silent, and the new one reaches a server that has lost
 * data. A FLUSH over that one would be a lie.
 */
#include "serve/nbd-pair.h"

static unsigned standing; /* connections that the server must have */

static void stop_when_connected(struct drive *x)
{
	unsigned n = 0;

	peer_lock(&peer);
	for (int i = 0; i < PEER_CONNS; i++)
		n += peer.conns[i].ready;
	peer_unlock(&peer);
	if (n == standing)
		loop_stop(x->loop);
}

/* Wait until the server has n connections, all past the handshake. */
static void await_connections(unsigned n)
{
	standing = n;
	d.step = stop_when_connected;
	drive_await(&d, BACK_FAILED); /* which does not happen: `look` ends it */
	d.step = NULL;
	CHECK_INT(d.back->state, BACK_UP);
}

static unsigned connections_in_use(void)
{
	unsigned used = 0;

	peer_lock(&peer);
	for (int i = 0; i < PEER_CONNS; i++)
		used += peer.conns[i].requests > 100;
	peer_unlock(&peer);
	return used;
}

/* New connections join a live one, and carry requests. */
static void joins_the_same(void)
{
	unsigned used = 0;

	begin(SEVERAL, (struct back_config){.connections = 4});
	await_connections(4);
	/* On a busy machine the last one may join late. */
	for (int round = 0; round < 20 && used < 4; round++) {
		drive_run(&d, 4000);
		used = connections_in_use();
	}
	CHECK_INT(d.errors, 0);
	CHECK_INT(d.back->lost, 0);
	CHECK_INT(drive_run_flush(&d), 0);
	check_sure();
	CHECK_INT(used, 4);
	end();
}

static void never_joins_another(void)
{
	begin(SEVERAL, (struct back_config){.connections = 2, .timeout = WEIR_SEC});
	d.no_fua = true;
	peer_lock(&peer);
	peer.most = 1; /* the second one is retried */
	peer_unlock(&peer);
	for (uint64_t b = 0; b < DRIVE_DEPTH; b++)
		drive_transfer(&d, BACK_WRITE, b, 1);
	drive_run(&d, 0);
	CHECK_INT(d.errors, 0);
	peer_lock(&peer);
	peer_power_cut(&peer);
	peer.most = 0;
	peer_unlock(&peer);
	await_connections(1);
	for (int i = 0; i < DRIVE_DEPTH; i++) /* more than one connection gets in a row */
		drive_flush(&d);
	drive_run(&d, 0); /* the server that lost data must answer none of them */
	check_sure();
	CHECK_INT(d.flushes, 0);
	CHECK_INT(d.last_error, -EIO); /* no reply for the whole time-out */
	drive_await(&d, BACK_UP);
	CHECK_INT(drive_run_flush(&d), 0);
	check_sure();
	drive_verify(&d);
	end();
}

int main(void)
{
	pair_main();
	RUN(joins_the_same);
	RUN(never_joins_another);
	return pair_end();
}
