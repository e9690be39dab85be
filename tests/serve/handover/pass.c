/* SPDX-License-Identifier: BSD-3-Clause */
/* pass: messages with more descriptors than the system passes at once, a folder with a long name, and a peer that is gone. */
#include "test.h"
#include "serve/handover/pass.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[300] = "/tmp/weir-pass-XXXXXX";

static void messages(void)
{
	struct record_fds fds = {0};
	struct pass_message m;
	int listening, a, b;

	CHECK_INT(pass_connect(folder, &a), -ENOENT);
	CHECK_INT(pass_listen(folder, &listening), 0);
	close(listening); /* that process has ended */
	CHECK_INT(pass_connect(folder, &a), -ENOENT);
	CHECK_INT(pass_listen(folder, &listening), 0);
	CHECK_INT(pass_connect(folder, &a), 0);
	b = pass_accept(listening);
	CHECK(b >= 0);
	CHECK_INT(pass_recv(b, 0, &m), -EAGAIN);
	CHECK_INT(pass_send(a, "hello", "a text", -1, NULL), 0);
	CHECK_INT(pass_recv(b, 0, &m), 0);
	CHECK_STR(m.word, "hello");
	CHECK_STR(m.text, "a text");
	CHECK_INT(m.memfd, -1);
	pass_message_free(&m);
	for (int i = 0; i < 450; i++)
		CHECK_INT(record_fds_add(&fds, dup(0)), 0);
	CHECK_INT(pass_send(b, "many", NULL, listening, &fds), 0);
	CHECK_INT(pass_recv(a, 1000, &m), 0);
	CHECK_STR(m.word, "many");
	CHECK_INT(m.fds.n, 450);
	CHECK(m.memfd >= 0);
	pass_message_free(&m);
	CHECK_INT(send(a, "?", 1, 0), 1);
	CHECK_INT(pass_recv(b, 0, &m), -EBADMSG);
	close(a);
	CHECK_INT(pass_recv(b, 0, &m), -EPIPE);
	CHECK_INT(pass_send(b, "late", NULL, -1, NULL), -EPIPE);
	record_fds_close(&fds);
	close(b);
	close(listening);
}

int main(void)
{
	char command[400];

	CHECK(mkdtemp(folder) != NULL);
	for (int i = 0; i < 2; i++) { /* longer than a socket's address may be */
		size_t n = strlen(folder);

		snprintf(folder + n, sizeof(folder) - n, "/%0100d", i);
		CHECK_INT(mkdir(folder, 0700), 0);
	}
	RUN(messages);
	snprintf(command, sizeof(command), "rm -r %.21s", folder);
	CHECK_INT(system(command), 0);
	return 0;
}
