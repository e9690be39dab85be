/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's handshake: its answer to every option, with input in pieces of every size. */
#include "talk.h"

static struct nbd_hello hello;
static struct text in, out;
static size_t taken; /* bytes of in.p */
static const uint8_t *next;

static void start(bool tls_offered, bool tls_required)
{
	in.n = out.n = 0;
	nbd_hello_init(&hello, &talk_ops, tls_offered, tls_required);
	text_32(&in, NBD_FIXED_NEWSTYLE | NBD_NO_ZEROES);
}

/* Feed all of `in` to the server: `first` bytes, then `piece` at a time. */
static enum nbd_hello_state feed(size_t first, size_t piece, size_t room)
{
	uint8_t buffer[NBD_HELLO_OUT * 2];
	enum nbd_hello_state state = NBD_HELLO_MORE;
	size_t at = 0, end = first, used, made;

	for (out.n = 0;;) {
		state = nbd_hello_input(&hello, in.p + at, end - at, &used, buffer, room, &made);
		CHECK(used <= end - at && made <= room);
		text_add(&out, buffer, made);
		at += used;
		if (state != NBD_HELLO_MORE)
			break;
		if (used || made)
			continue;
		CHECK(at == end); /* once its output is sent, it takes all input */
		if (end == in.n)
			break;
		end = in.n - end < piece ? in.n : end + piece;
	}
	taken = at;
	next = out.p;
	return state;
}

static enum nbd_hello_state feed_all(void)
{
	return feed(in.n, 1, NBD_HELLO_OUT);
}

/* Check option and type of the next answer, and return its data. */
static const uint8_t *expect(uint32_t option, uint32_t type, uint32_t *ret_len)
{
	const uint8_t *p = next;
	uint32_t len;

	CHECK((size_t)(p - out.p) + NBD_ANSWER_SIZE <= out.n);
	CHECK(bytes_get64(p) == NBD_ANSWER_MAGIC);
	CHECK_INT(bytes_get32(p + 8), option);
	CHECK_INT(bytes_get32(p + 12), type);
	len = bytes_get32(p + 16);
	next = p + NBD_ANSWER_SIZE + len;
	CHECK((size_t)(next - out.p) <= out.n);
	if (ret_len)
		*ret_len = len;
	return p + NBD_ANSWER_SIZE;
}

static void expect_end(void)
{
	CHECK_INT(next - out.p, out.n);
}

static void greeting(void)
{
	uint8_t p[32];

	start(false, false);
	CHECK_INT(nbd_hello_start(&hello, p), 18);
	CHECK(memcmp(p, "NBDMAGICIHAVEOPT\0\3", 18) == 0);
}

static void opt_go(void)
{
	static const uint16_t infos[] = {
		NBD_INFO_BLOCK_SIZE, NBD_INFO_NAME, NBD_INFO_DESCRIPTION, 99};
	const uint8_t *p;
	uint32_t len;

	start(false, false);
	text_go(&in, NBD_OPT_INFO, "web", infos, 4);
	text_go(&in, NBD_OPT_GO, "disk", NULL, 0);
	text_add(&in, "requests", 8);
	CHECK_INT(feed_all(), NBD_HELLO_READY);
	CHECK_INT(taken, in.n - 8); /* the rest belongs to the transmission phase */
	p = expect(NBD_OPT_INFO, NBD_REP_INFO, &len);
	CHECK_INT(len, 12);
	CHECK_INT(bytes_get16(p), NBD_INFO_EXPORT);
	CHECK(bytes_get64(p + 2) == TALK_SIZE);
	/* without structured replies there is no "do not fragment" */
	CHECK_INT(bytes_get16(p + 10),
		NBD_HAS_FLAGS | NBD_SEND_FLUSH | NBD_SEND_FUA | NBD_MULTI_CONN);
	p = expect(NBD_OPT_INFO, NBD_REP_INFO, &len);
	CHECK(len == 5 && memcmp(p, "\0\1web", 5) == 0);
	p = expect(NBD_OPT_INFO, NBD_REP_INFO, &len);
	CHECK(len == 15 && memcmp(p, "\0\2three exports", 15) == 0);
	p = expect(NBD_OPT_INFO, NBD_REP_INFO, &len);
	CHECK(len == 14 && memcmp(p, "\0\3\0\0\2\0\0\0\x10\0\2\0\0\0", 14) == 0);
	expect(NBD_OPT_INFO, NBD_REP_ACK, &len);
	CHECK_INT(len, 0);
	expect(NBD_OPT_GO, NBD_REP_INFO, NULL);
	expect(NBD_OPT_GO, NBD_REP_ACK, NULL); /* nothing that was not requested */
	expect_end();
	CHECK_STR(hello.name, "disk");
	CHECK(hello.export_.size == TALK_SIZE && !hello.structured && !hello.base_allocation);
}

static void refused_exports(void)
{
	static const struct {
		const char *name;
		uint32_t type;
	} cases[] = {{"nosuch", NBD_REP_ERR_UNKNOWN}, {"secret", NBD_REP_ERR_POLICY},
		{"away", NBD_REP_ERR_SHUTDOWN}};
	static const char *const queries[] = {"base:allocation", NULL};

	start(false, false);
	text_option(&in, NBD_OPT_STRUCTURED_REPLY, 0);
	for (size_t i = 0; i < 3; i++) {
		text_go(&in, NBD_OPT_INFO, cases[i].name, NULL, 0);
		text_go(&in, NBD_OPT_GO, cases[i].name, NULL, 0);
		text_contexts(&in, NBD_OPT_SET_META_CONTEXT, cases[i].name, queries);
	}
	CHECK_INT(feed_all(), NBD_HELLO_MORE);
	expect(NBD_OPT_STRUCTURED_REPLY, NBD_REP_ACK, NULL);
	for (size_t i = 0; i < 3; i++) {
		expect(NBD_OPT_INFO, cases[i].type, NULL);
		expect(NBD_OPT_GO, cases[i].type, NULL);
		expect(NBD_OPT_SET_META_CONTEXT, cases[i].type, NULL);
	}
	expect_end();
	CHECK(!hello.base_allocation);
}

static void broken_data(void)
{
	static const uint32_t lens[] = {0, 1, 5};

	start(false, false);
	for (size_t i = 0; i < 3; i++) { /* too short for anything */
		text_option(&in, NBD_OPT_GO, lens[i]);
		text_add(&in, "\0\0\0\0\0", lens[i]);
	}
	text_option(&in, NBD_OPT_INFO, 6); /* a name that extends past the end */
	text_add(&in, "\0\0\0\1\0\0", 6);
	text_option(&in, NBD_OPT_INFO, 6); /* a length that nearly overflows */
	text_add(&in, "\xff\xff\xff\xff\0\0", 6);
	text_option(&in, NBD_OPT_INFO, 8); /* a count beyond the data */
	text_add(&in, "\0\0\0\0\0\2\0\0", 8);
	text_option(&in, NBD_OPT_INFO, 7); /* a byte too many */
	text_add(&in, "\0\0\0\0\0\0\0", 7);
	text_option(&in, NBD_OPT_GO, 9); /* NUL in a name must not truncate it */
	text_add(&in, "\0\0\0\3we\0\0\0", 9);
	text_option(&in, NBD_OPT_LIST, 1);
	text_add(&in, "x", 1);
	text_option(&in, NBD_OPT_STRUCTURED_REPLY, 1);
	text_add(&in, "x", 1);
	CHECK_INT(feed_all(), NBD_HELLO_MORE);
	for (size_t i = 0; i < 3; i++)
		expect(NBD_OPT_GO, NBD_REP_ERR_INVALID, NULL);
	for (size_t i = 0; i < 4; i++)
		expect(NBD_OPT_INFO, NBD_REP_ERR_INVALID, NULL);
	expect(NBD_OPT_GO, NBD_REP_ERR_INVALID, NULL);
	expect(NBD_OPT_LIST, NBD_REP_ERR_INVALID, NULL);
	expect(NBD_OPT_STRUCTURED_REPLY, NBD_REP_ERR_INVALID, NULL);
	expect_end();
	CHECK(!hello.structured);
}

static void list(void)
{
	const uint8_t *p;
	uint32_t len;

	start(false, false);
	text_option(&in, NBD_OPT_LIST, 0);
	CHECK_INT(feed_all(), NBD_HELLO_MORE);
	p = expect(NBD_OPT_LIST, NBD_REP_SERVER, &len);
	CHECK(len == 8 && memcmp(p, "\0\0\0\4disk", 8) == 0);
	p = expect(NBD_OPT_LIST, NBD_REP_SERVER, &len);
	CHECK(len == 7 && memcmp(p, "\0\0\0\3web", 7) == 0);
	expect(NBD_OPT_LIST, NBD_REP_ACK, NULL);
	expect_end();
}

static const char *about(void *arg)
{
	return "here";
}

static void list_with_descriptions(void)
{
	static const struct nbd_hello_ops ops = {
		.find = talk_find, .list = talk_list, .describe = about};
	const uint8_t *p;
	uint32_t len;

	start(false, false);
	hello.ops = &ops;
	text_option(&in, NBD_OPT_LIST, 0);
	CHECK_INT(feed_all(), NBD_HELLO_MORE);
	p = expect(NBD_OPT_LIST, NBD_REP_SERVER, &len);
	CHECK(len == 12 && memcmp(p, "\0\0\0\4diskhere", 12) == 0);
	expect(NBD_OPT_LIST, NBD_REP_SERVER, &len);
	CHECK_INT(len, 11);
	expect(NBD_OPT_LIST, NBD_REP_ACK, NULL);
	expect_end();
}

static const char *long_list(void *arg, size_t i)
{
	static char name[NBD_NAME_MAX + 2];
	size_t len = i == 77 ? NBD_NAME_MAX + 1 : (i * 611) % (NBD_NAME_MAX + 1);

	memset(name, 'a' + (int)(i % 26), len);
	name[len] = '\0';
	return i < 200 ? name : NULL;
}

static void list_longer_than_the_output(void)
{
	static const struct nbd_hello_ops ops = {.find = talk_find, .list = long_list};

	for (size_t room = NBD_HELLO_OUT; room <= NBD_HELLO_OUT + 64; room += 13) {
		start(false, false);
		hello.ops = &ops;
		text_option(&in, NBD_OPT_LIST, 0);
		text_option(&in, NBD_OPT_ABORT, 0);
		CHECK_INT(feed(in.n, 1, room), NBD_HELLO_END);
		for (size_t i = 0; i < 200; i++) {
			const char *name = long_list(NULL, i);
			const uint8_t *p;
			uint32_t len;

			if (i == 77) /* too long to be requested: left out */
				continue;
			p = expect(NBD_OPT_LIST, NBD_REP_SERVER, &len);
			CHECK_INT(len, 4 + strlen(name));
			CHECK(memcmp(p + 4, name, len - 4) == 0);
		}
		expect(NBD_OPT_LIST, NBD_REP_ACK, NULL);
		expect(NBD_OPT_ABORT, NBD_REP_ACK, NULL);
		expect_end();
	}
}

static void leaving(void)
{
	start(false, false);
	text_option(&in, NBD_OPT_ABORT, 3); /* with or without data */
	text_add(&in, "bye", 3);
	CHECK_INT(feed_all(), NBD_HELLO_END);
	CHECK(!hello.fault);
	expect(NBD_OPT_ABORT, NBD_REP_ACK, NULL);
	expect_end();
	/* It stays ended. */
	text_option(&in, NBD_OPT_LIST, 0);
	CHECK_INT(feed_all(), NBD_HELLO_END);
	CHECK_INT(out.n, 0);
}

static void old_way(void)
{
	for (int no_zeroes = 0; no_zeroes < 2; no_zeroes++) {
		start(false, false);
		in.n = 0;
		text_32(&in, no_zeroes ? NBD_NO_ZEROES : 0); /* without fixed newstyle */
		text_option(&in, NBD_OPT_EXPORT_NAME, 4);
		text_add(&in, "disk", 4);
		CHECK_INT(feed_all(), NBD_HELLO_READY);
		CHECK_INT(out.n, no_zeroes ? 10 : 134);
		CHECK(bytes_get64(out.p) == TALK_SIZE);
		CHECK_INT(bytes_get16(out.p + 8),
			NBD_HAS_FLAGS | NBD_SEND_FLUSH | NBD_SEND_FUA | NBD_MULTI_CONN);
		for (size_t i = 10; i < out.n; i++)
			CHECK_INT(out.p[i], 0);
		CHECK_STR(hello.name, "disk");
	}
	start(false, false);
	text_option(&in, NBD_OPT_EXPORT_NAME, 0);
	CHECK_INT(feed_all(), NBD_HELLO_READY);
	CHECK_STR(hello.name, "");
}

/* Check that the input ends the connection without an answer. */
static void ends(const char *fault)
{
	CHECK_INT(feed_all(), NBD_HELLO_END);
	CHECK_STR(hello.fault, fault);
	CHECK_INT(out.n, 0);
}

static void faults(void)
{
	start(false, false);
	text_option(&in, NBD_OPT_EXPORT_NAME, 6);
	text_add(&in, "nosuch", 6);
	ends("unknown export, or one that this client may not use");

	start(false, false);
	text_option(&in, NBD_OPT_EXPORT_NAME, 4);
	text_add(&in, "di\0k", 4);
	ends("malformed export name");

	start(false, false);
	text_option(&in, NBD_OPT_EXPORT_NAME, 5000);
	ends("export name too long");

	start(false, false);
	text_option(&in, NBD_OPT_GO, 0xffffffffu);
	ends("option far too long");

	start(false, false);
	text_add(&in, "GET / HTTP/1.0\r\n", 16);
	ends("wrong option magic");

	start(false, false);
	in.n = 0;
	text_32(&in, 4 | NBD_FIXED_NEWSTYLE);
	ends("unknown client flags");

	start(false, false);
	in.n = 0;
	text_32(&in, NBD_NO_ZEROES);
	text_option(&in, NBD_OPT_LIST, 0);
	ends("option requires the fixed newstyle flag");

	start(false, false);
	in.n = 0;
	text_32(&in, 0);
	text_option(&in, 4711, 0);
	ends("option requires the fixed newstyle flag");
}

static void unknown_and_too_long(void)
{
	static uint8_t junk[100000];

	memset(junk, 0x49, sizeof(junk)); /* 'I', the first byte of the option magic */
	start(false, false);
	text_option(&in, 4, 0); /* withdrawn from the protocol */
	text_option(&in, 4711, sizeof(junk));
	text_add(&in, junk, sizeof(junk));
	text_option(&in, NBD_OPT_GO, sizeof(junk));
	text_add(&in, junk, sizeof(junk));
	text_option(&in, NBD_OPT_GO, NBD_HELLO_IN + 1);
	text_add(&in, junk, NBD_HELLO_IN + 1);
	text_option(&in, NBD_OPT_ABORT, 0);
	CHECK_INT(feed(7, 1000, NBD_HELLO_OUT), NBD_HELLO_END);
	expect(4, NBD_REP_ERR_UNSUP, NULL);
	expect(4711, NBD_REP_ERR_UNSUP, NULL);
	expect(NBD_OPT_GO, NBD_REP_ERR_TOO_BIG, NULL);
	expect(NBD_OPT_GO, NBD_REP_ERR_TOO_BIG, NULL);
	expect(NBD_OPT_ABORT, NBD_REP_ACK, NULL);
	expect_end();
}

static void longest_name(void)
{
	static char name[NBD_NAME_MAX + 2];

	start(false, false);
	memset(name, 'n', NBD_NAME_MAX);
	text_go(&in, NBD_OPT_GO, name, NULL, 0);
	name[NBD_NAME_MAX] = 'n';
	text_go(&in, NBD_OPT_GO, name, NULL, 0);
	CHECK_INT(feed_all(), NBD_HELLO_MORE);
	expect(NBD_OPT_GO, NBD_REP_ERR_UNKNOWN, NULL);
	expect(NBD_OPT_GO, NBD_REP_ERR_INVALID, NULL);
	expect_end();
}

static void bounded_number(void)
{
	enum nbd_hello_state state;

	start(false, false);
	for (int i = 0; i < 1025; i++)
		text_option(&in, 4711, 0);
	state = feed(in.n, 1, NBD_HELLO_OUT);
	CHECK_INT(state, NBD_HELLO_END);
	CHECK_STR(hello.fault, "too many options");
	for (int i = 0; i < 1024; i++)
		expect(4711, NBD_REP_ERR_UNSUP, NULL);
	expect_end();
}

/* Listed exports raise the limit on options. */
static size_t n_many;
static const char *list_many(void *arg, size_t i)
{
	return i < n_many ? "a" : NULL;
}

static void bounded_by_listed_exports(void)
{
	struct nbd_hello_ops many = talk_ops;

	start(false, false);
	many.list = list_many;
	hello.ops = &many;
	n_many = 10000;
	text_option(&in, NBD_OPT_LIST, 0);
	CHECK_INT(feed(in.n, 1, NBD_HELLO_OUT), NBD_HELLO_MORE);
	for (int i = 0; i < 40; i++) {
		out.n = in.n = 0;
		for (int k = 0; k < 1000; k++)
			text_option(&in, 4711, 0);
		CHECK_INT(feed(in.n, 1, NBD_HELLO_OUT), NBD_HELLO_MORE);
	}
}

/* An export whose storage is not reachable: GO waits, INFO does not. */
static int not_there;
static int find_later(void *arg, const char *name, struct nbd_export *ret)
{
	return not_there ? not_there : talk_ops.find(talk_ops.arg, name, ret);
}

static void waits_for_storage(void)
{
	struct nbd_hello_ops later = talk_ops;

	start(false, false);
	later.find = find_later;
	hello.ops = &later;
	not_there = -EAGAIN;
	text_go(&in, NBD_OPT_INFO, "disk", NULL, 0);
	text_go(&in, NBD_OPT_GO, "disk", NULL, 0);
	text_add(&in, "requests", 8);
	CHECK_INT(feed_all(), NBD_HELLO_WAIT);
	CHECK_INT(taken, in.n - 8);
	expect(NBD_OPT_INFO, NBD_REP_ERR_UNKNOWN, NULL);
	expect_end();
	in.n = 0;
	CHECK_INT(feed_all(), NBD_HELLO_WAIT);
	expect_end();
	not_there = 0;
	CHECK_INT(feed_all(), NBD_HELLO_READY);
	expect(NBD_OPT_GO, NBD_REP_INFO, NULL);
	expect(NBD_OPT_GO, NBD_REP_ACK, NULL);
	expect_end();
	CHECK_STR(hello.name, "disk");
}

/* The export is found, but the client may not enter yet: only the options that end the handshake wait. */
static int not_open, entered;
static int enter_later(void *arg)
{
	entered++;
	return not_open;
}

static void enters_at_the_end(void)
{
	static const char *const allocation[] = {"base:allocation", NULL};
	struct nbd_hello_ops later = talk_ops;

	start(false, false);
	later.enter = enter_later;
	hello.ops = &later;
	not_open = -EAGAIN;
	entered = 0;
	text_option(&in, NBD_OPT_STRUCTURED_REPLY, 0);
	text_go(&in, NBD_OPT_INFO, "disk", NULL, 0);
	text_contexts(&in, NBD_OPT_LIST_META_CONTEXT, "disk", allocation);
	text_contexts(&in, NBD_OPT_SET_META_CONTEXT, "disk", allocation);
	text_go(&in, NBD_OPT_GO, "secret", NULL, 0);
	CHECK_INT(feed_all(), NBD_HELLO_MORE);
	CHECK_INT(entered, 0);
	expect(NBD_OPT_STRUCTURED_REPLY, NBD_REP_ACK, NULL);
	expect(NBD_OPT_INFO, NBD_REP_INFO, NULL);
	expect(NBD_OPT_INFO, NBD_REP_ACK, NULL);
	expect(NBD_OPT_LIST_META_CONTEXT, NBD_REP_META_CONTEXT, NULL);
	expect(NBD_OPT_LIST_META_CONTEXT, NBD_REP_ACK, NULL);
	expect(NBD_OPT_SET_META_CONTEXT, NBD_REP_META_CONTEXT, NULL);
	expect(NBD_OPT_SET_META_CONTEXT, NBD_REP_ACK, NULL);
	expect(NBD_OPT_GO, NBD_REP_ERR_POLICY, NULL);
	expect_end();
	in.n = 0;
	text_go(&in, NBD_OPT_GO, "disk", NULL, 0);
	CHECK_INT(feed_all(), NBD_HELLO_WAIT);
	CHECK_INT(entered, 1);
	expect_end();
	not_open = 0;
	in.n = 0;
	CHECK_INT(feed_all(), NBD_HELLO_READY);
	CHECK_INT(entered, 2);
	expect(NBD_OPT_GO, NBD_REP_INFO, NULL);
	expect(NBD_OPT_GO, NBD_REP_ACK, NULL);
	expect_end();
	CHECK(hello.base_allocation);
}

static void old_option_enters(void)
{
	struct nbd_hello_ops later = talk_ops;

	start(false, false);
	later.enter = enter_later;
	hello.ops = &later;
	not_open = -EAGAIN;
	text_option(&in, NBD_OPT_EXPORT_NAME, 4);
	text_add(&in, "disk", 4);
	CHECK_INT(feed_all(), NBD_HELLO_WAIT);
	CHECK_INT(out.n, 0);
	not_open = 0;
	in.n = 0;
	CHECK_INT(feed_all(), NBD_HELLO_READY);
	CHECK_INT(out.n, 10);
}

static void wait_times_out(void)
{
	struct nbd_hello_ops later = talk_ops;

	start(false, false);
	later.find = find_later;
	hello.ops = &later;
	not_there = -EAGAIN;
	text_go(&in, NBD_OPT_GO, "disk", NULL, 0);
	CHECK_INT(feed_all(), NBD_HELLO_WAIT);
	not_there = -ETIMEDOUT;
	in.n = 0;
	CHECK_INT(feed_all(), NBD_HELLO_MORE);
	expect(NBD_OPT_GO, NBD_REP_ERR_UNKNOWN, NULL);
	expect_end();
}

static void contexts_listed(void)
{
	static const struct {
		const char *queries[4];
		bool found, held;
	} cases[] = {
		{{NULL}, true, true}, /* no query: all contexts */
		{{"weir:"}, false, true},
		{{"weir:held", "base:"}, true, true},
		{{"weir:hel"}, false, false},
		{{"base:"}, true, false},
		{{"base:allocation"}, true, false},
		{{"qemu:", "base:allocation", "base:"}, true, false}, /* listed once */
		{{"base:alloc"}, false, false},
		{{"base"}, false, false},
		{{"qemu:dirty-bitmap:"}, false, false},
		{{""}, false, false},
	};
	size_t n = sizeof(cases) / sizeof(cases[0]);

	start(false, false);
	text_option(&in, NBD_OPT_STRUCTURED_REPLY, 0);
	for (size_t i = 0; i < n; i++)
		text_contexts(&in, NBD_OPT_LIST_META_CONTEXT, "disk", cases[i].queries);
	CHECK_INT(feed_all(), NBD_HELLO_MORE);
	expect(NBD_OPT_STRUCTURED_REPLY, NBD_REP_ACK, NULL);
	for (size_t i = 0; i < n; i++) {
		uint32_t len;

		if (cases[i].found) {
			const uint8_t *p =
				expect(NBD_OPT_LIST_META_CONTEXT, NBD_REP_META_CONTEXT, &len);

			CHECK(len == 19 && memcmp(p + 4, "base:allocation", 15) == 0);
		}
		if (cases[i].held) {
			const uint8_t *p =
				expect(NBD_OPT_LIST_META_CONTEXT, NBD_REP_META_CONTEXT, &len);

			CHECK(len == 13 && memcmp(p + 4, "weir:held", 9) == 0);
		}
		expect(NBD_OPT_LIST_META_CONTEXT, NBD_REP_ACK, NULL);
	}
	expect_end();
	CHECK(!hello.base_allocation); /* LIST does not set */
}

/* SET with the queries for one export, then GO of the export `name`. */
static void set_and_go(const char *set, const char *const *queries, const char *name)
{
	start(false, false);
	text_option(&in, NBD_OPT_STRUCTURED_REPLY, 0);
	text_contexts(&in, NBD_OPT_SET_META_CONTEXT, set, queries);
	text_go(&in, NBD_OPT_GO, name, NULL, 0);
	CHECK_INT(feed_all(), NBD_HELLO_READY);
	CHECK(hello.structured);
	CHECK(hello.export_.flags & NBD_SEND_DF);
}

static void contexts_set(void)
{
	static const char *const allocation[] = {"x-other:thing", "base:allocation", NULL};
	static const char *const wildcard[] = {"base:", NULL}, *const none[] = {NULL};
	static const char *const ours[] = {"weir:held", NULL};
	static const char *const both[] = {"weir:held", "base:allocation", NULL};

	set_and_go("disk", allocation, "disk");
	CHECK(hello.base_allocation && hello.context_id != 0);
	expect(NBD_OPT_STRUCTURED_REPLY, NBD_REP_ACK, NULL);
	CHECK_INT(bytes_get32(expect(NBD_OPT_SET_META_CONTEXT, NBD_REP_META_CONTEXT, NULL)),
		hello.context_id);
	set_and_go("disk", both, "disk");
	CHECK(hello.base_allocation && hello.held && hello.held_id != hello.context_id);
	set_and_go("disk", ours, "disk");
	CHECK(!hello.base_allocation && hello.held && hello.held_id);
	set_and_go("disk", ours, "web");
	CHECK(!hello.held && hello.held_id == 0);
	set_and_go("disk", allocation, "web"); /* contexts belong to their export */
	CHECK(!hello.base_allocation && hello.context_id == 0);
	set_and_go("disk", wildcard, "disk"); /* only LIST allows a wildcard */
	CHECK(!hello.base_allocation);
	set_and_go("disk", none, "disk");
	CHECK(!hello.base_allocation);
}

static void contexts_replaced(void)
{
	static const char *const allocation[] = {"base:allocation", NULL}, *const none[] = {NULL};

	start(false, false); /* refused without structured replies */
	text_contexts(&in, NBD_OPT_SET_META_CONTEXT, "", allocation);
	text_contexts(&in, NBD_OPT_LIST_META_CONTEXT, "", none);
	text_option(&in, NBD_OPT_STRUCTURED_REPLY, 0);
	text_contexts(&in, NBD_OPT_SET_META_CONTEXT, "", allocation);
	text_contexts(&in, NBD_OPT_SET_META_CONTEXT, "", none); /* the last SET counts */
	text_go(&in, NBD_OPT_GO, "", NULL, 0);
	CHECK_INT(feed_all(), NBD_HELLO_READY);
	expect(NBD_OPT_SET_META_CONTEXT, NBD_REP_ERR_INVALID, NULL);
	expect(NBD_OPT_LIST_META_CONTEXT, NBD_REP_ERR_INVALID, NULL);
	CHECK(!hello.base_allocation);
}

static void contexts_broken(void)
{
	start(false, false);
	text_option(&in, NBD_OPT_STRUCTURED_REPLY, 0);
	text_option(&in, NBD_OPT_SET_META_CONTEXT, 7);
	text_add(&in, "\0\0\0\0\0\0\0", 7);
	text_option(&in, NBD_OPT_SET_META_CONTEXT, 8); /* a missing query */
	text_add(&in, "\0\0\0\0\0\0\0\1", 8);
	text_option(&in, NBD_OPT_SET_META_CONTEXT, 12); /* a query that extends past the end */
	text_add(&in, "\0\0\0\0\0\0\0\1\xff\xff\xff\xff", 12);
	text_option(&in, NBD_OPT_SET_META_CONTEXT, 9); /* a byte too many */
	text_add(&in, "\0\0\0\0\0\0\0\0x", 9);
	text_option(&in, NBD_OPT_SET_META_CONTEXT, 8); /* a missing name */
	text_add(&in, "\0\0\0\1\0\0\0\0", 8);
	CHECK_INT(feed_all(), NBD_HELLO_MORE);
	expect(NBD_OPT_STRUCTURED_REPLY, NBD_REP_ACK, NULL);
	for (int i = 0; i < 5; i++)
		expect(NBD_OPT_SET_META_CONTEXT, NBD_REP_ERR_INVALID, NULL);
	expect_end();
}

static void tls_refused(void)
{
	start(false, false);
	text_option(&in, NBD_OPT_STARTTLS, 0);
	CHECK_INT(feed_all(), NBD_HELLO_MORE);
	expect(NBD_OPT_STARTTLS, NBD_REP_ERR_UNSUP, NULL);
	start(true, false);
	text_option(&in, NBD_OPT_STARTTLS, 1);
	text_add(&in, "x", 1);
	CHECK_INT(feed_all(), NBD_HELLO_MORE);
	expect(NBD_OPT_STARTTLS, NBD_REP_ERR_INVALID, NULL);
}

static void tls_required(void)
{
	static const char *const none[] = {NULL};

	start(true, true);
	text_option(&in, NBD_OPT_LIST, 0);
	text_option(&in, NBD_OPT_STRUCTURED_REPLY, 0);
	text_go(&in, NBD_OPT_INFO, "disk", NULL, 0);
	text_go(&in, NBD_OPT_GO, "disk", NULL, 0);
	text_contexts(&in, NBD_OPT_LIST_META_CONTEXT, "", none);
	text_contexts(&in, NBD_OPT_SET_META_CONTEXT, "", none);
	text_option(&in, 4711, 0);
	text_option(&in, NBD_OPT_ABORT, 0);
	CHECK_INT(feed_all(), NBD_HELLO_END);
	expect(NBD_OPT_LIST, NBD_REP_ERR_TLS_REQD, NULL);
	expect(NBD_OPT_STRUCTURED_REPLY, NBD_REP_ERR_TLS_REQD, NULL);
	expect(NBD_OPT_INFO, NBD_REP_ERR_TLS_REQD, NULL);
	expect(NBD_OPT_GO, NBD_REP_ERR_TLS_REQD, NULL);
	expect(NBD_OPT_LIST_META_CONTEXT, NBD_REP_ERR_TLS_REQD, NULL);
	expect(NBD_OPT_SET_META_CONTEXT, NBD_REP_ERR_TLS_REQD, NULL);
	expect(4711, NBD_REP_ERR_TLS_REQD, NULL);
	expect(NBD_OPT_ABORT, NBD_REP_ACK, NULL);
	expect_end();
	start(true, true);
	text_option(&in, NBD_OPT_EXPORT_NAME, 0);
	ends("export requested without TLS");
}

/* An attacker may have forged what a client negotiated in plain text: none of it may hold under
 * TLS, not even for the default export, whose name equals "no name yet". */
static void tls_forgets(void)
{
	static const char *const both[] = {"base:allocation", "weir:held", NULL};
	static const char *const exports[] = {"disk", ""};

	for (size_t i = 0; i < 2; i++) {
		start(true, false);
		text_option(&in, NBD_OPT_LIST, 0);
		text_option(&in, NBD_OPT_STRUCTURED_REPLY, 0);
		text_contexts(&in, NBD_OPT_SET_META_CONTEXT, exports[i], both);
		text_option(&in, NBD_OPT_STARTTLS, 0);
		CHECK_INT(feed_all(), NBD_HELLO_TLS);
		CHECK(hello.structured && hello.base_allocation && hello.held);
		nbd_hello_secure(&hello);
		CHECK_INT(hello.options, 4); /* TLS does not renew the client's allowance */
		in.n = 0;                    /* the client does not repeat its flags */
		text_option(&in, NBD_OPT_STARTTLS, 0); /* refused the second time */
		text_go(&in, NBD_OPT_GO, exports[i], NULL, 0);
		CHECK_INT(feed_all(), NBD_HELLO_READY);
		expect(NBD_OPT_STARTTLS, NBD_REP_ERR_INVALID, NULL);
		CHECK(hello.secure && strcmp(hello.name, exports[i]) == 0);
		CHECK(!hello.structured && !hello.base_allocation && !hello.held);
		CHECK(hello.context_id == 0 && hello.held_id == 0);
	}
}

static void tls_after_plain_text(void)
{
	start(true, true);
	text_option(&in, NBD_OPT_STARTTLS, 0);
	text_go(&in, NBD_OPT_GO, "disk", NULL,
		0); /* must not be processed as if it came under TLS */
	CHECK_INT(feed_all(), NBD_HELLO_END);
	CHECK_STR(hello.fault, "plain text after NBD_OPT_STARTTLS");
}

/* The same conversation, cut at every point and fed in pieces of every size, yields the same
 * answers. */
static void any_pieces(void)
{
	static const char *const allocation[] = {"base:allocation", NULL};
	static const uint16_t block_size = NBD_INFO_BLOCK_SIZE;
	static struct text whole, want;

	start(false, false);
	text_option(&in, 99, 5);
	text_add(&in, "12345", 5);
	text_option(&in, NBD_OPT_LIST, 0);
	text_option(&in, NBD_OPT_STRUCTURED_REPLY, 0);
	text_contexts(&in, NBD_OPT_SET_META_CONTEXT, "disk", allocation);
	text_go(&in, NBD_OPT_GO, "disk", &block_size, 1);
	whole = in;
	CHECK_INT(feed_all(), NBD_HELLO_READY);
	want = out;
	for (size_t first = 0; first <= whole.n; first++) {
		for (size_t piece = 1; piece <= whole.n; piece = piece * 2 + 1) {
			start(false, false);
			in = whole;
			CHECK_INT(feed(first, piece, NBD_HELLO_OUT), NBD_HELLO_READY);
			CHECK(out.n == want.n && memcmp(out.p, want.p, want.n) == 0);
			CHECK(hello.base_allocation && strcmp(hello.name, "disk") == 0);
		}
	}
}

int main(void)
{
	RUN(greeting);
	RUN(opt_go);
	RUN(refused_exports);
	RUN(broken_data);
	RUN(list);
	RUN(list_with_descriptions);
	RUN(list_longer_than_the_output);
	RUN(leaving);
	RUN(old_way);
	RUN(faults);
	RUN(unknown_and_too_long);
	RUN(longest_name);
	RUN(bounded_number);
	RUN(waits_for_storage);
	RUN(enters_at_the_end);
	RUN(old_option_enters);
	RUN(wait_times_out);
	RUN(bounded_by_listed_exports);
	RUN(contexts_listed);
	RUN(contexts_set);
	RUN(contexts_replaced);
	RUN(contexts_broken);
	RUN(tls_refused);
	RUN(tls_required);
	RUN(tls_forgets);
	RUN(tls_after_plain_text);
	RUN(any_pieces);
	return 0;
}
