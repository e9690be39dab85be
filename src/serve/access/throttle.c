/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/access/throttle.h"
#include <netinet/in.h>
#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SET 8

struct bucket {
	uint64_t address;
	weir_time at;
	double units; /* at `at` */
	bool used;
};

struct throttle {
	unsigned char key[crypto_shorthash_KEYBYTES]; /* no client chooses its set */
	struct bucket all[THROTTLE_ADDRESSES];
};

struct throttle *throttle_new(void)
{
	struct throttle *t = calloc(1, sizeof(*t));

	if (t)
		randombytes_buf(t->key, sizeof(t->key));
	return t;
}

void throttle_free(struct throttle *t)
{
	free(t);
}

static uint64_t address_of(const struct sockaddr *from)
{
	const struct sockaddr_in6 *six = (const void *)from;
	uint64_t of = 0;

	if (from->sa_family == AF_INET)
		of = ((const struct sockaddr_in *)(const void *)from)->sin_addr.s_addr;
	else if (from->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
		memcpy(&of, six->sin6_addr.s6_addr + 12, 4);
	else if (from->sa_family == AF_INET6)
		memcpy(&of, six->sin6_addr.s6_addr, 8);
	return of;
}

static void fill(struct bucket *b, weir_time now)
{
	if (now > b->at)
		b->units += (double)(now - b->at) * THROTTLE_RATE / 1e9;
	if (b->units > THROTTLE_BURST)
		b->units = THROTTLE_BURST;
	b->at = now;
}

static struct bucket *find(struct throttle *t, const struct sockaddr *from, weir_time now)
{
	uint64_t address = address_of(from), hash;
	struct bucket *set, *fullest = NULL;

	crypto_shorthash(
		(unsigned char *)&hash, (const unsigned char *)&address, sizeof(address), t->key);
	set = &t->all[hash % (THROTTLE_ADDRESSES / SET) * SET];
	for (size_t i = 0; i < SET; i++) {
		if (!set[i].used)
			set[i] = (struct bucket){.at = now, .units = THROTTLE_BURST + 1};
		else
			fill(&set[i], now);
		if (set[i].used && set[i].address == address)
			return &set[i];
		if (!fullest || set[i].units > fullest->units)
			fullest = &set[i];
	}
	*fullest = (struct bucket){address, now, THROTTLE_BURST, true};
	return fullest;
}

bool throttle_take(struct throttle *t, const struct sockaddr *from, weir_time now)
{
	struct bucket *b = find(t, from, now);

	if (b->units < 1)
		return false;
	b->units -= 1;
	return true;
}

void throttle_give(struct throttle *t, const struct sockaddr *from, weir_time now, unsigned n)
{
	struct bucket *b = find(t, from, now);

	b->units += n;
	fill(b, now);
}
