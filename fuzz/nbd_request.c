/* SPDX-License-Identifier: BSD-3-Clause */
/* Read any bytes as a stream of NBD requests, as a server does: many in one piece, with payloads
 * between them, cut anywhere. The cuts must not change the requests that are found, and each
 * request encodes to the bytes it was read from. Requests that pass the front end's check lie
 * inside the export and use only features that were offered; the second byte chooses those. */
#include "fuzz.h"
#include "serve/front/nbd/nbd.h"
#include "wire/nbd.h"
#include <string.h>

#define SIZE (UINT64_C(1) << 24) /* bytes, of the export */

struct requests {
	uint8_t head[NBD_REQUEST_SIZE];
	size_t have;     /* bytes of the header */
	uint64_t skip;   /* bytes of payload to come */
	uint64_t digest; /* of all requests so far */
	struct front_nbd_rules rules;
	unsigned requests;
	bool broken;
};

/* Check that a request which the front end accepts is harmless. */
static void check(const struct front_nbd_rules *rules, const struct nbd_request *q)
{
	bool data = q->command == NBD_READ || q->command == NBD_WRITE;

	if (q->command == NBD_DISC || front_nbd_check(rules, q) < 0)
		return;
	MUST(q->command <= NBD_BLOCK_STATUS);
	if (q->command == NBD_FLUSH)
		return;
	MUST(q->offset <= SIZE && q->length <= SIZE - q->offset);
	MUST(q->offset % rules->block_min == 0 && q->length % rules->block_min == 0);
	MUST(!data || q->length <= NBD_PAYLOAD_MAX);
	MUST(!(q->flags & NBD_FUA) || rules->flags & NBD_SEND_FUA);
	if (rules->flags & NBD_READ_ONLY)
		MUST(q->command == NBD_READ || q->command == NBD_CACHE ||
			q->command == NBD_BLOCK_STATUS);
}

static void take_request(struct requests *s, const uint8_t *p)
{
	struct nbd_request r;
	uint8_t again[NBD_REQUEST_SIZE];

	if (nbd_request_read(p, &r) < 0) {
		s->broken = true;
		return;
	}
	nbd_request_write(again, &r);
	MUST(memcmp(again, p, NBD_REQUEST_SIZE) == 0);
	check(&s->rules, &r);
	s->requests++;
	for (size_t i = 0; i < NBD_REQUEST_SIZE; i++)
		s->digest = s->digest * 31 + p[i];
	if (r.command == NBD_WRITE) {
		s->broken = r.length > NBD_PAYLOAD_MAX;
		s->skip = r.length;
	}
}

static void give(struct requests *s, const uint8_t *p, size_t n)
{
	while (n && !s->broken) {
		size_t part;

		if (s->skip) {
			part = s->skip < n ? (size_t)s->skip : n;
			s->skip -= part;
		} else if (s->have == 0 &&
			   /* the usual case: the header is decoded in place */
			   n >= NBD_REQUEST_SIZE) {
			part = NBD_REQUEST_SIZE;
			take_request(s, p);
		} else {
			part = NBD_REQUEST_SIZE - s->have < n ? NBD_REQUEST_SIZE - s->have : n;
			memcpy(s->head + s->have, p, part);
			s->have += part;
			if (s->have == NBD_REQUEST_SIZE) {
				take_request(s, s->head);
				s->have = 0;
			}
		}
		p += part;
		n -= part;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct requests whole = {.rules = {.size = SIZE}}, pieces;
	size_t piece;

	if (len < 2)
		return 0;
	piece = (size_t)data[0] + 1;
	whole.rules.flags = (uint16_t)(data[1] << 1);
	whole.rules.block_min = data[1] & 1 ? 512 : 1;
	whole.rules.structured = data[1] & 2;
	whole.rules.status = data[1] & 4;
	pieces = whole;
	give(&whole, data + 2, len - 2);
	for (size_t at = 2; at < len; at += piece)
		give(&pieces, data + at, len - at < piece ? len - at : piece);
	MUST(whole.requests == pieces.requests && whole.digest == pieces.digest);
	MUST(whole.broken == pieces.broken);
	return 0;
}
