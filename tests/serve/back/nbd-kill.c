/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * back-nbd against nbdkit, which is killed (SIGKILL) and restarted during verified requests: no
 * request fails, every read returns the last acknowledged data, and after a successful FLUSH
 * everything is in the file, even if nbdkit's cache filter loses unflushed data.
 */
#include "serve/nbd-drive.h"
#include "serve/nbdkit-rig.h"
#include "serve/loop/log.h"
#include <errno.h>

#define EACH 600 /* most requests between two kills */

static char folder[64], path[100], file[100], keys[100], uri[200];
static const char *const *extra; /* arguments of nbdkit */
static struct drive d;
static uint32_t kills, next_kill, most_kills;

static void begin(const char *const *args, struct back_config c)
{
	nbdkit_make_file(file, (off_t)DRIVE_BLOCKS * DRIVE_BLOCK);
	extra = args;
	nbdkit_start(path, extra);
	nbdkit_await(path);
	drive_open(&d, uri, &c);
}

static void end(void)
{
	drive_close(&d);
	if (nbdkit)
		nbdkit_kill();
	unlink(path);
	unlink(file);
}

static void kill_at_times(struct drive *x)
{
	if (x->done < next_kill || kills == most_kills)
		return;
	next_kill = x->done + 1 + (uint32_t)rng_below(&x->rng, EACH);
	kills++;
	nbdkit_kill();
	nbdkit_start(path, extra);
}

static void check_file(void)
{
	static uint8_t block[DRIVE_BLOCK] __attribute__((aligned(8)));
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	for (uint64_t b = 0; b < DRIVE_BLOCKS; b++) {
		CHECK_INT(pread(fd, block, sizeof(block), (off_t)(b * DRIVE_BLOCK)), DRIVE_BLOCK);
		CHECK_INT(drive_version(block, b), d.zero[b] ? 0 : d.acked[b]);
	}
	close(fd);
}

static void killed_at_random(const char *const *args, struct back_config c, uint32_t times)
{
	most_kills = times;
	begin(args, c);
	kills = 0;
	next_kill = 100;
	d.step = kill_at_times;
	while (kills < most_kills)
		drive_run(&d, 1000);
	d.step = NULL;
	drive_verify(&d);
	CHECK_INT(d.errors, 0);
	CHECK(d.back->lost >= most_kills / 2);
	CHECK_INT(drive_run_flush(&d), 0);
	nbdkit_kill();
	check_file();
	end();
}

static void file_server(void)
{
	static const char *args[3] = {"file", file};

	killed_at_random(args, (struct back_config){0}, 5);
}

static void writeback_cache_that_forgets(void)
{
	static const char *args[5] = {"--filter=cache", "file", file, "cache=writeback"};

	killed_at_random(args, (struct back_config){0}, 10);
}

/* One thread and one connection: requests are done in order, so the cache holds more. */
static void writeback_cache_in_order(void)
{
	static const char *args[7] = {"--filter=cache", "-t", "1", "file", file, "cache=writeback"};

	killed_at_random(args, (struct back_config){.connections = 1}, 5);
}

/* The same under TLS, with a pre-shared key. */
static void under_tls(void)
{
	static char psk[sizeof(keys) + 16];
	static const char *args[7] = {
		"--filter=cache", "--tls=require", psk, "file", file, "cache=writeback"};
	FILE *f = fopen(keys, "w");

	CHECK(f);
	fprintf(f, "weir:00112233445566778899aabbccddeeff\n");
	fclose(f);
	snprintf(psk, sizeof(psk), "--tls-psk=%s", keys);
	snprintf(uri, sizeof(uri), "nbds+unix:///?socket=%s", path);
	killed_at_random(args, (struct back_config){.tls_psk = keys}, 3);
	snprintf(uri, sizeof(uri), "nbd+unix:///?socket=%s", path);
	unlink(keys);
}

/* A server that requires TLS is reported, and one without TLS is refused. */
static void tls_or_not(void)
{
	static const char *args[3] = {"file", file};
	struct back_config c = {.tls_psk = keys};
	struct weir_err err = {""};
	struct back *b;
	FILE *f = fopen(keys, "w");

	CHECK(f);
	fprintf(f, "weir:00112233445566778899aabbccddeeff\n");
	fclose(f);
	begin(args, (struct back_config){0});
	snprintf(uri, sizeof(uri), "nbds+unix:///?socket=%s", path);
	CHECK(back_open(uri, &c, &b, &err) < 0);
	CHECK(strstr(err.text, "TLS"));
	snprintf(uri, sizeof(uri), "nbd+unix:///?socket=%s", path);
	end();
	unlink(keys);
}

/* Passed through: data and holes of a file whose second half is a hole. */
static void status(void)
{
	static const char *args[3] = {"file", file};
	struct back_extent e[8];
	struct drive_io *x;

	begin(args, (struct back_config){0});
	drive_transfer(&d, BACK_WRITE, 0, 16);
	drive_run(&d, 0);
	if (!d.back->info.can_status) {
		end();
		return;
	}
	x = drive_io(&d, BACK_STATUS);
	x->io.length = (uint64_t)DRIVE_BLOCKS * DRIVE_BLOCK;
	x->io.extents = e;
	x->io.n_extents = 8;
	back_submit(d.back, &x->io);
	drive_run(&d, 0);
	CHECK_INT(d.errors, 0);
	CHECK(x->io.n_extents >= 1 && x->io.n_extents <= 8);
	CHECK_INT(e[0].flags, 0);
	CHECK(e[0].length >= 16 * DRIVE_BLOCK);
	end();
}

int main(void)
{
	log_open(LOG_LEVEL_ERROR, LOG_FORM_TEXT);
	snprintf(folder, sizeof(folder), "/tmp/weir-back-nbd-XXXXXX");
	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/s", folder);
	snprintf(file, sizeof(file), "%s/disk", folder);
	snprintf(keys, sizeof(keys), "%s/keys", folder);
	snprintf(uri, sizeof(uri), "nbd+unix:///?socket=%s", path);
	RUN(status);
	RUN(file_server);
	RUN(writeback_cache_that_forgets);
	RUN(writeback_cache_in_order);
	RUN(tls_or_not);
	RUN(under_tls);
	CHECK_INT(rmdir(folder), 0);
	return 0;
}
