/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd: requests, replies and errors of the transmission phase. See nbd.h.
 *
 *   request     magic 4, flags 2, command 2, cookie 8, offset 8, length 4
 *   simple      magic 4, error 4, cookie 8
 *   chunk       magic 4, flags 2, type 2, cookie 8, length 4
 */
#include "wire/nbd.h"
#include "wire/bytes.h"
#include <errno.h>

#define REQUEST_MAGIC 0x25609513u
#define SIMPLE_MAGIC  0x67446698u
#define CHUNK_MAGIC   0x668e33efu

/* The protocol's errors are Linux errno values, written as numbers because a host's may differ. */
static const struct {
	uint32_t nbd;
	int errno_;
} errors[] = {
	{1, EPERM},
	{5, EIO},
	{12, ENOMEM},
	{22, EINVAL},
	{28, ENOSPC},
	{75, EOVERFLOW},
	{95, ENOTSUP},
	{108, ESHUTDOWN},
	/* one way only: the nearest error of the protocol */
	{1, EROFS},
	{1, EACCES},
	{28, EDQUOT},
	{28, EFBIG},
#if EOPNOTSUPP != ENOTSUP
	{95, EOPNOTSUPP},
#endif
};
#define N_ERRORS (sizeof(errors) / sizeof(errors[0]))
#define NBD_EIO  5

uint32_t nbd_error_of(int negative_errno)
{
	if (negative_errno == 0)
		return 0;
	for (size_t i = 0; i < N_ERRORS; i++)
		if (errors[i].errno_ == -negative_errno)
			return errors[i].nbd;
	return NBD_EIO;
}

int nbd_errno_of(uint32_t nbd_error)
{
	if (nbd_error == 0)
		return 0;
	for (size_t i = 0; i < N_ERRORS; i++)
		if (errors[i].nbd == nbd_error)
			return -errors[i].errno_;
	return -EIO;
}

int nbd_request_read(const uint8_t *p, struct nbd_request *ret)
{
	if (bytes_get32(p) != REQUEST_MAGIC)
		return -EPROTO;
	ret->flags = bytes_get16(p + 4);
	ret->command = bytes_get16(p + 6);
	ret->cookie = bytes_get64(p + 8);
	ret->offset = bytes_get64(p + 16);
	ret->length = bytes_get32(p + 24);
	return 0;
}

void nbd_request_write(uint8_t *p, const struct nbd_request *r)
{
	bytes_put32(p, REQUEST_MAGIC);
	bytes_put16(p + 4, r->flags);
	bytes_put16(p + 6, r->command);
	bytes_put64(p + 8, r->cookie);
	bytes_put64(p + 16, r->offset);
	bytes_put32(p + 24, r->length);
}

size_t nbd_simple_write(uint8_t *p, uint64_t cookie, int error)
{
	bytes_put32(p, SIMPLE_MAGIC);
	bytes_put32(p + 4, nbd_error_of(error));
	bytes_put64(p + 8, cookie);
	return NBD_SIMPLE_SIZE;
}

size_t nbd_chunk_write(
	uint8_t *p, uint64_t cookie, enum nbd_chunk_type type, uint16_t flags, uint32_t length)
{
	bytes_put32(p, CHUNK_MAGIC);
	bytes_put16(p + 4, flags);
	bytes_put16(p + 6, (uint16_t)type);
	bytes_put64(p + 8, cookie);
	bytes_put32(p + 16, length);
	return NBD_CHUNK_SIZE;
}

size_t nbd_data_write(uint8_t *p, uint64_t cookie, uint64_t offset, uint32_t length)
{
	nbd_chunk_write(p, cookie, NBD_CHUNK_DATA, NBD_CHUNK_DONE, length + 8);
	bytes_put64(p + NBD_CHUNK_SIZE, offset);
	return NBD_DATA_SIZE;
}

size_t nbd_error_write(uint8_t *p, uint64_t cookie, int error)
{
	nbd_chunk_write(p, cookie, NBD_CHUNK_ERROR, NBD_CHUNK_DONE, 6);
	bytes_put32(p + NBD_CHUNK_SIZE, nbd_error_of(error));
	bytes_put16(p + NBD_CHUNK_SIZE + 4, 0);
	return NBD_ERROR_SIZE;
}

int nbd_reply_read(const uint8_t *p, size_t n, struct nbd_reply *ret)
{
	uint32_t magic;

	if (n < 4)
		return 0;
	magic = bytes_get32(p);
	if (magic == SIMPLE_MAGIC) {
		if (n < NBD_SIMPLE_SIZE)
			return 0;
		*ret = (struct nbd_reply){
			.cookie = bytes_get64(p + 8), .error = nbd_errno_of(bytes_get32(p + 4))};
		return NBD_SIMPLE_SIZE;
	}
	if (magic != CHUNK_MAGIC)
		return -EPROTO;
	if (n < NBD_CHUNK_SIZE)
		return 0;
	*ret = (struct nbd_reply){.cookie = bytes_get64(p + 8),
		.structured = true,
		.flags = bytes_get16(p + 4),
		.type = bytes_get16(p + 6),
		.length = bytes_get32(p + 16)};
	return NBD_CHUNK_SIZE;
}
