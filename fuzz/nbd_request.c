/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes as a stream of NBD requests, as a server takes it: many in one piece, payloads between
 * them, cut anywhere. However it is cut, the same requests are found, and each is written back to the
 * bytes it came from. */
#include "fuzz.h"
#include "wire/nbd.h"
#include <string.h>

struct stream {
	uint8_t head[NBD_REQUEST_SIZE];
	size_t have;     /* bytes of head */
	uint64_t skip;   /* bytes of payload to come */
	uint64_t digest; /* of all requests so far */
	unsigned requests;
	bool broken;
};

static void take(struct stream *s, const uint8_t *p)
{
	struct nbd_request r;
	uint8_t again[NBD_REQUEST_SIZE];

	if (nbd_request_read(p, &r) < 0) {
		s->broken = true;
		return;
	}
	nbd_request_write(again, &r);
	MUST(memcmp(again, p, NBD_REQUEST_SIZE) == 0);
	s->requests++;
	for (size_t i = 0; i < NBD_REQUEST_SIZE; i++)
		s->digest = s->digest * 31 + p[i];
	if (r.command == NBD_WRITE) {
		s->broken = r.length > NBD_PAYLOAD_MAX;
		s->skip = r.length;
	}
}

static void give(struct stream *s, const uint8_t *p, size_t n)
{
	while (n && !s->broken) {
		size_t part;

		if (s->skip) {
			part = s->skip < n ? (size_t)s->skip : n;
			s->skip -= part;
		} else if (s->have == 0 &&
			   n >= NBD_REQUEST_SIZE) { /* the usual case: where it lies */
			part = NBD_REQUEST_SIZE;
			take(s, p);
		} else {
			part = NBD_REQUEST_SIZE - s->have < n ? NBD_REQUEST_SIZE - s->have : n;
			memcpy(s->head + s->have, p, part);
			s->have += part;
			if (s->have == NBD_REQUEST_SIZE) {
				take(s, s->head);
				s->have = 0;
			}
		}
		p += part;
		n -= part;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct stream whole = {.have = 0}, pieces = {.have = 0};
	size_t piece;

	if (len == 0)
		return 0;
	piece = (size_t)data[0] + 1;
	give(&whole, data + 1, len - 1);
	for (size_t at = 1; at < len; at += piece)
		give(&pieces, data + at, len - at < piece ? len - at : piece);
	MUST(whole.requests == pieces.requests && whole.digest == pieces.digest);
	MUST(whole.broken == pieces.broken);
	return 0;
}
