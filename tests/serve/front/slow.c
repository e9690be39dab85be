/* SPDX-License-Identifier: BSD-3-Clause */
/* front: a client that asks for much and reads little. The bytes gathered for it, and so
 * copied, must be about what its socket accepts, or slow clients would cost the others of their
 * thread. */
#include "serve/front-rig.h"
#include <pthread.h>
#include <sys/syscall.h>

#define SIZE  4096u
#define REPLY (NBD_SIMPLE_SIZE + SIZE)
#define N     1000

static pthread_t tester;
static atomic_uint_fast64_t offered, taken; /* bytes: passed to the socket, and accepted by it */

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	ssize_t n = syscall(SYS_sendmsg, fd, m, flags);

	if (pthread_equal(pthread_self(), tester))
		return n;
	for (size_t i = 0; i < m->msg_iovlen; i++)
		atomic_fetch_add(&offered, m->msg_iov[i].iov_len);
	atomic_fetch_add(&taken, n > 0 ? (size_t)n : 0);
	return n;
}

static void test_gathers_what_the_socket_accepts(void)
{
	static uint8_t data[REPLY];
	struct rig r;
	int fd;

	rig_new(&r, NULL, NULL, 64 << 20);
	fd = rig_connect(&r, (struct rig_options){.sndbuf = 32768});
	for (uint64_t i = 0; i < N; i++)
		ask(fd, NBD_READ, 0, i, 0, SIZE);
	for (int i = 0; i < N; i++) {
		rig_settle(&r);
		get_all(fd, data, sizeof(data));
	}
	CHECK_INT(atomic_load(&taken), (uint64_t)N * REPLY);
	CHECK(atomic_load(&offered) <= 3 * atomic_load(&taken));
	close(fd);
	rig_free(&r);
}

int main(void)
{
	tester = pthread_self();
	RUN(test_gathers_what_the_socket_accepts);
	return 0;
}
