/* SPDX-License-Identifier: BSD-3-Clause */
/* Read any bytes as a client's side of the NBD handshake; the first byte chooses the server's
 * TLS setting and the size of the pieces. For every input and every size of pieces, the server
 * sends the same complete answers, within its buffer, and serves no export that is not allowed. */
#include "fuzz.h"
#include "wire/bytes.h"
#include "wire/nbd.h"
#include "wire/nbd-options.h"
#include <errno.h>
#include <string.h>

struct talk {
	struct nbd_hello hello;
	enum nbd_hello_state state;
	size_t taken, n;
	uint8_t out[1 << 20];
};

static int find(void *arg, const char *name, struct nbd_export *ret)
{
	MUST(strlen(name) <= NBD_NAME_MAX);
	if (name[0] == 's')
		return -EACCES;
	if (name[0] && name[0] != 'd')
		return -ENOENT;
	*ret = (struct nbd_export){.size = 1 << 20, .flags = NBD_SEND_DF, .description = "a disk"};
	return 0;
}

static const char *list(void *arg, size_t i)
{
	return i < 40 ? "a name of the list, and there are more of them than one output holds"
		      : NULL;
}

static const char *describe(void *arg)
{
	return "purpose of it";
}

static const struct nbd_hello_ops ops = {.find = find, .list = list, .describe = describe};

/* Run one handshake in pieces; bytes after STARTTLS are given as if they came under TLS. */
static void talk(struct talk *t, uint8_t choice, const uint8_t *in, size_t n, size_t piece)
{
	size_t end = 0, used, made;

	t->taken = t->n = 0;
	nbd_hello_init(&t->hello, &ops, choice & 1, (choice & 3) == 3);
	do {
		/* The answer to STARTTLS must come before the bytes that follow it. */
		if (t->taken == end)
			end = n - end < piece ? n : end + piece;
		MUST(sizeof(t->out) - t->n >= NBD_HELLO_OUT);
		t->state = nbd_hello_input(&t->hello, in + t->taken, end - t->taken, &used,
			t->out + t->n, NBD_HELLO_OUT, &made);
		MUST(used <= end - t->taken && made <= NBD_HELLO_OUT);
		t->taken += used;
		t->n += made;
		if (t->state == NBD_HELLO_TLS) {
			MUST(choice & 1);
			nbd_hello_secure(&t->hello);
			t->state = NBD_HELLO_MORE;
		}
		if (sizeof(t->out) - t->n < NBD_HELLO_OUT)
			break; /* the client lists exports without end */
	} while (t->state == NBD_HELLO_MORE && (used || made || end < n));
}

static void check(const struct talk *t, uint8_t choice)
{
	size_t at = 0, tail = 0;

	if (t->state == NBD_HELLO_READY) {
		MUST(t->hello.name[0] == '\0' || t->hello.name[0] == 'd');
		MUST(t->hello.secure || (choice & 3) != 3);
		MUST(t->hello.structured || !(t->hello.base_allocation || t->hello.held));
		MUST(!(t->hello.export_.flags & NBD_SEND_DF) || t->hello.structured);
		if (t->hello.option == NBD_OPT_EXPORT_NAME)
			tail = t->hello.no_zeroes ? 10 : 134;
	}
	MUST(t->state != NBD_HELLO_END || t->hello.fault || t->hello.option == NBD_OPT_ABORT);
	while (at + tail < t->n) {
		MUST(t->n - at >= NBD_ANSWER_SIZE && bytes_get64(t->out + at) == NBD_ANSWER_MAGIC);
		at += NBD_ANSWER_SIZE + bytes_get32(t->out + at + 16);
	}
	MUST(at + tail == t->n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct talk whole, pieces;

	if (len == 0)
		return 0;
	talk(&whole, data[0], data + 1, len - 1, SIZE_MAX);
	check(&whole, data[0]);
	talk(&pieces, data[0], data + 1, len - 1, 1 + (data[0] >> 2));
	check(&pieces, data[0]);
	/* With TLS, the result may depend on the pieces. */
	if (!(data[0] & 1) && whole.n <= sizeof(whole.out) - NBD_HELLO_OUT) {
		MUST(whole.state == pieces.state && whole.n == pieces.n);
		MUST(memcmp(whole.out, pieces.out, whole.n) == 0);
		MUST(whole.taken == pieces.taken);
	}
	return 0;
}
