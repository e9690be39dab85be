/* SPDX-License-Identifier: BSD-3-Clause */
/* nbd: every command over a real socket, by hand: replies, errors, pieces. */
#include "serve/front-rig.h"

#define MIB (1u << 20)

static uint8_t big[34 * MIB], back_again[34 * MIB];

static void fill(uint8_t *p, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)((i * 131 + seed * 7 + (i >> 9)) & 0xff);
}

static void test_simple(void)
{
	struct rig r;
	int fd;

	rig_new(&r, NULL, NULL, 64 * MIB);
	fd = rig_connect(&r, (struct rig_options){0});
	fill(big, 8192, 1);
	ask(fd, NBD_WRITE, 0, 11, 4096, 8192);
	put_all(fd, big, 8192);
	want_simple(fd, 11, 0);
	ask(fd, NBD_READ, 0, 12, 4096, 8192);
	want_simple(fd, 12, 0);
	get_all(fd, back_again, 8192);
	CHECK(memcmp(big, back_again, 8192) == 0);
	ask(fd, NBD_WRITE, NBD_FUA, 13, 1, 3);
	put_all(fd, "abc", 3);
	want_simple(fd, 13, 0);
	ask(fd, NBD_READ, 0, 14, 0, 5);
	want_simple(fd, 14, 0);
	get_all(fd, back_again, 5);
	CHECK(memcmp(back_again, "\0abc\0", 5) == 0);
	ask(fd, NBD_FLUSH, 0, 15, 0, 0);
	want_simple(fd, 15, 0);
	ask(fd, NBD_TRIM, 0, 16, 4096, 4096);
	want_simple(fd, 16, 0);
	ask(fd, NBD_WRITE_ZEROES, NBD_NO_HOLE, 17, 8192, 4096);
	want_simple(fd, 17, 0);
	ask(fd, NBD_READ, 0, 18, 4096, 8192);
	want_simple(fd, 18, 0);
	get_all(fd, back_again, 8192);
	for (int i = 0; i < 8192; i++)
		CHECK_INT(back_again[i], 0);
	ask(fd, NBD_READ, 0, 19, 0, 0);
	want_simple(fd, 19, 0);
	ask(fd, NBD_WRITE, 0, 20, 0, 0);
	want_simple(fd, 20, 0);
	ask(fd, NBD_DISC, 0, 21, 0, 0);
	want_end(fd);
	close(fd);
	rig_free(&r);
}

static void want_data(int fd, uint64_t cookie, uint64_t offset, uint32_t length, bool last)
{
	struct nbd_reply reply = want_chunk(fd, cookie, NBD_CHUNK_DATA);
	uint8_t p[8];

	CHECK_INT(reply.flags, last ? NBD_CHUNK_DONE : 0);
	CHECK_INT(reply.length, length + 8);
	get_all(fd, p, 8);
	CHECK_INT(bytes_get64(p), offset);
	get_all(fd, back_again, length);
}

static void test_structured(void)
{
	struct rig r;
	int fd;

	rig_new(&r, NULL, NULL, 64 * MIB);
	fd = rig_connect(&r, (struct rig_options){.structured = true, .status = true});
	fill(big, 20000, 2);
	ask(fd, NBD_WRITE, 0, 1, 100, 20000);
	put_all(fd, big, 20000);
	want_simple(fd, 1, 0); /* which the protocol allows for all but reads */
	ask(fd, NBD_READ, NBD_DF, 2, 100, 20000);
	want_data(fd, 2, 100, 20000, true);
	CHECK(memcmp(big, back_again, 20000) == 0);
	ask(fd, NBD_READ, 0, 3, 0, 0);
	CHECK_INT(want_chunk(fd, 3, NBD_CHUNK_NONE).flags, NBD_CHUNK_DONE);
	ask(fd, NBD_READ, 0, 4, RIG_SIZE, 1);
	want_error(fd, 4, -EINVAL);
	ask(fd, NBD_WRITE, 0, 5, RIG_SIZE - 1, 2);
	put_all(fd, "ab", 2);
	want_simple(fd, 5, -ENOSPC);
	ask(fd, NBD_READ, NBD_FUA | NBD_NO_HOLE, 6, 0, 1);
	want_error(fd, 6, -EINVAL);
	ask(fd, 77, 0, 7, 0, 0);
	want_simple(fd, 7, -EINVAL);
	ask(fd, 256 + NBD_READ, 0, 8, 0, 4);
	want_simple(fd, 8, -EINVAL);
	ask(fd, NBD_READ, NBD_DF, 9, 0, 40 * MIB);
	want_error(fd, 9, -EOVERFLOW);
	close(fd);
	rig_free(&r);
}

static void want_extents(
	int fd, uint64_t cookie, size_t n, const uint32_t (*extents)[2], uint32_t id)
{
	struct nbd_reply reply = want_chunk(fd, cookie, NBD_CHUNK_STATUS);
	uint8_t p[8];

	CHECK_INT(reply.length, 4 + 8 * n);
	CHECK_INT(reply.flags, NBD_CHUNK_DONE);
	get_all(fd, p, 4);
	CHECK_INT(bytes_get32(p), id);
	for (size_t i = 0; i < n; i++) {
		get_all(fd, p, 8);
		CHECK_INT(bytes_get32(p), extents[i][0]);
		CHECK_INT(bytes_get32(p + 4), extents[i][1]);
	}
}

static void test_status(void)
{
	static const uint32_t all[][2] = {{8192, 3}, {4096, 0}, {8192, 3}};
	static const uint32_t inside[][2] = {{96, 0}};
	static const uint32_t data[][2] = {{4096, 0}};
	struct rig r;
	int fd;

	rig_new(&r, NULL, NULL, 64 * MIB);
	fd = rig_connect(&r, (struct rig_options){.structured = true, .status = true});
	ask(fd, NBD_WRITE, 0, 1, 8192, 4096);
	put_all(fd, big, 4096);
	want_simple(fd, 1, 0);
	ask(fd, NBD_BLOCK_STATUS, 0, 2, 0, 20480);
	want_extents(fd, 2, 3, all, 7);
	ask(fd, NBD_BLOCK_STATUS, NBD_REQ_ONE, 3, 0, 20480);
	want_extents(fd, 3, 1, all, 7);
	ask(fd, NBD_BLOCK_STATUS, 0, 4, 12288 - 96, 96); /* cut at the end of the range */
	want_extents(fd, 4, 1, inside, 7);
	ask(fd, NBD_BLOCK_STATUS, 0, 5, 0, 0);
	want_error(fd, 5, -EINVAL);
	close(fd);
	fd = rig_connect(&r, (struct rig_options){.structured = true});
	ask(fd, NBD_BLOCK_STATUS, 0, 6, 0, 4096); /* not negotiated */
	want_error(fd, 6, -EINVAL);
	close(fd);
	rig_free(&r);
	/* A back end without status: everything is data. */
	rig_new(&r, NULL, held_new(), 64 * MIB);
	fd = rig_connect(&r, (struct rig_options){.structured = true, .status = true});
	ask(fd, NBD_BLOCK_STATUS, 0, 7, 0, 4096);
	want_extents(fd, 7, 1, data, 7);
	close(fd);
	rig_free(&r);
}

static void test_read_only(void)
{
	static const uint16_t commands[] = {NBD_TRIM, NBD_WRITE_ZEROES};
	struct rig r;
	int fd;

	rig_new(&r, NULL, NULL, 64 * MIB);
	fd = rig_connect(&r, (struct rig_options){.read_only = true});
	ask(fd, NBD_WRITE, 0, 1, 0, 4096);
	put_all(fd, big, 4096);
	want_simple(fd, 1, -EPERM);
	for (size_t i = 0; i < 2; i++) {
		ask(fd, commands[i], 0, 2 + i, 0, 4096);
		want_simple(fd, 2 + i, -EPERM);
	}
	ask(fd, NBD_READ, 0, 9, 0, 4096);
	want_simple(fd, 9, 0);
	get_all(fd, back_again, 4096);
	close(fd);
	rig_free(&r);
}

/* The payload of a refused write is skipped, unless it is too large. */
static void test_too_large(void)
{
	struct rig r;
	int fd;

	rig_new(&r, NULL, NULL, 64 * MIB);
	fd = rig_connect(&r, (struct rig_options){0});
	ask(fd, NBD_WRITE, 0, 1, 0, 33 * MIB);
	put_all(fd, big, 33 * MIB);
	want_simple(fd, 1, -EINVAL);
	ask(fd, NBD_READ, 0, 2, 0, 33 * MIB);
	want_simple(fd, 2, -EINVAL);
	ask(fd, NBD_READ, 0, 3, 0, UINT32_MAX);
	want_simple(fd, 3, -EINVAL);
	CHECK_INT(atomic_load(&r.gateway.broken), 0);
	ask(fd, NBD_WRITE, 0, 4, 0, 65 * MIB);
	want_end(fd);
	CHECK_INT(atomic_load(&r.gateway.broken), 1);
	close(fd);
	rig_free(&r);
}

/* One stream of requests, cut in two at every place. */
static void test_cuts(void)
{
	uint8_t stream[3 * NBD_REQUEST_SIZE + 600];
	struct nbd_request q[3] = {
		{1, 512, 600, 0, NBD_WRITE}, {2, 512, 600, 0, NBD_READ}, {3, 0, 0, 0, NBD_FLUSH}};
	struct rig r;

	fill(big, 600, 3);
	nbd_request_write(stream, &q[0]);
	memcpy(stream + 28, big, 600);
	nbd_request_write(stream + 628, &q[1]);
	nbd_request_write(stream + 656, &q[2]);
	rig_new(&r, NULL, NULL, 64 * MIB);
	for (size_t cut = 0; cut <= 684; cut += cut < 40 || cut > 610 ? 1 : 37) {
		/* Every other time the first part comes with the handshake. */
		bool early = cut % 2 && cut;
		int fd = rig_connect(&r, (struct rig_options){.early = early ? stream : NULL,
						 .n_early = early ? cut : 0});

		if (!early)
			put_all(fd, stream, cut);
		rig_settle(&r);
		put_all(fd, stream + cut, 684 - cut);
		want_simple(fd, 1, 0);
		want_simple(fd, 2, 0);
		get_all(fd, back_again, 600);
		CHECK(memcmp(big, back_again, 600) == 0);
		want_simple(fd, 3, 0);
		close(fd);
	}
	rig_free(&r);
}

static void test_pipelined(void)
{
	static uint8_t stream[1000 * NBD_REQUEST_SIZE];
	static bool seen[1000];
	struct rig r;
	int fd;

	rig_new(&r, NULL, held_new(), 64 * MIB);
	fd = rig_connect(&r, (struct rig_options){0});
	for (uint64_t i = 0; i < 1000; i++) {
		struct nbd_request q = {i, i * 512, 512, 0, NBD_READ};

		nbd_request_write(stream + i * NBD_REQUEST_SIZE, &q);
	}
	put_all(fd, stream, sizeof(stream));
	worker_call(&r.worker, held_open, r.held);
	memset(seen, 0, sizeof(seen));
	for (int i = 0; i < 1000; i++) {
		uint8_t p[16 + 512];
		struct nbd_reply reply;

		get_all(fd, p, sizeof(p));
		CHECK_INT(nbd_reply_read(p, 16, &reply), 16);
		CHECK(reply.cookie < 1000 && !seen[reply.cookie] && reply.error == 0);
		seen[reply.cookie] = true;
		for (int k = 16; k < 528; k++)
			CHECK_INT(p[k], reply.cookie & 0xff);
	}
	close(fd);
	rig_free(&r);
}

static void write_big(int fd, uint64_t cookie, uint64_t offset, uint32_t length)
{
	ask(fd, NBD_WRITE, 0, cookie, offset, length);
	put_all(fd, big, length);
	want_simple(fd, cookie, 0);
}

static void test_pieces_memory(void)
{
	const uint32_t length = 32 * MIB;
	struct rig r;
	int fd;

	rig_new(&r, NULL, NULL, 64 * MIB);
	fd = rig_connect(&r, (struct rig_options){0});
	fill(big, length, 5);
	write_big(fd, 1, 100, length);
	ask(fd, NBD_READ, 0, 2, 100, length);
	want_simple(fd, 2, 0);
	get_all(fd, back_again, length);
	CHECK(memcmp(big, back_again, length) == 0);
	close(fd);
	fd = rig_connect(&r, (struct rig_options){.structured = true});
	ask(fd, NBD_READ, NBD_DF, 3, 100, length);
	want_data(fd, 3, 100, length, true);
	CHECK(memcmp(big, back_again, length) == 0);
	close(fd);
	rig_free(&r);
}

/* Structured, without DF: a chunk of the reply per piece, in any order. */
static void test_pieces_parts(void)
{
	const uint32_t length = MIB + 100;
	struct rig r;
	int fd;

	rig_new(&r, NULL, held_new(), 64 * MIB);
	fd = rig_connect(&r, (struct rig_options){.structured = true});
	ask(fd, NBD_READ, 0, 3, 512, length);
	while (r.resource->submitted < 5)
		rig_settle(&r);
	rig_settle(&r);
	worker_call(&r.worker, held_release, r.held); /* the last first */
	want_data(fd, 3, 512 + MIB, 100, false);
	CHECK_INT(back_again[0], (512 + MIB) >> 9 & 0xff);
	for (int i = 3; i >= 0; i--) {
		uint64_t at = 512 + (uint64_t)i * CHUNK_MAX;

		want_data(fd, 3, at, CHUNK_MAX, i == 0);
		for (uint32_t k = 0; k < CHUNK_MAX; k += 511)
			CHECK_INT(back_again[k], (at + k) >> 9 & 0xff);
	}
	close(fd);
	rig_free(&r);
}

/* One piece fails: the reply is one error, in every form. */
static void test_pieces_error(void)
{
	struct rig r;
	int fd;

	rig_new(&r, NULL, held_new(), 64 * MIB);
	r.held->fail_at = CHUNK_MAX;
	fd = rig_connect(&r, (struct rig_options){0});
	ask(fd, NBD_READ, 0, 1, 0, MIB);
	worker_call(&r.worker, held_open, r.held);
	want_simple(fd, 1, -EIO);
	ask(fd, NBD_WRITE, 0, 2, 0, MIB);
	put_all(fd, big, MIB);
	want_simple(fd, 2, -EIO);
	ask(fd, NBD_READ, 0, 3, CHUNK_MAX, 512);
	want_simple(fd, 3, -EIO);
	ask(fd, NBD_READ, 0, 4, 0, 512);
	want_simple(fd, 4, 0);
	get_all(fd, back_again, 512);
	close(fd);
	fd = rig_connect(&r, (struct rig_options){.structured = true});
	ask(fd, NBD_READ, 0, 5, 0, 2 * CHUNK_MAX);
	want_data(fd, 5, 0, CHUNK_MAX, false);
	want_error(fd, 5, -EIO);
	ask(fd, NBD_READ, NBD_DF, 6, 0, 2 * CHUNK_MAX);
	want_error(fd, 6, -EIO);
	close(fd);
	rig_free(&r);
}

/* ---- borrowed data */

static void want_pattern(int fd, uint64_t cookie, uint64_t offset, uint32_t length)
{
	want_simple(fd, cookie, 0);
	get_all(fd, back_again, length);
	for (uint32_t i = 0; i < length; i++)
		if (back_again[i] != (uint8_t)((offset + i) >> 9))
			FAIL("byte %u of request %llu is %d", i, (unsigned long long)cookie,
				back_again[i]);
}

static struct held *held_lending(void)
{
	struct held *h = held_new();

	h->lent = malloc(RIG_SIZE);
	return h;
}

/* A client that reads late gets the data as they were read, not the later content of the buffer. */
static void test_borrowed(void)
{
	static const uint32_t sizes[] = {512, 4096, 16384, 65536};
	struct held *held = held_lending();
	struct rig r;
	int fd;

	rig_new(&r, NULL, held, 64 << 20);
	fd = rig_connect(&r, (struct rig_options){.sndbuf = 8192});
	for (uint64_t round = 0; round < 3; round++) {
		for (uint64_t i = 0; i < 32; i++)
			ask(fd, NBD_READ, 0, 32 * round + i, (32 * round + i) << 16, sizes[i % 4]);
		while (worker_call(&r.worker, held_count, held) < 32)
			;
		worker_call(&r.worker, held_release, held);
		rig_settle(&r);
	}
	CHECK_INT(held->n_lent, 96);
	for (uint64_t round = 0; round < 3; round++)
		for (uint64_t i = 32; i-- > 0;) /* the newest was answered first */
			want_pattern(fd, 32 * round + i, (32 * round + i) << 16, sizes[i % 4]);
	close(fd);
	rig_free(&r);
}

/* The short last piece of a read that is answered as one waits for the others. */
static void test_borrowed_pieces(void)
{
	struct held *held = held_lending();
	struct rig r;
	int fd;

	rig_new(&r, NULL, held, 64 << 20);
	fd = rig_connect(&r, (struct rig_options){0});
	ask(fd, NBD_READ, 0, 1, 4096, CHUNK_MAX + 1000);
	while (worker_call(&r.worker, held_count, held) < 2)
		;
	worker_call(&r.worker, held_release_one, held);
	rig_settle(&r);
	worker_call(&r.worker, held_release, held);
	want_pattern(fd, 1, 4096, CHUNK_MAX + 1000);
	close(fd);
	rig_free(&r);
}

int main(void)
{
	RUN(test_simple);
	RUN(test_structured);
	RUN(test_status);
	RUN(test_read_only);
	RUN(test_too_large);
	RUN(test_cuts);
	RUN(test_pipelined);
	RUN(test_pieces_memory);
	RUN(test_pieces_parts);
	RUN(test_pieces_error);
	RUN(test_borrowed);
	RUN(test_borrowed_pieces);
	return 0;
}
