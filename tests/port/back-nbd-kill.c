/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * back-nbd against nbdkit, which is killed (SIGKILL) and started again in the middle of verified
 * requests: no request fails, every read gives what was acknowledged last, and after a FLUSH that
 * succeeded everything is in the file, also when nbdkit's cache filter forgets what was not flushed.
 */
#include "nbd-drive.h"
#include "port/log.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define EACH 600 /* requests between two kills, at most */

static char folder[64], path[100], file[100], keys[100], uri[200];
static const char *const *extra; /* arguments of nbdkit */
static struct drive d;
static pid_t server;
static uint32_t kills, next_kill, most_kills;

static void start_server(void)
{
	const char *args[32] = {"nbdkit", "-f", "--exit-with-parent", "-U", path};
	int n = 5;

	unlink(path);
	for (int i = 0; extra[i]; i++)
		args[n++] = extra[i];
	server = fork();
	CHECK(server >= 0);
	if (server == 0) {
		int null = open("/dev/null", O_WRONLY);
		dup2(null, 2); /* it complains about clients that were cut off */
		execvp(args[0], (char *const *)(uintptr_t)args);
		_exit(127);
	}
}

static void kill_server(void)
{
	int status;

	kill(server, SIGKILL);
	CHECK_INT(waitpid(server, &status, 0), server);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		SKIP("nbdkit is not installed");
	server = 0;
}

static bool answers(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	memcpy(a.sun_path, path, strlen(path) + 1);
	r = connect(fd, (struct sockaddr *)&a, sizeof(a));
	close(fd);
	return r == 0;
}

static void await_server(void)
{
	int status;

	for (int i = 0; i < 5000 && !answers(); i++) {
		if (waitpid(server, &status, WNOHANG) == server)
			SKIP("nbdkit does not start (is it installed, with its filters?)");
		poll(NULL, 0, 1);
	}
}

static void begin(const char *const *args, struct back_config c)
{
	int fd = open(file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	CHECK_INT(ftruncate(fd, (off_t)DRIVE_BLOCKS * DRIVE_BLOCK), 0);
	close(fd);
	extra = args;
	start_server();
	await_server();
	drive_open(&d, uri, &c);
}

static void end(void)
{
	drive_close(&d);
	if (server)
		kill_server();
	unlink(path);
	unlink(file);
}

static void kill_at_times(struct drive *x)
{
	if (x->done < next_kill || kills == most_kills)
		return;
	next_kill = x->done + 1 + (uint32_t)rng_below(&x->rng, EACH);
	kills++;
	kill_server();
	start_server();
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
	kill_server();
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

/* The same under TLS, with a key that both know. */
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

/* A server that wants TLS says so, and one that has none is not believed. */
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
	CHECK(back_nbd_open(uri, &c, &b, &err) < 0);
	CHECK(strstr(err.text, "TLS"));
	snprintf(uri, sizeof(uri), "nbd+unix:///?socket=%s", path);
	end();
	unlink(keys);
}

/* Passed through: data and holes of a file of which the second half is a hole. */
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
