/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tc: see tc.h.
 *
 * SOURCE  Linux, net/sched/sch_api.c, sch_htb.c and cls_bpf.c: the messages and what each checks.
 */
#include "serve/shape/tc.h"
#include "base/array.h"
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/ethtool.h>
#include <linux/gen_stats.h>
#include <linux/if_arp.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define TICK 64 /* ns, of the kernel's burst times */

union message {
	struct nlmsghdr header;
	char bytes[32768]; /* a dump's part may have that many */
};

int tc_open(struct tc *t, struct weir_err *err)
{
	int one = 1;

	t->socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	if (!t->socket || mnl_socket_bind(t->socket, 0, MNL_SOCKET_AUTOPID) < 0) {
		int e = -errno;

		tc_close(t);
		return weir_err_set(err, e, "route netlink: %s", strerror(-e));
	}
	/* The kernel says in words what it refuses. */
	mnl_socket_setsockopt(t->socket, NETLINK_EXT_ACK, &one, sizeof(one));
	mnl_socket_setsockopt(t->socket, NETLINK_CAP_ACK, &one, sizeof(one));
	return 0;
}

void tc_close(struct tc *t)
{
	if (t->socket)
		mnl_socket_close(t->socket);
	t->socket = NULL;
}

/* ---- messages */

/* Return the kernel's words in an error message, or NULL. */
static const char *words_of(const struct nlmsghdr *h)
{
	const struct nlmsgerr *e = mnl_nlmsg_get_payload(h);
	size_t at = sizeof(*e);
	const struct nlattr *a;

	if (!(h->nlmsg_flags & NLM_F_ACK_TLVS))
		return NULL;
	if (!(h->nlmsg_flags & NLM_F_CAPPED))
		at += e->msg.nlmsg_len - sizeof(e->msg);
	mnl_attr_for_each(a, h, (unsigned)at) if (mnl_attr_get_type(a) ==
						  NLMSGERR_ATTR_MSG) return mnl_attr_get_str(a);
	return NULL;
}

/* Send a message, and give its answers to `each`, up to the acknowledgement or the end of a dump. */
static int ask(struct tc *t, union message *m, mnl_cb_t each, void *arg, struct weir_err *err)
{
	unsigned port = mnl_socket_get_portid(t->socket);
	int r = MNL_CB_OK;

	m->header.nlmsg_seq = ++t->seq;
	if (mnl_socket_sendto(t->socket, m->bytes, m->header.nlmsg_len) < 0)
		return weir_err_set(err, -errno, "route netlink: %s", strerror(errno));
	while (r == MNL_CB_OK) {
		ssize_t got = mnl_socket_recvfrom(t->socket, m->bytes, sizeof(m->bytes));
		int e;

		if (got < 0)
			return weir_err_set(err, -errno, "route netlink: %s", strerror(errno));
		r = mnl_cb_run(m->bytes, (size_t)got, t->seq, port, each, arg);
		e = errno;
		if (r < 0) {
			const char *words =
				m->header.nlmsg_type == NLMSG_ERROR ? words_of(&m->header) : NULL;

			return weir_err_set(err, -e, "%s%s%s", strerror(e), words ? ": " : "",
				words ? words : "");
		}
	}
	return 0;
}

/* Put the name of what failed before the message. */
static int blame(int r, struct weir_err *err, const char *what, const char *name)
{
	char text[sizeof(err->text)];

	if (r == 0 || !err)
		return r;
	snprintf(text, sizeof(text), "%s", err->text);
	return weir_err_set(err, r, "%s: %s: %s", name, what, text);
}

static struct tcmsg *begin_tc(union message *m, uint16_t type, uint16_t flags, int index)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(m->bytes);
	struct tcmsg *tc = mnl_nlmsg_put_extra_header(h, sizeof(*tc));

	h->nlmsg_type = type;
	/* NLM_F_DUMP has the bits of NLM_F_REPLACE and NLM_F_EXCL. */
	h->nlmsg_flags =
		(uint16_t)(NLM_F_REQUEST | flags |
			   (type == RTM_GETQDISC || type == RTM_GETTCLASS || type == RTM_GETTFILTER
					   ? 0
					   : NLM_F_ACK));
	tc->tcm_family = AF_UNSPEC;
	tc->tcm_ifindex = index;
	return tc;
}

/* ---- devices */

static int on_link(const struct nlmsghdr *h, void *arg)
{
	const struct ifinfomsg *i = mnl_nlmsg_get_payload(h);
	struct tc_link_list *to = arg;
	struct tc_link l = {.index = i->ifi_index, .segments = 65535};
	const struct nlattr *a;

	mnl_attr_for_each(a, h, sizeof(*i))
	{
		if (mnl_attr_get_type(a) == IFLA_IFNAME)
			snprintf(l.name, sizeof(l.name), "%s", mnl_attr_get_str(a));
		else if (mnl_attr_get_type(a) == IFLA_MTU)
			l.mtu = mnl_attr_get_u32(a);
		else if (mnl_attr_get_type(a) == IFLA_GSO_MAX_SEGS)
			l.segments = mnl_attr_get_u32(a);
	}
	l.header = i->ifi_type == ARPHRD_ETHER ? 14 : 0;
	to->failed |= array_grow(&to->links, &to->room, to->n + 1) < 0;
	if (!to->failed)
		to->links[to->n++] = l;
	return MNL_CB_OK;
}

static int get_links(struct tc *t, const char *name, uint16_t flags, struct tc_link_list *to,
	struct weir_err *err)
{
	union message m;
	struct nlmsghdr *h = mnl_nlmsg_put_header(m.bytes);
	struct ifinfomsg *i = mnl_nlmsg_put_extra_header(h, sizeof(*i));

	h->nlmsg_type = RTM_GETLINK;
	h->nlmsg_flags = NLM_F_REQUEST | flags;
	i->ifi_family = AF_UNSPEC;
	if (name)
		mnl_attr_put_strz(h, IFLA_IFNAME, name);
	return ask(t, &m, on_link, to, err);
}

int tc_link(struct tc *t, const char *name, struct tc_link *ret, struct weir_err *err)
{
	struct tc_link_list to = {0};
	int r = strlen(name) < IFNAMSIZ ? get_links(t, name, NLM_F_ACK, &to, err) : -ENODEV;

	if (r == 0 && !to.n)
		r = to.failed ? -ENOMEM : -ENODEV;
	if (r == 0)
		*ret = to.links[to.n - 1];
	free(to.links);
	return r == -ENODEV ? weir_err_set(err, r, "%s: there is no such device", name)
			    : blame(r, err, "the device", name);
}

int tc_links(struct tc *t, struct tc_link_list *ret, struct weir_err *err)
{
	int r;

	*ret = (struct tc_link_list){0};
	r = get_links(t, NULL, NLM_F_DUMP, ret, err);
	return r ? r : ret->failed ? -ENOMEM : 0;
}

int tc_set_segments(struct tc *t, const struct tc_link *l, uint32_t segments, struct weir_err *err)
{
	union message m;
	struct nlmsghdr *h = mnl_nlmsg_put_header(m.bytes);
	struct ifinfomsg *i = mnl_nlmsg_put_extra_header(h, sizeof(*i));

	h->nlmsg_type = RTM_NEWLINK;
	h->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	i->ifi_family = AF_UNSPEC;
	i->ifi_index = l->index;
	mnl_attr_put_u32(h, IFLA_GSO_MAX_SEGS, segments);
	return blame(ask(t, &m, NULL, NULL, err), err, "the size of segments", l->name);
}

double tc_link_rate(const char *name)
{
	struct ethtool_cmd cmd = {.cmd = ETHTOOL_GSET};
	struct ifreq request = {.ifr_data = (char *)&cmd};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint32_t speed = 0;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (fd >= 0 && ioctl(fd, SIOCETHTOOL, &request) == 0)
		speed = ethtool_cmd_speed(&cmd);
	if (fd >= 0)
		close(fd);
	return speed == (uint32_t)SPEED_UNKNOWN ? 0 : speed * 1e6 / 8;
}

/* ---- the root */

struct root {
	int index;
	struct tc_queue q;
	bool found;
};

static int on_root(const struct nlmsghdr *h, void *arg)
{
	const struct tcmsg *tc = mnl_nlmsg_get_payload(h);
	struct root *to = arg;
	const struct nlattr *a;

	if (tc->tcm_ifindex == to->index && tc->tcm_parent == TC_H_CLSACT)
		to->q.clsact = true;
	if (tc->tcm_ifindex != to->index || tc->tcm_parent != TC_H_ROOT)
		return MNL_CB_OK;
	to->found = true;
	to->q.handle = tc->tcm_handle;
	mnl_attr_for_each(a, h, sizeof(*tc))
	{
		if (mnl_attr_get_type(a) == TCA_KIND)
			snprintf(to->q.kind, sizeof(to->q.kind), "%s", mnl_attr_get_str(a));
		if (mnl_attr_get_type(a) != TCA_OPTIONS)
			continue;
		to->q.len = mnl_attr_get_payload_len(a);
		if (to->q.len <= TC_OPTIONS)
			memcpy(to->q.options, mnl_attr_get_payload(a), to->q.len);
	}
	return MNL_CB_OK;
}

static void on_any_class(void *arg, const struct tc_class_state *c)
{
	*(bool *)arg = true;
}

int tc_root(struct tc *t, const struct tc_link *l, struct tc_queue *ret, struct weir_err *err)
{
	struct root to = {.index = l->index};
	union message m;
	int r;

	begin_tc(&m, RTM_GETQDISC, NLM_F_DUMP, l->index);
	r = ask(t, &m, on_root, &to, err);
	if (r == 0 && to.q.handle)
		r = tc_classes(t, l, on_any_class, &to.q.classes, err);
	if (r == 0)
		*ret = to.q;
	return blame(r, err, "its qdisc", l->name);
}

static int add_htb(struct tc *t, const struct tc_link *l, uint32_t parent, uint32_t handle,
	bool replace, uint32_t others, struct weir_err *err)
{
	struct tc_htb_glob glob = {.version = 3, .rate2quantum = 10, .defcls = others};
	union message m;
	struct tcmsg *tc = begin_tc(&m, RTM_NEWQDISC,
		(uint16_t)(NLM_F_CREATE | (replace ? NLM_F_REPLACE : NLM_F_EXCL)), l->index);
	struct nlattr *options;

	tc->tcm_parent = parent;
	tc->tcm_handle = handle;
	mnl_attr_put_strz(&m.header, TCA_KIND, "htb");
	options = mnl_attr_nest_start(&m.header, TCA_OPTIONS);
	mnl_attr_put(&m.header, TCA_HTB_INIT, sizeof(glob), &glob);
	mnl_attr_nest_end(&m.header, options);
	return blame(ask(t, &m, NULL, NULL, err), err, "qdisc htb", l->name);
}

int tc_root_add(
	struct tc *t, const struct tc_link *l, uint32_t handle, bool replace, struct weir_err *err)
{
	return add_htb(t, l, TC_H_ROOT, handle, replace, 0, err);
}

int tc_inner_add(
	struct tc *t, const struct tc_link *l, uint32_t id, uint32_t qdisc, struct weir_err *err)
{
	return add_htb(t, l, id, qdisc, false, 1, err);
}

int tc_root_put(
	struct tc *t, const struct tc_link *l, const struct tc_queue *q, struct weir_err *err)
{
	union message m;
	struct tcmsg *tc = begin_tc(&m, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, l->index);

	tc->tcm_parent = TC_H_ROOT;
	tc->tcm_handle = q->handle;
	mnl_attr_put_strz(&m.header, TCA_KIND, q->kind);
	if (q->len)
		mnl_attr_put(&m.header, TCA_OPTIONS, q->len, q->options);
	return blame(ask(t, &m, NULL, NULL, err), err, q->kind, l->name);
}

int tc_root_delete(struct tc *t, const struct tc_link *l, uint32_t handle, struct weir_err *err)
{
	union message m;
	struct tcmsg *tc = begin_tc(&m, RTM_DELQDISC, 0, l->index);

	tc->tcm_parent = TC_H_ROOT;
	tc->tcm_handle = handle;
	return blame(ask(t, &m, NULL, NULL, err), err, "qdisc htb", l->name);
}

/* ---- classes */

/* The time in which the rate sends so many bytes, in the kernel's ticks. */
static uint32_t burst_ticks(double rate, uint32_t bytes)
{
	double ticks = bytes / rate * 1e9 / TICK;

	return ticks < 2e9 ? (uint32_t)ticks + 1 : 2000000000u;
}

static struct tc_ratespec rate_spec(double rate)
{
	return (struct tc_ratespec){.linklayer = TC_LINKLAYER_ETHERNET,
		.rate = rate < UINT32_MAX ? (uint32_t)rate : UINT32_MAX};
}

int tc_class(struct tc *t, const struct tc_link *l, const struct tc_class *c, struct weir_err *err)
{
	struct tc_htb_opt o = {.rate = rate_spec(c->rate),
		.ceil = rate_spec(c->ceil),
		.buffer = burst_ticks(c->rate, c->rate_burst),
		.cbuffer = burst_ticks(c->ceil, c->ceil_burst),
		.quantum = c->quantum,
		.prio = c->priority};
	union message m;
	struct tcmsg *tc = begin_tc(&m, RTM_NEWTCLASS, NLM_F_CREATE, l->index);
	struct nlattr *options;

	tc->tcm_handle = c->id;
	tc->tcm_parent = c->parent;
	mnl_attr_put_strz(&m.header, TCA_KIND, "htb");
	options = mnl_attr_nest_start(&m.header, TCA_OPTIONS);
	mnl_attr_put(&m.header, TCA_HTB_PARMS, sizeof(o), &o);
	if (c->rate >= UINT32_MAX)
		mnl_attr_put_u64(&m.header, TCA_HTB_RATE64, (uint64_t)c->rate);
	if (c->ceil >= UINT32_MAX)
		mnl_attr_put_u64(&m.header, TCA_HTB_CEIL64, (uint64_t)c->ceil);
	mnl_attr_nest_end(&m.header, options);
	return blame(ask(t, &m, NULL, NULL, err), err, "class of htb", l->name);
}

int tc_class_delete(struct tc *t, const struct tc_link *l, uint32_t id, struct weir_err *err)
{
	union message m;

	begin_tc(&m, RTM_DELTCLASS, 0, l->index)->tcm_handle = id;
	return blame(ask(t, &m, NULL, NULL, err), err, "class of htb", l->name);
}

int tc_class_queue(
	struct tc *t, const struct tc_link *l, uint32_t id, uint32_t limit, struct weir_err *err)
{
	struct tc_fifo_qopt o = {.limit = limit};
	union message m;

	begin_tc(&m, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, l->index)->tcm_parent = id;
	mnl_attr_put_strz(&m.header, TCA_KIND, "bfifo");
	mnl_attr_put(&m.header, TCA_OPTIONS, sizeof(o), &o);
	return blame(ask(t, &m, NULL, NULL, err), err, "qdisc bfifo", l->name);
}

struct classes {
	int index;
	void (*each)(void *arg, const struct tc_class_state *c);
	void *arg;
};

static void read_stats(const struct nlattr *all, struct tc_class_state *ret)
{
	const struct nlattr *a;
	struct gnet_stats_basic basic = {0};
	struct gnet_stats_queue queue = {0};

	mnl_attr_for_each_nested(a, all)
	{
		size_t len = mnl_attr_get_payload_len(a);

		if (mnl_attr_get_type(a) == TCA_STATS_BASIC)
			memcpy(&basic, mnl_attr_get_payload(a),
				len < sizeof(basic) ? len : sizeof(basic));
		else if (mnl_attr_get_type(a) == TCA_STATS_QUEUE)
			memcpy(&queue, mnl_attr_get_payload(a),
				len < sizeof(queue) ? len : sizeof(queue));
	}
	ret->bytes = basic.bytes;
	ret->packets = basic.packets;
	ret->dropped = queue.drops;
	ret->queued = queue.qlen;
}

static int on_class(const struct nlmsghdr *h, void *arg)
{
	const struct tcmsg *tc = mnl_nlmsg_get_payload(h);
	const struct classes *to = arg;
	struct tc_class_state c = {.id = tc->tcm_handle,
		.parent = tc->tcm_parent,
		.limited = tc->tcm_info != 0,
		.first = (uint16_t)(tc->tcm_info >> 16)};
	const struct nlattr *a;

	if (tc->tcm_ifindex != to->index)
		return MNL_CB_OK;
	mnl_attr_for_each(a, h, sizeof(*tc)) if (mnl_attr_get_type(a) == TCA_STATS2)
		read_stats(a, &c);
	to->each(to->arg, &c);
	return MNL_CB_OK;
}

int tc_classes(struct tc *t, const struct tc_link *l,
	void (*each)(void *arg, const struct tc_class_state *c), void *arg, struct weir_err *err)
{
	struct classes to = {l->index, each, arg};
	union message m;

	begin_tc(&m, RTM_GETTCLASS, NLM_F_DUMP, l->index);
	return blame(ask(t, &m, on_class, &to, err), err, "its classes", l->name);
}

/* ---- filters */

struct filters {
	int (*each)(void *arg, const struct tc_filter *f);
	void *arg;
	bool out;
	int failed;
};

static int on_filter(const struct nlmsghdr *h, void *arg)
{
	const struct tcmsg *tc = mnl_nlmsg_get_payload(h);
	struct filters *to = arg;
	struct tc_filter f = {.priority = TC_H_MAJ(tc->tcm_info) >> 16, .out = to->out};
	const struct nlattr *a, *b;

	if (tc->tcm_handle == 0) /* the chain's own entry */
		return MNL_CB_OK;
	mnl_attr_for_each(a, h, sizeof(*tc))
	{
		if (mnl_attr_get_type(a) == TCA_KIND)
			snprintf(f.kind, sizeof(f.kind), "%s", mnl_attr_get_str(a));
		if (mnl_attr_get_type(a) == TCA_OPTIONS)
			mnl_attr_for_each_nested(b, a)
			{
				if (strcmp(f.kind, "bpf") == 0 &&
					mnl_attr_get_type(b) == TCA_BPF_NAME)
					snprintf(f.name, sizeof(f.name), "%s", mnl_attr_get_str(b));
			}
	}
	if (!to->failed)
		to->failed = to->each(to->arg, &f);
	return MNL_CB_OK;
}

int tc_filters(struct tc *t, const struct tc_link *l,
	int (*each)(void *arg, const struct tc_filter *f), void *arg, struct weir_err *err)
{
	struct filters to = {.each = each, .arg = arg};
	int r = 0;

	for (int out = 0; r == 0 && !to.failed && out < 2; out++) {
		union message m;

		to.out = out;
		begin_tc(&m, RTM_GETTFILTER, NLM_F_DUMP, l->index)->tcm_parent =
			TC_H_MAKE(TC_H_CLSACT, out ? TC_H_MIN_EGRESS : TC_H_MIN_INGRESS);
		r = ask(t, &m, on_filter, &to, err);
		if (r == -EINVAL) /* no clsact */
			r = 0;
	}
	return r ? blame(r, err, "its filters", l->name) : to.failed;
}
