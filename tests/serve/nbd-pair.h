/* SPDX-License-Identifier: BSD-3-Clause */
/* nbd-pair: a misbehaving server (nbd-peer.h) and a driven back end (nbd-drive.h). */
#ifndef WEIR_TESTS_NBD_PAIR_H
#define WEIR_TESTS_NBD_PAIR_H

#include "serve/nbd-drive.h"
#include "serve/nbd-peer.h"
#include "serve/loop/log.h"

#define SIZE    ((uint64_t)DRIVE_BLOCKS * DRIVE_BLOCK)
#define FLAGS   (NBD_SEND_FLUSH | NBD_SEND_FUA | NBD_SEND_TRIM | NBD_SEND_WRITE_ZEROES)
#define SEVERAL (FLAGS | NBD_MULTI_CONN)

static char folder[64], path[100], uri[200];
static struct peer peer;
static struct drive d;

static inline void begin(uint16_t flags, struct back_config c)
{
	peer_start(&peer, path, SIZE, flags);
	drive_open(&d, uri, &c);
	d.arg = &peer;
}

static inline void end(void)
{
	drive_close(&d);
	peer_stop(&peer);
}

/* Check that the versions covered by FLUSHes are durable. */
static inline void check_sure(void)
{
	peer_lock(&peer);
	for (uint64_t b = 0; b < DRIVE_BLOCKS; b++) {
		const uint8_t *p = peer.sure + b * DRIVE_BLOCK;
		bool zero = true;
		for (uint32_t i = 0; i < DRIVE_BLOCK; i++)
			zero &= !p[i];
		if (!d.unsure[b] && !zero && drive_version(p, b) < d.sure[b])
			FAIL("block %llu: version %u was flushed, %u is there",
				(unsigned long long)b, d.sure[b], drive_version(p, b));
		if (!d.unsure[b] && zero && d.sure[b] && !d.zero[b] && d.sure[b] == d.acked[b])
			FAIL("block %llu: version %u was flushed, zeroes are there",
				(unsigned long long)b, d.sure[b]);
	}
	peer_unlock(&peer);
}

static inline void set_mode(enum peer_mode mode, bool die)
{
	peer_lock(&peer);
	peer.mode = mode;
	if (die)
		peer_die(&peer, false);
	peer_unlock(&peer);
}

static inline void pair_main(void)
{
	log_open(LOG_LEVEL_ERROR, LOG_FORM_TEXT);
	snprintf(folder, sizeof(folder), "/tmp/weir-back-nbd-XXXXXX");
	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/s", folder);
	snprintf(uri, sizeof(uri), "nbd+unix:///disk?socket=%s", path);
}

static inline int pair_end(void)
{
	CHECK_INT(rmdir(folder), 0);
	return 0;
}

#endif
