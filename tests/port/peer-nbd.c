/* SPDX-License-Identifier: BSD-3-Clause */
/* peer-nbd: hosts that share an export of an NBD server, which is killed and comes back. */
#include "test.h"
#include "port/log.h"
#include "port/peer.h"
#include "wire/peer-slots.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK PEER_SLOTS_BLOCK

static struct loop *loop;
static char folder[] = "/tmp/weir-peer-nbd-XXXXXX", path[64], file[64], uri[128];
static pid_t server;

struct host {
	struct peers *peers;
	unsigned heard;
	struct peer_message got;
	bool closed;
};

static void start_server(void)
{
	unlink(path);
	server = fork();
	CHECK(server >= 0);
	if (server == 0) {
		int null = open("/dev/null", O_WRONLY);
		dup2(null, 2); /* it complains about clients that were cut off */
		execlp("nbdkit", "nbdkit", "-f", "--exit-with-parent", "-U", path, "file", file,
			NULL);
		_exit(127);
	}
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
			SKIP("nbdkit does not start (is it installed?)");
		poll(NULL, 0, 1);
	}
}

static void kill_server(void)
{
	kill(server, SIGKILL);
	CHECK_INT(waitpid(server, NULL, 0), server);
}

static void receive(void *arg, const struct peer_message *m, weir_time now)
{
	struct host *h = arg;

	h->heard++;
	h->got = *m;
}

static void closed(void *arg)
{
	((struct host *)arg)->closed = true;
}

static int try_host(struct host *h, const char *name, struct weir_err *err)
{
	const char *addresses[] = {uri, NULL};
	struct peer_config c = {
		.loop = loop, .addresses = addresses, .name = name, .receive = receive, .arg = h};

	*h = (struct host){0};
	return peer_open(&c, &h->peers, err);
}

static void open_host(struct host *h, const char *name)
{
	struct weir_err err;

	if (try_host(h, name, &err) < 0)
		FAIL("%s", err.text);
}

static struct peer_stats stats(struct host *h)
{
	struct peer_stats s;

	peer_stats(h->peers, &s);
	return s;
}

static bool nudge(struct loop_turn *t, weir_time now)
{
	loop_stop(loop);
	return false;
}

#define UNTIL(expr)                                                                                \
	do {                                                                                       \
		struct loop_turn t_ = {.turn = nudge};                                             \
		loop_turn_add(loop, &t_);                                                          \
		while (!(expr))                                                                    \
			CHECK_INT(loop_run(loop), 0);                                              \
		loop_turn_remove(loop, &t_);                                                       \
	} while (0)

static void begin(struct host *h, double window)
{
	struct peer_report r = {.resource = 1, .window = window};

	peer_send(h->peers, &r, 1);
}

static void period(struct host *h, double window)
{
	uint64_t before = stats(h).sent;

	begin(h, window);
	UNTIL(stats(h).sent > before);
}

static void close_host(struct host *h)
{
	peer_close(h->peers, closed, h);
	UNTIL(h->closed);
}

static void make_export(off_t bytes)
{
	int fd = open(file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	CHECK_INT(ftruncate(fd, bytes), 0);
	close(fd);
	start_server();
	await_server();
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
	CHECK_INT(stats(&a).received_bytes, 2 * 16 * BLOCK); /* as many slots as it has room for */
	/* The server dies. A period begins; the loop goes on; it ends when the server is back. */
	kill_server();
	begin(&a, 4);
	begin(&a, 5);
	CHECK_INT(stats(&a).missed, 1);
	start_server();
	UNTIL(stats(&a).sent == 3);
	period(&b, 6);
	CHECK(b.got.reports[0].window == 5); /* what it last had to say */
	close_host(&a);
	close_host(&b);
	kill_server();
}

static void small_and_used(void)
{
	struct weir_err err = {""};
	struct host a;
	int fd;

	make_export(BLOCK);
	CHECK(try_host(&a, "a", &err) < 0);
	CHECK(strstr(err.text, "two blocks"));
	kill_server();
	make_export(16 * BLOCK);
	fd = open(file, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && pwrite(fd, "precious", 8, 1080) == 8); /* where ext4 begins */
	close(fd);
	CHECK(try_host(&a, "a", &err) < 0);
	CHECK(strstr(err.text, "something else"));
	kill_server();
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
