/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's handshake: what it answers to every option, in whatever pieces the input comes. */
#include "talk.h"

static struct nbd_hello hello;
static struct text in, out;
static size_t taken; /* of in.p */
static const uint8_t *next;

static void start(bool tls_offered, bool tls_required)
{
	in.n = out.n = 0;
	nbd_hello_init(&hello, &talk_ops, tls_offered, tls_required);
	text_32(&in, NBD_FIXED_NEWSTYLE | NBD_NO_ZEROES);
}

/* Gives the server all of `in` in pieces: `first` bytes, then `piece` at a time. */
static enum nbd_hello_state give(size_t first, size_t piece, size_t room)
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
		CHECK(at == end); /* with all of its output sent, it takes all input */
		if (end == in.n)
			break;
		end = in.n - end < piece ? in.n : end + piece;
	}
	taken = at;
	next = out.p;
	return state;
}

static enum nbd_hello_state give_all(void)
{
	return give(in.n, 1, NBD_HELLO_OUT);
}

/* The next answer is of that option and type; its data. */
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

static void go(void)
{
	static const uint16_t infos[] = {
		NBD_INFO_BLOCK_SIZE, NBD_INFO_NAME, NBD_INFO_DESCRIPTION, 99};
	const uint8_t *p;
	uint32_t len;

	start(false, false);
	text_go(&in, NBD_OPT_INFO, "web", infos, 4);
	text_go(&in, NBD_OPT_GO, "disk", NULL, 0);
	text_add(&in, "requests", 8);
	CHECK_INT(give_all(), NBD_HELLO_READY);
	CHECK_INT(taken, in.n - 8); /* the rest is not the handshake's */
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
	expect(NBD_OPT_GO, NBD_REP_ACK, NULL); /* nothing that was not asked for */
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
	CHECK_INT(give_all(), NBD_HELLO_MORE);
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
	text_option(&in, NBD_OPT_INFO, 6); /* a name that reaches beyond */
	text_add(&in, "\0\0\0\1\0\0", 6);
	text_option(&in, NBD_OPT_INFO, 6); /* one that nearly overflows */
	text_add(&in, "\xff\xff\xff\xff\0\0", 6);
	text_option(&in, NBD_OPT_INFO, 8); /* more infos than there are */
	text_add(&in, "\0\0\0\0\0\2\0\0", 8);
	text_option(&in, NBD_OPT_INFO, 7); /* a byte too many */
	text_add(&in, "\0\0\0\0\0\0\0", 7);
	text_option(&in, NBD_OPT_GO, 9); /* NUL in a name: not the name before it */
	text_add(&in, "\0\0\0\3we\0\0\0", 9);
	text_option(&in, NBD_OPT_LIST, 1);
	text_add(&in, "x", 1);
	text_option(&in, NBD_OPT_STRUCTURED_REPLY, 1);
	text_add(&in, "x", 1);
	CHECK_INT(give_all(), NBD_HELLO_MORE);
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
	CHECK_INT(give_all(), NBD_HELLO_MORE);
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
	CHECK_INT(give_all(), NBD_HELLO_MORE);
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
		CHECK_INT(give(in.n, 1, room), NBD_HELLO_END);
		for (size_t i = 0; i < 200; i++) {
			const char *name = long_list(NULL, i);
			const uint8_t *p;
			uint32_t len;

			if (i == 77) /* too long to be asked for: left out */
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
	text_option(&in, NBD_OPT_ABORT, 3); /* data or not */
	text_add(&in, "bye", 3);
	CHECK_INT(give_all(), NBD_HELLO_END);
	CHECK(!hello.fault);
	expect(NBD_OPT_ABORT, NBD_REP_ACK, NULL);
	expect_end();
	/* It stays so. */
	text_option(&in, NBD_OPT_LIST, 0);
	CHECK_INT(give_all(), NBD_HELLO_END);
	CHECK_INT(out.n, 0);
}

static void old_way(void)
{
	for (int no_zeroes = 0; no_zeroes < 2; no_zeroes++) {
		start(false, false);
		in.n = 0;
		text_32(&in, no_zeroes ? NBD_NO_ZEROES : 0); /* nor fixed newstyle */
		text_option(&in, NBD_OPT_EXPORT_NAME, 4);
		text_add(&in, "disk", 4);
		CHECK_INT(give_all(), NBD_HELLO_READY);
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
	CHECK_INT(give_all(), NBD_HELLO_READY);
	CHECK_STR(hello.name, "");
}

/* What ends the connection: in[4] on is what follows the flags. */
static void ends(const char *fault)
{
	CHECK_INT(give_all(), NBD_HELLO_END);
	CHECK_STR(hello.fault, fault);
	CHECK_INT(out.n, 0);
}

static void faults(void)
{
	start(false, false);
	text_option(&in, NBD_OPT_EXPORT_NAME, 6);
	text_add(&in, "nosuch", 6);
	ends("export that there is not, or not for this client");

	start(false, false);
	text_option(&in, NBD_OPT_EXPORT_NAME, 4);
	text_add(&in, "di\0k", 4);
	ends("broken name of an export");

	start(false, false);
	text_option(&in, NBD_OPT_EXPORT_NAME, 5000);
	ends("too long a name of an export");

	start(false, false);
	text_option(&in, NBD_OPT_GO, 0xffffffffu);
	ends("far too long an option");

	start(false, false);
	text_add(&in, "GET / HTTP/1.0\r\n", 16);
	ends("no option's magic");

	start(false, false);
	in.n = 0;
	text_32(&in, 4 | NBD_FIXED_NEWSTYLE);
	ends("unknown client flags");

	start(false, false);
	in.n = 0;
	text_32(&in, NBD_NO_ZEROES);
	text_option(&in, NBD_OPT_LIST, 0);
	ends("option that only fixed newstyle has, without its flag");

	start(false, false);
	in.n = 0;
	text_32(&in, 0);
	text_option(&in, 4711, 0);
	ends("option that only fixed newstyle has, without its flag");
}

static void unknown_and_too_long(void)
{
	static uint8_t junk[100000];

	memset(junk, 0x49, sizeof(junk)); /* 'I', as if an option began */
	start(false, false);
	text_option(&in, 4, 0); /* withdrawn from the protocol */
	text_option(&in, 4711, sizeof(junk));
	text_add(&in, junk, sizeof(junk));
	text_option(&in, NBD_OPT_GO, sizeof(junk));
	text_add(&in, junk, sizeof(junk));
	text_option(&in, NBD_OPT_GO, NBD_HELLO_IN + 1);
	text_add(&in, junk, NBD_HELLO_IN + 1);
	text_option(&in, NBD_OPT_ABORT, 0);
	CHECK_INT(give(7, 1000, NBD_HELLO_OUT), NBD_HELLO_END);
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
	CHECK_INT(give_all(), NBD_HELLO_MORE);
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
	state = give(in.n, 1, NBD_HELLO_OUT);
	CHECK_INT(state, NBD_HELLO_END);
	CHECK_STR(hello.fault, "too many options");
	for (int i = 0; i < 1024; i++)
		expect(4711, NBD_REP_ERR_UNSUP, NULL);
	expect_end();
}

/* Those that were listed may be asked after. */
static size_t n_many;
static const char *list_many(void *arg, size_t i)
{
	return i < n_many ? "a" : NULL;
}

static void bounded_by_what_is_listed(void)
{
	struct nbd_hello_ops many = talk_ops;

	start(false, false);
	many.list = list_many;
	hello.ops = &many;
	n_many = 10000;
	text_option(&in, NBD_OPT_LIST, 0);
	CHECK_INT(give(in.n, 1, NBD_HELLO_OUT), NBD_HELLO_MORE);
	for (int i = 0; i < 40; i++) {
		out.n = in.n = 0;
		for (int k = 0; k < 1000; k++)
			text_option(&in, 4711, 0);
		CHECK_INT(give(in.n, 1, NBD_HELLO_OUT), NBD_HELLO_MORE);
	}
}

/* An export whose storage is not there: GO waits for the answer, a question does not. */
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
	CHECK_INT(give_all(), NBD_HELLO_WAIT);
	CHECK_INT(taken, in.n - 8);
	expect(NBD_OPT_INFO, NBD_REP_ERR_UNKNOWN, NULL);
	expect_end();
	in.n = 0;
	CHECK_INT(give_all(), NBD_HELLO_WAIT);
	expect_end();
	not_there = 0;
	CHECK_INT(give_all(), NBD_HELLO_READY);
	expect(NBD_OPT_GO, NBD_REP_INFO, NULL);
	expect(NBD_OPT_GO, NBD_REP_ACK, NULL);
	expect_end();
	CHECK_STR(hello.name, "disk");
}

static void waits_in_vain(void)
{
	struct nbd_hello_ops later = talk_ops;

	start(false, false);
	later.find = find_later;
	hello.ops = &later;
	not_there = -EAGAIN;
	text_go(&in, NBD_OPT_GO, "disk", NULL, 0);
	CHECK_INT(give_all(), NBD_HELLO_WAIT);
	not_there = -ETIMEDOUT;
	in.n = 0;
	CHECK_INT(give_all(), NBD_HELLO_MORE);
	expect(NBD_OPT_GO, NBD_REP_ERR_UNKNOWN, NULL);
	expect_end();
}

static void contexts_listed(void)
{
	static const struct {
		const char *queries[4];
		bool found, held;
	} cases[] = {
		{{NULL}, true, true}, /* none: all there are */
		{{"weir:"}, false, true},
		{{"weir:held", "base:"}, true, true},
		{{"weir:hel"}, false, false},
		{{"base:"}, true, false},
		{{"base:allocation"}, true, false},
		{{"qemu:", "base:allocation", "base:"}, true, false}, /* and only once */
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
	CHECK_INT(give_all(), NBD_HELLO_MORE);
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
	CHECK(!hello.base_allocation); /* asking is not setting */
}

/* SET with the queries for one export, then GO of another. */
static void set_and_go(const char *set, const char *const *queries, const char *name)
{
	start(false, false);
	text_option(&in, NBD_OPT_STRUCTURED_REPLY, 0);
	text_contexts(&in, NBD_OPT_SET_META_CONTEXT, set, queries);
	text_go(&in, NBD_OPT_GO, name, NULL, 0);
	CHECK_INT(give_all(), NBD_HELLO_READY);
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
	set_and_go("disk", allocation, "web"); /* they are the export's for which they were set */
	CHECK(!hello.base_allocation && hello.context_id == 0);
	set_and_go("disk", wildcard, "disk"); /* a wildcard is for lists */
	CHECK(!hello.base_allocation);
	set_and_go("disk", none, "disk");
	CHECK(!hello.base_allocation);
}

static void contexts_replaced(void)
{
	static const char *const allocation[] = {"base:allocation", NULL}, *const none[] = {NULL};

	start(false, false); /* not without structured replies */
	text_contexts(&in, NBD_OPT_SET_META_CONTEXT, "", allocation);
	text_contexts(&in, NBD_OPT_LIST_META_CONTEXT, "", none);
	text_option(&in, NBD_OPT_STRUCTURED_REPLY, 0);
	text_contexts(&in, NBD_OPT_SET_META_CONTEXT, "", allocation);
	text_contexts(&in, NBD_OPT_SET_META_CONTEXT, "", none); /* the last one holds */
	text_go(&in, NBD_OPT_GO, "", NULL, 0);
	CHECK_INT(give_all(), NBD_HELLO_READY);
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
	text_option(&in, NBD_OPT_SET_META_CONTEXT, 8); /* a query that is not there */
	text_add(&in, "\0\0\0\0\0\0\0\1", 8);
	text_option(&in, NBD_OPT_SET_META_CONTEXT, 12); /* that reaches beyond */
	text_add(&in, "\0\0\0\0\0\0\0\1\xff\xff\xff\xff", 12);
	text_option(&in, NBD_OPT_SET_META_CONTEXT, 9); /* a byte too many */
	text_add(&in, "\0\0\0\0\0\0\0\0x", 9);
	text_option(&in, NBD_OPT_SET_META_CONTEXT, 8); /* a name that is not there */
	text_add(&in, "\0\0\0\1\0\0\0\0", 8);
	CHECK_INT(give_all(), NBD_HELLO_MORE);
	expect(NBD_OPT_STRUCTURED_REPLY, NBD_REP_ACK, NULL);
	for (int i = 0; i < 5; i++)
		expect(NBD_OPT_SET_META_CONTEXT, NBD_REP_ERR_INVALID, NULL);
	expect_end();
}

static void tls_refused(void)
{
	start(false, false);
	text_option(&in, NBD_OPT_STARTTLS, 0);
	CHECK_INT(give_all(), NBD_HELLO_MORE);
	expect(NBD_OPT_STARTTLS, NBD_REP_ERR_UNSUP, NULL);
	start(true, false);
	text_option(&in, NBD_OPT_STARTTLS, 1);
	text_add(&in, "x", 1);
	CHECK_INT(give_all(), NBD_HELLO_MORE);
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
	CHECK_INT(give_all(), NBD_HELLO_END);
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
	ends("export asked for without TLS");
}

static void tls_forgets(void)
{
	static const char *const allocation[] = {"base:allocation", NULL};

	start(true, false);
	text_option(&in, NBD_OPT_STRUCTURED_REPLY, 0);
	text_contexts(&in, NBD_OPT_SET_META_CONTEXT, "disk", allocation);
	text_option(&in, NBD_OPT_STARTTLS, 0);
	CHECK_INT(give_all(), NBD_HELLO_TLS);
	CHECK(hello.structured && hello.base_allocation);
	nbd_hello_secure(&hello);
	CHECK(!hello.structured && !hello.base_allocation);
	in.n = 0;                              /* the flags are not sent again */
	text_option(&in, NBD_OPT_STARTTLS, 0); /* once is enough */
	text_go(&in, NBD_OPT_GO, "disk", NULL, 0);
	CHECK_INT(give_all(), NBD_HELLO_READY);
	expect(NBD_OPT_STARTTLS, NBD_REP_ERR_INVALID, NULL);
	CHECK(!hello.structured && !hello.base_allocation && hello.context_id == 0);
}

static void tls_after_plain_text(void)
{
	start(true, true);
	text_option(&in, NBD_OPT_STARTTLS, 0);
	text_go(&in, NBD_OPT_GO, "disk", NULL, 0); /* to be taken for the client's, under TLS */
	CHECK_INT(give_all(), NBD_HELLO_END);
	CHECK_STR(hello.fault, "plain text behind NBD_OPT_STARTTLS");
}

/* The same conversation, cut at every point and given in pieces of every size: the same answers. */
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
	CHECK_INT(give_all(), NBD_HELLO_READY);
	want = out;
	for (size_t first = 0; first <= whole.n; first++) {
		for (size_t piece = 1; piece <= whole.n; piece = piece * 2 + 1) {
			start(false, false);
			in = whole;
			CHECK_INT(give(first, piece, NBD_HELLO_OUT), NBD_HELLO_READY);
			CHECK(out.n == want.n && memcmp(out.p, want.p, want.n) == 0);
			CHECK(hello.base_allocation && strcmp(hello.name, "disk") == 0);
		}
	}
}

int main(void)
{
	RUN(greeting);
	RUN(go);
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
	RUN(waits_in_vain);
	RUN(bounded_by_what_is_listed);
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
