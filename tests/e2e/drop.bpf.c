/* SPDX-License-Identifier: BSD-3-Clause */
/* Drop half of the UDP datagrams to port 7100, for tests of messages between shapers: a classifier for clsact. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

static unsigned int (*const random32)(void) = (void *)BPF_FUNC_get_prandom_u32;
static long (*const load_bytes)(const struct __sk_buff *skb, unsigned int at, void *to,
	unsigned int n) = (void *)BPF_FUNC_skb_load_bytes;

__attribute__((section("classifier"), used)) int drop(struct __sk_buff *skb)
{
	unsigned char protocol, port[2];

	if (load_bytes(skb, 14 + 9, &protocol, 1) || protocol != 17 ||
		load_bytes(skb, 14 + 20 + 2, port, 2) || (port[0] << 8 | port[1]) != 7100)
		return TC_ACT_OK;
	return random32() % 2 ? TC_ACT_SHOT : TC_ACT_OK;
}

char terms[] __attribute__((section("license"), used)) = "BSD";
