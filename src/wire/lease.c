/* SPDX-License-Identifier: BSD-3-Clause */
/* lease: see lease.h for the layout. */
#include "wire/lease.h"
#include "wire/bytes.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AT_BODY    124
#define SPAN_MAX   (INT64_C(1) << 62) /* ns, as in peer.c */
#define FIELDS     (LEASE_BODY / 8)
#define NAME_WORDS ((PEER_NAME_MAX + 1) / 8)
#define ENTRY_MIN  11 /* bytes: the bucket, flags, two numbers */

enum { FLAG_CLOSED = 1, FLAG_HOLDS = 2, FLAG_CAP = 4, FLAG_LIMIT = 8, FLAG_MOVED = 16 };

/* bytes of an entry in memory */
#define ENTRY                                                                                      \
	(sizeof(struct lease_demand) > sizeof(struct lease_tokens) ? sizeof(struct lease_demand)   \
								   : sizeof(struct lease_tokens))

int lease_message_room(struct lease_message *m, size_t n)
{
	void *new;

	if (n <= m->room)
		return 0;
	new = calloc(n, ENTRY);
	if (!new)
		return -ENOMEM;
	lease_message_free(m);
	m->demands = new;
	m->room = n;
	return 0;
}

void lease_message_free(struct lease_message *m)
{
	if (m->room)
		free(m->demands);
	m->demands = NULL;
	m->room = m->n = 0;
}

/* ---- writing */

static uint8_t *put_number(uint8_t *p, int64_t value)
{
	uint64_t v = (uint64_t)value;

	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p++ = (uint8_t)v;
	return p;
}

static uint8_t *put_limit(uint8_t *p, int64_t v)
{
	return v == LEASE_NO_LIMIT ? p : put_number(p, v);
}

static uint8_t limit_flags(int64_t cap, int64_t limit)
{
	return (uint8_t)((cap != LEASE_NO_LIMIT ? FLAG_CAP : 0) |
			 (limit != LEASE_NO_LIMIT ? FLAG_LIMIT : 0));
}

static uint8_t *write_demand(uint8_t *p, const struct lease_demand *d)
{
	bytes_put64(p, d->bucket);
	p[8] = (uint8_t)((d->closed ? FLAG_CLOSED : 0) | (d->holds ? FLAG_HOLDS : 0));
	if (d->holds)
		p[8] |= limit_flags(d->cap, d->limit);
	p = put_number(p + 9, d->used);
	p = put_number(p, d->queue);
	p = put_number(p, d->arriving);
	p = put_number(p, d->serving);
	if (!d->holds)
		return p;
	p = put_limit(p, d->cap);
	p = put_number(p, d->reserved);
	p = put_limit(p, d->limit);
	return put_number(p, d->static_part);
}

static uint8_t *write_tokens(uint8_t *p, const struct lease_tokens *t)
{
	bytes_put64(p, t->bucket);
	p[8] = (uint8_t)(limit_flags(t->cap, t->limit) | (t->moved ? FLAG_MOVED : 0));
	p = put_number(p + 9, t->claim);
	p = put_limit(p, t->cap);
	p = put_number(p, t->reserved);
	return put_limit(p, t->limit);
}

static void get_digest(const uint8_t from[LEASE_DIGEST], uint64_t *f)
{
	for (int i = 0; i < LEASE_DIGEST / 8; i++)
		f[i] = bytes_get64(from + 8 * i);
}

static void put_digest(const uint64_t *f, uint8_t to[LEASE_DIGEST])
{
	for (int i = 0; i < LEASE_DIGEST / 8; i++)
		bytes_put64(to + 8 * i, f[i]);
}

static void get_name(const char name[PEER_NAME_MAX + 1], uint64_t *f)
{
	for (int i = 0; i < NAME_WORDS; i++)
		f[i] = bytes_get64((const uint8_t *)name + 8 * i);
}

/* Collect the fields of the body as numbers, in the order of the struct; unused ones are 0. */
static void collect_fields(const struct lease_message *m, uint64_t f[FIELDS])
{
	const struct lease_report *r = &m->report;
	const struct lease_grant *g = &m->grant;

	memset(f, 0, FIELDS * sizeof(*f));
	if (m->kind == LEASE_REPORT) {
		const uint64_t v[] = {r->generation, r->controller, r->accepted, r->period,
			r->granted, (uint64_t)r->left, (uint64_t)r->length, r->capacity, r->state,
			r->full | r->wants << 1, r->asked};

		memcpy(f, v, sizeof(v));
	} else if (m->kind == LEASE_GRANT || m->kind == LEASE_ASK) {
		const uint64_t v[] = {g->generation, g->base, g->heard, (uint64_t)g->echo,
			(uint64_t)g->left, (uint64_t)g->togo, g->period, (uint64_t)g->length,
			(uint64_t)g->interval, g->hold, g->gap};

		memcpy(f, v, m->kind == LEASE_ASK ? sizeof(v[0]) : sizeof(v));
	} else if (m->kind == LEASE_PLAN) {
		f[0] = m->plan.number;
		f[1] = m->plan.length;
		f[2] = m->plan.offset;
		get_digest(m->plan.digest, &f[3]);
		get_digest(m->plan.tenants, &f[7]);
	} else if (m->kind == LEASE_HAS) {
		const uint64_t v[] = {m->has.number, m->has.wanted, m->has.offset, m->has.refused};

		memcpy(f, v, sizeof(v));
		get_digest(m->has.digest, &f[4]);
	} else if (m->kind == LEASE_USAGE || m->kind == LEASE_LIMITS) {
		get_name(m->rack.name, f);
		f[NAME_WORDS] = (uint64_t)m->rack.span;
	}
	f[FIELDS - 1] = m->n;
}

size_t lease_write(uint8_t *out, const struct lease_message *m)
{
	struct peer_message head = {.kind = (enum peer_kind)m->kind,
		.cluster = m->cluster,
		.instance = m->instance,
		.sequence = m->sequence,
		.sent = m->sent};
	uint64_t fields[FIELDS];
	uint8_t *p = out + PEER_HEAD;

	memcpy(head.nonce, m->nonce, PEER_NONCE);
	memcpy(head.name, m->name, sizeof(head.name));
	peer_write(out, &head);
	collect_fields(m, fields);
	for (int i = 0; i < FIELDS; i++, p += 8)
		bytes_put64(p, fields[i]);
	if (lease_has_bytes(m->kind) && m->n)
		p = (uint8_t *)memcpy(p, m->bytes, m->n) + m->n;
	for (size_t i = 0; !lease_has_bytes(m->kind) && i < m->n; i++)
		p = m->kind == LEASE_REPORT ? write_demand(p, &m->demands[i])
					    : write_tokens(p, &m->tokens[i]);
	bytes_put32(out + AT_BODY, (uint32_t)(p - out - PEER_HEAD));
	return (size_t)(p - out);
}

/* ---- reading */

enum peer_verdict lease_look(const uint8_t *in, uint64_t cluster, size_t *ret_length)
{
	size_t head, body = bytes_get32(in + AT_BODY);
	enum peer_verdict v = peer_look(in, PEER_HEAD + PEER_SEAL, cluster, &head);

	if (v != PEER_TAKEN)
		return v;
	if (head != PEER_HEAD || body < LEASE_BODY ||
		body > LEASE_FRAME(LEASE_ENTRIES_MAX) - PEER_HEAD - PEER_SEAL)
		return PEER_NOISE;
	*ret_length = PEER_HEAD + body;
	return PEER_TAKEN;
}

struct cursor {
	const uint8_t *p, *end;
	bool bad;
};

static int64_t get_number(struct cursor *c)
{
	uint64_t v = 0;

	for (int shift = 0; c->p < c->end && shift < 56; shift += 7) {
		uint8_t b = *c->p++;

		v |= (uint64_t)(b & 0x7f) << shift;
		if (b & 0x80)
			continue;
		/* Each number has one encoding: no trailing zero bytes. */
		if (v > (uint64_t)LEASE_TOKENS_MAX || (shift && !b))
			break;
		return (int64_t)v;
	}
	c->bad = true;
	return 0;
}

static int64_t get_limit(struct cursor *c, uint8_t flags, uint8_t flag)
{
	return flags & flag ? get_number(c) : LEASE_NO_LIMIT;
}

static bool get_entry(struct cursor *c, uint64_t *ret_bucket, uint8_t *ret_flags)
{
	if (c->end - c->p < 9) {
		c->bad = true;
		return false;
	}
	*ret_bucket = bytes_get64(c->p);
	*ret_flags = c->p[8];
	c->p += 9;
	return true;
}

static void read_demand(struct cursor *c, struct lease_demand *d)
{
	uint8_t flags;

	*d = (struct lease_demand){.cap = LEASE_NO_LIMIT, .limit = LEASE_NO_LIMIT};
	if (!get_entry(c, &d->bucket, &flags))
		return;
	d->closed = flags & FLAG_CLOSED;
	d->holds = flags & FLAG_HOLDS;
	if (flags & ~(d->holds ? 0xf : FLAG_CLOSED))
		c->bad = true;
	d->used = get_number(c);
	d->queue = get_number(c);
	d->arriving = get_number(c);
	d->serving = get_number(c);
	if (!d->holds)
		return;
	d->cap = get_limit(c, flags, FLAG_CAP);
	d->reserved = get_number(c);
	d->limit = get_limit(c, flags, FLAG_LIMIT);
	d->static_part = get_number(c);
}

static void read_tokens(struct cursor *c, struct lease_tokens *t)
{
	uint8_t flags;

	*t = (struct lease_tokens){0};
	if (!get_entry(c, &t->bucket, &flags))
		return;
	t->moved = flags & FLAG_MOVED;
	if (flags & ~(FLAG_CAP | FLAG_LIMIT | FLAG_MOVED))
		c->bad = true;
	t->claim = get_number(c);
	t->cap = get_limit(c, flags, FLAG_CAP);
	t->reserved = get_number(c);
	t->limit = get_limit(c, flags, FLAG_LIMIT);
}

static bool is_span(uint64_t v)
{
	return v <= (uint64_t)SPAN_MAX;
}

static bool parse_report(const uint64_t f[FIELDS], struct lease_report *r)
{
	*r = (struct lease_report){f[0], f[1], f[2], f[3], f[4], (weir_time)f[5], (weir_time)f[6],
		f[7], f[8], f[9] & 1, f[10], f[9] >> 1};
	return is_span(f[5]) && is_span(f[6]) && r->capacity <= (uint64_t)LEASE_TOKENS_MAX &&
	       r->state < LEASE_STATES && r->wants <= 1;
}

static bool parse_grant(const uint64_t f[FIELDS], bool ask, struct lease_grant *g)
{
	*g = (struct lease_grant){f[0], f[1], f[2], (weir_time)f[3], (weir_time)f[4],
		(weir_time)f[5], f[6], (weir_time)f[7], (weir_time)f[8], f[9], f[10]};
	if (ask) {
		for (int i = 1; i < FIELDS; i++)
			if (f[i])
				return false;
		return true;
	}
	/* Longer periods would overflow when multiplied by their number. */
	return g->generation && g->period && is_span(f[3]) && is_span(f[4]) && is_span(f[5]) &&
	       g->length > 0 && g->length <= SPAN_MAX >> 20 && g->interval > 0 &&
	       g->interval <= g->length && g->left <= 2 * g->length && g->togo <= g->length &&
	       g->hold < 1 << 16 && g->gap < 1 << 16 && g->hold && g->gap;
}

static bool parse_plan(const uint64_t f[FIELDS], struct lease_plan *p)
{
	const uint64_t n = f[FIELDS - 1];

	*p = (struct lease_plan){.number = f[0], .length = f[1], .offset = f[2]};
	put_digest(&f[3], p->digest);
	put_digest(&f[7], p->tenants);
	return p->length <= LEASE_PLAN_MAX && n <= LEASE_PART && p->offset <= p->length &&
	       n <= p->length - p->offset && (p->number || !p->length);
}

static bool parse_has(const uint64_t f[FIELDS], struct lease_has *h)
{
	*h = (struct lease_has){.number = f[0], .wanted = f[1], .offset = f[2], .refused = f[3]};
	put_digest(&f[4], h->digest);
	for (int i = 8; i < FIELDS - 1; i++)
		if (f[i])
			return false;
	return f[FIELDS - 1] <= LEASE_WHY_MAX && h->offset <= LEASE_PLAN_MAX;
}

static bool parse_rack(const uint64_t f[FIELDS], struct lease_rack *k)
{
	uint8_t name[PEER_NAME_MAX + 1];

	for (int i = 0; i < NAME_WORDS; i++)
		bytes_put64(name + 8 * i, f[i]);
	memcpy(k->name, name, sizeof(name));
	k->span = (weir_time)f[NAME_WORDS];
	for (int i = NAME_WORDS + 1; i < FIELDS - 1; i++)
		if (f[i])
			return false;
	return !name[PEER_NAME_MAX] && peer_name_check(k->name) == 0 && is_span(f[NAME_WORDS]) &&
	       k->span && f[FIELDS - 1] % 8 == 0;
}

static bool parse_fields(const uint64_t f[FIELDS], struct lease_message *m)
{
	switch (m->kind) {
	case LEASE_REPORT:
		return parse_report(f, &m->report);
	case LEASE_GRANT:
		return parse_grant(f, false, &m->grant);
	case LEASE_ASK:
		return parse_grant(f, true, &m->grant);
	case LEASE_PLAN:
		return parse_plan(f, &m->plan);
	case LEASE_HAS:
		return parse_has(f, &m->has);
	case LEASE_USAGE:
	case LEASE_LIMITS:
		return parse_rack(f, &m->rack);
	default:
		for (int i = 0; i < FIELDS; i++)
			if (f[i])
				return false;
		return true;
	}
}

static enum peer_verdict read_entries(struct cursor *c, uint64_t n, struct lease_message *m)
{
	if (n > LEASE_ENTRIES_MAX || n > (size_t)(c->end - c->p) / ENTRY_MIN + 1)
		return PEER_BROKEN;
	if (lease_message_room(m, n))
		return PEER_CROWD;
	for (m->n = 0; m->n < n && !c->bad; m->n++) {
		if (m->kind == LEASE_REPORT)
			read_demand(c, &m->demands[m->n]);
		else
			read_tokens(c, &m->tokens[m->n]);
	}
	return c->bad || c->p != c->end ? PEER_BROKEN : PEER_TAKEN;
}

static enum peer_verdict read_bytes(struct cursor *c, uint64_t n, struct lease_message *m)
{
	if (n != (uint64_t)(c->end - c->p))
		return PEER_BROKEN;
	if (lease_message_room(m, n / ENTRY + 1))
		return PEER_CROWD;
	memcpy(m->bytes, c->p, n);
	m->n = n;
	return PEER_TAKEN;
}

enum peer_verdict lease_read(const uint8_t *in, size_t n, struct lease_message *ret)
{
	struct peer_message head;
	uint64_t fields[FIELDS];
	struct cursor c = {in + PEER_HEAD + LEASE_BODY, in + n, false};

	ret->n = 0;
	if (n < PEER_HEAD + LEASE_BODY || in[5] < LEASE_HELLO || in[5] >= LEASE_KINDS ||
		peer_read_head(in, &head) != PEER_TAKEN)
		return PEER_BROKEN;
	ret->kind = in[5];
	ret->cluster = head.cluster;
	ret->instance = head.instance;
	ret->sequence = head.sequence;
	ret->sent = head.sent;
	memcpy(ret->nonce, head.nonce, PEER_NONCE);
	memcpy(ret->name, head.name, sizeof(ret->name));
	for (int i = 0; i < FIELDS; i++)
		fields[i] = bytes_get64(in + PEER_HEAD + 8 * i);
	if (!parse_fields(fields, ret) ||
		((ret->kind == LEASE_HELLO || ret->kind == LEASE_ASK) && fields[FIELDS - 1]))
		return PEER_BROKEN;
	if (lease_has_bytes(ret->kind))
		return read_bytes(&c, fields[FIELDS - 1], ret);
	return read_entries(&c, fields[FIELDS - 1], ret);
}

const char *lease_state_name(uint64_t state)
{
	static const char *const names[LEASE_STATES] = {"blind", "leased", "held", "static"};

	return state < LEASE_STATES ? names[state] : "?";
}
