/* SPDX-License-Identifier: BSD-3-Clause */
/* peer-file: hosts that share a file find their blocks and hear each other, whatever happens to
 * the file. */
#include "serve/peer-rig.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLOTS 8

static char folder[] = "/tmp/weir-peer-file-XXXXXX", path[64], address[80], key[64];

static void open_host(struct host *h, const char *name)
{
	open_host_at(h, name, address, key);
}

/* ---- the file, seen from outside */

static void poke(unsigned block, size_t at, const void *data, size_t n)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	CHECK(fd >= 0 && pwrite(fd, data, n, (off_t)(block * BLOCK + at)) == (ssize_t)n);
	close(fd);
}

static void peek(unsigned block, uint8_t data[BLOCK])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0 && pread(fd, data, BLOCK, (off_t)block * BLOCK) == BLOCK);
	close(fd);
}

/* Return the block with this name, 1 …; 0: none. The last of several. */
static unsigned block_of(const char *name)
{
	uint8_t data[BLOCK];
	unsigned found = 0;

	for (unsigned i = 1; i <= SLOTS; i++) {
		peek(i, data);
		if (strcmp((char *)data + 56, name) == 0)
			found = i;
	}
	return found;
}

static void fresh(void)
{
	unlink(path);
}

/* ---- tests */

static void two_hosts(void)
{
	struct host a, b;
	struct stat st;

	fresh();
	open_host(&a, "a");
	CHECK(stat(path, &st) == 0 && st.st_size == (SLOTS + 1) * BLOCK);
	open_host(&b, "b");
	period(&a, 1);
	period(&b, 2);
	CHECK_INT(b.heard, 0); /* a message found at the start may be old */
	period(&a, 3);
	CHECK_INT(a.heard, 1);
	CHECK_STR(a.got.name, "b");
	CHECK(a.got.reports[0].window == 2);
	CHECK(a.got.instance == peer_instance(b.peers));
	period(&b, 4);
	CHECK_INT(b.heard, 1);
	CHECK(b.got.reports[0].window == 3);
	period(&b, 5); /* no new message from a */
	CHECK_INT(b.heard, 1);
	CHECK_INT(stats(&a).heard, 1);
	CHECK_INT(stats(&b).sent, 3);
	CHECK_INT(stats(&b).sent_bytes, 3 * BLOCK);
	CHECK_INT(stats(&b).received_bytes, 3 * (SLOTS + 1) * BLOCK);
	close_host(&a);
	period(&b, 6);
	CHECK_INT(b.got.kind, PEER_LEAVE);
	CHECK_INT(stats(&b).heard, 0);
	close_host(&b);
}

/* As many hosts as slots, all at the same moment. */
static void all_at_once(void)
{
	struct host h[SLOTS];
	uint64_t lost = 0;

	fresh();
	for (int i = 0; i < SLOTS; i++) {
		char name[] = {'h', (char)('0' + i), 0};

		open_host(&h[i], name);
	}
	for (int round = 1; round <= 20; round++) {
		for (int i = 0; i < SLOTS; i++) {
			h[i].heard = 0;
			begin(&h[i], i);
		}
		for (int i = 0; i < SLOTS; i++)
			UNTIL(ended(&h[i]) == (uint64_t)round);
	}
	for (int i = 0; i < SLOTS; i++) {
		lost += stats(&h[i]).lost;
		CHECK_INT(stats(&h[i]).same, 0);
		CHECK_INT(stats(&h[i]).heard, SLOTS - 1);
	}
	CHECK(lost > 0); /* with 8 hosts in 8 slots some must have collided */
	for (int i = 0; i < SLOTS; i++)
		close_host(&h[i]);
}

static void full(void)
{
	struct host a, b;
	char small[90];
	struct weir_err err;

	fresh();
	snprintf(small, sizeof(small), "file:%s?slots=1", path);
	CHECK_INT(try_host(&a, "a", small, key, &err), 0);
	period(&a, 1);
	CHECK_INT(try_host(&b, "b", small, key, &err), 0);
	period(&b, 1);
	CHECK_INT(stats(&b).full, 1);
	period(&a, 2);
	period(&b, 2); /* it cannot write, but it can read */
	CHECK_INT(b.heard, 1);
	close_host(&a);
	period(&b, 3);
	CHECK_INT(stats(&b).sent, 1);
	close_host(&b);
}

static void torn(void)
{
	uint8_t old[BLOCK], new[BLOCK];
	struct host a, b;
	unsigned at;

	fresh();
	open_host(&a, "a");
	open_host(&b, "b");
	period(&b, 1);
	period(&a, 1);
	at = block_of("a");
	CHECK(at > 0);
	peek(at, old);
	period(&a, 2);
	peek(at, new);
	period(&b, 1);
	CHECK_INT(b.heard, 1);
	period(&a, 3);
	poke(at, 128, old + 128, BLOCK - 128); /* only the first part was written */
	period(&b, 1);
	CHECK_INT(b.heard, 1);
	CHECK_INT(stats(&b).verdicts[PEER_FORGED], 1);
	poke(at, 0, old, BLOCK); /* an older block */
	period(&b, 1);
	poke(at, 0, "garbage", 7);
	period(&b, 1);
	CHECK_INT(stats(&b).verdicts[PEER_NOISE], 1);
	period(&a, 4); /* a rewrites its block in place */
	CHECK_INT(block_of("a"), at);
	b.heard = 0;
	period(&b, 1);
	CHECK_INT(b.heard, 1);
	CHECK(b.got.reports[0].window == 4);
	close_host(&a);
	close_host(&b);
}

/* A host's block is overwritten by another's, as by a host that was stopped between its read and
 * its write. */
static void lost_slot(void)
{
	uint8_t data[BLOCK];
	struct host a, b;
	unsigned at;

	fresh();
	open_host(&a, "a");
	open_host(&b, "b");
	period(&a, 1);
	period(&b, 1);
	at = block_of("a");
	peek(block_of("b"), data);
	poke(at, 0, data, BLOCK);
	period(&a, 2);
	CHECK_INT(stats(&a).lost, 1);
	CHECK(block_of("a") > 0 && block_of("a") != at);
	b.heard = 0;
	period(&b, 2);
	CHECK_INT(b.heard, 1);
	CHECK(b.got.reports[0].window == 2);
	CHECK_INT(stats(&b).lost, 0);
	close_host(&a);
	close_host(&b);
}

static void restarted(void)
{
	struct host a, b;
	unsigned at;

	fresh();
	open_host(&a, "a");
	open_host(&b, "b");
	period(&a, 1);
	period(&b, 1);
	at = block_of("a");
	close_host(&a);
	open_host(&a, "a");
	period(&a, 9);
	CHECK_INT(block_of("a"), at);
	period(&b, 1);
	CHECK(b.got.reports[0].window == 9);
	CHECK(b.got.instance == peer_instance(a.peers));
	CHECK_INT(stats(&b).same, 0);
	close_host(&a);
	close_host(&b);
}

static void two_of_one_name(void)
{
	struct host a, twin, b;

	fresh();
	open_host(&a, "a");
	open_host(&twin, "a");
	open_host(&b, "b");
	for (int i = 0; i < 4; i++) {
		period(&a, i);
		period(&twin, i);
		period(&b, i);
	}
	CHECK(stats(&a).same > 0 && stats(&twin).same > 0 && stats(&b).same > 0);
	CHECK_STR(stats(&b).same_name, "a");
	CHECK_INT(stats(&b).heard, 2);
	close_host(&a);
	close_host(&twin);
	close_host(&b);
}

/* Slow storage: a period that starts while the last one is still in flight is skipped. */
static void missed(void)
{
	struct host a;

	fresh();
	open_host(&a, "a");
	begin(&a, 1);
	begin(&a, 2);
	begin(&a, 3);
	CHECK_INT(stats(&a).missed, 2);
	peer_close(a.peers, closed, &a); /* in the middle of a period */
	CHECK(!a.closed);
	UNTIL(a.closed);
}

/* The file is formatted or truncated while hosts use it: they stop writing, and continue when it
 * is restored. */
static void taken_away(void)
{
	uint8_t header[BLOCK], data[BLOCK];
	struct host a;

	fresh();
	open_host(&a, "a");
	period(&a, 1);
	peek(0, header);
	memset(data, 'x', BLOCK);
	for (unsigned i = 0; i <= SLOTS; i++)
		poke(i, 0, data, BLOCK);
	period(&a, 2);
	CHECK_INT(stats(&a).failed, 1);
	for (unsigned i = 0; i <= SLOTS; i++) {
		peek(i, data);
		CHECK(data[0] == 'x' && memcmp(data, data + 1, BLOCK - 1) == 0);
	}
	CHECK_INT(truncate(path, BLOCK), 0);
	period(&a, 3);
	CHECK_INT(stats(&a).failed, 2);
	CHECK_INT(truncate(path, (SLOTS + 1) * BLOCK), 0);
	poke(0, 0, header, BLOCK);
	period(&a, 4);
	CHECK_INT(stats(&a).failed, 2);
	CHECK(block_of("a") > 0);
	close_host(&a);
}

static void not_opened(const char *at, const char *with_key, int code, const char *why)
{
	struct weir_err err = {""};
	struct host h;

	CHECK_INT(try_host(&h, "a", at, with_key, &err), code);
	if (!strstr(err.text, why))
		FAIL("'%s' does not say '%s'", err.text, why);
}

static void left_alone(void)
{
	uint8_t data[BLOCK];
	struct host a;
	char bad[80];

	fresh();
	open_host(&a, "a");
	close_host(&a);
	not_opened(address, NULL, -EACCES, "another key");
	poke(0, 0, "precious", 8);
	not_opened(address, key, -EINVAL, "other data");
	peek(0, data);
	CHECK(memcmp(data, "precious", 8) == 0);
	fresh(); /* zeroes in place of the header, and data after it */
	open_host(&a, "a");
	close_host(&a);
	memset(data, 0, BLOCK);
	poke(0, 0, data, BLOCK);
	poke(3, 77, "precious", 8);
	not_opened(address, key, -EINVAL, "other data");
	CHECK_INT(truncate(path, BLOCK), 0);
	not_opened(address, key, -ENOSPC, "two blocks");
	snprintf(bad, sizeof(bad), "file:%s/none/peers", folder);
	not_opened(bad, key, -ENOENT, "none/peers");
	snprintf(bad, sizeof(bad), "file:%s", folder);
	not_opened(bad, key, -EISDIR, folder);
}

/* The header counts, not the configuration of a later host. */
static void slots_are_settled(void)
{
	struct host a, b;
	struct weir_err err;
	char more[90];

	fresh();
	open_host(&a, "a");
	snprintf(more, sizeof(more), "file:%s?slots=100", path);
	CHECK_INT(try_host(&b, "b", more, key, &err), 0);
	period(&b, 1);
	CHECK_INT(stats(&b).received_bytes, (SLOTS + 1) * BLOCK);
	close_host(&a);
	CHECK_INT(truncate(path, 3 * BLOCK), 0);
	not_opened(address, key, -ENOSPC, "is truncated");
	close_host(&b);
}

/* More than one request, and no key: a checksum is used. */
static void large(void)
{
	struct host a, b;
	struct weir_err err;
	char at[90];

	fresh();
	snprintf(at, sizeof(at), "file:%s?slots=200", path);
	CHECK_INT(try_host(&a, "a", at, NULL, &err), 0);
	CHECK_INT(try_host(&b, "b", at, NULL, &err), 0);
	period(&a, 1);
	period(&b, 2);
	period(&a, 3);
	CHECK(a.heard == 1 && a.got.reports[0].window == 2);
	CHECK_INT(stats(&a).received_bytes, 2 * 201 * BLOCK);
	close_host(&a);
	close_host(&b);
}

int main(void)
{
	char command[100];
	int fd;

	log_open(LOG_LEVEL_ERROR, LOG_FORM_TEXT);
	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/peers", folder);
	snprintf(address, sizeof(address), "file:%s?slots=%d", path, SLOTS);
	snprintf(key, sizeof(key), "%s/key", folder);
	fd = open(key, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, "0123456789abcdef0123456789abcdef", 32) == 32);
	close(fd);
	CHECK_INT(loop_new(&loop), 0);
	RUN(two_hosts);
	RUN(all_at_once);
	RUN(full);
	RUN(torn);
	RUN(lost_slot);
	RUN(restarted);
	RUN(two_of_one_name);
	RUN(missed);
	RUN(taken_away);
	RUN(left_alone);
	RUN(slots_are_settled);
	RUN(large);
	loop_free(loop);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}
