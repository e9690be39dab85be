/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and replies: byte by byte as the protocol defines them, in both directions. */
#include "wire/nbd.h"
#include "test.h"
#include <errno.h>

static void request(void)
{
	static const uint8_t bytes[NBD_REQUEST_SIZE] = {0x25, 0x60, 0x95, 0x13, /* magic */
		0, 1, 0, 6,                   /* FUA, WRITE_ZEROES */
		1, 2, 3, 4, 5, 6, 7, 8,       /* cookie */
		0x80, 0, 0, 0, 0, 0, 0x10, 0, /* offset */
		0xfe, 0xdc, 0xba, 0x98};      /* length */
	struct nbd_request r = {0};
	uint8_t out[NBD_REQUEST_SIZE];

	CHECK_INT(nbd_request_read(bytes, &r), 0);
	CHECK_INT(r.flags, NBD_FUA);
	CHECK_INT(r.command, NBD_WRITE_ZEROES);
	CHECK(r.cookie == UINT64_C(0x0102030405060708));
	CHECK(r.offset == UINT64_C(0x8000000000001000));
	CHECK(r.length == 0xfedcba98u);
	nbd_request_write(out, &r);
	CHECK(memcmp(out, bytes, sizeof(out)) == 0);
	for (int i = 0; i < 4; i++) { /* each byte of the magic counts */
		memcpy(out, bytes, sizeof(out));
		out[i] ^= 1;
		CHECK_INT(nbd_request_read(out, &r), -EPROTO);
	}
}

static void simple_reply(void)
{
	static const uint8_t bytes[NBD_SIMPLE_SIZE] = {
		0x67, 0x44, 0x66, 0x98, 0, 0, 0, 28, 8, 7, 6, 5, 4, 3, 2, 1};
	struct nbd_reply r;
	uint8_t out[NBD_SIMPLE_SIZE];

	CHECK_INT(nbd_simple_write(out, UINT64_C(0x0807060504030201), -ENOSPC), NBD_SIMPLE_SIZE);
	CHECK(memcmp(out, bytes, sizeof(out)) == 0);
	for (size_t n = 0; n < sizeof(out); n++)
		CHECK_INT(nbd_reply_read(out, n, &r), 0);
	CHECK_INT(nbd_reply_read(out, sizeof(out), &r), NBD_SIMPLE_SIZE);
	CHECK(!r.structured && r.cookie == UINT64_C(0x0807060504030201));
	CHECK_INT(r.error, -ENOSPC);
	CHECK_INT(r.length, 0);
	out[3] = 0;
	CHECK_INT(nbd_reply_read(out, sizeof(out), &r), -EPROTO);
	CHECK_INT(nbd_reply_read(out, 4, &r), -EPROTO); /* as soon as the magic is known */
}

static void chunks(void)
{
	static const uint8_t data[NBD_DATA_SIZE] = {0x66, 0x8e, 0x33, 0xef, /* magic */
		0, 1, 0, 1,              /* done, offset and data */
		0, 0, 0, 0, 0, 0, 0, 9,  /* cookie */
		0, 0, 0x10, 8,           /* length: with the offset */
		0, 0, 0, 1, 0, 0, 0, 0}; /* offset */
	static const uint8_t error[NBD_ERROR_SIZE] = {0x66, 0x8e, 0x33, 0xef, 0, 1, 0x80, 1, 0, 0,
		0, 0, 0, 0, 0, 9, 0, 0, 0, 6, 0, 0, 0, 1, 0, 0};
	struct nbd_reply r;
	uint8_t out[NBD_DATA_SIZE];

	CHECK_INT(nbd_data_write(out, 9, UINT64_C(1) << 32, 4096), NBD_DATA_SIZE);
	CHECK(memcmp(out, data, sizeof(data)) == 0);
	for (size_t n = 0; n < NBD_CHUNK_SIZE; n++)
		CHECK_INT(nbd_reply_read(out, n, &r), 0);
	CHECK_INT(nbd_reply_read(out, sizeof(out), &r), NBD_CHUNK_SIZE);
	CHECK(r.structured && r.cookie == 9);
	CHECK_INT(r.flags, NBD_CHUNK_DONE);
	CHECK_INT(r.type, NBD_CHUNK_DATA);
	CHECK_INT(r.length, 4104);
	CHECK_INT(nbd_error_write(out, 9, -EROFS), NBD_ERROR_SIZE);
	CHECK(memcmp(out, error, sizeof(error)) == 0);
	CHECK_INT(nbd_chunk_write(out, 9, NBD_CHUNK_STATUS, 0, 12), NBD_CHUNK_SIZE);
	CHECK_INT(nbd_reply_read(out, NBD_CHUNK_SIZE, &r), NBD_CHUNK_SIZE);
	CHECK_INT(r.type, NBD_CHUNK_STATUS);
	CHECK_INT(r.flags, 0);
	CHECK_INT(r.length, 12);
}

static void error_numbers(void)
{
	static const int both_ways[] = {
		EPERM, EIO, ENOMEM, EINVAL, ENOSPC, EOVERFLOW, ENOTSUP, ESHUTDOWN};

	for (size_t i = 0; i < sizeof(both_ways) / sizeof(both_ways[0]); i++)
		CHECK_INT(nbd_errno_of(nbd_error_of(-both_ways[i])), -both_ways[i]);
	CHECK_INT(nbd_error_of(0), 0);
	CHECK_INT(nbd_errno_of(0), 0);
	CHECK_INT(nbd_error_of(-ENOSPC), 28);
	CHECK_INT(nbd_error_of(-ESHUTDOWN), 108);
	CHECK_INT(nbd_error_of(-EROFS), 1);
	CHECK_INT(nbd_error_of(-EACCES), 1);
	CHECK_INT(nbd_error_of(-EDQUOT), 28);
	CHECK_INT(nbd_error_of(-EOPNOTSUPP), 95);
	CHECK_INT(nbd_error_of(-ECONNRESET), 5);
	CHECK_INT(nbd_errno_of(4711), -EIO);
}

int main(void)
{
	RUN(request);
	RUN(simple_reply);
	RUN(chunks);
	RUN(error_numbers);
	return 0;
}
