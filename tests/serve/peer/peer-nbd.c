/* SPDX-License-Identifier: BSD-3-Clause */
/* peer-nbd: hosts that share an export of an NBD server, which is killed and restarted. */
#include "serve/nbdkit-rig.h"
#include "serve/peer-rig.h"

static char folder[] = "/tmp/weir-peer-nbd-XXXXXX", path[64], file[64], uri[128];

static void start_server(void)
{
	const char *const args[] = {"file", file, NULL};

	nbdkit_start(path, args);
}

static void open_host(struct host *h, const char *name)
{
	open_host_at(h, name, uri, NULL);
}

static void make_export(off_t bytes)
{
	nbdkit_make_file(file, bytes);
	start_server();
	nbdkit_await(path);
}

static void over_nbd(void)
{
	struct host a, b;

	make_export(16 * BLOCK);
	open_host(&a, "a");
	open_host(&b, "b");
	period(&a, 1);
	period(&b, 2);
	period(&a, 3);
	CHECK(a.heard == 1 && a.got.reports[0].window == 2);
	CHECK_INT(stats(&a).received_bytes, 2 * 16 * BLOCK); /* as many slots as fit */
	/* The server dies. A period begins; the loop goes on; the period ends when the server is
	 * back. */
	nbdkit_kill();
	begin(&a, 4);
	begin(&a, 5);
	CHECK_INT(stats(&a).missed, 1);
	start_server();
	UNTIL(stats(&a).sent == 3);
	period(&b, 6);
	CHECK(b.got.reports[0].window == 5); /* its last report */
	close_host(&a);
	close_host(&b);
	nbdkit_kill();
}

static void small_and_used(void)
{
	struct weir_err err = {""};
	struct host a;
	int fd;

	make_export(BLOCK);
	CHECK(try_host(&a, "a", uri, NULL, &err) < 0);
	CHECK(strstr(err.text, "two blocks"));
	nbdkit_kill();
	make_export(16 * BLOCK);
	fd = open(file, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && pwrite(fd, "precious", 8, 1080) == 8); /* where ext4's superblock begins */
	close(fd);
	CHECK(try_host(&a, "a", uri, NULL, &err) < 0);
	CHECK(strstr(err.text, "other data"));
	nbdkit_kill();
}

int main(void)
{
	char command[100];

	log_open(LOG_LEVEL_ERROR, LOG_FORM_TEXT);
	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/nbd", folder);
	snprintf(file, sizeof(file), "%s/export", folder);
	snprintf(uri, sizeof(uri), "nbd+unix:///?socket=%s", path);
	CHECK_INT(loop_new(&loop), 0);
	RUN(over_nbd);
	RUN(small_and_used);
	loop_free(loop);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}
