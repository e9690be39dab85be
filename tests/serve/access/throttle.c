/* SPDX-License-Identifier: BSD-3-Clause */
/* throttle: units of an address, given back, filled with time; addresses do not disturb each other. */
#include "test.h"
#include "serve/access/throttle.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sodium.h>
#include <string.h>

static struct throttle *t;

static struct sockaddr *four(uint32_t host)
{
	static struct sockaddr_in at;

	at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(host)}};
	return (struct sockaddr *)&at;
}

static struct sockaddr *six(const char *text)
{
	static struct sockaddr_in6 at;

	at = (struct sockaddr_in6){.sin6_family = AF_INET6};
	CHECK_INT(inet_pton(AF_INET6, text, &at.sin6_addr), 1);
	return (struct sockaddr *)&at;
}

static unsigned take_all(struct sockaddr *from, weir_time now)
{
	unsigned n = 0;

	while (throttle_take(t, from, now))
		CHECK(++n < 100000);
	return n;
}

static void burst_and_rate(void)
{
	weir_time now = 5 * WEIR_SEC;

	CHECK_INT(take_all(four(1), now), THROTTLE_BURST);
	CHECK_INT(take_all(four(1), now), 0);
	CHECK_INT(take_all(four(2), now), THROTTLE_BURST);
	now += WEIR_SEC;
	CHECK_INT(take_all(four(1), now), THROTTLE_RATE);
	throttle_give(t, four(1), now, 3);
	CHECK_INT(take_all(four(1), now), 3);
	now += 3600 * WEIR_SEC;
	throttle_give(t, four(1), now, 50);
	CHECK_INT(take_all(four(1), now), THROTTLE_BURST); /* never more */
	CHECK_INT(take_all(four(1), now - WEIR_SEC), 0);   /* a clock that goes back gives none */
}

/* 64 bits of IPv6 are one address; IPv4 inside IPv6 is the address itself. */
static void six_bytes(void)
{
	weir_time now = 10000 * WEIR_SEC;

	CHECK_INT(take_all(six("2001:db8::1"), now), THROTTLE_BURST);
	CHECK_INT(take_all(six("2001:db8::2"), now), 0);
	CHECK_INT(take_all(six("2001:db8:0:1::1"), now), THROTTLE_BURST);
	CHECK_INT(take_all(four(0x01020304), now), THROTTLE_BURST);
	CHECK_INT(take_all(six("::ffff:1.2.3.4"), now), 0);
}

/* Many addresses push out those that asked least; one that has used its units up keeps its place. */
static void many(void)
{
	weir_time now = 20000 * WEIR_SEC;
	unsigned again = 0;

	CHECK_INT(take_all(four(7), now), THROTTLE_BURST);
	for (uint32_t i = 0; i < 20000; i++)
		CHECK(throttle_take(t, four(0x10000 + i), now));
	again = take_all(four(7), now);
	CHECK_INT(again, 0);
}

int main(void)
{
	CHECK(sodium_init() >= 0);
	t = throttle_new();
	CHECK(t);
	RUN(burst_and_rate);
	RUN(six_bytes);
	RUN(many);
	throttle_free(t);
	return 0;
}
