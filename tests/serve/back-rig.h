/* SPDX-License-Identifier: BSD-3-Clause */
/* A back end on a loop of its own, for tests of back ends: submit, wait, check. */
#ifndef WEIR_TESTS_PORT_BACK_RIG_H
#define WEIR_TESTS_PORT_BACK_RIG_H

#include "serve/back/back.h"
#include "test.h"
#include <errno.h>

struct rig {
	struct loop *loop;
	struct back *back;
	unsigned inside;
	bool stop; /* when no request is inside */
};

static inline void rig_done(void *arg, struct back_io *io)
{
	struct rig *r = arg;

	CHECK(r->inside > 0);
	r->inside--;
	if (!r->inside && r->stop)
		loop_stop(r->loop);
}

static inline void rig_open_with(struct rig *r, const char *name, struct back_config config)
{
	struct weir_err err;

	*r = (struct rig){0};
	CHECK_INT(loop_new(&r->loop), 0);
	config.loop = r->loop;
	if (back_open(name, &config, &r->back, &err) < 0)
		FAIL("%s", err.text);
	r->back->done = rig_done;
	r->back->done_arg = r;
	CHECK_INT(r->back->ops->start(r->back), 0);
}

static inline void rig_open(struct rig *r, const char *name)
{
	rig_open_with(r, name, (struct back_config){0});
}

static inline void rig_close(struct rig *r)
{
	CHECK_INT(r->inside, 0);
	back_free(r->back);
	loop_free(r->loop);
}

/* Submit a list and wait until all of it is done. */
static inline void rig_run(struct rig *r, struct back_io *ios)
{
	for (struct back_io *io = ios; io; io = io->next)
		r->inside++;
	r->stop = false;
	back_submit(r->back, ios);
	r->stop = true;
	if (r->inside)
		CHECK_INT(loop_run(r->loop), 0);
	CHECK_INT(r->inside, 0);
}

/* Do one request, and return its error. */
static inline int rig_do(
	struct rig *r, enum back_op op, int flags, uint64_t offset, uint64_t length, void *data)
{
	struct back_io io = {.op = (uint8_t)op,
		.flags = (uint8_t)flags,
		.offset = offset,
		.length = length,
		.data = data,
		.error = 1};

	rig_run(r, &io);
	if (op == BACK_READ && !io.error && io.data != data)
		memcpy(data, io.data, length);
	return io.error;
}

static inline int rig_fill(struct rig *r, int flags, uint64_t offset, uint64_t length, int byte)
{
	void *data = aligned_alloc(4096, (length + 4095) / 4096 * 4096);
	int e;

	memset(data, byte, length);
	e = rig_do(r, BACK_WRITE, flags, offset, length, data);
	free(data);
	return e;
}

/* Check that the whole range is `byte`. */
static inline void rig_is(struct rig *r, uint64_t offset, uint64_t length, int byte)
{
	uint8_t *data = aligned_alloc(4096, (length + 4095) / 4096 * 4096);

	memset(data, ~byte, length);
	CHECK_INT(rig_do(r, BACK_READ, 0, offset, length, data), 0);
	for (uint64_t i = 0; i < length; i++)
		if (data[i] != byte)
			FAIL("byte %llu is %d, not %d", (unsigned long long)(offset + i), data[i],
				byte);
	free(data);
}

/* Get the extents of the range, at most `room`. */
static inline uint32_t rig_status(
	struct rig *r, uint64_t offset, uint64_t length, struct back_extent *extents, uint32_t room)
{
	struct back_io io = {.op = BACK_STATUS,
		.offset = offset,
		.length = length,
		.extents = extents,
		.n_extents = room};
	uint64_t covered = 0;

	rig_run(r, &io);
	CHECK_INT(io.error, 0);
	CHECK(io.n_extents >= 1 && io.n_extents <= room);
	for (uint32_t i = 0; i < io.n_extents; i++) {
		CHECK(covered < length && extents[i].length > 0);
		covered += extents[i].length;
	}
	CHECK(offset + covered <= r->back->info.size);
	CHECK(covered >= length || io.n_extents == room);
	return io.n_extents;
}

#endif
