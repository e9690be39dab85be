/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * netlink: see netlink.h.
 *
 * SOURCE  Linux, drivers/block/nbd.c: the commands of the family "nbd" and what each checks.
 */
#include "cli/attach/netlink.h"
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <linux/nbd-netlink.h>
#include <string.h>

#define ROOM 8192 /* bytes of a message: an identifier of 4 KiB and some hundred sockets fit */
union message {
	struct nlmsghdr header;
	char bytes[ROOM];
};

static struct nlmsghdr *begin(
	struct netlink *n, union message *m, uint16_t family, uint8_t command, uint8_t version)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(m->bytes);
	struct genlmsghdr *g = mnl_nlmsg_put_extra_header(h, sizeof(*g));

	h->nlmsg_type = family;
	h->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	h->nlmsg_seq = ++n->seq;
	g->cmd = command;
	g->version = version;
	return h;
}

/* Send a command, and give its answers to `each`, up to the acknowledgement. */
static int ask(struct netlink *n, union message *m, mnl_cb_t each, void *arg)
{
	unsigned port = mnl_socket_get_portid(n->commands);
	ssize_t got;
	int r = MNL_CB_OK;

	if (mnl_socket_sendto(n->commands, m->bytes, m->header.nlmsg_len) < 0)
		return -errno;
	while (r == MNL_CB_OK) {
		got = mnl_socket_recvfrom(n->commands, m->bytes, sizeof(m->bytes));
		if (got < 0)
			return -errno;
		r = mnl_cb_run(m->bytes, (size_t)got, n->seq, port, each, arg);
	}
	return r < 0 ? -errno : 0;
}

/* ---- the family */

static void read_group(struct netlink *n, const struct nlattr *group)
{
	const struct nlattr *a;
	const char *name = "";
	uint32_t id = 0;

	mnl_attr_for_each_nested(a, group)
	{
		if (mnl_attr_get_type(a) == CTRL_ATTR_MCAST_GRP_NAME)
			name = mnl_attr_get_str(a);
		else if (mnl_attr_get_type(a) == CTRL_ATTR_MCAST_GRP_ID)
			id = mnl_attr_get_u32(a);
	}
	if (strcmp(name, NBD_GENL_MCAST_GROUP_NAME) == 0)
		n->group = id;
}

static int on_family(const struct nlmsghdr *h, void *arg)
{
	struct netlink *n = arg;
	const struct nlattr *a, *group;

	mnl_attr_for_each(a, h, sizeof(struct genlmsghdr))
	{
		if (mnl_attr_get_type(a) == CTRL_ATTR_FAMILY_ID)
			n->family = mnl_attr_get_u16(a);
		else if (mnl_attr_get_type(a) == CTRL_ATTR_MCAST_GROUPS)
			mnl_attr_for_each_nested(group, a) read_group(n, group);
	}
	return MNL_CB_OK;
}

static int open_socket(struct mnl_socket **ret)
{
	struct mnl_socket *s = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	int e;

	if (!s)
		return -errno;
	if (mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) < 0) {
		e = -errno;
		mnl_socket_close(s);
		return e;
	}
	*ret = s;
	return 0;
}

int netlink_open(struct netlink *n, struct weir_err *err)
{
	union message m;
	int e = open_socket(&n->commands);

	if (e < 0)
		return weir_err_set(err, e, "generic netlink: %s", strerror(-e));
	mnl_attr_put_strz(begin(n, &m, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1), CTRL_ATTR_FAMILY_NAME,
		NBD_GENL_FAMILY_NAME);
	e = ask(n, &m, on_family, n);
	if (e == 0 && n->family)
		return 0;
	netlink_close(n);
	if (e == -ENOENT || e == 0)
		return weir_err_set(
			err, -ENOENT, "the kernel's nbd driver is not loaded: modprobe nbd");
	return weir_err_set(err, e, "the kernel's nbd driver: %s", strerror(-e));
}

void netlink_close(struct netlink *n)
{
	if (n->commands)
		mnl_socket_close(n->commands);
	if (n->events)
		mnl_socket_close(n->events);
	n->commands = n->events = NULL;
}

/* ---- commands */

static void put_some(struct nlmsghdr *h, uint16_t type, uint64_t value)
{
	if (value)
		mnl_attr_put_u64(h, type, value);
}

static void put_sockets(struct nlmsghdr *h, const int *sockets, size_t n)
{
	struct nlattr *all, *one;

	if (n == 0)
		return;
	all = mnl_attr_nest_start(h, NBD_ATTR_SOCKETS);
	for (size_t i = 0; i < n; i++) {
		one = mnl_attr_nest_start(h, NBD_SOCK_ITEM);
		mnl_attr_put_u32(h, NBD_SOCK_FD, (uint32_t)sockets[i]);
		mnl_attr_nest_end(h, one);
	}
	mnl_attr_nest_end(h, all);
}

static int send_device(struct netlink *n, uint8_t command, const struct netlink_device *d,
	mnl_cb_t each, void *arg)
{
	union message m;
	struct nlmsghdr *h = begin(n, &m, n->family, command, NBD_GENL_VERSION);

	if (d->index >= 0)
		mnl_attr_put_u32(h, NBD_ATTR_INDEX, (uint32_t)d->index);
	put_some(h, NBD_ATTR_SIZE_BYTES, d->size);
	put_some(h, NBD_ATTR_BLOCK_SIZE_BYTES, d->block);
	put_some(h, NBD_ATTR_SERVER_FLAGS, d->flags);
	put_some(h, NBD_ATTR_TIMEOUT, d->timeout);
	put_some(h, NBD_ATTR_DEAD_CONN_TIMEOUT, d->dead);
	if (d->identifier)
		mnl_attr_put_strz(h, NBD_ATTR_BACKEND_IDENTIFIER, d->identifier);
	put_sockets(h, d->sockets, d->n);
	return ask(n, &m, each, arg);
}

static int on_index(const struct nlmsghdr *h, void *arg)
{
	const struct nlattr *a;

	mnl_attr_for_each(
		a, h, sizeof(struct genlmsghdr)) if (mnl_attr_get_type(a) == NBD_ATTR_INDEX) *
		(int *)arg = (int)mnl_attr_get_u32(a);
	return MNL_CB_OK;
}

/* Set the message of a command that failed with `e`. */
static int explain(struct weir_err *err, int e, int index, const char *invalid)
{
	char name[24] = "a device of nbd";

	if (index >= 0)
		snprintf(name, sizeof(name), "/dev/nbd%d", index);
	if (e == -EPERM)
		return weir_err_set(err, e, "%s: only root may do this (CAP_SYS_ADMIN)", name);
	if (e == -EBUSY)
		return weir_err_set(err, e, "%s is in use", name);
	return weir_err_set(err, e, "%s: %s", name, e == -EINVAL ? invalid : strerror(-e));
}

int netlink_connect(
	struct netlink *n, const struct netlink_device *d, int *ret_index, struct weir_err *err)
{
	int index = d->index, e = send_device(n, NBD_CMD_CONNECT, d, on_index, &index);

	if (e < 0)
		return explain(err, e, d->index, "the driver refuses the connections or the size");
	*ret_index = index;
	return 0;
}

int netlink_reconfigure(struct netlink *n, const struct netlink_device *d, struct weir_err *err)
{
	int e = send_device(n, NBD_CMD_RECONFIGURE, d, NULL, NULL);

	return e < 0 ? explain(err, e, d->index, "not attached, or to another volume") : 0;
}

int netlink_disconnect(struct netlink *n, int index, struct weir_err *err)
{
	struct netlink_device d = {.index = index};
	int e = send_device(n, NBD_CMD_DISCONNECT, &d, NULL, NULL);

	return e < 0 ? explain(err, e, index, "there is no such device") : 0;
}

static int on_status(const struct nlmsghdr *h, void *arg)
{
	const struct nlattr *a, *item, *b;

	mnl_attr_for_each(a, h, sizeof(struct genlmsghdr))
	{
		if (mnl_attr_get_type(a) != NBD_ATTR_DEVICE_LIST)
			continue;
		mnl_attr_for_each_nested(item, a) mnl_attr_for_each_nested(b, item)
		{
			if (mnl_attr_get_type(b) == NBD_DEVICE_CONNECTED)
				*(bool *)arg = mnl_attr_get_u8(b);
		}
	}
	return MNL_CB_OK;
}

int netlink_attached(struct netlink *n, int index, bool *ret, struct weir_err *err)
{
	struct netlink_device d = {.index = index};
	bool attached = false;
	int e = send_device(n, NBD_CMD_STATUS, &d, on_status, &attached);

	if (e < 0)
		return explain(err, e, index, "there is no such device");
	*ret = attached;
	return 0;
}

/* ---- messages of the driver */

int netlink_listen(struct netlink *n, int *ret_fd, struct weir_err *err)
{
	int e = open_socket(&n->events);

	if (e == 0 && mnl_socket_setsockopt(
			      n->events, NETLINK_ADD_MEMBERSHIP, &n->group, sizeof(n->group)) < 0)
		e = -errno;
	if (e < 0)
		return weir_err_set(err, e, "messages of the nbd driver: %s", strerror(-e));
	*ret_fd = mnl_socket_get_fd(n->events);
	fcntl(*ret_fd, F_SETFL, O_NONBLOCK);
	return 0;
}

struct loss {
	int index;
	bool lost;
};

static int on_message(const struct nlmsghdr *h, void *arg)
{
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(h);
	struct loss *l = arg;
	int index = -1;

	on_index(h, &index);
	if (g->cmd == NBD_CMD_LINK_DEAD && index == l->index)
		l->lost = true;
	return MNL_CB_OK;
}

bool netlink_lost(struct netlink *n, int index)
{
	struct loss l = {.index = index};
	union message m;
	ssize_t got;

	while ((got = mnl_socket_recvfrom(n->events, m.bytes, sizeof(m.bytes))) > 0 ||
		(got < 0 && errno == ENOBUFS)) {
		if (got < 0)
			l.lost = true;
		else
			mnl_cb_run(m.bytes, (size_t)got, 0, 0, on_message, &l);
	}
	return l.lost;
}
