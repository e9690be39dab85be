/* SPDX-License-Identifier: BSD-3-Clause */
/* etcd-rig: one etcd on loopback, on ports of its own, with its data in a new folder; it ends with the test. */
#pragma once

#include "test.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct etcd_rig {
	pid_t pid;
	char folder[64], client[64], peer[64];
};

/* Return a free port of loopback. */
static inline int rig_port(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&at, n) == 0);
	CHECK(getsockname(fd, (struct sockaddr *)&at, &n) == 0);
	close(fd);
	return ntohs(at.sin_port);
}

static inline void rig_run(struct etcd_rig *r)
{
	char data[96], cluster[96];

	snprintf(data, sizeof(data), "%s/data", r->folder);
	snprintf(cluster, sizeof(cluster), "one=%s", r->peer);
	r->pid = fork();
	CHECK(r->pid >= 0);
	if (r->pid == 0) {
		int log = open("/dev/null", O_WRONLY);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(log, 1);
		dup2(log, 2);
		execlp("etcd", "etcd", "--name", "one", "--data-dir", data, "--listen-client-urls",
			r->client, "--advertise-client-urls", r->client, "--listen-peer-urls",
			r->peer, "--initial-advertise-peer-urls", r->peer, "--initial-cluster",
			cluster, "--heartbeat-interval", "20", "--election-timeout", "200",
			"--unsafe-no-fsync", (char *)NULL);
		_exit(errno == ENOENT ? 77 : 1);
	}
}

static inline bool rig_answers(const struct etcd_rig *r)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;

	at.sin_port = htons((uint16_t)atoi(strrchr(r->client, ':') + 1));
	rc = connect(fd, (struct sockaddr *)&at, sizeof(at));
	close(fd);
	return rc == 0;
}

static inline void rig_wait(struct etcd_rig *r)
{
	for (int i = 0; i < 1000 && !rig_answers(r); i++) {
		int status;

		if (waitpid(r->pid, &status, WNOHANG) == r->pid) {
			if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
				SKIP("no etcd");
			FAIL("etcd ended");
		}
		usleep(10000);
	}
}

static inline void rig_start(struct etcd_rig *r)
{
	snprintf(r->folder, sizeof(r->folder), "/tmp/weir-etcd-XXXXXX");
	CHECK(mkdtemp(r->folder) != NULL);
	snprintf(r->client, sizeof(r->client), "http://127.0.0.1:%d", rig_port());
	snprintf(r->peer, sizeof(r->peer), "http://127.0.0.1:%d", rig_port());
	rig_run(r);
	rig_wait(r);
}

static inline void rig_kill(struct etcd_rig *r)
{
	kill(r->pid, SIGKILL);
	waitpid(r->pid, NULL, 0);
}

static inline void rig_remove(const char *folder)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	CHECK(system(command) == 0);
}

static inline void rig_stop(struct etcd_rig *r)
{
	rig_kill(r);
	rig_remove(r->folder);
}
