/* SPDX-License-Identifier: BSD-3-Clause */
/* reply: replies, simple and structured. */
#include "base/container.h"
#include "serve/front/nbd/nbd.h"
#include "wire/bytes.h"

static const struct front_nbd_conn *conn_of(const struct front_job *j)
{
	return container_of(j->conn, const struct front_nbd_conn, conn);
}

static size_t read_head(const struct front_job *j, uint8_t *p)
{
	if (!conn_of(j)->structured)
		return nbd_simple_write(p, j->cookie, 0);
	if (j->length == 0)
		return nbd_chunk_write(p, j->cookie, NBD_CHUNK_NONE, NBD_CHUNK_DONE, 0);
	if (j->last)
		return nbd_data_write(p, j->cookie, j->offset, j->length);
	nbd_chunk_write(p, j->cookie, NBD_CHUNK_DATA, 0, j->length + 8);
	bytes_put64(p + NBD_CHUNK_SIZE, j->offset);
	return NBD_DATA_SIZE;
}

/* Write the head of a chunk for one negotiated context. */
static size_t status_head(
	uint8_t *p, const struct front_job *j, uint32_t context, uint32_t extents, bool last)
{
	size_t n = nbd_chunk_write(
		p, j->cookie, NBD_CHUNK_STATUS, last ? NBD_CHUNK_DONE : 0, 4 + 8 * extents);

	bytes_put32(p + n, context);
	return n + 4;
}

static size_t put_extent(uint8_t *p, uint64_t length, uint32_t flags)
{
	bytes_put32(p, (uint32_t)length);
	bytes_put32(p + 4, flags);
	return 8;
}

static size_t put_status(uint8_t *p, const struct front_job *j)
{
	const struct front_nbd_conn *c = conn_of(j);
	const struct back_io *io = &j->req.io;
	size_t n = 0;

	if (c->base_allocation) {
		n = status_head(p, j, c->context_id, io->n_extents, !c->tells_held);
		for (uint32_t i = 0; i < io->n_extents; i++)
			n += put_extent(p + n, io->extents[i].length, io->extents[i].flags);
	}
	if (c->tells_held) {
		n += status_head(p + n, j, c->held_id, 1, true);
		n += put_extent(p + n, j->length, j->note);
	}
	return n;
}

void front_nbd_reply(struct gather *g, struct front_job *j)
{
	bool read = j->command == NBD_READ, status = j->command == NBD_BLOCK_STATUS;
	uint8_t *p = gather_room(g);
	int error = j->req.io.error;

	if (!error && read) {
		gather_written(g, read_head(j, p));
		front_gather_data(g, j);
	} else if (!error && status) {
		gather_written(g, put_status(p, j));
	} else if (conn_of(j)->structured && (read || status)) {
		gather_written(g, nbd_error_write(p, j->cookie, error));
	} else {
		gather_written(g, nbd_simple_write(p, j->cookie, error));
	}
}
