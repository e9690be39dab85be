/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-greet: the client's side of the handshake, as a state machine over input bytes.
 *
 * SOURCE  The NBD protocol, "fixed newstyle" handshake.
 * METHOD  GREETING → one option at a time, each sent when the one before is answered: STARTTLS (if
 *         wanted; then the caller does TLS and calls nbd_greet_secure), STRUCTURED_REPLY,
 *         SET_META_CONTEXT, GO (or INFO). If the server does not support GO, EXPORT_NAME follows. The first
 *         bytes of an answer's data are gathered in g->in, and the rest is skipped: the client
 *         needs no long data.
 * COST    O(bytes). Nothing is allocated; a server may answer MOST_ANSWERS times.
 */
#include "wire/nbd.h"
#include "wire/bytes.h"
#include "wire/nbd-options.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { GREETING, HEAD, DATA, SKIP, OLD, TLS, READY, FAILED };

/* A complete handshake needs fewer answers; this bounds a server that never stops. */
#define MOST_ANSWERS 256

struct out {
	uint8_t *p;
	size_t room, made;
};

void nbd_greet_init(
	struct nbd_greet *g, const char *name, bool tls, bool structured, bool allocation)
{
	*g = (struct nbd_greet){
		.name = name,
		.want_tls = tls,
		.want_structured = structured || allocation, /* block status needs them */
		.want_allocation = allocation,
		.step = GREETING,
	};
	g->export_.block_min = 1;
	g->export_.block_preferred = 4096;
	g->export_.block_max = NBD_PAYLOAD_MAX;
}

static void fail(struct nbd_greet *g, int error, const char *why)
{
	g->step = FAILED;
	g->error = error;
	snprintf(g->fault, sizeof(g->fault), "%s", why);
}

/* ---- options */

static void send_option(struct nbd_greet *g, struct out *o, uint32_t option, uint32_t len)
{
	uint8_t *p = o->p + o->made;

	bytes_put64(p, NBD_OPTION_MAGIC);
	bytes_put32(p + 8, option);
	bytes_put32(p + 12, len);
	o->made += NBD_OPTION_SIZE;
	g->option = option;
	g->have = 0;
	g->step = HEAD;
}

static void put32(struct out *o, uint32_t v)
{
	bytes_put32(o->p + o->made, v);
	o->made += 4;
}

static void put_text(struct out *o, const char *text, size_t len)
{
	memcpy(o->p + o->made, text, len);
	o->made += len;
}

static void ask_go(struct nbd_greet *g, struct out *o)
{
	uint32_t len = (uint32_t)strlen(g->name);

	send_option(g, o, g->only_info ? NBD_OPT_INFO : NBD_OPT_GO, 4 + len + 2 + 2);
	put32(o, len);
	put_text(o, g->name, len);
	put32(o, 1u << 16 | NBD_INFO_BLOCK_SIZE); /* how many, then which */
}

static void ask_contexts(struct nbd_greet *g, struct out *o)
{
	const char *const queries[] = {NBD_BASE_ALLOCATION, NBD_WEIR_HELD};
	uint32_t len = (uint32_t)strlen(g->name), n = g->want_held ? 2 : 1, all = 0;

	for (uint32_t i = 0; i < n; i++)
		all += 4 + (uint32_t)strlen(queries[i]);
	send_option(g, o, NBD_OPT_SET_META_CONTEXT, 4 + len + 4 + all);
	put32(o, len);
	put_text(o, g->name, len);
	put32(o, n);
	for (uint32_t i = 0; i < n; i++) {
		put32(o, (uint32_t)strlen(queries[i]));
		put_text(o, queries[i], strlen(queries[i]));
	}
}

/* Send the option that follows the last answered one (0: the greeting, or TLS is up). */
static void ask_next(struct nbd_greet *g, struct out *o)
{
	switch (g->option) {
	case 0:
		if (g->want_tls && !g->secure) {
			send_option(g, o, NBD_OPT_STARTTLS, 0);
			break;
		}
		if (g->want_structured) {
			send_option(g, o, NBD_OPT_STRUCTURED_REPLY, 0);
			break;
		}
		ask_go(g, o);
		break;
	case NBD_OPT_STRUCTURED_REPLY:
		if (g->want_allocation && g->structured) {
			ask_contexts(g, o);
			break;
		}
		ask_go(g, o);
		break;
	case NBD_OPT_SET_META_CONTEXT:
		ask_go(g, o);
		break;
	default:
		fail(g, -EPROTO, "the server's handshake is out of order");
	}
}

/* ---- answers */

/* Fail with the message for this error, and the server's message if it sent one. */
static void fail_answer(struct nbd_greet *g)
{
	static const struct {
		uint32_t type;
		int error;
		const char *why;
	} table[] = {
		{NBD_REP_ERR_UNSUP, -ENOTSUP, "the server does not support the requested option"},
		{NBD_REP_ERR_POLICY, -EACCES, "the server refuses this client"},
		{NBD_REP_ERR_TLS_REQD, -EACCES, "the server requires TLS"},
		{NBD_REP_ERR_UNKNOWN, -ENOENT, "the server has no such export"},
		{NBD_REP_ERR_SHUTDOWN, -ESHUTDOWN, "the server cannot serve the export now"},
		{NBD_REP_ERR_PLATFORM, -ENOTSUP, "the server's platform cannot do that"},
	};
	const char *why = "the server refuses the requested option";
	int error = -EPROTO;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (g->reply_type == table[i].type) {
			why = table[i].why;
			error = table[i].error;
		}
	}
	if (g->option == NBD_OPT_STARTTLS) {
		why = "the server refuses TLS";
		error = -EACCES;
	}
	for (uint32_t i = 0; i < g->have; i++) /* users see the server's message */
		if (g->in[i] < ' ' || g->in[i] == 0x7f)
			g->in[i] = '?';
	fail(g, error, why);
	if (g->have) {
		size_t n = strlen(g->fault);

		snprintf(g->fault + n, sizeof(g->fault) - n, ": \"%.*s\"", (int)g->have,
			(const char *)g->in);
	}
}

static bool power_of_two(uint32_t v)
{
	return v && (v & (v - 1)) == 0;
}

static void parse_info(struct nbd_greet *g)
{
	struct nbd_export *e = &g->export_;
	uint16_t info;

	if (g->have < 2) {
		fail(g, -EPROTO, "the server sent a broken answer to NBD_OPT_GO");
		return;
	}
	info = bytes_get16(g->in);
	if (info == NBD_INFO_EXPORT && g->have == 12) {
		e->size = bytes_get64(g->in + 2);
		e->flags = bytes_get16(g->in + 10);
		g->told = true;
	} else if (info == NBD_INFO_BLOCK_SIZE && g->have == 14) {
		e->block_min = bytes_get32(g->in + 2);
		e->block_preferred = bytes_get32(g->in + 6);
		e->block_max = bytes_get32(g->in + 10);
		if (!power_of_two(e->block_min) || !power_of_two(e->block_preferred) ||
			e->block_min > e->block_preferred || e->block_max < e->block_min)
			fail(g, -EPROTO, "the server's block sizes make no sense");
	} else if (info == NBD_INFO_EXPORT || info == NBD_INFO_BLOCK_SIZE) {
		fail(g, -EPROTO, "the server sent a broken answer to NBD_OPT_GO");
	}
}

static bool is_context(const struct nbd_greet *g, const char *name)
{
	size_t len = strlen(name);

	return g->have == 4 + len && memcmp(g->in + 4, name, len) == 0;
}

static void parse_context(struct nbd_greet *g)
{
	if (is_context(g, NBD_BASE_ALLOCATION)) {
		g->base_allocation = true;
		g->context_id = bytes_get32(g->in);
	} else if (g->want_held && is_context(g, NBD_WEIR_HELD)) {
		g->held = true;
		g->held_id = bytes_get32(g->in);
	}
}

static void handle_ack(struct nbd_greet *g, struct out *o)
{
	switch (g->option) {
	case NBD_OPT_STARTTLS:
		g->step = TLS;
		break;
	case NBD_OPT_INFO:
	case NBD_OPT_GO:
		if (g->told)
			g->step = READY;
		else
			fail(g, -EPROTO, "the server did not send the export's size");
		break;
	case NBD_OPT_STRUCTURED_REPLY:
		g->structured = true;
		ask_next(g, o);
		break;
	default:
		ask_next(g, o);
	}
}

static void handle_error(struct nbd_greet *g, struct out *o)
{
	uint32_t len = (uint32_t)strlen(g->name);

	switch (g->option) {
	case NBD_OPT_GO:
		if (g->reply_type != NBD_REP_ERR_UNSUP) {
			fail_answer(g);
			break;
		}
		send_option(g, o, NBD_OPT_EXPORT_NAME, len);
		put_text(o, g->name, len);
		g->step = OLD;
		break;
	case NBD_OPT_STRUCTURED_REPLY:
	case NBD_OPT_SET_META_CONTEXT:
		if (g->reply_type == NBD_REP_ERR_TLS_REQD || g->reply_type == NBD_REP_ERR_POLICY) {
			fail_answer(g);
			break;
		}
		g->base_allocation = g->held = false;
		ask_next(g, o); /* the server does not offer it */
		break;
	default:
		fail_answer(g);
	}
}

static void handle_answer(struct nbd_greet *g, struct out *o)
{
	g->step = HEAD;
	if (g->reply_type & NBD_REP_ERR)
		handle_error(g, o);
	else if (g->reply_type == NBD_REP_ACK)
		handle_ack(g, o);
	else if (g->reply_type == NBD_REP_INFO &&
		 (g->option == NBD_OPT_GO || g->option == NBD_OPT_INFO))
		parse_info(g);
	else if (g->reply_type == NBD_REP_META_CONTEXT && g->option == NBD_OPT_SET_META_CONTEXT)
		parse_context(g);
	else
		fail(g, -EPROTO, "the server's answer does not match the option");
	g->have = 0;
}

static void parse_head(struct nbd_greet *g)
{
	uint32_t length = bytes_get32(g->in + 16);

	g->reply_type = bytes_get32(g->in + 12);
	g->have = 0;
	if (bytes_get64(g->in) != NBD_ANSWER_MAGIC || bytes_get32(g->in + 8) != g->option) {
		fail(g, -EPROTO, "the server's answer is malformed");
	} else if (++g->answers > MOST_ANSWERS || length > NBD_PAYLOAD_MAX) {
		fail(g, -EPROTO, "the server's answers are too many or too long");
	} else {
		g->length = length < sizeof(g->in) ? length : sizeof(g->in);
		g->skip = length - g->length;
		g->step = DATA;
	}
}

static void parse_greeting(struct nbd_greet *g, struct out *o)
{
	uint16_t flags = bytes_get16(g->in + 16);

	g->have = 0;
	if (bytes_get64(g->in) != NBD_MAGIC) {
		fail(g, -EPROTO, "not an NBD server");
	} else if (bytes_get64(g->in + 8) == NBD_OLD_MAGIC) {
		fail(g, -ENOTSUP, "the server speaks the old style of NBD, without exports");
	} else if (bytes_get64(g->in + 8) != NBD_OPTION_MAGIC || !(flags & NBD_FIXED_NEWSTYLE)) {
		fail(g, -ENOTSUP, "the server does not speak the fixed newstyle of NBD");
	} else if (strlen(g->name) > NBD_NAME_MAX) {
		fail(g, -ENAMETOOLONG, "the export's name is too long");
	} else {
		g->no_zeroes = flags & NBD_NO_ZEROES;
		put32(o, NBD_FIXED_NEWSTYLE | (g->no_zeroes ? NBD_NO_ZEROES : 0));
		ask_next(g, o);
	}
}

static void parse_old_answer(struct nbd_greet *g)
{
	g->export_.size = bytes_get64(g->in);
	g->export_.flags = bytes_get16(g->in + 8);
	g->base_allocation = g->structured && g->base_allocation;
	g->held = g->structured && g->held;
	g->step = READY;
}

/* ---- the machine */

static bool gather_input(
	struct nbd_greet *g, uint32_t want, const uint8_t *in, size_t n, size_t *used)
{
	size_t take = want - g->have;

	if (take > n - *used)
		take = n - *used;
	if (take)
		memcpy(g->in + g->have, in + *used, take);
	g->have += (uint32_t)take;
	*used += take;
	return g->have == want;
}

static bool skip_data(struct nbd_greet *g, size_t n, size_t *used)
{
	size_t take = g->skip < n - *used ? g->skip : n - *used;

	*used += take;
	g->skip -= (uint32_t)take;
	return g->skip == 0;
}

/* Do one step. Return false if more input is needed or the handshake is over. */
static bool greet_step(
	struct nbd_greet *g, const uint8_t *in, size_t n, size_t *used, struct out *o)
{
	switch (g->step) {
	case GREETING:
		if (!gather_input(g, NBD_GREETING_SIZE, in, n, used))
			return false;
		parse_greeting(g, o);
		return true;
	case HEAD:
		if (!gather_input(g, NBD_ANSWER_SIZE, in, n, used))
			return false;
		parse_head(g);
		return true;
	case DATA:
		if (!gather_input(g, g->length, in, n, used))
			return false;
		g->step = SKIP;
		return true;
	case SKIP:
		/* Only unrequested data (a description, a long message) exceed g->in. */
		if (!skip_data(g, n, used))
			return false;
		handle_answer(g, o);
		return true;
	case OLD:
		if (!gather_input(g, 10 + (g->no_zeroes ? 0 : NBD_OLD_PADDING), in, n, used))
			return false;
		parse_old_answer(g);
		return true;
	default:
		return false;
	}
}

enum nbd_greet_state nbd_greet_input(struct nbd_greet *g, const uint8_t *in, size_t n, size_t *used,
	uint8_t *out, size_t room, size_t *made)
{
	struct out o = {.p = out, .room = room};

	*used = 0;
	/* One option at a time: the output never has to hold two with a name. */
	while (o.made == 0 && greet_step(g, in, n, used, &o))
		;
	/* See nbd-hello.c: plain text after the answer to STARTTLS is an attack. */
	if (g->step == TLS && *used < n)
		fail(g, -EPROTO, "the server sent plain text after its answer to NBD_OPT_STARTTLS");
	*made = o.made;
	switch (g->step) {
	case TLS:
		return NBD_GREET_TLS;
	case READY:
		return NBD_GREET_READY;
	case FAILED:
		return NBD_GREET_FAILED;
	default:
		return NBD_GREET_MORE;
	}
}

void nbd_greet_secure(struct nbd_greet *g, uint8_t *out, size_t room, size_t *made)
{
	struct out o = {.p = out, .room = room};

	g->secure = true;
	g->option = 0;
	ask_next(g, &o);
	*made = o.made;
}
