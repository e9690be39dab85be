/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's handshake: against our own server, in pieces of every size, and against servers that
 * are old, refuse, or send nonsense. */
#include "talk.h"

static struct nbd_hello hello;
static struct nbd_greet greet;
static struct text in, out;

/* ---- against our own server */

struct pipe { /* one direction; bytes sent and not yet taken */
	struct text t;
	size_t at;
};
static struct pipe up, down;

/* Feed at most `piece` bytes from one pipe, and append the output to the other. */
static enum nbd_hello_state server(size_t piece)
{
	uint8_t buffer[NBD_HELLO_OUT];
	size_t n = up.t.n - up.at, used, made;
	enum nbd_hello_state state;

	if (n > piece)
		n = piece;
	state = nbd_hello_input(&hello, up.t.p + up.at, n, &used, buffer, sizeof(buffer), &made);
	up.at += used;
	text_add(&down.t, buffer, made);
	return state;
}

static enum nbd_greet_state client(size_t piece)
{
	uint8_t buffer[NBD_GREET_OUT];
	size_t n = down.t.n - down.at, used, made;
	enum nbd_greet_state state;

	if (n > piece)
		n = piece;
	state = nbd_greet_input(
		&greet, down.t.p + down.at, n, &used, buffer, sizeof(buffer), &made);
	down.at += used;
	text_add(&up.t, buffer, made);
	return state;
}

/* Run both sides until the client has an outcome; fail if both wait. */
static enum nbd_greet_state talk(size_t up_piece, size_t down_piece)
{
	uint8_t buffer[NBD_GREET_OUT];
	enum nbd_hello_state s = NBD_HELLO_MORE;
	enum nbd_greet_state c = NBD_GREET_MORE;
	size_t made;

	up.t.n = up.at = down.t.n = down.at = 0;
	made = nbd_hello_start(&hello, buffer);
	text_add(&down.t, buffer, made);
	for (int i = 0; i < 100000; i++) {
		if (s == NBD_HELLO_MORE)
			s = server(up_piece);
		if (c == NBD_GREET_MORE)
			c = client(down_piece);
		if (s == NBD_HELLO_TLS && c == NBD_GREET_TLS) {
			nbd_hello_secure(&hello);
			nbd_greet_secure(&greet, buffer, sizeof(buffer), &made);
			text_add(&up.t, buffer, made);
			s = NBD_HELLO_MORE;
			c = NBD_GREET_MORE;
		}
		if (c == NBD_GREET_READY || c == NBD_GREET_FAILED)
			return c;
	}
	FAIL("both wait");
}

static void check_export(void)
{
	CHECK(greet.export_.size == TALK_SIZE);
	CHECK_INT(greet.export_.flags, hello.export_.flags);
	CHECK_INT(greet.export_.block_min, 512);
	CHECK_INT(greet.export_.block_preferred, 4096);
	CHECK_INT(greet.export_.block_max, NBD_PAYLOAD_MAX);
	CHECK_INT(greet.structured, hello.structured);
	CHECK_INT(greet.base_allocation, hello.base_allocation);
	CHECK_INT(greet.context_id, hello.context_id);
}

/* Both contexts are requested in one option and granted; weir:held only if requested. */
static void held(void)
{
	for (int want = 0; want < 2; want++) {
		nbd_hello_init(&hello, &talk_ops, false, false);
		nbd_greet_init(&greet, "disk", false, true, true);
		greet.want_held = want;
		CHECK_INT(talk(3, 5), NBD_GREET_READY);
		check_export();
		CHECK_INT(greet.base_allocation, true);
		CHECK_INT(greet.held, want);
		CHECK_INT(hello.held, want);
		CHECK_INT(greet.held_id, hello.held_id);
		CHECK(greet.held_id != greet.context_id);
	}
}

static void all_ways_to_ask(void)
{
	for (int way = 0; way < 8; way++) {
		bool tls = way & 1, structured = way & 2, allocation = way & 4;

		nbd_hello_init(&hello, &talk_ops, true, tls);
		nbd_greet_init(&greet, "disk", tls, structured, allocation);
		CHECK_INT(talk(SIZE_MAX, SIZE_MAX), NBD_GREET_READY);
		check_export();
		CHECK_STR(hello.name, "disk");
		CHECK_INT(greet.structured, structured || allocation);
		CHECK_INT(greet.base_allocation, allocation);
		CHECK_INT(hello.secure, tls);
	}
}

static void any_pieces(void)
{
	for (size_t up_piece = 1; up_piece < 120; up_piece++) {
		for (size_t down_piece = 1; down_piece < 120; down_piece++) {
			bool tls = (up_piece + down_piece) % 2;

			nbd_hello_init(&hello, &talk_ops, true, false);
			nbd_greet_init(&greet, "web", tls, true, true);
			CHECK_INT(talk(up_piece, down_piece), NBD_GREET_READY);
			check_export();
			CHECK(greet.base_allocation);
		}
	}
}

static void refused(void)
{
	static const struct {
		const char *name;
		int error;
		const char *fault;
	} cases[] = {
		{"nosuch", -ENOENT, "the server has no such export: \"no export has that name\""},
		{"secret", -EACCES,
			"the server refuses this client: \"this client may not use that export\""},
		{"away", -ESHUTDOWN,
			"the server cannot serve the export now: \"that export cannot be served "
			"now\""},
	};

	for (size_t i = 0; i < 3; i++) {
		for (size_t piece = 1; piece < 200; piece += 7) {
			nbd_hello_init(&hello, &talk_ops, false, false);
			nbd_greet_init(&greet, cases[i].name, false, true, true);
			CHECK_INT(talk(piece, piece), NBD_GREET_FAILED);
			CHECK_INT(greet.error, cases[i].error);
			CHECK_STR(greet.fault, cases[i].fault);
		}
	}
	for (int structured = 0; structured < 2; structured++) {
		nbd_hello_init(&hello, &talk_ops, true, true);
		nbd_greet_init(&greet, "", false, structured, false);
		CHECK_INT(talk(SIZE_MAX, SIZE_MAX), NBD_GREET_FAILED);
		CHECK_INT(greet.error, -EACCES);
		CHECK_STR(greet.fault, "the server requires TLS: \"TLS is required here\"");
	}
	nbd_hello_init(&hello, &talk_ops, false, false);
	nbd_greet_init(&greet, "", true, false, false);
	CHECK_INT(talk(SIZE_MAX, SIZE_MAX), NBD_GREET_FAILED);
	CHECK_INT(greet.error, -EACCES);
	CHECK_STR(greet.fault, "the server refuses TLS: \"TLS is not offered\"");
}

static void longest_name(void)
{
	static char name[NBD_NAME_MAX + 2];

	memset(name, 'n', NBD_NAME_MAX);
	nbd_hello_init(&hello, &talk_ops, false, false);
	nbd_greet_init(&greet, name, false, true, true);
	CHECK_INT(talk(SIZE_MAX, SIZE_MAX), NBD_GREET_FAILED);
	CHECK_INT(greet.error, -ENOENT);
	name[NBD_NAME_MAX] = 'n';
	nbd_hello_init(&hello, &talk_ops, false, false);
	nbd_greet_init(&greet, name, false, true, true);
	CHECK_INT(talk(SIZE_MAX, SIZE_MAX), NBD_GREET_FAILED);
	CHECK_INT(greet.error, -ENAMETOOLONG);
}

/* ---- against a script of a server's bytes */

static void script(const char *name, bool tls, bool structured, bool allocation)
{
	nbd_greet_init(&greet, name, tls, structured, allocation);
	in.n = out.n = 0;
	text_add(&in, "NBDMAGICIHAVEOPT\0\3", 18);
}

static enum nbd_greet_state play(void)
{
	uint8_t buffer[NBD_GREET_OUT];
	enum nbd_greet_state state;
	size_t at = 0, used, made;

	do {
		state = nbd_greet_input(
			&greet, in.p + at, in.n - at, &used, buffer, sizeof(buffer), &made);
		text_add(&out, buffer, made);
		at += used;
	} while (state == NBD_GREET_MORE && (used || made));
	return state;
}

static void go_info(uint64_t size, uint16_t flags)
{
	uint8_t p[12] = {0};

	bytes_put64(p + 2, size);
	bytes_put16(p + 10, flags);
	text_answer(&in, NBD_OPT_GO, NBD_REP_INFO, p, 12);
}

static void options_sent(void)
{
	script("ab", false, false, false);
	go_info(1, 1);
	text_answer(&in, NBD_OPT_GO, NBD_REP_ACK, NULL, 0);
	CHECK_INT(play(), NBD_GREET_READY);
	CHECK_INT(out.n, 4 + 16 + 10);
	CHECK(memcmp(out.p, "\0\0\0\3IHAVEOPT\0\0\0\7\0\0\0\12\0\0\0\2ab\0\1\0\3", out.n) == 0);
	CHECK_INT(greet.export_.block_min, 1); /* not sent */
	CHECK_INT(greet.export_.block_max, NBD_PAYLOAD_MAX);
}

static void old_server(void)
{
	for (int no_zeroes = 0; no_zeroes < 2; no_zeroes++) {
		script("disk", false, true, true);
		in.p[17] = no_zeroes ? 3 : 1;
		text_answer(&in, NBD_OPT_STRUCTURED_REPLY, NBD_REP_ERR_UNSUP, NULL, 0);
		text_answer(&in, NBD_OPT_GO, NBD_REP_ERR_UNSUP, "what?", 5);
		CHECK_INT(play(), NBD_GREET_MORE);
		CHECK(memcmp(out.p + out.n - 20, "IHAVEOPT\0\0\0\1\0\0\0\4disk", 20) == 0);
		in.n = 0;
		text_64(&in, TALK_SIZE);
		text_16(&in, NBD_HAS_FLAGS | NBD_READ_ONLY);
		for (int i = 0; !no_zeroes && i < 124; i++) {
			CHECK_INT(play(), NBD_GREET_MORE);
			in.n = 0;
			text_add(&in, "", 1);
		}
		CHECK_INT(play(), NBD_GREET_READY);
		CHECK(greet.export_.size == TALK_SIZE && !greet.structured);
		CHECK_INT(greet.export_.flags, NBD_HAS_FLAGS | NBD_READ_ONLY);
	}
}

static void without_extras(void)
{
	script("", false, true, true);
	text_answer(&in, NBD_OPT_STRUCTURED_REPLY, NBD_REP_ACK, NULL, 0);
	text_answer(&in, NBD_OPT_SET_META_CONTEXT, NBD_REP_META_CONTEXT, "\0\0\0\7x:y", 7);
	text_answer(&in, NBD_OPT_SET_META_CONTEXT, NBD_REP_ACK, NULL, 0);
	go_info(1, 1);
	text_answer(&in, NBD_OPT_GO, NBD_REP_INFO, "\0\1name of another kind", 22);
	text_answer(&in, NBD_OPT_GO, NBD_REP_ACK, NULL, 0);
	CHECK_INT(play(), NBD_GREET_READY);
	CHECK(greet.structured && !greet.base_allocation);
}

static void fails(int error, const char *fault)
{
	CHECK_INT(play(), NBD_GREET_FAILED);
	CHECK_INT(greet.error, error);
	CHECK_STR(greet.fault, fault);
}

static void no_server(void)
{
	script("", false, false, false);
	in.n = 0;
	text_add(&in, "HTTP/1.1 400 Bad Request\r\n", 26);
	fails(-EPROTO, "not an NBD server");
	script("", false, false, false);
	in.n = 8;
	text_add(&in, "\0\0\x42\x02\x81\x86\x12\x53\0\0", 10);
	fails(-ENOTSUP, "the server speaks the old style of NBD, without exports");
	script("", false, false, false);
	in.p[17] = 2;
	fails(-ENOTSUP, "the server does not speak the fixed newstyle of NBD");
}

static void nonsense(void)
{
	static const char *const not_told = "the server did not send the export's size";
	static const char *const blocks = "the server's block sizes make no sense";

	script("", false, false, false);
	text_answer(&in, NBD_OPT_GO, NBD_REP_ACK, NULL, 0);
	fails(-EPROTO, not_told);
	script("", false, false, false);
	text_answer(&in, NBD_OPT_GO, NBD_REP_INFO, "\0\3\0\0\0\3\0\0\x10\0\2\0\0\0", 14);
	fails(-EPROTO, blocks);
	script("", false, false, false);
	text_answer(&in, NBD_OPT_GO, NBD_REP_INFO, "\0\3\0\0\x10\0\0\0\2\0\2\0\0\0", 14);
	fails(-EPROTO, blocks);
	script("", false, false, false);
	text_answer(&in, NBD_OPT_GO, NBD_REP_INFO, "\0\0\0", 3);
	fails(-EPROTO, "the server sent a broken answer to NBD_OPT_GO");
	script("", false, false, false);
	text_answer(&in, NBD_OPT_LIST, NBD_REP_ACK, NULL, 0);
	fails(-EPROTO, "the server's answer is malformed");
	script("", false, false, false);
	text_answer(&in, NBD_OPT_GO, NBD_REP_SERVER, NULL, 0);
	fails(-EPROTO, "the server's answer does not match the option");
	script("", false, false, false);
	for (int i = 0; i < 257; i++)
		go_info(1, 1);
	fails(-EPROTO, "the server's answers are too many or too long");
	script("", false, false, false);
	text_answer(&in, NBD_OPT_GO, NBD_REP_INFO, NULL, 0);
	bytes_put32(in.p + in.n - 4, NBD_PAYLOAD_MAX + 1);
	fails(-EPROTO, "the server's answers are too many or too long");
}

static void long_message(void)
{
	static char message[3000];

	memset(message, 'm', sizeof(message));
	message[1] = '\n'; /* a server cannot write lines of its own into a log */
	script("", false, false, false);
	text_answer(&in, NBD_OPT_GO, NBD_REP_ERR_UNKNOWN, message, sizeof(message));
	CHECK_INT(play(), NBD_GREET_FAILED);
	CHECK_INT(greet.error, -ENOENT);
	CHECK(strlen(greet.fault) == sizeof(greet.fault) - 1);
	CHECK(strstr(greet.fault, ": \"m?mmm"));
}

static void tls_after_plain_text(void)
{
	script("", true, false, false);
	text_answer(&in, NBD_OPT_STARTTLS, NBD_REP_ACK, NULL, 0);
	go_info(1, 1); /* must not be processed as if it came under TLS */
	CHECK_INT(play(), NBD_GREET_FAILED);
	CHECK_INT(greet.error, -EPROTO);
}

int main(void)
{
	RUN(all_ways_to_ask);
	RUN(held);
	RUN(any_pieces);
	RUN(refused);
	RUN(longest_name);
	RUN(options_sent);
	RUN(old_server);
	RUN(without_extras);
	RUN(no_server);
	RUN(nonsense);
	RUN(long_message);
	RUN(tls_after_plain_text);
	return 0;
}
