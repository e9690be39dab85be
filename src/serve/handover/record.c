/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/array.h"
#include "serve/handover/record.h"
#include "wire/bytes.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "weirhand"
#define FIRST ((size_t)1 << 20) /* bytes of room at first */

struct header { /* in the machine's order: a record never leaves it */
	char magic[8];
	uint32_t version;
	_Atomic(uint32_t) mark; /* not in the checksum */
	uint64_t length, sum;   /* of what follows */
};

/* ---- descriptors */

int record_fds_add(struct record_fds *l, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (array_grow(&l->all, &l->room, l->n + 1) < 0)
		return -ENOMEM;
	l->all[l->n++] = (struct record_fd){fd, st.st_dev, st.st_ino};
	return 0;
}

void record_fds_free(struct record_fds *l)
{
	free(l->all);
	*l = (struct record_fds){0};
}

void record_fds_close(struct record_fds *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->all[i].fd >= 0)
			close(l->all[i].fd);
	record_fds_free(l);
}

/* ---- writing */

static int start(struct record_out *o)
{
	o->memfd = memfd_create("weir-handover", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (o->memfd < 0)
		return -errno;
	o->n = sizeof(struct header);
	return 0;
}

/* Make the memfd larger: what was written stays where it is in it, and is not copied. */
static int grow(struct record_out *o, size_t n)
{
	size_t more = o->room ? o->room : FIRST;
	void *p;
	int rc = o->data ? 0 : start(o);

	while (more < o->n + n)
		more *= 2;
	if (rc == 0 && ftruncate(o->memfd, (off_t)more) < 0)
		rc = -errno;
	if (rc < 0)
		return rc;
	p = o->data ? mremap(o->data, o->room, more, MREMAP_MAYMOVE)
		    : mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_SHARED, o->memfd, 0);
	if (p == MAP_FAILED) {
		rc = -errno;
		if (!o->data)
			close(o->memfd);
		return rc;
	}
	o->data = p;
	o->room = more;
	return 0;
}

static uint8_t *room(struct record_out *o, size_t n)
{
	uint8_t *p;

	if (o->error == 0 && (!o->data || o->n + n > o->room))
		o->error = grow(o, n);
	if (o->error < 0)
		return NULL;
	p = o->data + o->n;
	o->n += n;
	return p;
}

void record_put(struct record_out *o, uint64_t value)
{
	uint8_t *p = room(o, 8);

	if (p)
		bytes_put64(p, value);
}

void record_put_real(struct record_out *o, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	record_put(o, bits);
}

uint8_t *record_room(struct record_out *o, size_t n)
{
	record_put(o, n);
	return room(o, n);
}

void record_put_bytes(struct record_out *o, const void *data, size_t n)
{
	uint8_t *p = record_room(o, n);

	if (p && n)
		memcpy(p, data, n);
}

void record_put_text(struct record_out *o, const char *text)
{
	record_put_bytes(o, text, strlen(text) + 1);
}

void record_put_fd(struct record_out *o, int fd)
{
	const struct record_fd *added;

	if (o->error == 0)
		o->error = record_fds_add(&o->fds, fd);
	if (o->error < 0)
		return;
	added = &o->fds.all[o->fds.n - 1];
	record_put(o, added->dev);
	record_put(o, added->ino);
}

size_t record_begin(struct record_out *o, const char *section)
{
	record_put_text(o, section);
	record_put(o, 0);
	return o->n;
}

void record_end(struct record_out *o, size_t begun)
{
	if (o->error == 0)
		bytes_put64(o->data + begun - 8, o->n - begun);
}

void record_out_free(struct record_out *o)
{
	if (o->data) {
		munmap(o->data, o->room);
		close(o->memfd);
	}
	record_fds_free(&o->fds);
	*o = (struct record_out){0};
}

/* ---- the whole */

/* The checksum finds accidents, not malice: a process that can write the record can also write its checksum. */
static uint64_t checksum(const uint8_t *p, size_t n)
{
	uint64_t sum = UINT64_C(0x9e3779b97f4a7c15) ^ n, word;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&word, p, 8);
		sum = (sum ^ word) * UINT64_C(0xff51afd7ed558ccd);
		sum ^= sum >> 32;
	}
	for (; n; n--)
		sum = (sum ^ *p++) * UINT64_C(0xff51afd7ed558ccd);
	return sum;
}

static int map(int fd, size_t n, struct record_map *ret)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	*ret = (struct record_map){p, n};
	return 0;
}

int record_map(int fd, struct record_map *ret_map)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return map(fd, (size_t)st.st_size, ret_map);
}

void record_unmap(struct record_map *m)
{
	if (m->data)
		munmap(m->data, m->n);
	*m = (struct record_map){0};
}

bool record_mark(struct record_map *m, enum record_mark mark)
{
	struct header *h = (struct header *)(void *)m->data;
	uint32_t was = RECORD_OFFERED;

	return atomic_compare_exchange_strong(&h->mark, &was, (uint32_t)mark);
}

int record_memfd(struct record_out *o)
{
	struct header *h;

	if (o->error == 0 && !o->data)
		room(o, 0);
	if (o->error < 0)
		return o->error;
	if (ftruncate(o->memfd, (off_t)o->n) < 0)
		return -errno;
	h = (struct header *)(void *)o->data;
	memcpy(h->magic, MAGIC, sizeof(h->magic));
	h->version = RECORD_VERSION;
	h->length = o->n - sizeof(*h);
	h->sum = checksum((const uint8_t *)(h + 1), h->length);
	/* A reader can rely on its size. */
	fcntl(o->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	return o->memfd;
}

static int check(const struct record_map *m, struct weir_err *err)
{
	const struct header *h = (const struct header *)(const void *)m->data;

	if (memcmp(h->magic, MAGIC, sizeof(h->magic)) != 0)
		return weir_err_set(err, -EBADMSG, "it is no record of a hand-over");
	if (h->version != RECORD_VERSION)
		return weir_err_set(err, -EPROTONOSUPPORT,
			"its format has the number %u, and this release reads %u", h->version,
			RECORD_VERSION);
	if (h->length != m->n - sizeof(*h) ||
		h->sum != checksum((const uint8_t *)(h + 1), h->length))
		return weir_err_set(err, -EBADMSG, "it is cut off or damaged");
	if (atomic_load(&h->mark) != RECORD_OFFERED)
		return weir_err_set(err, -ESTALE, "it was taken, or taken back, before");
	return 0;
}

int record_open(int fd, struct record_map *ret_map, struct record_in *ret_in, struct weir_err *err)
{
	struct record_map m = {0};
	struct stat st;
	int rc, seals = fcntl(fd, F_GET_SEALS);

	if (fstat(fd, &st) < 0 || seals < 0 || !(seals & F_SEAL_SHRINK) ||
		(size_t)st.st_size < sizeof(struct header))
		return weir_err_set(err, -EBADMSG, "it is no record of a hand-over");
	rc = map(fd, (size_t)st.st_size, &m);
	if (rc < 0)
		return weir_err_set(err, rc, "cannot map it: %s", strerror(-rc));
	rc = check(&m, err);
	if (rc < 0) {
		record_unmap(&m);
		return rc;
	}
	*ret_map = m;
	*ret_in = (struct record_in){
		.at = m.data + sizeof(struct header), .end = m.data + m.n, .fds = ret_in->fds};
	return 0;
}

/* ---- reading */

static const uint8_t *next_bytes(struct record_in *in, uint64_t n)
{
	const uint8_t *p = in->at;

	in->bad |= (uint64_t)(in->end - in->at) < n;
	if (in->bad)
		return NULL;
	in->at += n;
	return p;
}

uint64_t record_get(struct record_in *in)
{
	const uint8_t *p = next_bytes(in, 8);

	return p ? bytes_get64(p) : 0;
}

uint64_t record_get_most(struct record_in *in, uint64_t most)
{
	uint64_t value = record_get(in);

	in->bad |= value > most;
	return in->bad ? 0 : value;
}

double record_get_real(struct record_in *in)
{
	uint64_t bits = record_get(in);
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

const uint8_t *record_get_bytes(struct record_in *in, size_t *ret_n)
{
	uint64_t n = record_get(in);
	const uint8_t *p = next_bytes(in, n);

	*ret_n = p ? (size_t)n : 0;
	return p;
}

const char *record_get_text(struct record_in *in)
{
	size_t n;
	const uint8_t *p = record_get_bytes(in, &n);

	in->bad |= !p || n == 0 || p[n - 1] != 0;
	return in->bad ? "" : (const char *)p;
}

int record_get_fd(struct record_in *in)
{
	uint64_t dev = record_get(in), ino = record_get(in);
	struct record_fds *l = in->fds;

	/* They mostly come in the order of the record. */
	for (size_t i = 0; !in->bad && l && i < l->n; i++) {
		struct record_fd *f = &l->all[(l->next + i) % l->n];
		int fd = f->fd;

		if (fd < 0 || f->dev != dev || f->ino != ino)
			continue;
		f->fd = -1;
		l->next = (l->next + i + 1) % l->n;
		return fd;
	}
	return -1;
}

bool record_section(struct record_in *in, const char **ret_name, struct record_in *ret)
{
	size_t n;
	const uint8_t *p;

	if (in->bad || in->at == in->end)
		return false;
	*ret_name = record_get_text(in);
	p = record_get_bytes(in, &n);
	if (in->bad)
		return false;
	*ret = (struct record_in){.at = p, .end = p + n, .fds = in->fds};
	return true;
}
