/* SPDX-License-Identifier: BSD-3-Clause */
/* held: a block status with weir:held negotiated: the query for it, and any other. */
#include "serve/front-rig.h"

#define ALLOCATION 7 /* context ids of front-rig.h */
#define HELD       8

/* Check a chunk with one extent. */
static void want_extent(int fd, uint64_t cookie, uint32_t context, bool last, uint32_t length)
{
	struct nbd_reply reply = want_chunk(fd, cookie, NBD_CHUNK_STATUS);
	uint8_t p[12];

	CHECK_INT(reply.length, sizeof(p));
	CHECK_INT(reply.flags, last ? NBD_CHUNK_DONE : 0);
	get_all(fd, p, sizeof(p));
	CHECK_INT(bytes_get32(p), context);
	CHECK_INT(bytes_get32(p + 4), length);
	if (context == HELD) /* there is no limit */
		CHECK_INT(bytes_get32(p + 8), 0);
}

/* The query is answered at once, although the back end answers nothing. */
static void test_question(void)
{
	struct rig r;
	int fd;

	rig_new(&r, NULL, held_new(), 64u << 20);
	r.held->back.info.can_status = true;
	fd = rig_connect(
		&r, (struct rig_options){.structured = true, .status = true, .tells_held = true});
	ask(fd, NBD_READ, 0, 1, 0, 512); /* stays inside */
	ask(fd, NBD_BLOCK_STATUS, NBD_REQ_ONE, 2, 0, 1);
	want_extent(fd, 2, ALLOCATION, false, 1);
	want_extent(fd, 2, HELD, true, 1);
	rig_settle(&r);
	CHECK_INT(worker_call(&r.worker, held_count, r.held), 1);
	close(fd);
	rig_free(&r);
}

/* The back end answers any other, followed by the chunk of weir:held. */
static void test_others(void)
{
	static const struct {
		uint16_t flags;
		uint64_t offset;
		uint32_t length;
	} others[] = {{NBD_REQ_ONE, 0, 4096}, {0, 0, 1}, {NBD_REQ_ONE, 512, 1}};
	struct rig r;
	int fd;

	rig_new(&r, NULL, NULL, 64u << 20);
	fd = rig_connect(
		&r, (struct rig_options){.structured = true, .status = true, .tells_held = true});
	for (size_t i = 0; i < 3; i++) {
		ask(fd, NBD_BLOCK_STATUS, others[i].flags, i, others[i].offset, others[i].length);
		want_extent(fd, i, ALLOCATION, false, others[i].length);
		want_extent(fd, i, HELD, true, others[i].length);
	}
	ask(fd, NBD_BLOCK_STATUS, NBD_REQ_ONE, 9, RIG_SIZE, 1);
	want_error(fd, 9, -EINVAL);
	close(fd);
	rig_free(&r);
}

/* Negotiated alone: there is one chunk. */
static void test_alone(void)
{
	struct rig r;
	int fd;

	rig_new(&r, NULL, NULL, 64u << 20);
	fd = rig_connect(&r, (struct rig_options){.structured = true, .tells_held = true});
	ask(fd, NBD_BLOCK_STATUS, 0, 1, 4096, 8192);
	want_extent(fd, 1, HELD, true, 8192);
	close(fd);
	rig_free(&r);
}

int main(void)
{
	RUN(test_question);
	RUN(test_others);
	RUN(test_alone);
	return 0;
}
