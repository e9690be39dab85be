/* SPDX-License-Identifier: BSD-3-Clause */
/* Read any bytes as an NBD server's handshake and replies. The first byte chooses the client's
 * options and the size of the pieces. The handshake fails with a reason, or gives a valid
 * export; then reply headers are read until one is invalid. */
#include "fuzz.h"
#include "wire/nbd.h"
#include <string.h>

static size_t replies(const uint8_t *p, size_t n)
{
	size_t at = 0;

	while (at < n) {
		struct nbd_reply r;
		int size = nbd_reply_read(p + at, n - at, &r);

		if (size <= 0)
			break;
		MUST((size_t)size <= n - at);
		MUST(size == (r.structured ? NBD_CHUNK_SIZE : NBD_SIMPLE_SIZE));
		MUST(r.error <= 0 && (r.structured || r.length == 0));
		at += (size_t)size;
		if (r.length > n - at)
			break;
		at += r.length;
	}
	return at;
}

static enum nbd_greet_state greet(
	struct nbd_greet *g, uint8_t choice, const uint8_t *in, size_t n, size_t piece, size_t *ret)
{
	uint8_t out[NBD_GREET_OUT];
	enum nbd_greet_state state;
	size_t at = 0, end = 0, used, made;

	nbd_greet_init(g, choice & 8 ? "a" : "", choice & 1, choice & 2, choice & 4);
	g->want_held = choice & 8;
	do {
		if (at == end)
			end = n - end < piece ? n : end + piece;
		state = nbd_greet_input(g, in + at, end - at, &used, out, sizeof(out), &made);
		MUST(used <= end - at && made <= sizeof(out));
		at += used;
		if (state == NBD_GREET_TLS) {
			nbd_greet_secure(g, out, sizeof(out), &made);
			MUST(made > 0 && made <= sizeof(out));
			state = NBD_GREET_MORE;
		}
	} while (state == NBD_GREET_MORE && (used || made || end < n));
	*ret = at;
	return state;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct nbd_greet whole, pieces;
	enum nbd_greet_state a, b;
	size_t at, at_too;

	if (len == 0)
		return 0;
	a = greet(&whole, data[0], data + 1, len - 1, SIZE_MAX, &at);
	b = greet(&pieces, data[0], data + 1, len - 1, 1 + (data[0] >> 4), &at_too);
	if (!(data[0] & 1)) { /* without TLS, the size of the pieces must not matter */
		MUST(a == b && at == at_too && whole.error == pieces.error);
		MUST(strcmp(whole.fault, pieces.fault) == 0);
		MUST(whole.export_.size == pieces.export_.size);
	}
	if (a == NBD_GREET_FAILED) {
		MUST(whole.error < 0 && whole.fault[0]);
		return 0;
	}
	if (a == NBD_GREET_READY) {
		MUST(whole.export_.block_min > 0);
		MUST(whole.structured || !whole.base_allocation);
		replies(data + 1 + at, len - 1 - at);
	}
	return 0;
}
