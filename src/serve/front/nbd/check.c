/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check: the rules of the protocol, and the errors for violations.
 *
 * SOURCE  The NBD protocol (doc/proto.md of the NBD project), "Transmission phase", "Error values".
 * LAW     A command or flag that was not offered: EINVAL. A change of a read-only export: EPERM. Beyond
 *         the end: ENOSPC for commands that write data, EINVAL for others. Not in whole blocks: EINVAL.
 *         A read above the largest payload: EOVERFLOW if it must come in one chunk, else EINVAL.
 */
#include "serve/front/nbd/nbd.h"
#include <errno.h>

/* Return the flags that a command may carry, if offered. */
static uint16_t flags_of(const struct front_nbd_rules *r, uint16_t command)
{
	uint16_t flags = r->flags & NBD_SEND_FUA ? NBD_FUA : 0;

	switch (command) {
	case NBD_READ:
		return flags | (r->structured ? NBD_DF : 0);
	case NBD_WRITE_ZEROES:
		return flags | NBD_NO_HOLE | (r->flags & NBD_SEND_FAST_ZERO ? NBD_FAST_ZERO : 0);
	case NBD_BLOCK_STATUS:
		return flags | NBD_REQ_ONE;
	default:
		return flags;
	}
}

static bool is_offered(const struct front_nbd_rules *r, uint16_t command)
{
	switch (command) {
	case NBD_READ:
	case NBD_WRITE:
		return true;
	case NBD_FLUSH:
		return r->flags & NBD_SEND_FLUSH;
	case NBD_TRIM:
		return r->flags & NBD_SEND_TRIM;
	case NBD_WRITE_ZEROES:
		return r->flags & NBD_SEND_WRITE_ZEROES;
	case NBD_CACHE:
		return r->flags & NBD_SEND_CACHE;
	case NBD_BLOCK_STATUS:
		return r->status;
	default:
		return false;
	}
}

static bool is_change(uint16_t command)
{
	return command == NBD_WRITE || command == NBD_TRIM || command == NBD_WRITE_ZEROES;
}

static int check_range(const struct front_nbd_rules *r, const struct nbd_request *q)
{
	if (q->offset > r->size || q->length > r->size - q->offset)
		return q->command == NBD_WRITE || q->command == NBD_WRITE_ZEROES ? -ENOSPC
										 : -EINVAL;
	if (r->block_min > 1 && (q->offset % r->block_min || q->length % r->block_min))
		return -EINVAL;
	return 0;
}

int front_nbd_check(const struct front_nbd_rules *r, const struct nbd_request *q)
{
	if (is_change(q->command) && r->flags & NBD_READ_ONLY)
		return -EPERM;
	if (!is_offered(r, q->command) || q->flags & ~flags_of(r, q->command))
		return -EINVAL;
	if (q->command == NBD_FLUSH)
		return 0; /* its range has no meaning */
	if (q->command == NBD_BLOCK_STATUS && q->length == 0)
		return -EINVAL;
	if (q->command == NBD_READ && q->length > NBD_PAYLOAD_MAX)
		return q->flags & NBD_DF ? -EOVERFLOW : -EINVAL;
	if (q->command == NBD_WRITE && q->length > NBD_PAYLOAD_MAX)
		return -EINVAL;
	return check_range(r, q);
}

uint16_t front_nbd_flags(const struct back_info *info, bool read_only)
{
	unsigned flags = NBD_HAS_FLAGS | NBD_SEND_DF;

	if (info->can_flush)
		flags |= NBD_SEND_FLUSH;
	if (info->can_cache)
		flags |= NBD_SEND_CACHE;
	if (info->multi_conn)
		flags |= NBD_MULTI_CONN;
	if (info->rotational)
		flags |= NBD_ROTATIONAL;
	if (read_only || info->read_only)
		return (uint16_t)(flags | NBD_READ_ONLY);
	if (info->can_fua)
		flags |= NBD_SEND_FUA;
	if (info->can_trim)
		flags |= NBD_SEND_TRIM;
	if (info->can_zero)
		flags |= NBD_SEND_WRITE_ZEROES;
	if (info->can_zero && info->can_fast_zero)
		flags |= NBD_SEND_FAST_ZERO;
	return (uint16_t)flags;
}
