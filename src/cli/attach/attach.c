/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attach: `weir attach`, an export as a block device of this machine.
 *
 * METHOD  The handshakes are made here, with the client code of the NBD back end; the kernel's driver gets the
 *         sockets. The volume's identifier is kept by the driver, which refuses sockets for another volume.
 */
#include "cli/attach/attach.h"
#include "cli/common/remote.h"
#include "serve/back/nbd-link.h"
#include "serve/loop/loop.h"
#include "wire/nbd-options.h"
#include <weir/units.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

extern const struct verb verb_attach;

#define DIAL (5 * WEIR_SEC) /* a connection and its handshake */
#define NO_TLS                                                                                     \
	"the kernel's sockets are plain, so an export under TLS cannot be attached: use a unix "   \
	"socket, or a tunnel "                                                                     \
	"such as stunnel"

/* ---- connections */

struct connections {
	int fds[ATTACH_CONNECTIONS];
	size_t n;
	struct nbd_export export_;
};

static void close_all(struct connections *c)
{
	while (c->n > 0)
		stream_close(&(struct stream){.fd = c->fds[--c->n]});
}

/* Close the connections that the driver got; it holds its own copies. */
static void close_ours(struct attach *a, struct connections *c)
{
	close_all(c);
	a->device.sockets = NULL;
	a->device.n = 0;
}

static int dial_one(const struct attach *a, struct connections *c, struct weir_err *err)
{
	struct nbd_link link = {.greet.reply_type = 0};
	int e = nbd_link_open(&link, &a->uri, NULL, DIAL, false, err);

	if (e < 0)
		return link.greet.reply_type == NBD_REP_ERR_TLS_REQD ? weir_err_set(err, e, NO_TLS)
								     : e;
	stream_watch(link.stream.fd, (int64_t)a->device.timeout * WEIR_SEC);
	c->fds[c->n++] = link.stream.fd;
	c->export_ = link.greet.export_;
	return 0;
}

/* Make the connections, all or none. */
static int dial(const struct attach *a, struct connections *ret, struct weir_err *err)
{
	int e = dial_one(a, ret, err);

	while (e == 0 && ret->n < a->connections && ret->export_.flags & NBD_MULTI_CONN)
		e = dial_one(a, ret, err);
	if (e < 0)
		close_all(ret);
	return e;
}

/* Ask for the export's size without becoming a client. */
static int look_at_export(const struct attach *a, struct nbd_export *ret, struct weir_err *err)
{
	weir_time until = loop_clock() + DIAL;
	struct nbd_link link;
	int fd, e = stream_connect(a->uri.address, DIAL, &fd, err);

	if (e < 0)
		return e;
	nbd_link_begin(&link, &a->uri, fd, false, false);
	link.greet.only_info = true;
	e = nbd_link_wait(&link, &a->uri, NULL, until);
	stream_close(&link.stream);
	if (e < 0)
		return weir_err_set(err, e, "%s", link.why);
	*ret = link.greet.export_;
	return 0;
}

/* ---- the device */

/* Set the size and the flags of the device as of the export. -EINVAL: the block size does not fit. */
static int fit(struct attach *a, const struct nbd_export *e, struct weir_err *err)
{
	struct netlink_device *d = &a->device;

	if (!d->block)
		d->block = e->block_min > 512 ? e->block_min : 512;
	if (d->block < e->block_min)
		return weir_err_set(
			err, -EINVAL, "the export has blocks of %u bytes", e->block_min);
	d->size = e->size / d->block * d->block;
	d->flags = e->flags | (a->read_only ? NBD_READ_ONLY : 0);
	if (!d->size)
		return weir_err_set(err, -EINVAL, "the export has less than a block of %u bytes",
			(unsigned)d->block);
	return 0;
}

static int check_shrunk(const struct attach *a, struct weir_err *err)
{
	char now[32], then[32];
	uint64_t size = device_size(a->device.index);

	if (a->device.size >= size)
		return 0;
	return weir_err_set(err, -ENOSPC,
		"the export has %s and /dev/nbd%d has %s: a device that is attached cannot shrink",
		weir_units_show_size(a->device.size, now, sizeof(now)), a->device.index,
		weir_units_show_size(size, then, sizeof(then)));
}

int attach_again(struct attach *a, struct weir_err *err)
{
	struct connections c = {.n = 0};
	int e = dial(a, &c, err);

	if (e < 0)
		return e;
	e = fit(a, &c.export_, err);
	if (e == 0)
		e = check_shrunk(a, err);
	a->device.sockets = c.fds;
	a->device.n = c.n;
	if (e == 0)
		e = netlink_reconfigure(&a->netlink, &a->device, err);
	close_ours(a, &c);
	return e;
}

int attach_grow(struct attach *a, uint64_t *ret_size, struct weir_err *err)
{
	struct nbd_export export_;
	uint64_t size = device_size(a->device.index);
	int e = look_at_export(a, &export_, err);

	*ret_size = 0;
	if (e == 0)
		e = fit(a, &export_, err);
	if (e == 0)
		e = check_shrunk(a, err);
	if (e < 0 || a->device.size == size)
		return e;
	e = netlink_reconfigure(&a->netlink, &a->device, err);
	if (e == 0)
		*ret_size = a->device.size;
	return e;
}

/* Attach the volume to a device, or give the device new connections if it is attached already. *ret_again: which. */
static int attach_start(struct attach *a, bool *ret_again, struct weir_err *err)
{
	struct connections c = {.n = 0};
	int wanted = a->device.index, e = device_find(a->device.identifier, err);

	if (e == -EEXIST)
		return e;
	*ret_again = e >= 0;
	if (e >= 0 && wanted >= 0 && e != wanted)
		return weir_err_set(
			err, -EEXIST, "'%s' is attached to /dev/nbd%d", a->device.identifier, e);
	if (e >= 0) {
		a->device.index = e;
		return attach_again(a, err);
	}
	e = dial(a, &c, err);
	if (e < 0)
		return e;
	e = fit(a, &c.export_, err);
	a->device.sockets = c.fds;
	a->device.n = c.n;
	if (e == 0)
		e = netlink_connect(&a->netlink, &a->device, &a->device.index, err);
	close_ours(a, &c);
	return e;
}

/* ---- the verb */

enum {
	CONNECTIONS,
	TIMEOUT,
	DEAD,
	BLOCK,
	READ_ONLY,
	IDENTIFIER,
	WATCH,
	SOCKET,
	URL,
	TOKEN,
	TLS,
	N_OPTIONS
};
static const struct opt options[] = {
	[CONNECTIONS] = {"connections", 'c', "N", "where the export allows several (4)"},
	[TIMEOUT] = {"timeout", 't', "TIME",
		"without a reply a request is sent on another connection (30s)"},
	[DEAD] = {"dead-conn-timeout", 0, "TIME",
		"requests wait so long for a new connection, then fail (60s)"},
	[BLOCK] = {"block-size", 'b', "SIZE", "of the device: 512 to 4096 (the export's least)"},
	[READ_ONLY] = {"read-only", 'r', NULL, "refuse writes to the device"},
	[IDENTIFIER] = {"identifier", 0, "TEXT", "of the volume, kept by the kernel (its URI)"},
	[WATCH] = {"watch", 'w', NULL,
		"stay: attach again after a restart of the gateway, and grow the device"},
	REMOTE_ROWS,
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};

static int read_seconds(const char *const *values, int option, uint64_t *ret)
{
	struct weir_err err;
	weir_time t;

	if (!values[option])
		return -1;
	if (weir_units_time(values[option], &t, &err) < 0)
		return opts_fail(&verb_attach, "--%s: %s", options[option].name, err.text);
	if (t < WEIR_SEC || t % WEIR_SEC || t > 86400 * WEIR_SEC)
		return opts_fail(&verb_attach, "--%s: must be whole seconds, 1s to 1 day",
			options[option].name);
	*ret = (uint64_t)(t / WEIR_SEC);
	return -1;
}

static int read_block(const char *text, uint64_t *ret)
{
	struct weir_err err;
	int64_t bytes;

	if (!text)
		return -1;
	if (weir_units_int(text, &bytes, &err) == 0)
		*ret = bytes < 0 ? 0 : (uint64_t)bytes;
	else if (weir_units_size(text, ret, &err) < 0)
		return opts_fail(&verb_attach, "--block-size: %s", err.text);
	if (*ret < 512 || *ret > 4096 || *ret & (*ret - 1))
		return opts_fail(&verb_attach, "--block-size: must be 512, 1024, 2048 or 4096");
	return -1;
}

static int read_connections(const char *text, unsigned *ret)
{
	struct weir_err err;
	int64_t n;

	if (!text)
		return -1;
	if (weir_units_int(text, &n, &err) < 0)
		return opts_fail(&verb_attach, "--connections: %s", err.text);
	if (n < 1 || n > ATTACH_CONNECTIONS)
		return opts_fail(
			&verb_attach, "--connections: must be 1 to %d", ATTACH_CONNECTIONS);
	*ret = (unsigned)n;
	return -1;
}

/* Ask the gateway for the URI of its volume. Return -1 and *ret_uri, malloc'ed, or the exit status. */
static int find_volume(const char *const *values, const char *name, char **ret_uri)
{
	struct remote *r = NULL;
	json_t *j = NULL;
	char *path;
	int status = remote_of_options(&verb_attach, values + SOCKET, &r);

	if (status >= 0)
		return status;
	path = remote_path("/v1/volumes/", name, NULL);
	status = remote_ask(r, "GET", path, NULL, 0, &j);
	free(path);
	remote_close(r);
	if (status >= 0)
		return status;
	path = json_is_string(json_object_get(j, "uri"))
		       ? strdup(json_string_value(json_object_get(j, "uri")))
		       : NULL;
	json_decref(j);
	if (!path)
		return opts_fail(
			&verb_attach, "%s: the gateway does not say where it listens", name);
	*ret_uri = path;
	return -1;
}

/* The URI of the volume is the identifier, unless another is given. */
static int read_volume(const char *const *values, const char *volume, struct attach *ret)
{
	struct weir_err err;
	char *uri = NULL;
	int status = strstr(volume, "://") ? -1 : find_volume(values, volume, &uri);

	if (status >= 0)
		return status;
	if (uri)
		volume = uri;
	if (nbd_uri_parse(volume, &ret->uri, &err) < 0)
		status = opts_fail(&verb_attach, "%s", err.text);
	else if (ret->uri.tls)
		status = opts_fail(&verb_attach, "%s: %s", volume, NO_TLS);
	if (!ret->device.identifier)
		ret->device.identifier = volume;
	ret->found = uri;
	return status;
}

static int read_command(const char *const *values, char **operands, int n, struct attach *ret)
{
	int status = -1;

	if (n < 1 || n > 2)
		return opts_fail(&verb_attach, "needs a VOLUME, and may have a device: /dev/nbd0");
	*ret = (struct attach){.connections = 4,
		.read_only = values[READ_ONLY],
		.device = {
			.index = -1, .timeout = 30, .dead = 60, .identifier = values[IDENTIFIER]}};
	if (n == 2) {
		ret->device.index = device_parse(operands[1]);
		if (ret->device.index < 0)
			return opts_fail(&verb_attach,
				"'%s' is not a device of nbd, such as /dev/nbd0", operands[1]);
	}
	if (values[IDENTIFIER] &&
		(!*values[IDENTIFIER] || strlen(values[IDENTIFIER]) > NBD_NAME_MAX ||
			strpbrk(values[IDENTIFIER], "\n\r")))
		return opts_fail(&verb_attach, "--identifier: must be one line of 1 to %d bytes",
			NBD_NAME_MAX);
	status = read_seconds(values, TIMEOUT, &ret->device.timeout);
	if (status < 0)
		status = read_seconds(values, DEAD, &ret->device.dead);
	if (status < 0)
		status = read_block(values[BLOCK], &ret->device.block);
	if (status < 0)
		status = read_connections(values[CONNECTIONS], &ret->connections);
	return status < 0 ? read_volume(values, operands[0], ret) : status;
}

static int attach_volume(struct attach *a, const char *volume, bool watch)
{
	struct weir_err err;
	bool again = false;
	int status = 1;

	if (netlink_open(&a->netlink, &err) < 0 || attach_start(a, &again, &err) < 0) {
		opts_fail(&verb_attach, "%s: %s", volume, err.text);
	} else {
		printf("/dev/nbd%d%s\n", a->device.index, again ? " again" : "");
		fflush(stdout);
		status = watch ? watch_run(a) : 0;
	}
	netlink_close(&a->netlink);
	return status;
}

static int attach_main(const char *const *values, char **operands, int n)
{
	struct attach a = {.found = NULL};
	int status = read_command(values, operands, n, &a);

	if (status < 0)
		status = attach_volume(&a, operands[0], values[WATCH]);
	free(a.found);
	return status;
}

const struct verb verb_attach = {
	.name = "attach",
	.summary = "make a volume a block device of this machine, by the kernel's nbd driver",
	.usage = "[OPTION]... VOLUME [/dev/nbdN]",
	.options = options,
	.run = attach_main,
};
