/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load-verify: every block identifies itself, and a table holds its expected content.
 *
 * BLOCK    magic, id, offset, generation, sum, seed: 8 bytes each; then words derived from them. `id`
 *          is unique to this table: blocks of an earlier run on the same disk are foreign. `sum` is a
 *          64-bit hash of all the rest, which detects torn, moved, mixed and altered blocks; the
 *          generation detects stale ones.
 * TABLE    For each block: sent, the last generation that was ever sent; acked, the last that was
 *          acknowledged; flushed, the last known to be durable (FUA, or acknowledged before a
 *          successful FLUSH was sent).
 * LAW      Without a loss, a block that is not being written holds `acked`. After a loss it holds
 *          `flushed`, or a later generation up to `acked`: the server may have lost the rest. The
 *          content read then is the expected content from then on. If `flushed` is 0 the block may
 *          still hold the data from before this run.
 * METHOD   Only one request at a time is in flight for a block, so the order of replies is the order
 *          of effects. Acknowledged writes are appended to a log; a flush covers those in the log
 *          when it was sent. A loss empties the log. After a failed write the content of its blocks
 *          is unknown until they are written again.
 * COST     16 bytes a block; about 1 µs to write or check 4 KiB.
 * EXAMPLE  Block 7: generations 1, 2 acknowledged, FLUSH, 3 acknowledged, loss. A read may return 2
 *          or 3. It returns 2. Then 3 would be wrong.
 */
#include "load/load-verify.h"
#include "base/rng.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC   UINT64_C(0x5765697262303031) /* "Weirb001" */
#define HEAD    6                            /* words */
#define SUM     4                            /* index of the sum's word */
#define LOG_MAX (1u << 20) /* entries; further unflushed writes do not become flushed */
#define K1      UINT64_C(0x9e3779b97f4a7c15) /* odd numbers with well mixed bits (golden ratio, …) */
#define K2      UINT64_C(0xc2b2ae3d27d4eb4f)

enum { TAKEN = 1, UNKNOWN = 2 };

struct entry {
	uint32_t sent, acked, flushed; /* generations; 0: none */
	uint16_t epoch;                /* in which `acked` was determined */
	uint16_t flags;
};

struct log {
	uint32_t block, generation;
};

struct load_verify {
	uint64_t offset, seed, id, n;
	uint32_t block;
	uint16_t epoch; /* losses so far */
	struct entry *entries;
	struct log *log; /* a ring of LOG_MAX: from … to */
	uint64_t from, to;
};

int load_verify_new(uint64_t offset, uint64_t length, uint32_t block, uint64_t seed, uint64_t id,
	struct load_verify **ret_verify)
{
	struct load_verify *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	*v = (struct load_verify){
		.offset = offset, .seed = seed, .id = id, .n = length / block, .block = block};
	v->entries = calloc(v->n ? v->n : 1, sizeof(*v->entries));
	v->log = malloc(LOG_MAX * sizeof(*v->log));
	if (!v->entries || !v->log) {
		load_verify_free(v);
		return -ENOMEM;
	}
	*ret_verify = v;
	return 0;
}

void load_verify_free(struct load_verify *v)
{
	if (!v)
		return;
	free(v->entries);
	free(v->log);
	free(v);
}

/* ---- content */

/* Hash n words, a multiple of 4, with the sum itself taken as 0. Four lanes, so that the
 * multiplications overlap. */
static uint64_t sum_of(const uint64_t *w, size_t n)
{
	uint64_t a = K1, b = K2, c = ~K1, d = ~K2;

	for (size_t i = 0; i < n; i += 4) {
		a = rng_rotate((a ^ (i == SUM ? 0 : w[i])) * K1, 29);
		b = rng_rotate((b ^ w[i + 1]) * K2, 31);
		c = rng_rotate((c ^ w[i + 2]) * K1, 33);
		d = rng_rotate((d ^ w[i + 3]) * K2, 27);
	}
	a = (a ^ rng_rotate(b, 17)) * K1;
	c = (c ^ rng_rotate(d, 41)) * K2;
	a = (a ^ c) * K1;
	return a ^ a >> 32;
}

static void make_block(
	const struct load_verify *v, uint64_t offset, uint32_t generation, uint8_t *data)
{
	uint64_t w[HEAD] = {MAGIC, v->id, offset, generation, 0, v->seed};
	uint64_t x = (v->seed ^ v->id ^ offset * K1) + generation * K2;
	size_t n = v->block / 8;

	memcpy(data, w, sizeof(w));
	for (size_t i = HEAD; i < n; i++) {
		uint64_t y = (x += K1);

		y = (y ^ y >> 32) * K2;
		memcpy(data + 8 * i, &y, 8);
	}
	w[SUM] = sum_of((const uint64_t *)(const void *)data, n);
	memcpy(data + 8 * SUM, &w[SUM], 8);
}

/* ---- ranges */

static uint64_t first_of(const struct load_verify *v, uint64_t offset)
{
	return (offset - v->offset) / v->block;
}

bool load_verify_take(struct load_verify *v, uint64_t offset, uint32_t length)
{
	struct entry *e = v->entries + first_of(v, offset);
	uint32_t n = length / v->block;

	for (uint32_t i = 0; i < n; i++)
		if (e[i].flags & TAKEN)
			return false;
	for (uint32_t i = 0; i < n; i++)
		e[i].flags |= TAKEN;
	return true;
}

void load_verify_fill(struct load_verify *v, uint64_t offset, uint32_t length, uint8_t *data)
{
	struct entry *e = v->entries + first_of(v, offset);

	for (uint32_t at = 0; at < length; at += v->block, e++)
		make_block(v, offset + at, ++e->sent, data + at);
}

static void acknowledge_block(struct load_verify *v, uint64_t block, bool fua)
{
	struct entry *e = &v->entries[block];

	e->acked = e->sent;
	e->epoch = v->epoch;
	e->flags = 0;
	if (fua)
		e->flushed = e->acked;
	else if (v->to - v->from < LOG_MAX)
		v->log[v->to++ % LOG_MAX] = (struct log){(uint32_t)block, e->acked};
}

void load_verify_written(
	struct load_verify *v, uint64_t offset, uint32_t length, bool fua, int error)
{
	uint64_t first = first_of(v, offset);

	for (uint32_t i = 0; i < length / v->block; i++) {
		if (error)
			v->entries[first + i].flags = UNKNOWN;
		else
			acknowledge_block(v, first + i, fua);
	}
}

void load_verify_abandon(struct load_verify *v, uint64_t offset, uint32_t length)
{
	load_verify_written(v, offset, length, false, -EIO);
}

uint64_t load_verify_mark(const struct load_verify *v)
{
	return v->to;
}

void load_verify_flushed(struct load_verify *v, uint64_t mark)
{
	for (; v->from < mark; v->from++) {
		const struct log *l = &v->log[v->from % LOG_MAX];
		struct entry *e = &v->entries[l->block];

		if (e->flushed < l->generation)
			e->flushed = l->generation;
	}
}

void load_verify_lost(struct load_verify *v)
{
	v->epoch++;
	v->from = v->to;
}

bool load_verify_next(struct load_verify *v, uint64_t *cursor, uint32_t most, uint64_t *ret_offset,
	uint32_t *ret_length)
{
	uint64_t at = *cursor, end, limit = most / v->block;

	while (at < v->n && v->entries[at].sent == 0)
		at++;
	for (end = at; end < v->n && end - at < limit && v->entries[end].sent; end++)
		;
	*cursor = end;
	if (end == at)
		return false;
	*ret_offset = v->offset + at * v->block;
	*ret_length = (uint32_t)((end - at) * v->block);
	return true;
}

/* ---- checking */

/* Get the generations that a block may hold. Return false if unknown. */
static bool get_bounds(
	const struct load_verify *v, const struct entry *e, uint32_t *ret_least, uint32_t *ret_most)
{
	if (e->flags & UNKNOWN || e->acked == 0)
		return false;
	*ret_least = e->epoch == v->epoch ? e->acked : e->flushed;
	*ret_most = e->acked;
	return true;
}

static const char others[] = "not a block of this run";

/* Return the block's generation, or 0 if it is foreign or damaged; *whole: it is intact. */
static uint32_t identify_block(const struct load_verify *v, const uint8_t *data, uint64_t offset,
	bool *whole, const char **why)
{
	uint64_t w[HEAD];

	memcpy(w, data, sizeof(w));
	*whole = false;
	if (w[0] != MAGIC || w[1] != v->id) {
		*why = others;
		return 0;
	}
	if (w[SUM] != sum_of((const uint64_t *)(const void *)data, v->block / 8)) {
		*why = "a block of this run with a wrong checksum";
		return 0;
	}
	if (w[2] != offset) {
		*why = "a block of this run from another offset";
		return 0;
	}
	*whole = true;
	return (uint32_t)w[3];
}

static void report_wrong(struct load_verify_count *count, uint64_t offset, uint32_t least,
	uint32_t most, uint32_t got, const char *why, const uint8_t *data)
{
	struct load_verify_fault f = {.offset = offset, .least = least, .most = most, .got = got};
	char want[64], is[96];

	if (least == most)
		snprintf(want, sizeof(want), "generation %u", least);
	else
		snprintf(want, sizeof(want), "generation %u (flushed) to %u", least, most);
	if (why)
		snprintf(is, sizeof(is), "%s (begins %02x%02x%02x%02x%02x%02x%02x%02x)", why,
			data[0], data[1], data[2], data[3], data[4], data[5], data[6], data[7]);
	else
		snprintf(is, sizeof(is), "generation %u", got);
	snprintf(f.text, sizeof(f.text), "wrong block at offset %" PRIu64 ": expected %s, got %s",
		offset, want, is);
	count->wrong++;
	count->last = f;
}

static void check_block(struct load_verify *v, struct entry *e, uint64_t offset,
	const uint8_t *data, struct load_verify_count *count)
{
	const char *why = NULL;
	uint32_t least, most, got;
	bool whole;

	if (!get_bounds(v, e, &least, &most)) {
		count->unchecked++;
		return;
	}
	count->checked++;
	got = identify_block(v, data, offset, &whole, &why);
	if (!whole && least == 0 && why == others) {
		/* never flushed, and lost: the data from before this run */
		e->acked = 0;
		return;
	}
	if (!whole || got < least || got > most) {
		report_wrong(count, offset, least, most, got, whole ? NULL : why, data);
		e->flags |= UNKNOWN; /* report it once */
		return;
	}
	e->acked = got;
	e->epoch = v->epoch;
}

void load_verify_read(struct load_verify *v, uint64_t offset, uint32_t length, const uint8_t *data,
	int error, struct load_verify_count *count)
{
	struct entry *e = v->entries + first_of(v, offset);

	for (uint32_t at = 0; at < length; at += v->block, e++) {
		e->flags &= (uint16_t)~TAKEN;
		if (!error)
			check_block(v, e, offset + at, data + at, count);
	}
}

/* ---- the table's file */

struct file_head {
	uint64_t magic, offset, seed, n, block, id;
};

static struct file_head head_of(const struct load_verify *v)
{
	return (struct file_head){.magic = MAGIC,
		.offset = v->offset,
		.seed = v->seed,
		.n = v->n,
		.block = v->block,
		.id = v->id};
}

int load_verify_save(const struct load_verify *v, const char *path, struct weir_err *err)
{
	struct file_head head = head_of(v);
	FILE *f = fopen(path, "wbe");
	bool fine;

	if (!f)
		return weir_err_set(err, -errno, "%s: %s", path, strerror(errno));
	fine = fwrite(&head, sizeof(head), 1, f) == 1 &&
	       fwrite(v->entries, sizeof(*v->entries), v->n, f) == v->n;
	if (fclose(f) != 0 || !fine)
		return weir_err_set(err, -EIO, "%s: could not be written", path);
	return 0;
}

int load_verify_load(struct load_verify *v, const char *path, struct weir_err *err)
{
	struct file_head head, want = head_of(v);
	FILE *f = fopen(path, "rbe");
	bool fine;

	if (!f)
		return weir_err_set(err, -errno, "%s: %s", path, strerror(errno));
	fine = fread(&head, sizeof(head), 1, f) == 1 &&
	       memcmp(&head, &want, offsetof(struct file_head, id)) == 0 &&
	       fread(v->entries, sizeof(*v->entries), v->n, f) == v->n;
	fclose(f);
	if (!fine)
		return weir_err_set(err, -EINVAL,
			"%s: not a table of these blocks (check export, offset, length, sizes and "
			"seed)",
			path);
	for (uint64_t i = 0; i < v->n; i++) {
		v->entries[i].flags &= (uint16_t)~TAKEN;
		v->entries[i].epoch = 0;
	}
	v->id = head.id;
	v->epoch = 1; /* unflushed data may be lost */
	return 0;
}
