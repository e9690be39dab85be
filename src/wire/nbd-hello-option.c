/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-hello-option: the server's answer to each option of the handshake. See nbd-hello.c.
 *
 * An invalid option is refused with the protocol's error, and the client may continue; only
 * EXPORT_NAME, which has no error reply, ends the connection.
 */
#include "wire/nbd-hello.h"
#include "wire/bytes.h"
#include <errno.h>
#include <string.h>

/* Contexts by id, which is also the context's bit in a set. */
enum { ALLOCATION = 1, HELD = 2 };
static const struct context {
	const char *space, *name;
	uint32_t id;
} contexts[] = {{NBD_BASE, NBD_BASE_ALLOCATION, ALLOCATION}, {NBD_WEIR, NBD_WEIR_HELD, HELD}};
#define CONTEXTS (sizeof(contexts) / sizeof(contexts[0]))

void nbd_hello_end(struct nbd_hello *h, const char *fault)
{
	h->step = NBD_HELLO_AT_ENDED;
	h->fault = fault;
}

/* ---- answers */

/* Write the head of an answer; the caller writes its data, len bytes, after it. */
static uint8_t *write_answer(
	struct nbd_hello *h, struct nbd_hello_out *o, uint32_t type, uint32_t len)
{
	uint8_t *p = o->p + o->made;

	bytes_put64(p, NBD_ANSWER_MAGIC);
	bytes_put32(p + 8, h->option);
	bytes_put32(p + 12, type);
	bytes_put32(p + 16, len);
	o->made += NBD_ANSWER_SIZE + len;
	return p + NBD_ANSWER_SIZE;
}

void nbd_hello_refuse(struct nbd_hello *h, struct nbd_hello_out *o, uint32_t type, const char *why)
{
	size_t len = strlen(why);

	/* A client without fixed newstyle could not parse an error reply. */
	if (!h->fixed)
		nbd_hello_end(h, "option requires the fixed newstyle flag");
	else
		memcpy(write_answer(h, o, type, (uint32_t)len), why, len);
}

static void answer_text(
	struct nbd_hello *h, struct nbd_hello_out *o, uint16_t info, const char *text)
{
	size_t len = strnlen(text, NBD_NAME_MAX);
	uint8_t *p = write_answer(h, o, NBD_REP_INFO, (uint32_t)(2 + len));

	bytes_put16(p, info);
	memcpy(p + 2, text, len);
}

static void answer_size(struct nbd_hello *h, struct nbd_hello_out *o, const struct nbd_export *e)
{
	uint8_t *p = write_answer(h, o, NBD_REP_INFO, 12);

	bytes_put16(p, NBD_INFO_EXPORT);
	bytes_put64(p + 2, e->size);
	bytes_put16(p + 10, e->flags);
}

static void answer_blocks(struct nbd_hello *h, struct nbd_hello_out *o, const struct nbd_export *e)
{
	uint8_t *p = write_answer(h, o, NBD_REP_INFO, 14);

	bytes_put16(p, NBD_INFO_BLOCK_SIZE);
	bytes_put32(p + 2, e->block_min);
	bytes_put32(p + 6, e->block_preferred);
	bytes_put32(p + 10, e->block_max);
}

/* ---- options */

/* Copy an export's name from an option's data to `name`. Return -EINVAL if it is too long or
 * contains a NUL, which no export name does. */
static int copy_name(const uint8_t *p, size_t n, char name[NBD_NAME_MAX + 1])
{
	if (n > NBD_NAME_MAX || memchr(p, '\0', n))
		return -EINVAL;
	memcpy(name, p, n);
	name[n] = '\0';
	return 0;
}

/* Keep the option in `in`; the next call retries it. */
static void wait_for_export(struct nbd_hello *h)
{
	h->waits = true;
	h->step = NBD_HELLO_AT_DATA;
	h->have = h->length;
}

/* Look up the export and adapt its flags and block sizes to this client, which enters it if the
 * option ends the handshake. */
static int find_export(struct nbd_hello *h, const char *name, struct nbd_export *ret)
{
	bool enters = h->option == NBD_OPT_GO || h->option == NBD_OPT_EXPORT_NAME;
	int r = h->ops->find(h->ops->arg, name, ret);

	if (r == 0 && enters && h->ops->enter)
		r = h->ops->enter(h->ops->arg);
	if (r < 0)
		return r;
	ret->flags |= NBD_HAS_FLAGS;
	if (!h->structured) /* a simple reply is never fragmented: the flag is not allowed */
		ret->flags &= (uint16_t)~NBD_SEND_DF;
	if (ret->block_min == 0)
		ret->block_min = 1;
	if (ret->block_preferred == 0)
		ret->block_preferred = ret->block_min > 4096 ? ret->block_min : 4096;
	if (ret->block_max == 0)
		ret->block_max = NBD_PAYLOAD_MAX;
	return 0;
}

static void refuse_export(struct nbd_hello *h, struct nbd_hello_out *o, int error)
{
	if (error == -ENOENT)
		nbd_hello_refuse(h, o, NBD_REP_ERR_UNKNOWN, "no export has that name");
	else if (error == -EACCES || error == -EPERM)
		nbd_hello_refuse(h, o, NBD_REP_ERR_POLICY, "this client may not use that export");
	else if (error == -ETIMEDOUT || error == -EAGAIN)
		nbd_hello_refuse(
			h, o, NBD_REP_ERR_UNKNOWN, "the storage of that export is not reachable");
	else if (error == -ENODEV)
		nbd_hello_refuse(h, o, NBD_REP_ERR_SHUTDOWN,
			"the storage of that export is smaller than the export");
	else
		nbd_hello_refuse(h, o, NBD_REP_ERR_SHUTDOWN, "that export cannot be served now");
}

static void set_contexts(struct nbd_hello *h, unsigned set)
{
	h->base_allocation = set & ALLOCATION;
	h->context_id = set & ALLOCATION;
	h->held = set & HELD;
	h->held_id = set & HELD;
}

static void set_ready(struct nbd_hello *h, const char *name, const struct nbd_export *e)
{
	/* Contexts are negotiated for one export and do not apply to another. */
	if (strcmp(h->name, name) != 0)
		set_contexts(h, 0);
	strcpy(h->name, name);
	h->export_ = *e;
	h->step = NBD_HELLO_AT_READY;
}

static void option_export_name(struct nbd_hello *h, struct nbd_hello_out *o)
{
	char name[NBD_NAME_MAX + 1];
	struct nbd_export e = {0};
	uint8_t *p = o->p + o->made;
	int r;

	/* This option has no error reply. */
	if (copy_name(h->in, h->length, name) < 0) {
		nbd_hello_end(h, "malformed export name");
		return;
	}
	r = find_export(h, name, &e);
	if (r == -EAGAIN) {
		wait_for_export(h);
		return;
	}
	if (r < 0) {
		nbd_hello_end(h, "unknown export, or one that this client may not use");
		return;
	}
	bytes_put64(p, e.size);
	bytes_put16(p + 8, e.flags);
	o->made += 10;
	if (!h->no_zeroes) {
		memset(p + 10, 0, NBD_OLD_PADDING);
		o->made += NBD_OLD_PADDING;
	}
	set_ready(h, name, &e);
}

/* Parse the data of INFO and GO: a name, and the requested items of information, as bits. */
static int parse_info(const struct nbd_hello *h, char name[NBD_NAME_MAX + 1], uint32_t *ret_asked)
{
	uint32_t len, asked = 0;
	const uint8_t *p;
	uint16_t n;

	if (h->length < 6)
		return -EINVAL;
	len = bytes_get32(h->in);
	if (len > h->length - 6 || copy_name(h->in + 4, len, name) < 0)
		return -EINVAL;
	p = h->in + 4 + len;
	n = bytes_get16(p);
	if (h->length != 6 + len + 2u * n)
		return -EINVAL;
	for (uint16_t i = 0; i < n; i++) {
		uint16_t info = bytes_get16(p + 2 + 2 * i);

		if (info <= NBD_INFO_BLOCK_SIZE) /* unknown items may be ignored */
			asked |= 1u << info;
	}
	*ret_asked = asked;
	return 0;
}

static void option_info(struct nbd_hello *h, struct nbd_hello_out *o)
{
	char name[NBD_NAME_MAX + 1];
	struct nbd_export e = {0};
	uint32_t asked;
	int r;

	if (parse_info(h, name, &asked) < 0) {
		nbd_hello_refuse(h, o, NBD_REP_ERR_INVALID, "broken NBD_OPT_INFO or NBD_OPT_GO");
		return;
	}
	r = find_export(h, name, &e);
	if (r == -EAGAIN && h->option == NBD_OPT_GO) {
		wait_for_export(h);
		return;
	}
	if (r < 0) {
		refuse_export(h, o, r);
		return;
	}
	answer_size(h, o, &e);
	if (asked & 1u << NBD_INFO_NAME)
		answer_text(h, o, NBD_INFO_NAME, name);
	if (asked & 1u << NBD_INFO_DESCRIPTION && e.description)
		answer_text(h, o, NBD_INFO_DESCRIPTION, e.description);
	if (asked & 1u << NBD_INFO_BLOCK_SIZE)
		answer_blocks(h, o, &e);
	write_answer(h, o, NBD_REP_ACK, 0);
	if (h->option == NBD_OPT_GO)
		set_ready(h, name, &e);
}

static void option_starttls(struct nbd_hello *h, struct nbd_hello_out *o)
{
	if (h->length)
		nbd_hello_refuse(h, o, NBD_REP_ERR_INVALID, "NBD_OPT_STARTTLS has no data");
	else if (h->secure)
		nbd_hello_refuse(h, o, NBD_REP_ERR_INVALID, "TLS is in use already");
	else if (!h->tls_offered)
		nbd_hello_refuse(h, o, NBD_REP_ERR_UNSUP, "TLS is not offered");
	else {
		write_answer(h, o, NBD_REP_ACK, 0);
		h->step = NBD_HELLO_AT_TLS;
	}
}

static bool is_text(const uint8_t *p, uint32_t len, const char *text)
{
	return len == strlen(text) && memcmp(p, text, len) == 0;
}

/* Parse the queries of a meta context option, starting at their count. Return the set of contexts
 * that they match, or -EINVAL. */
static int parse_queries(const uint8_t *p, size_t n, bool list)
{
	uint32_t count = bytes_get32(p);
	int found = list && count == 0 ? ALLOCATION | HELD : 0; /* no queries: list all contexts */

	p += 4;
	n -= 4;
	for (; count; count--) {
		uint32_t len;

		if (n < 4 || (len = bytes_get32(p)) > n - 4)
			return -EINVAL;
		p += 4;
		n -= 4 + (size_t)len;
		/* "base:" alone matches a namespace, which only LIST allows. */
		for (size_t i = 0; i < CONTEXTS; i++)
			if (is_text(p, len, contexts[i].name) ||
				(list && is_text(p, len, contexts[i].space)))
				found |= (int)contexts[i].id;
		p += len;
	}
	return n ? -EINVAL : found;
}

static void answer_contexts(struct nbd_hello *h, struct nbd_hello_out *o, unsigned found, bool list)
{
	for (size_t i = 0; i < CONTEXTS; i++) {
		uint32_t len = (uint32_t)strlen(contexts[i].name);
		uint8_t *p;

		if (!(found & contexts[i].id))
			continue;
		p = write_answer(h, o, NBD_REP_META_CONTEXT, 4 + len);
		bytes_put32(p, list ? 0 : contexts[i].id);
		memcpy(p + 4, contexts[i].name, len);
	}
	write_answer(h, o, NBD_REP_ACK, 0);
}

static void option_contexts(struct nbd_hello *h, struct nbd_hello_out *o)
{
	bool list = h->option == NBD_OPT_LIST_META_CONTEXT;
	char name[NBD_NAME_MAX + 1];
	struct nbd_export e = {0};
	uint32_t len;
	int found, r;

	if (!list) /* SET replaces the earlier contexts even if it fails */
		set_contexts(h, 0);
	if (!h->structured) {
		nbd_hello_refuse(
			h, o, NBD_REP_ERR_INVALID, "structured replies must be agreed on first");
		return;
	}
	if (h->length < 8 || (len = bytes_get32(h->in)) > h->length - 8 ||
		copy_name(h->in + 4, len, name) < 0 ||
		(found = parse_queries(h->in + 4 + len, h->length - 4 - len, list)) < 0) {
		nbd_hello_refuse(h, o, NBD_REP_ERR_INVALID, "broken meta context option");
		return;
	}
	r = find_export(h, name, &e);
	if (r < 0 && r != -EAGAIN) { /* contexts do not depend on the storage */
		refuse_export(h, o, r);
		return;
	}
	answer_contexts(h, o, (unsigned)found, list);
	if (!list && found) {
		set_contexts(h, (unsigned)found);
		strcpy(h->name, name); /* until READY: the export of the contexts */
	}
}

static void option_bare(struct nbd_hello *h, struct nbd_hello_out *o)
{
	if (h->length) {
		nbd_hello_refuse(h, o, NBD_REP_ERR_INVALID, "that option has no data");
	} else if (h->option == NBD_OPT_STRUCTURED_REPLY) {
		h->structured = true;
		write_answer(h, o, NBD_REP_ACK, 0);
	} else {
		h->listed = 0;
		h->step = NBD_HELLO_AT_LIST;
	}
}

void nbd_hello_option(struct nbd_hello *h, struct nbd_hello_out *o)
{
	h->step = NBD_HELLO_AT_HEAD;
	h->have = 0;
	switch (h->option) {
	case NBD_OPT_EXPORT_NAME:
		option_export_name(h, o);
		break;
	case NBD_OPT_ABORT:
		write_answer(h, o, NBD_REP_ACK, 0);
		nbd_hello_end(h, NULL);
		break;
	case NBD_OPT_STARTTLS:
		option_starttls(h, o);
		break;
	case NBD_OPT_INFO:
	case NBD_OPT_GO:
		option_info(h, o);
		break;
	case NBD_OPT_LIST_META_CONTEXT:
	case NBD_OPT_SET_META_CONTEXT:
		option_contexts(h, o);
		break;
	default:
		option_bare(h, o);
	}
}

bool nbd_hello_list(struct nbd_hello *h, struct nbd_hello_out *o)
{
	const char *name;

	while ((name = h->ops->list(h->ops->arg, h->listed))) {
		const char *about = h->ops->describe ? h->ops->describe(h->ops->arg) : NULL;
		size_t len = strlen(name), more = about ? strnlen(about, NBD_NAME_MAX) : 0;

		if (len <= NBD_NAME_MAX) { /* a client could not ask for a longer one */
			uint8_t *p;

			if (o->room - o->made < 2 * NBD_ANSWER_SIZE + 4 + len + more)
				return false;
			p = write_answer(h, o, NBD_REP_SERVER, (uint32_t)(4 + len + more));
			bytes_put32(p, (uint32_t)len);
			memcpy(p + 4, name, len);
			if (more)
				memcpy(p + 4 + len, about, more);
		}
		h->listed++;
	}
	if (o->room - o->made < NBD_ANSWER_SIZE)
		return false;
	write_answer(h, o, NBD_REP_ACK, 0);
	h->step = NBD_HELLO_AT_HEAD;
	return true;
}
