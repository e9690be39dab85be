/* SPDX-License-Identifier: BSD-3-Clause */
/* gather: messages of a head and data, in place or copied, and their bytes in order. */
#include "serve/loop/gather.h"
#include "test.h"

static struct iovec iov[16];
static uint8_t scratch[256], memory[256];

static void put_head(struct gather *g, const char *head)
{
	g->begun = g->bytes;
	memcpy(gather_room(g), head, strlen(head));
	gather_written(g, strlen(head));
}

static void check_bytes(const struct gather *g, const char *want)
{
	char got[256];
	size_t n = 0;

	for (int i = 0; i < g->n; i++) {
		memcpy(got + n, g->iov[i].iov_base, g->iov[i].iov_len);
		n += g->iov[i].iov_len;
	}
	got[n] = 0;
	CHECK_STR(got, want);
	CHECK_INT(g->bytes, n);
}

/* The head moves before the data where there is room, and adjacent messages become one vector. */
static void behind(void)
{
	struct gather g = {.iov = iov, .scratch = scratch};

	memcpy(memory, "xxxxDATAyyyymore....last", 24);
	put_head(&g, "ack ");
	put_head(&g, "one ");
	gather_behind(&g, memory + 4, 4, 4);
	CHECK_INT(g.n, 2);
	put_head(&g, "two ");
	gather_behind(&g, memory + 12, 4, 6); /* next to the first */
	CHECK_INT(g.n, 2);
	put_head(&g, "long head ");
	gather_behind(&g, memory + 20, 4, 4); /* no room */
	CHECK_INT(g.n, 4);
	check_bytes(&g, "ack one DATAtwo morelong head last");
	CHECK_INT(memcmp(memory + 16, "....", 4), 0);
}

/* A head alone in its vector leaves no empty vector. */
static void first(void)
{
	struct gather g = {.iov = iov, .scratch = scratch};

	memcpy(memory, "xxxxDATA", 8);
	put_head(&g, "one ");
	gather_behind(&g, memory + 4, 4, 4);
	CHECK_INT(g.n, 1);
	CHECK_INT(g.at, 0);
	check_bytes(&g, "one DATA");
}

int main(void)
{
	RUN(behind);
	RUN(first);
	return 0;
}
