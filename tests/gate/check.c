/* SPDX-License-Identifier: BSD-3-Clause */
/* A request that is submitted or completed twice aborts the program at that call, in builds with
 * debug_checks. */
#include "device.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct bench bench_with(struct weir_req **ret_queued)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 1});
	weir_node n = leaf(&b, WEIR_ROOT, 1);

	*ret_queued = submit(&b, n, 0);
	return b;
}

static void queued_twice(void)
{
	struct weir_req *r;
	struct bench b = bench_with(&r);

	weir_gate_submit(b.g, 0, &r, 1);
}

static void twice_in_one_call(void)
{
	struct weir_req *r;
	struct bench b = bench_with(&r);
	struct weir_req another = {.tenant = r->tenant};

	weir_gate_submit(b.g, 0, (struct weir_req *[]){&another, &another}, 2);
}

static void submitted_while_inside(void)
{
	struct weir_req *r;
	struct bench b = bench_with(&r);

	CHECK(pass(&b) == r);
	weir_gate_submit(b.g, 0, &r, 1);
}

static void done_while_queued(void)
{
	struct weir_req *r;
	struct bench b = bench_with(&r);

	weir_gate_done(b.g, 0, &r, 1);
}

static void done_twice(void)
{
	struct weir_req *r;
	struct bench b = bench_with(&r);

	CHECK(pass(&b) == r);
	finish(&b, r);
	finish(&b, r);
}

static bool any(const struct weir_req *r, void *arg)
{
	return true;
}
static void drop(struct weir_req *r, void *arg)
{
}

/* A request that was returned to the caller may be submitted again. */
static void one_after_another(void)
{
	struct weir_req *r;
	struct bench b = bench_with(&r);

	for (int i = 0; i < 3; i++) {
		CHECK(pass(&b) == r);
		finish(&b, r);
		CHECK_INT(weir_gate_submit(b.g, 0, &r, 1), 0);
		CHECK_INT(weir_gate_cancel(b.g, 0, r->tenant, any, drop, NULL), 1);
		CHECK_INT(weir_gate_submit(b.g, 0, &r, 1), 0);
	}
	/* A refused submit takes none of its requests. */
	struct weir_req good = {.tenant = r->tenant}, bad = {.tenant = 99}, *g = &good;

	CHECK_INT(weir_gate_submit(b.g, 0, (struct weir_req *[]){&good, &bad}, 2), -EINVAL);
	CHECK_INT(weir_gate_submit(b.g, 0, &g, 1), 0);
	weir_gate_free(b.g);
}

/* Run fn in a child process: it must abort, with a message that has this text. */
static void dies(void (*fn)(void), const char *text)
{
	char said[4096] = "";
	size_t n = 0;
	ssize_t k;
	int fds[2], status;

	CHECK_INT(pipe(fds), 0);
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		dup2(fds[1], STDERR_FILENO);
		signal(SIGABRT, SIG_DFL);
		fn();
		_exit(0);
	}
	close(fds[1]);
	while (n < sizeof said - 1 && (k = read(fds[0], said + n, sizeof said - 1 - n)) > 0)
		n += (size_t)k;
	close(fds[0]);
	CHECK(waitpid(pid, &status, 0) == pid);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || !strstr(said, text))
		FAIL("not ended by abort with \"%s\": status %#x, \"%s\"", text, (unsigned)status,
			said);
}

int main(void)
{
	RUN(one_after_another);
#ifndef WEIR_DEBUG_CHECKS
	SKIP("this build is without debug_checks");
#endif
	dies(queued_twice, "submitted twice");
	dies(twice_in_one_call, "submitted twice");
	dies(submitted_while_inside, "submitted before it is done");
	dies(done_while_queued, "not inside");
	dies(done_twice, "not inside");
	return 0;
}
