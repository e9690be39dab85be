/* SPDX-License-Identifier: BSD-3-Clause */
/* talk: for the tests of the NBD handshake: build messages, and a server with three exports. */
#ifndef WEIR_TESTS_WIRE_TALK_H
#define WEIR_TESTS_WIRE_TALK_H

#include "test.h"
#include "wire/bytes.h"
#include "wire/nbd.h"
#include "wire/nbd-options.h"
#include <errno.h>

struct text { /* bytes that grow */
	uint8_t p[1 << 20];
	size_t n;
};

static inline void text_add(struct text *t, const void *p, size_t n)
{
	CHECK(t->n + n <= sizeof(t->p));
	if (n)
		memcpy(t->p + t->n, p, n);
	t->n += n;
}

static inline void text_16(struct text *t, uint16_t v)
{
	uint8_t p[2];

	bytes_put16(p, v);
	text_add(t, p, 2);
}

static inline void text_32(struct text *t, uint32_t v)
{
	uint8_t p[4];

	bytes_put32(p, v);
	text_add(t, p, 4);
}

static inline void text_64(struct text *t, uint64_t v)
{
	uint8_t p[8];

	bytes_put64(p, v);
	text_add(t, p, 8);
}

static inline void text_option(struct text *t, uint32_t option, uint32_t len)
{
	text_64(t, NBD_OPTION_MAGIC);
	text_32(t, option);
	text_32(t, len);
}

/* INFO or GO for a name, with n items of information. */
static inline void text_go(
	struct text *t, uint32_t option, const char *name, const uint16_t *infos, uint16_t n)
{
	uint32_t len = (uint32_t)strlen(name);

	text_option(t, option, 4 + len + 2 + 2u * n);
	text_32(t, len);
	text_add(t, name, len);
	text_16(t, n);
	for (uint16_t i = 0; i < n; i++)
		text_16(t, infos[i]);
}

/* LIST or SET of meta contexts; queries end with NULL. */
static inline void text_contexts(
	struct text *t, uint32_t option, const char *name, const char *const *queries)
{
	uint32_t len = (uint32_t)strlen(name), n = 0, data = 8 + len;

	for (; queries[n]; n++)
		data += 4 + (uint32_t)strlen(queries[n]);
	text_option(t, option, data);
	text_32(t, len);
	text_add(t, name, len);
	text_32(t, n);
	for (uint32_t i = 0; i < n; i++) {
		text_32(t, (uint32_t)strlen(queries[i]));
		text_add(t, queries[i], strlen(queries[i]));
	}
}

static inline void text_answer(
	struct text *t, uint32_t option, uint32_t type, const void *data, uint32_t len)
{
	text_64(t, NBD_ANSWER_MAGIC);
	text_32(t, option);
	text_32(t, type);
	text_32(t, len);
	text_add(t, data, len);
}

/* ---- a server: "", "disk" and "web"; "secret" is refused, "away" is not available */

#define TALK_SIZE (UINT64_C(5) << 30)

static inline int talk_find(void *arg, const char *name, struct nbd_export *ret)
{
	if (strcmp(name, "secret") == 0)
		return -EACCES;
	if (strcmp(name, "away") == 0)
		return -EIO;
	if (strcmp(name, "") != 0 && strcmp(name, "disk") != 0 && strcmp(name, "web") != 0)
		return -ENOENT;
	*ret = (struct nbd_export){.size = TALK_SIZE,
		.flags = NBD_SEND_FLUSH | NBD_SEND_FUA | NBD_MULTI_CONN | NBD_SEND_DF,
		.block_min = 512,
		.block_preferred = 4096,
		.block_max = NBD_PAYLOAD_MAX,
		.description = "three exports"};
	return 0;
}

static inline const char *talk_list(void *arg, size_t i)
{
	static const char *const names[] = {"disk", "web"};

	return i < 2 ? names[i] : NULL;
}

static const struct nbd_hello_ops talk_ops = {.find = talk_find, .list = talk_list};

#endif
