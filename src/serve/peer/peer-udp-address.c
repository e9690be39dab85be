/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer-udp-address: open sockets for "udp:10.0.0.2:7000" and the like.
 *
 * With a list of hosts there is one socket: it sends, and has the address in the others' lists. A
 * group (broadcast or multicast) has a second one, which only receives messages to all: several
 * hosts of one machine may share that address, but a challenge to one of them must reach it alone,
 * at the port from which it sends.
 */
#include "serve/peer/peer-impl.h"
#include "serve/loop/inherit.h"
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* bytes: messages of 1,000 hosts at one moment; the system may limit it */
#define RECEIVE_ROOM (1 << 20)

enum kind { UNICAST, BROADCAST, MULTICAST };

struct address {
	enum kind kind;
	char host[256], port[8], interface[IF_NAMESIZE]; /* "": any */
};

static const char *const prefixes[] = {"udp:", "udp-broadcast:", "udp-multicast:"};

static int parse_kind(const char *text, struct address *a, struct weir_err *err)
{
	for (size_t i = 0; i < 3; i++) {
		if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0) {
			a->kind = (enum kind)i;
			return 0;
		}
	}
	return weir_err_set(err, -EINVAL,
		"'%s': peers are \"udp:HOST:PORT\", \"udp-broadcast:ADDRESS:PORT\", "
		"\"udp-multicast:ADDRESS:PORT%%INTERFACE\", \"file:PATH\" or \"nbd://...\"",
		text);
}

static int parse_port(const char *text, const char *port, struct address *a, struct weir_err *err)
{
	const char *percent = strchr(port, '%');
	size_t n = percent ? (size_t)(percent - port) : strlen(port);
	unsigned long value = strtoul(port, NULL, 10);

	if (!n || n > 5 || strspn(port, "0123456789") != n || value > 65535)
		return weir_err_set(err, -EINVAL, "%s: a port is a number from 0 to 65535", text);
	memcpy(a->port, port, n);
	if (!percent)
		return 0;
	if (a->kind != MULTICAST)
		return weir_err_set(
			err, -EINVAL, "%s: only a multicast group has an interface", text);
	if (!percent[1] || strlen(percent + 1) >= sizeof(a->interface))
		return weir_err_set(err, -EINVAL, "%s: missing or too long interface name", text);
	strcpy(a->interface, percent + 1);
	return 0;
}

static int parse(const char *text, struct address *a, struct weir_err *err)
{
	const char *host, *colon, *end;
	int r;

	*a = (struct address){0};
	r = parse_kind(text, a, err);
	if (r < 0)
		return r;
	host = text + strlen(prefixes[a->kind]);
	end = colon = strrchr(host, ':');
	if (!colon)
		return weir_err_set(err, -EINVAL, "%s: the port is missing", text);
	if (host[0] == '[') {
		host++;
		end--;
		if (end < host || *end != ']')
			return weir_err_set(err, -EINVAL, "%s: ']' is missing", text);
	} else if (memchr(host, ':', (size_t)(end - host))) {
		return weir_err_set(err, -EINVAL, "%s: put an IPv6 address into brackets", text);
	}
	if ((size_t)(end - host) >= sizeof(a->host))
		return weir_err_set(err, -EINVAL, "%s: the host's name is too long", text);
	memcpy(a->host, host, (size_t)(end - host));
	return parse_port(text, colon + 1, a, err);
}

int peer_udp_check(const char *const *addresses, struct weir_err *err)
{
	struct address a;
	int r = 0;

	for (unsigned i = 0; addresses[i] && r == 0; i++) {
		r = parse(addresses[i], &a, err);
		if (r == 0 && (!a.host[0] || strtoul(a.port, NULL, 10) == 0))
			r = weir_err_set(
				err, -EINVAL, "%s: the host or the port is missing", addresses[i]);
		if (r == 0 && a.kind != UNICAST && (i || addresses[1]))
			r = weir_err_set(err, -EINVAL,
				"peers: '%s' cannot be combined with others, only udp:HOST:PORT "
				"can",
				addresses[i]);
	}
	return r;
}

static int parse_listen(const char *text, struct address *a, struct weir_err *err)
{
	int r = parse(text, a, err);

	if (r == 0 && a->kind != UNICAST)
		r = weir_err_set(err, -EINVAL, "%s: must be \"udp:HOST:PORT\"", text);
	return r;
}

int peer_listen_check(const char *listen, struct weir_err *err)
{
	struct address a;

	return parse_listen(listen, &a, err);
}

/* ---- addresses of the system's */

static int resolve(const char *text, const struct address *a, int family, bool passive,
	struct peer_udp_target *ret, struct weir_err *err)
{
	struct addrinfo hints = {.ai_family = family,
				.ai_socktype = SOCK_DGRAM,
				.ai_flags = passive ? AI_PASSIVE : 0},
			*list;
	int r = getaddrinfo(a->host[0] ? a->host : NULL, a->port, &hints, &list);

	if (r)
		return weir_err_set(err, r == EAI_SYSTEM ? -errno : -EHOSTUNREACH, "%s: %s", text,
			r == EAI_SYSTEM ? strerror(errno) : gai_strerror(r));
	memcpy(&ret->at, list->ai_addr, list->ai_addrlen);
	ret->len = list->ai_addrlen;
	freeaddrinfo(list);
	return 0;
}

const char *peer_udp_name(const struct sockaddr_storage *at, char text[80])
{
	char host[64], port[8];

	if (getnameinfo((const struct sockaddr *)at, sizeof(*at), host, sizeof(host), port,
		    sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		return "?";
	snprintf(text, 80, at->ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
	return text;
}

/* ---- sockets */

/* Return the socket of the process that this one replaces, which may be asked for again. */
static int inherited(const char *name)
{
	int fd = inherit_take(name), again = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (again >= 0)
		inherit_put(name, again);
	return fd;
}

static int bind_anew(const struct peer_udp_target *at, bool shared)
{
	int fd = socket(at->at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1, room = RECEIVE_ROOM, r;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (shared)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (const struct sockaddr *)&at->at, at->len) == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

static int bound(const struct peer_udp_target *at, bool shared)
{
	char text[80], name[90];
	int fd;

	snprintf(name, sizeof(name), "udp:%s", peer_udp_name(&at->at, text));
	fd = inherited(name);
	if (fd < 0)
		fd = bind_anew(at, shared);
	if (fd >= 0)
		inherit_note(name, fd);
	return fd;
}

int peer_own(const char *const *addresses, struct sockaddr_storage *ret_at, struct weir_err *err)
{
	int own = -1, last = -EADDRNOTAVAIL, r = peer_udp_check(addresses, err);
	struct peer_udp_target at = {0};
	struct address a;

	for (int i = 0; r == 0 && addresses[i]; i++) {
		int fd = -1;

		r = parse(addresses[i], &a, err);
		if (r == 0)
			r = resolve(addresses[i], &a, i ? ret_at[0].ss_family : AF_UNSPEC, false,
				&at, err);
		if (r)
			break;
		ret_at[i] = at.at;
		if (own < 0 && (fd = bound(&at, false)) >= 0)
			own = i;
		else if (own < 0 && fd != -EADDRNOTAVAIL)
			last = fd;
		if (fd >= 0)
			close(fd);
	}
	if (r == 0 && own < 0)
		return weir_err_set(err, last, "none of the addresses %s ... is this machine's: %s",
			addresses[0], strerror(-last));
	return r ? r : own;
}

static int set_port(struct peer_udp_target *at, const struct peer_udp_target *as)
{
	if (at->at.ss_family != as->at.ss_family)
		return -EAFNOSUPPORT;
	if (at->at.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&at->at)->sin6_port =
			((const struct sockaddr_in6 *)&as->at)->sin6_port;
	else
		((struct sockaddr_in *)&at->at)->sin_port =
			((const struct sockaddr_in *)&as->at)->sin_port;
	return 0;
}

/* Get the address of our own socket. */
static int own_place(const struct peer_config *c, enum kind kind,
	const struct peer_udp_target *first, struct peer_udp_target *ret, struct weir_err *err)
{
	struct address a = {.port = "0"};
	int r = 0;

	if (c->listen)
		r = parse_listen(c->listen, &a, err);
	if (r == 0)
		r = resolve(c->listen ? c->listen : c->addresses[0], &a, first->at.ss_family, true,
			ret, err);
	if (r == 0 && !c->listen && kind == UNICAST)
		r = set_port(ret, first);
	return r;
}

static int join(int own, int group, const struct sockaddr_storage *at, unsigned interface)
{
	int on = 1;

	if (at->ss_family == AF_INET6) {
		struct ipv6_mreq m = {.ipv6mr_interface = interface};

		m.ipv6mr_multiaddr = ((const struct sockaddr_in6 *)at)->sin6_addr;
		if (setsockopt(group, IPPROTO_IPV6, IPV6_JOIN_GROUP, &m, sizeof(m)) < 0 ||
			setsockopt(own, IPPROTO_IPV6, IPV6_MULTICAST_IF, &interface,
				sizeof(interface)) < 0 ||
			setsockopt(own, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, &on, sizeof(on)) < 0)
			return -errno;
	} else {
		struct ip_mreqn m = {.imr_ifindex = (int)interface};

		m.imr_multiaddr = ((const struct sockaddr_in *)at)->sin_addr;
		if (setsockopt(group, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof(m)) < 0 ||
			setsockopt(own, IPPROTO_IP, IP_MULTICAST_IF, &m, sizeof(m)) < 0 ||
			setsockopt(own, IPPROTO_IP, IP_MULTICAST_LOOP, &on, sizeof(on)) < 0)
			return -errno;
	}
	return 0;
}

static int open_group(
	const char *text, const struct address *a, struct peer_udp_sockets *s, struct weir_err *err)
{
	unsigned interface = a->interface[0] ? if_nametoindex(a->interface) : 0;
	int on = 1, r = 0;

	if (a->interface[0] && !interface)
		return weir_err_set(
			err, -ENODEV, "%s: there is no interface %s", text, a->interface);
	s->group = bound(&s->to[0], true);
	if (s->group < 0)
		r = s->group;
	else if (a->kind == BROADCAST)
		r = setsockopt(s->own, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on)) < 0 ? -errno : 0;
	else
		r = join(s->own, s->group, &s->to[0].at, interface);
	return r < 0 ? weir_err_set(err, r, "%s: %s", text, strerror(-r)) : 0;
}

static int open_all(const struct peer_config *c, struct peer_udp_sockets *s, struct weir_err *err)
{
	struct peer_udp_target own = {0};
	struct address a, first;
	int r = parse(c->addresses[0], &first, err);

	for (unsigned i = 0; i < s->n_to && r == 0; i++) {
		r = parse(c->addresses[i], &a, err);
		if (r == 0)
			r = resolve(c->addresses[i], &a, i ? s->to[0].at.ss_family : AF_UNSPEC,
				false, &s->to[i], err);
	}
	if (r == 0)
		r = own_place(c, first.kind, &s->to[0], &own, err);
	if (r < 0)
		return r;
	s->own = bound(&own, false);
	if (s->own < 0)
		return weir_err_set(err, s->own, "%s: %s",
			c->listen ? c->listen : "the peers' port here", strerror(-s->own));
	return first.kind == UNICAST ? 0 : open_group(c->addresses[0], &first, s, err);
}

int peer_udp_sockets(const struct peer_config *config, struct peer_udp_sockets *ret_sockets,
	struct weir_err *err)
{
	struct peer_udp_sockets s = {.own = -1, .group = -1};
	int r;

	while (config->addresses[s.n_to])
		s.n_to++;
	if (!s.n_to)
		return weir_err_set(err, -EINVAL, "peers: no address is given");
	s.to = calloc(s.n_to, sizeof(*s.to));
	r = s.to ? open_all(config, &s, err) : weir_err_set(err, -ENOMEM, "peers: out of memory");
	if (r < 0) {
		if (s.own >= 0)
			close(s.own);
		if (s.group >= 0)
			close(s.group);
		free(s.to);
		return r;
	}
	*ret_sockets = s;
	return 0;
}
