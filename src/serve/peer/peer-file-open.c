/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer-file-open: examine a shared file before its first use.
 *
 * A missing file is made. A range of zeroes as long as the slots gets a header. A file with a
 * header of our cluster is used as it is. Anything else is foreign data and left alone. All I/O
 * goes through a back end (serve/back/back.h), on a separate loop that runs only for this; so a
 * path, a device and an NBD export are one case.
 */
#include "serve/peer/peer-impl.h"
#include "serve/back/back.h"
#include "serve/back/name.h"
#include "wire/peer-slots.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK PEER_SLOTS_BLOCK

/* ---- the address */

struct options {
	uint32_t slots; /* 0: not given */
};
static const struct field fields[] = {
	{"slots", FIELD_WHOLE, offsetof(struct options, slots), NULL}, {NULL, 0, 0, NULL}};

static bool is_file(const char *address)
{
	return strncmp(address, "file:", 5) == 0;
}

static int parse(const char *address, struct options *o, struct weir_err *err)
{
	const char *rest = address + 5, *query = back_query(rest);
	struct weir_err why = {""};

	if (query == rest)
		return weir_err_set(
			err, -EINVAL, "%s: needs a path, as in 'file:/shared/peers'", address);
	if (*query && back_options(query + 1, strlen(query + 1), '&', fields, o, NULL, &why) < 0)
		return weir_err_set(err, -EINVAL, "%s: %s", address, why.text);
	if (o->slots > PEER_SLOTS_MOST)
		return weir_err_set(err, -EINVAL, "%s: at most %d slots", address, PEER_SLOTS_MOST);
	return 0;
}

int peer_file_check(const char *address, struct weir_err *err)
{
	struct options o = {0};

	if (is_file(address))
		return parse(address, &o, err);
	if (strncmp(address, "nbd", 3) == 0)
		return back_check(address, err);
	return weir_err_set(err, -EINVAL,
		"'%s': peers are \"udp:HOST:PORT\", \"udp-broadcast:ADDRESS:PORT\", "
		"\"udp-multicast:ADDRESS:PORT%%INTERFACE\", \"file:PATH\" or \"nbd://...\"",
		address);
}

/* ---- a file that is not there, or is empty */

/* Hosts that do this at the same time all make the same file. */
static int make_file(const char *path, unsigned slots)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0660), r = 0;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		r = -errno;
	else if (S_ISREG(st.st_mode) && st.st_size == 0)
		r = ftruncate(fd, (off_t)(slots + 1) * BLOCK) < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return r;
}

/* ---- reading and writing, and waiting for it */

struct probe {
	struct loop *loop;
	struct back *back;
};

static void done(void *arg, struct back_io *io)
{
	loop_stop(((struct probe *)arg)->loop);
}

static int probe_open(struct probe *p, const char *name, struct weir_err *err)
{
	struct back_config config = {.timeout = PEER_FILE_TIMEOUT, .connections = 1};
	int r = loop_new(&p->loop);

	if (r < 0)
		return weir_err_set(err, r, "peers: %s", strerror(-r));
	config.loop = p->loop;
	r = back_open(name, &config, &p->back, err);
	if (r < 0)
		return r;
	p->back->done = done;
	p->back->done_arg = p;
	r = p->back->ops->start(p->back);
	return r < 0 ? weir_err_set(err, r, "%s: %s", name, strerror(-r)) : 0;
}

static void probe_close(struct probe *p)
{
	back_free(p->back);
	loop_free(p->loop);
}

static int probe_do(struct probe *p, enum back_op op, uint64_t offset, uint8_t *block)
{
	struct back_io io = {.op = (uint8_t)op, .offset = offset, .length = BLOCK, .data = block};

	if (op == BACK_WRITE && p->back->info.can_fua)
		io.flags = BACK_FUA;
	back_submit(p->back, &io);
	if (loop_run(p->loop) < 0)
		return -EIO;
	if (op == BACK_READ && !io.error && io.data != block)
		memcpy(block, io.data, BLOCK);
	return io.error;
}

/* ---- what is there */

/* Check that the range is all zero, so no data. */
static int probe_zero(struct probe *p, unsigned slots, uint8_t *block)
{
	for (unsigned i = 0; i <= slots; i++) {
		int r = probe_do(p, BACK_READ, (uint64_t)i * BLOCK, block);

		if (r < 0)
			return r;
		if (block[0] || memcmp(block, block + 1, BLOCK - 1) != 0)
			return -EINVAL;
	}
	return 0;
}

/* Return the number of slots, or a negative errno. `slots`: for a new file. */
static int probe_look(
	struct probe *p, const struct peer_slots_config *c, unsigned slots, uint8_t *block)
{
	struct peer_slots_config made = *c;
	int r = probe_do(p, BACK_READ, 0, block);

	if (r == 0)
		r = peer_slots_look(c, block);
	if (r != 0)
		return r;
	r = probe_zero(p, slots, block);
	if (r < 0)
		return r;
	made.slots = slots;
	peer_slots_header(&made, block);
	r = probe_do(p, BACK_WRITE, 0, block);
	/* another host's header may have been written later; the one in the file counts */
	if (r == 0)
		r = probe_do(p, BACK_READ, 0, block);
	return r < 0 ? r : peer_slots_look(c, block);
}

static int say(struct weir_err *err, const char *address, int r)
{
	if (r == -EACCES)
		return weir_err_set(
			err, r, "%s: made by another cluster, or with another key", address);
	if (r == -EINVAL)
		return weir_err_set(err, r,
			"%s: contains other data, which are left alone; a file or range of zeroes "
			"is needed",
			address);
	return weir_err_set(err, r, "%s: %s", address, strerror(-r));
}

static int probe(const char *address, const char *name, const struct peer_slots_config *c,
	unsigned slots, struct weir_err *err)
{
	struct probe p = {0};
	uint8_t *block = aligned_alloc(BLOCK, BLOCK);
	int r = block ? probe_open(&p, name, err)
		      : weir_err_set(err, -ENOMEM, "peers: out of memory");
	uint64_t room;

	if (r == 0) {
		room = p.back->info.size / BLOCK;
		if (room < 2)
			r = weir_err_set(err, -ENOSPC, "%s: is too small for two blocks", address);
		else if (p.back->info.read_only)
			r = weir_err_set(err, -EROFS, "%s: is read-only", address);
		else if (p.back->info.block_min > BLOCK)
			r = weir_err_set(
				err, -EINVAL, "%s: its blocks are over %d bytes", address, BLOCK);
	}
	if (r == 0) {
		r = probe_look(&p, c, room - 1 < slots ? (unsigned)(room - 1) : slots, block);
		if (r <= 0)
			r = say(err, address, r ? r : -EIO);
		else if ((uint64_t)r + 1 > room)
			r = weir_err_set(err, -ENOSPC, "%s: is truncated: its header has %d slots",
				address, r);
	}
	probe_close(&p);
	free(block);
	return r;
}

static int place_file(const char *address, const struct peer_slots_config *c, unsigned slots,
	struct peer_file_place *ret, struct weir_err *err)
{
	char *path = strndup(address + 5, (size_t)(back_query(address + 5) - (address + 5)));
	char *name = NULL;
	int r = path ? make_file(path, slots) : -ENOMEM;

	if (r < 0)
		r = weir_err_set(err, r, "%s: %s", address, strerror(-r));
	/* Use direct I/O, past this machine's cache, if possible. */
	for (int direct = 1; direct >= 0 && r >= 0; direct--) {
		free(name);
		if (asprintf(&name, "file:%s?%s", path, direct ? "direct" : "") < 0)
			name = NULL;
		r = name ? probe(address, name, c, slots, err)
			 : weir_err_set(err, -ENOMEM, "peers: out of memory");
		if (r != -EINVAL || !direct)
			break;
		r = 0;
	}
	free(path);
	if (r < 0) {
		free(name);
		return r;
	}
	*ret = (struct peer_file_place){.back = name, .slots = (unsigned)r};
	return 0;
}

int peer_file_place(const char *address, const struct peer_slots_config *c,
	struct peer_file_place *ret_place, struct weir_err *err)
{
	struct options o = {0};
	char *name;
	int r;

	if (is_file(address)) {
		r = parse(address, &o, err);
		return r < 0 ? r
			     : place_file(address, c, o.slots ? o.slots : PEER_SLOTS_DEFAULT,
				       ret_place, err);
	}
	name = strdup(address);
	r = name ? probe(address, name, c, PEER_SLOTS_DEFAULT, err)
		 : weir_err_set(err, -ENOMEM, "peers: out of memory");
	if (r < 0) {
		free(name);
		return r;
	}
	*ret_place = (struct peer_file_place){.back = name, .slots = (unsigned)r};
	return 0;
}
