/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shape: the programs in the kernel: they choose each packet's class of HTB, and count.
 *
 * METHOD  `weir_out`, behind the stack and before the queue of a device, sets the packet's priority to the number of its class,
 *         which HTB follows without filters. While the shaper's last beat is younger than SHAPE_STALE, this is a runtime
 *         class, else the service's static one: no rate of a dead shaper holds.
 *         `weir_in` counts what arrives at the device. It cannot see the packet's cgroup or the interface that it will leave
 *         by: `weir_in_cgroup` and `weir_in_interface` see these, and move what `weir_in` counted to the right service.
 *         `weir_out_interface` marks what comes from a virtual machine or a pod with the interface's set of rules.
 *         A packet's rules are the intersection of five sets, one for each field; the first bit is the most specific rule.
 *
 * Needs neither BTF nor headers of the kernel that it runs on.
 */
#include <linux/types.h>
typedef __u8 uint8_t;
typedef __u16 uint16_t;
typedef __u32 uint32_t;
typedef __u64 uint64_t;
#include "serve/shape/bpf.h"
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define ETH_P_IP     0x0800
#define ETH_P_ARP    0x0806
#define ETH_P_8021Q  0x8100
#define ETH_P_IPV6   0x86dd
#define ETH_P_8021AD 0x88a8
#define TAGS         2  /* of VLANs, besides one that the kernel keeps outside of the packet */
#define EXTENSIONS   4  /* headers of IPv6 before that of the transport */
#define LEVELS       12 /* of cgroups below the root that are seen */

const volatile struct shape_config config;
uint16_t ports[65536]; /* set by port */
uint16_t dscps[64];
uint16_t owners[SHAPE_RULES]; /* node by rule */
uint16_t interface_sets[SHAPE_INTERFACES];
uint16_t slots[SHAPE_SLOTS]; /* by node */
uint8_t marks[SHAPE_SLOTS];  /* DSCP + 1 by node; 0: packets are left as they are */
uint32_t nothing;            /* 0 */
uint64_t beat;               /* ns: when the shaper was last alive */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct shape_set);
} sets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, SHAPE_RULES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct shape_block);
	__type(value, uint32_t);
} addresses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, uint64_t);
	__type(value, uint32_t);
} cgroups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, uint32_t);
	__type(value, uint32_t);
} interfaces SEC(".maps"); /* by index: the number in interface_sets */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct shape_to);
	__type(value, struct shape_leaf);
} leaves SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SHAPE_DIRS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, uint32_t);
	__type(value, struct shape_count);
} counts SEC(".maps"); /* at SHAPE_COUNT; a processor writes its own only */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} samples SEC(".maps"); /* struct shape_sample */

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, SHAPE_FLOWS);
	__type(key, struct shape_flow);
	__type(value, uint32_t);
} flows SEC(
	".maps"); /* node by flow that goes out; only if ports, address and DSCP do not tell it */

/* An index of which the verifier knows no value: without CAP_PERFMON it takes no addition to a pointer that is a constant in one path
 * and a variable in another. */
#define INDEX(i, n) (((uint32_t)(i) ^ nothing) & ((n)-1))

struct packet {
	uint8_t other[16], own[16];
	uint16_t mine, theirs; /* ports; 0: none */
	uint8_t protocol, dscp, ecn;
	uint8_t neighbour; /* discovery, or ARP */
};

/* ---- parsing */

struct place {          /* of a header in a packet */
	uint32_t start; /* of which `at` counts: enum bpf_hdr_start_off */
	uint32_t at;    /* bytes */
};
#define READ(skb, place, more, to)                                                                 \
	bpf_skb_load_bytes_relative(skb, (place)->at + (more), to, sizeof(*(to)), (place)->start)

static __always_inline void read_ports(
	struct __sk_buff *skb, struct packet *p, const struct place *l, int dir)
{
	uint16_t pair[2];

	if (p->protocol != 6 && p->protocol != 17 && p->protocol != 132 && p->protocol != 33)
		return;
	if (READ(skb, l, 0, &pair))
		return;
	p->mine = bpf_ntohs(pair[dir == SHAPE_IN]);
	p->theirs = bpf_ntohs(pair[dir != SHAPE_IN]);
}

static __always_inline int read_v4(
	struct __sk_buff *skb, struct packet *p, struct place *l, int dir)
{
	struct {
		uint8_t version, tos;
		uint16_t length, id, fragment;
		uint8_t ttl, protocol;
		uint16_t sum;
		uint32_t from, to;
	} h;

	if (READ(skb, l, 0, &h))
		return -1;
	p->dscp = h.tos >> 2;
	p->ecn = h.tos & 3;
	p->protocol = h.protocol;
	p->other[10] = p->other[11] = 0xff;
	p->own[10] = p->own[11] = 0xff;
	__builtin_memcpy(p->other + 12, dir == SHAPE_IN ? &h.from : &h.to, 4);
	__builtin_memcpy(p->own + 12, dir == SHAPE_IN ? &h.to : &h.from, 4);
	l->at += (uint32_t)(h.version & 15) * 4;
	if (!(bpf_ntohs(h.fragment) & 0x1fff))
		read_ports(skb, p, l, dir);
	return 0;
}

/* Go behind the headers of options, routing, fragments and authentication. Return 0, or a negative number: a later fragment, or more
 * headers than are followed. */
static __always_inline int skip_extensions(struct __sk_buff *skb, struct packet *p, struct place *l)
{
	struct {
		uint8_t next, length;
		uint16_t offset;
	} h;

#pragma unroll
	for (int i = 0; i < EXTENSIONS; i++) {
		uint8_t is = p->protocol;

		if (is != 0 && is != 43 && is != 44 && is != 51 && is != 60)
			return 0;
		if (READ(skb, l, 0, &h) || (is == 44 && bpf_ntohs(h.offset) & 0xfff8))
			return -1;
		p->protocol = h.next;
		l->at += is == 44   ? 8
			 : is == 51 ? ((uint32_t)h.length + 2) * 4
				    : ((uint32_t)h.length + 1) * 8;
	}
	return 0;
}

static __always_inline int read_v6(
	struct __sk_buff *skb, struct packet *p, struct place *l, int dir)
{
	struct {
		uint32_t version;
		uint16_t length;
		uint8_t next, limit, from[16], to[16];
	} h;
	uint32_t class;
	uint8_t type;

	if (READ(skb, l, 0, &h))
		return -1;
	class = bpf_ntohl(h.version) >> 20 & 0xff;
	p->dscp = class >> 2;
	p->ecn = class & 3;
	p->protocol = h.next;
	__builtin_memcpy(p->other, dir == SHAPE_IN ? h.from : h.to, 16);
	__builtin_memcpy(p->own, dir == SHAPE_IN ? h.to : h.from, 16);
	l->at += sizeof(h);
	if (skip_extensions(skb, p, l))
		return 0;
	if (p->protocol == 58 && READ(skb, l, 0, &type) == 0)
		p->neighbour = type >= 133 && type <= 137;
	read_ports(skb, p, l, dir);
	return 0;
}

static __always_inline int is_tag(uint16_t type)
{
	return type == bpf_htons(ETH_P_8021Q) || type == bpf_htons(ETH_P_8021AD);
}

/* Go behind tags of VLANs, and return the type of what follows. The network's header is behind a tag or before it, by who made it. */
static __always_inline uint16_t skip_tags(struct __sk_buff *skb, struct place *l)
{
	uint16_t type = (uint16_t)skb->protocol;

	if (!is_tag(type))
		return type;
	l->start = BPF_HDR_START_MAC;
	l->at = 12;
	if (READ(skb, l, 0, &type))
		return 0;
#pragma unroll
	for (int i = 0; i < TAGS; i++)
		if (is_tag(type)) {
			l->at += 4;
			if (READ(skb, l, 0, &type))
				return 0;
		}
	l->at += 2;
	return type;
}

/* Return 0, or a negative number: no packet of IP. */
static __always_inline int read_packet(struct __sk_buff *skb, struct packet *p, int dir)
{
	struct place l = {BPF_HDR_START_NET, 0};
	uint16_t type = skip_tags(skb, &l);

	__builtin_memset(p, 0, sizeof(*p));
	if (type == bpf_htons(ETH_P_IP))
		return read_v4(skb, p, &l, dir);
	if (type == bpf_htons(ETH_P_IPV6))
		return read_v6(skb, p, &l, dir);
	p->neighbour = type == bpf_htons(ETH_P_ARP);
	return -1;
}

static __always_inline int has_port(const struct packet *p, uint16_t port)
{
	return port && (p->mine == port || p->theirs == port);
}

/* Return true for traffic that must pass whatever the policy says. */
static __always_inline int is_exempt(const struct packet *p)
{
	if (p->neighbour)
		return 1;
	if (p->protocol == 6)
		return has_port(p, config.tcp) || has_port(p, config.fabric);
	return p->protocol == 17 && has_port(p, config.udp);
}

/* ---- matching */

/* Without branches, each of which the kernel's verifier would follow. */
static __always_inline uint32_t lowest(uint64_t bits)
{
	uint32_t n = 0;

	for (uint32_t log = 5, half = 32; half; half >>= 1, log--) {
		uint64_t none = ((bits & ((1ull << half) - 1)) - 1) >> 63;

		bits >>= none << log;
		n += (uint32_t)none << log;
	}
	return n;
}

/* Return the node of the first rule that is in all sets, or 0. No static function: the verifier looks at it once, and not at all that
 * follows for each turn of its loop. */
__attribute__((noinline)) uint32_t first_rule(
	uint32_t in_a, uint32_t in_b, uint32_t in_c, uint32_t in_d, uint32_t in_e)
{
	const struct shape_set *a, *b, *c, *d, *e;

	a = bpf_map_lookup_elem(&sets, &in_a);
	b = bpf_map_lookup_elem(&sets, &in_b);
	c = bpf_map_lookup_elem(&sets, &in_c);
	d = bpf_map_lookup_elem(&sets, &in_d);
	e = bpf_map_lookup_elem(&sets, &in_e);
	if (!a || !b || !c || !d || !e)
		return 0;
	for (uint32_t i = 0; i < SHAPE_WORDS; i++) {
		uint64_t bits;

		if (i >= config.words)
			break;
		bits = a->bits[i] & b->bits[i] & c->bits[i] & d->bits[i] & e->bits[i];
		if (bits)
			return owners[INDEX(i * 64 + lowest(bits), SHAPE_RULES)];
	}
	return 0;
}

static __always_inline uint32_t find(const struct packet *p, uint32_t cgroup, uint32_t interface)
{
	uint32_t set[SHAPE_FIELDS] = {cgroup, interface, ports[INDEX(p->mine, 65536)],
		config.any[SHAPE_ADDRESS], dscps[INDEX(p->dscp, 64)]};
	struct shape_block block = {.bits = 128};
	const uint32_t *found;

	__builtin_memcpy(block.address, p->other, 16);
	found = bpf_map_lookup_elem(&addresses, &block);
	if (found)
		set[SHAPE_ADDRESS] = *found;
	return first_rule(set[0], set[1], set[2], set[3], set[4]);
}

/* The set of the deepest cgroup of the packet's socket that has one. */
static __always_inline uint32_t cgroup_set(struct __sk_buff *skb)
{
	if (!config.cgroups)
		return config.any[SHAPE_CGROUP];
#pragma unroll
	for (int level = LEVELS; level > 0; level--) {
		uint64_t id = bpf_skb_ancestor_cgroup_id(skb, level);
		const uint32_t *found = id ? bpf_map_lookup_elem(&cgroups, &id) : 0;

		if (found)
			return *found;
	}
	return config.any[SHAPE_CGROUP];
}

/* The number of its set. */
static __always_inline uint32_t interface_number(uint32_t index)
{
	const uint32_t *found = bpf_map_lookup_elem(&interfaces, &index);

	return found ? *found & (SHAPE_INTERFACES - 1) : 0;
}

/* ---- marks and counters */

#define MARK_VALUE(mark) ((mark) >> SHAPE_MARK_AT & 0xfff)
#define MARK_KIND(in)    (SHAPE_MARK_TAG(config.tag) | ((in) ? SHAPE_MARK_IN : 0))

static __always_inline int is_marked(uint32_t mark, int in)
{
	return (mark & 0xf0000000u) == MARK_KIND(in);
}

static __always_inline uint32_t mark_of(uint32_t old, int in, uint32_t value)
{
	return (old & 0xffff) | MARK_KIND(in) | value << SHAPE_MARK_AT;
}

static __always_inline struct shape_count *count_of(uint32_t node, int dir)
{
	uint32_t at = SHAPE_COUNT(config.nodes, bpf_get_smp_processor_id(), node, dir);

	return bpf_map_lookup_elem(&counts, &at);
}

/* Bytes on the wire: each segment has headers of its own. `length` is from the network's header on. */
static __always_inline uint64_t wire_bytes(struct __sk_buff *skb, uint32_t length)
{
	uint32_t segments = skb->gso_segs ? skb->gso_segs : 1;

	return length + (uint64_t)segments * 14 + (uint64_t)(segments - 1) * 52;
}

static __always_inline void count(struct shape_count *c, struct __sk_buff *skb,
	const struct packet *p, uint32_t length, int sign)
{
	uint64_t bytes = wire_bytes(skb, length), segments = skb->gso_segs ? skb->gso_segs : 1;

	c->bytes += sign * bytes;
	c->packets += sign * segments;
	c->marked += p->ecn == 3 ? sign * segments : 0;
}

/* Return true each SHAPE_SAMPLE bytes. */
static __always_inline int is_sampled(struct shape_count *c, uint64_t bytes)
{
	c->sampled += bytes;
	if (c->sampled < SHAPE_SAMPLE)
		return 0;
	c->sampled %= SHAPE_SAMPLE;
	return 1;
}

/* Give the shaper the sender of a sampled packet. */
static __always_inline void sample(
	struct shape_count *c, uint64_t bytes, const struct packet *p, uint32_t node)
{
	struct shape_sample s = {.node = node};

	if (!is_sampled(c, bytes))
		return;
	__builtin_memcpy(s.from, p->other, 16);
	__builtin_memcpy(s.flow.address, p->own, 16);
	s.flow.mine = p->theirs;
	s.flow.theirs = p->mine;
	s.flow.protocol = p->protocol;
	s.flow.dscp = p->dscp;
	bpf_ringbuf_output(&samples, &s, sizeof(s), BPF_RB_NO_WAKEUP);
}

/* Keep the node of a sampled flow that goes out, for feedback to it. */
static __always_inline void keep_flow(const struct packet *p, uint32_t node)
{
	struct shape_flow f = {
		.mine = p->mine, .theirs = p->theirs, .protocol = p->protocol, .dscp = p->dscp};

	__builtin_memcpy(f.address, p->other, 16);
	bpf_map_update_elem(&flows, &f, &node, BPF_ANY);
}

/* ---- the programs */

static __always_inline uint32_t class_of(const struct packet *p, uint32_t node)
{
	uint64_t now = bpf_ktime_get_ns();
	struct shape_to to = {.node = node};
	const struct shape_leaf *leaf;

	if (now - beat > SHAPE_STALE && now > beat)
		return SHAPE_STATIC + slots[INDEX(node, SHAPE_SLOTS)];
	__builtin_memcpy(to.address, p->other, 16);
	leaf = bpf_map_lookup_elem(&leaves, &to);
	return leaf && now < leaf->until ? leaf->minor
					 : SHAPE_DEFAULT + slots[INDEX(node, SHAPE_SLOTS)];
}

/* Write the DSCP of a service into a packet without a tag in it. */
static __always_inline void mark_packet(struct __sk_buff *skb, struct packet *p, uint8_t dscp)
{
	uint32_t at = config.header;

	if (p->dscp == dscp)
		return;
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		uint8_t to = (uint8_t)(dscp << 2 | p->ecn), was = (uint8_t)(p->dscp << 2 | p->ecn);

		if (bpf_l3_csum_replace(skb, at + 10, bpf_htons(was), bpf_htons(to), 2) == 0)
			bpf_skb_store_bytes(skb, at + 1, &to, 1, 0);
		p->dscp = dscp;
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		uint16_t word; /* 4 bits of the version, 6 of DSCP, 2 of ECN, 4 of the flow */

		if (bpf_skb_load_bytes(skb, at, &word, 2))
			return;
		word = bpf_htons((bpf_ntohs(word) & 0xf03f) | (uint16_t)dscp << 6);
		bpf_skb_store_bytes(skb, at, &word, 2, 0);
		p->dscp = dscp;
	}
}

SEC("tc")
int weir_out(struct __sk_buff *skb)
{
	uint32_t interface = config.any[SHAPE_INTERFACE], node = 0;
	struct shape_count *c;
	struct packet p;

	if (config.interfaces && is_marked(skb->mark, 0))
		interface = interface_sets[INDEX(MARK_VALUE(skb->mark), SHAPE_INTERFACES)];
	if (read_packet(skb, &p, SHAPE_OUT) == 0)
		node = find(&p, cgroup_set(skb), interface);
	if (is_exempt(&p)) {
		skb->priority = SHAPE_MAJOR | SHAPE_DIRECT;
		return TC_ACT_UNSPEC;
	}
	if (marks[INDEX(node, SHAPE_SLOTS)])
		mark_packet(skb, &p, marks[INDEX(node, SHAPE_SLOTS)] - 1);
	c = count_of(node, SHAPE_OUT);
	if (c) {
		count(c, skb, &p, skb->len - config.header, 1);
		if ((config.cgroups || config.interfaces) && is_sampled(c, skb->len))
			keep_flow(&p, node);
	}
	skb->priority = SHAPE_MAJOR | class_of(&p, node);
	return TC_ACT_UNSPEC;
}

SEC("tc")
int weir_in(struct __sk_buff *skb)
{
	uint32_t node = 0, length = skb->len - config.header;
	struct shape_count *c;
	struct packet p;

	if (read_packet(skb, &p, SHAPE_IN) == 0)
		node = find(&p, config.any[SHAPE_CGROUP], config.any[SHAPE_INTERFACE]);
	if (is_exempt(&p))
		return TC_ACT_UNSPEC;
	c = count_of(node, SHAPE_IN);
	if (c) {
		count(c, skb, &p, length, 1);
		sample(c, wire_bytes(skb, length), &p, node);
	}
	if (config.cgroups || config.interfaces)
		skb->mark = mark_of(skb->mark, 1, node);
	return TC_ACT_UNSPEC;
}

/* Move what `weir_in` counted to the service that a packet has for its cgroup and interface. */
static __always_inline void move(
	struct __sk_buff *skb, uint32_t cgroup, uint32_t interface, uint32_t length)
{
	uint32_t node, was = MARK_VALUE(skb->mark);
	struct shape_count *from, *to;
	struct packet p;

	if (!is_marked(skb->mark, 1) || read_packet(skb, &p, SHAPE_IN) || is_exempt(&p))
		return;
	node = find(&p, cgroup, interface);
	if (node == was || !(from = count_of(was, SHAPE_IN)) || !(to = count_of(node, SHAPE_IN)))
		return;
	count(from, skb, &p, length, -1);
	count(to, skb, &p, length, 1);
	sample(to, wire_bytes(skb, length), &p, node);
	skb->mark = mark_of(skb->mark, 1, node);
}

SEC("cgroup_skb/ingress")
int weir_in_cgroup(struct __sk_buff *skb)
{
	move(skb, cgroup_set(skb), config.any[SHAPE_INTERFACE], skb->len);
	return 1;
}

SEC("tc")
int weir_in_interface(struct __sk_buff *skb)
{
	move(skb, config.any[SHAPE_CGROUP],
		interface_sets[INDEX(interface_number(skb->ifindex), SHAPE_INTERFACES)],
		skb->len - config.header);
	return TC_ACT_UNSPEC;
}

SEC("tc")
int weir_out_interface(struct __sk_buff *skb)
{
	skb->mark = mark_of(skb->mark, 0, interface_number(skb->ifindex));
	return TC_ACT_UNSPEC;
}

char rights[] SEC("license") = "Dual BSD/GPL";
