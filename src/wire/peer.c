/* SPDX-License-Identifier: BSD-3-Clause */
/* peer: see peer.h for the layout. */
#include "wire/peer.h"
#include "wire/bytes.h"
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define MAGIC    UINT32_C(0x57454952) /* "WEIR" */
#define VERSION  1
#define TIME_MAX (INT64_C(1) << 62) /* ns: 146 years: no difference overflows */

enum {
	AT_VERSION = 4,
	AT_KIND = 5,
	AT_LENGTH = 6,
	AT_CLUSTER = 8,
	AT_INSTANCE = 16,
	AT_SEQUENCE = 24,
	AT_SENT = 32,
	AT_NONCE = 40,
	AT_NAME = 56,
	AT_REPORTS = 120,
	AT_STRIDE = 122,
};

const char *peer_verdict_name(enum peer_verdict v)
{
	static const char *const names[PEER_VERDICTS] = {"taken", "noise", "version", "cluster",
		"forged", "broken", "own", "old", "late", "unproven", "crowd"};

	return names[v];
}

/* FNV-1a, 64 bits. Its last step is a multiplication, which mixes too little into the low bits that
 * a hash table uses: hence the shifts. */
uint64_t peer_hash(const char *name)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
	h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return h ^ h >> 32;
}

int peer_name_check(const char *name)
{
	size_t n = strnlen(name, PEER_NAME_MAX + 1);

	if (!n || n > PEER_NAME_MAX)
		return -EINVAL;
	for (; *name; name++)
		if ((uint8_t)*name <= ' ' || *name == 0x7f)
			return -EINVAL;
	return 0;
}

/* ---- writing */

static void put_real(uint8_t *p, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	bytes_put64(p, bits);
}

/* The real numbers of a report, in order, 8 bytes each, after the resource. */
#define REALS 8

static void write_report(uint8_t *p, const struct peer_report *r)
{
	const double reals[REALS] = {r->shares, r->beta, r->window, r->inside, r->latency, r->ios,
		r->bytes, r->threshold};

	bytes_put64(p, r->resource);
	for (int i = 0; i < REALS; i++)
		put_real(p + 8 + 8 * i, reals[i]);
	bytes_put64(p + 72, (uint64_t)r->period);
	bytes_put64(p + 80, r->flags);
}

size_t peer_write(uint8_t out[PEER_MAX], const struct peer_message *m)
{
	size_t stride = peer_has_words(m->kind) ? 8 : PEER_REPORT_SIZE;
	size_t length = PEER_HEAD + m->n_reports * stride;

	memset(out, 0, PEER_HEAD);
	bytes_put32(out, MAGIC);
	out[AT_VERSION] = VERSION;
	out[AT_KIND] = (uint8_t)m->kind;
	bytes_put16(out + AT_LENGTH, (uint16_t)length);
	bytes_put64(out + AT_CLUSTER, m->cluster);
	bytes_put64(out + AT_INSTANCE, m->instance);
	bytes_put64(out + AT_SEQUENCE, m->sequence);
	bytes_put64(out + AT_SENT, (uint64_t)m->sent);
	memcpy(out + AT_NONCE, m->nonce, PEER_NONCE);
	memcpy(out + AT_NAME, m->name, strnlen(m->name, PEER_NAME_MAX));
	bytes_put16(out + AT_REPORTS, (uint16_t)m->n_reports);
	bytes_put16(out + AT_STRIDE, (uint16_t)stride);
	for (unsigned i = 0; i < m->n_reports; i++)
		if (peer_has_words(m->kind))
			bytes_put64(out + PEER_HEAD + i * stride, m->words[i]);
		else
			write_report(out + PEER_HEAD + i * stride, &m->reports[i]);
	return length;
}

void peer_write_nonce(uint8_t *out, const uint8_t nonce[PEER_NONCE])
{
	memcpy(out + AT_NONCE, nonce, PEER_NONCE);
}

/* ---- reading */

enum peer_verdict peer_look(const uint8_t *in, size_t n, uint64_t cluster, size_t *ret_length)
{
	size_t length;

	if (n < PEER_HEAD + PEER_SEAL || bytes_get32(in) != MAGIC)
		return PEER_NOISE;
	if (in[AT_VERSION] != VERSION)
		return PEER_VERSION;
	length = bytes_get16(in + AT_LENGTH);
	if (length < PEER_HEAD || length > n - PEER_SEAL)
		return PEER_NOISE;
	if (bytes_get64(in + AT_CLUSTER) != cluster)
		return PEER_CLUSTER;
	*ret_length = length;
	return PEER_TAKEN;
}

/* Refuse NaN, infinity and negative numbers, which would spoil every average. */
static bool get_real(const uint8_t *p, double *ret)
{
	uint64_t bits = bytes_get64(p);

	memcpy(ret, &bits, sizeof(bits));
	return isfinite(*ret) && *ret >= 0;
}

static bool get_time(const uint8_t *p, weir_time *ret)
{
	uint64_t v = bytes_get64(p);

	*ret = (weir_time)v;
	return v <= (uint64_t)TIME_MAX;
}

static bool read_report(const uint8_t *p, struct peer_report *r)
{
	double *const reals[REALS] = {&r->shares, &r->beta, &r->window, &r->inside, &r->latency,
		&r->ios, &r->bytes, &r->threshold};

	for (int i = 0; i < REALS; i++)
		if (!get_real(p + 8 + 8 * i, reals[i]))
			return false;
	r->resource = bytes_get64(p);
	r->flags = bytes_get64(p + 80);
	return get_time(p + 72, &r->period);
}

static bool read_reports(const uint8_t *in, size_t n, struct peer_message *m)
{
	size_t stride = bytes_get16(in + AT_STRIDE);

	m->n_reports = bytes_get16(in + AT_REPORTS);
	if (m->n_reports > PEER_REPORTS_MAX || stride < PEER_REPORT_SIZE ||
		n != PEER_HEAD + m->n_reports * stride)
		return false;
	for (unsigned i = 0; i < m->n_reports; i++)
		if (!read_report(in + PEER_HEAD + i * stride, &m->reports[i]))
			return false;
	return true;
}

static bool read_words(const uint8_t *in, size_t n, struct peer_message *m)
{
	m->n_reports = bytes_get16(in + AT_REPORTS);
	if (m->n_reports > PEER_WORDS_MAX || bytes_get16(in + AT_STRIDE) != 8 ||
		n != PEER_HEAD + m->n_reports * (size_t)8)
		return false;
	for (unsigned i = 0; i < m->n_reports; i++)
		m->words[i] = bytes_get64(in + PEER_HEAD + i * (size_t)8);
	return true;
}

/* Require zeroes after the name: two spellings of one name would be two hosts. */
static bool read_name(const uint8_t *p, char name[PEER_NAME_MAX + 1])
{
	size_t n;

	if (p[PEER_NAME_MAX])
		return false;
	memcpy(name, p, PEER_NAME_MAX + 1);
	n = strlen(name);
	for (size_t i = n; i < PEER_NAME_MAX; i++)
		if (name[i])
			return false;
	return peer_name_check(name) == 0;
}

enum peer_verdict peer_read_head(const uint8_t *in, struct peer_message *ret)
{
	struct peer_message m = {.kind = in[AT_KIND]};

	m.cluster = bytes_get64(in + AT_CLUSTER);
	m.instance = bytes_get64(in + AT_INSTANCE);
	m.sequence = bytes_get64(in + AT_SEQUENCE);
	memcpy(m.nonce, in + AT_NONCE, PEER_NONCE);
	if (!m.instance || !m.sequence || !get_time(in + AT_SENT, &m.sent) ||
		!read_name(in + AT_NAME, m.name))
		return PEER_BROKEN;
	*ret = m;
	return PEER_TAKEN;
}

enum peer_verdict peer_read(const uint8_t *in, size_t n, struct peer_message *ret)
{
	struct peer_message m;

	if (n < PEER_HEAD || !in[AT_KIND] || in[AT_KIND] >= PEER_KINDS ||
		peer_read_head(in, &m) != PEER_TAKEN ||
		!(peer_has_words(m.kind) ? read_words(in, n, &m) : read_reports(in, n, &m)))
		return PEER_BROKEN;
	*ret = m;
	return PEER_TAKEN;
}
