/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-hello: the server's side of the handshake, as a state machine over input bytes.
 *
 * SOURCE  The NBD protocol, "fixed newstyle" handshake; "NBD_OPT_STARTTLS" and its forced resets.
 * METHOD  FLAGS → (HEAD → DATA | SKIP | LIST)* → READY, TLS or ENDED. An option is gathered in h->in and
 *         answered when it is complete. An option that its head alone disqualifies (unknown, too long,
 *         TLS first) is refused at once and its data are skipped, not stored. The server starts an
 *         option only while the output has room for the longest answer; a list of exports stops when
 *         the output is full and continues at the next call.
 * COST    O(bytes). Nothing is allocated; a client may send MOST_OPTIONS options, and
 *         MOST_OPTIONS_ABOUT more for each export that was listed.
 */
#include "wire/nbd.h"
#include "wire/bytes.h"
#include "wire/nbd-hello.h"
#include "wire/nbd-options.h"
#include <string.h>

/* Limits that keep a client from keeping the server busy. A client that lists exports may query
 * each: for information and for contexts, with and without an answer. */
#define MOST_OPTIONS       1024
#define MOST_OPTIONS_ABOUT 8

void nbd_hello_init(
	struct nbd_hello *h, const struct nbd_hello_ops *ops, bool tls_offered, bool tls_required)
{
	*h = (struct nbd_hello){.ops = ops,
		.tls_offered = tls_offered,
		.tls_required = tls_required,
		.step = NBD_HELLO_AT_FLAGS};
}

size_t nbd_hello_start(struct nbd_hello *h, uint8_t *out)
{
	bytes_put64(out, NBD_MAGIC);
	bytes_put64(out + 8, NBD_OPTION_MAGIC);
	bytes_put16(out + 16, NBD_FIXED_NEWSTYLE | NBD_NO_ZEROES);
	return NBD_GREETING_SIZE;
}

void nbd_hello_secure(struct nbd_hello *h)
{
	/* An attacker may have forged everything negotiated in plain text, so the state is built
	 * anew. Kept are the configuration, the client's flags, which it does not repeat, and the
	 * counts that bound its options. */
	*h = (struct nbd_hello){.ops = h->ops,
		.tls_offered = h->tls_offered,
		.tls_required = h->tls_required,
		.secure = true,
		.fixed = h->fixed,
		.no_zeroes = h->no_zeroes,
		.options = h->options,
		.listed = h->listed,
		.step = NBD_HELLO_AT_HEAD};
}

static bool is_known(uint32_t option)
{
	return option >= NBD_OPT_EXPORT_NAME && option <= NBD_OPT_SET_META_CONTEXT && option != 4;
}

/* Refuse an option by its head alone. Return true if it was answered and its data have to be
 * skipped. */
static bool refuse_head(struct nbd_hello *h, struct nbd_hello_out *o)
{
	bool early = h->option == NBD_OPT_ABORT || h->option == NBD_OPT_STARTTLS;

	if (h->tls_required && !h->secure && !early) {
		if (h->option == NBD_OPT_EXPORT_NAME)
			nbd_hello_end(h, "export requested without TLS");
		else
			nbd_hello_refuse(h, o, NBD_REP_ERR_TLS_REQD, "TLS is required here");
	} else if (h->denied && h->option != NBD_OPT_ABORT) {
		if (h->option == NBD_OPT_EXPORT_NAME)
			nbd_hello_end(h, h->denied);
		else
			nbd_hello_refuse(h, o, NBD_REP_ERR_POLICY, h->denied);
	} else if (!is_known(h->option)) {
		nbd_hello_refuse(h, o, NBD_REP_ERR_UNSUP, "unknown option");
	} else if (h->length > sizeof(h->in)) {
		if (h->option == NBD_OPT_EXPORT_NAME)
			nbd_hello_end(h, "export name too long");
		else
			nbd_hello_refuse(h, o, NBD_REP_ERR_TOO_BIG, "option too long");
	} else if (!h->fixed && h->option != NBD_OPT_EXPORT_NAME) {
		nbd_hello_end(h, "option requires the fixed newstyle flag");
	} else {
		return false;
	}
	return true;
}

static void parse_head(struct nbd_hello *h, struct nbd_hello_out *o)
{
	h->have = 0;
	if (bytes_get64(h->in) != NBD_OPTION_MAGIC) {
		nbd_hello_end(h, "wrong option magic");
		return;
	}
	h->option = bytes_get32(h->in + 8);
	h->length = bytes_get32(h->in + 12);
	if (++h->options > MOST_OPTIONS + MOST_OPTIONS_ABOUT * h->listed) {
		nbd_hello_end(h, "too many options");
	} else if (h->length > NBD_PAYLOAD_MAX) {
		nbd_hello_end(h, "option far too long");
	} else if (refuse_head(h, o)) {
		h->skip = h->length;
		if (h->step == NBD_HELLO_AT_HEAD)
			h->step = NBD_HELLO_AT_SKIP;
	} else {
		h->step = NBD_HELLO_AT_DATA;
	}
}

static void parse_flags(struct nbd_hello *h)
{
	uint32_t flags = bytes_get32(h->in);

	h->have = 0;
	h->step = NBD_HELLO_AT_HEAD;
	h->fixed = flags & NBD_FIXED_NEWSTYLE;
	h->no_zeroes = flags & NBD_NO_ZEROES;
	if (flags & ~(uint32_t)(NBD_FIXED_NEWSTYLE | NBD_NO_ZEROES))
		nbd_hello_end(h, "unknown client flags");
}

/* Copy input to h->in until it holds `want` bytes. Return true if it does. */
static bool gather_input(
	struct nbd_hello *h, uint32_t want, const uint8_t *in, size_t n, size_t *used)
{
	size_t take = want - h->have;

	if (take > n - *used)
		take = n - *used;
	if (take)
		memcpy(h->in + h->have, in + *used, take);
	h->have += (uint32_t)take;
	*used += take;
	return h->have == want;
}

/* Do one step. Return false if more input or room is needed or the handshake is over. */
static bool hello_step(
	struct nbd_hello *h, const uint8_t *in, size_t n, size_t *used, struct nbd_hello_out *o)
{
	if (h->step <= NBD_HELLO_AT_DATA && o->room - o->made < NBD_HELLO_ANSWER)
		return false;
	switch (h->step) {
	case NBD_HELLO_AT_FLAGS:
		if (!gather_input(h, 4, in, n, used))
			return false;
		parse_flags(h);
		return true;
	case NBD_HELLO_AT_HEAD:
		if (!gather_input(h, NBD_OPTION_SIZE, in, n, used))
			return false;
		parse_head(h, o);
		return true;
	case NBD_HELLO_AT_DATA:
		if (!gather_input(h, h->length, in, n, used))
			return false;
		nbd_hello_option(h, o);
		return true;
	case NBD_HELLO_AT_SKIP: {
		size_t take = h->skip < n - *used ? h->skip : n - *used;

		*used += take;
		h->skip -= (uint32_t)take;
		if (h->skip)
			return false;
		h->step = NBD_HELLO_AT_HEAD;
		return true;
	}
	case NBD_HELLO_AT_LIST:
		return nbd_hello_list(h, o);
	default:
		return false;
	}
}

enum nbd_hello_state nbd_hello_input(struct nbd_hello *h, const uint8_t *in, size_t n, size_t *used,
	uint8_t *out, size_t room, size_t *made)
{
	struct nbd_hello_out o = {.p = out, .room = room};

	*used = 0;
	h->waits = false;
	while (!h->waits && hello_step(h, in, n, used, &o))
		;
	/* A client must wait for the answer to STARTTLS. Plain text that came with the option is
	 * not the start of TLS, and must not be processed as if it came under TLS. */
	if (h->step == NBD_HELLO_AT_TLS && *used < n)
		nbd_hello_end(h, "plain text after NBD_OPT_STARTTLS");
	*made = o.made;
	if (h->waits)
		return NBD_HELLO_WAIT;
	switch (h->step) {
	case NBD_HELLO_AT_TLS:
		return NBD_HELLO_TLS;
	case NBD_HELLO_AT_READY:
		return NBD_HELLO_READY;
	case NBD_HELLO_AT_ENDED:
		return NBD_HELLO_END;
	default:
		return NBD_HELLO_MORE;
	}
}
