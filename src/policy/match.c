/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * match: find the tenant of a request.
 *
 * LAW     A match is a conjunction of at most five fields, each a shell glob or, for clients, a
 *         block of addresses. Of the matches that fit a request the most specific wins: more fields
 *         that exclude something (a "*" excludes nothing); else by the first field, in the order
 *         export, client, uid, tls, path, whose ranks differ. A field's rank is, in this order:
 *         excludes something; block before glob; bits of the block, or literal characters before
 *         the first wildcard (the end of a pattern without any counts as one more); literal
 *         characters altogether.
 * METHOD  Two matches that tie and overlap in every field are ambiguous. They have equal ranks, so
 *         their fields begin with the same number of literal characters, which are the same; so are
 *         those at the ends, as far as both go. Ranks and hashes of these make keys; sorting by the
 *         keys brings together the matches to compare: O(n log n) if patterns differ at either end.
 *         A tenant that a template made is found by its name (policy/each.c): its own match, which is more specific than
 *         the template's, takes no part, so that its existence does not change which template or tenant wins.
 * EXAMPLE {export: web-*, client: 10.0.0.0/24} (2 fields) wins over {export: web-1} (1 field),
 *         which wins over {export: web-*} (rank 6 against 4), which wins over {export: "*"}.
 */
#include "base/hash.h"
#include "policy/index.h"
#include "policy/pattern.h"
#include "base/same.h"
#include <assert.h>
#include <errno.h>
#include <string.h>

enum { EXPORT, CLIENT, UID, TLS, PATH, FIELDS };
static_assert(FIELDS == POLICY_MATCH_FIELDS, "fields");
static const char *const field_names[FIELDS] = {"export", "client", "uid", "tls", "path"};

static const char *field_of(const struct weir_match *m, int f)
{
	const char *const fields[FIELDS] = {m->export_, m->client, m->uid, m->tls, m->path};

	return fields[f];
}

/* ---- specificity */

/* Hashes only separate matches that differ: a deliberate collision costs time, but no mistake. */
static uint64_t mix(uint64_t hash, uint8_t byte)
{
	return hash_more(hash, &byte, 1);
}

static void rank_block(struct policy_addresses *block, struct policy_match_key *key, uint16_t *rank)
{
	rank[1] = 1;
	rank[2] = (uint16_t)block->bits;
	for (unsigned bit = block->bits; bit < 128; bit++)
		block->address[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
	key->begin = mix(key->begin, block->v6);
	key->begin = hash_more(key->begin, block->address, 16);
}

/* Compute a field's rank in four numbers, and its literal beginning. */
static void rank_field(const char *p, bool client, struct policy_match_key *key, uint16_t *rank)
{
	struct policy_addresses block;
	struct policy_token t;
	bool wild = false;

	if (client && policy_pattern_block(p, &block)) {
		rank_block(&block, key, rank);
		return;
	}
	while (p && *p) {
		const char *next = policy_pattern_next(p, &t);

		wild |= !t.literal;
		rank[2] += !wild;
		rank[3] += t.literal;
		if (!wild)
			key->begin = mix(key->begin, (uint8_t)p[*p == '\\']);
		p = next;
	}
	rank[2] += !wild;
}

void policy_match_key(const struct weir_match *m, struct policy_match_key *ret)
{
	*ret = (struct policy_match_key){{0}, 0};
	for (int f = 0; f < FIELDS; f++) {
		const char *p = field_of(m, f);
		uint16_t *rank = &ret->rank[1 + 4 * f];

		if (!p || strspn(p, "*") == strlen(p))
			continue;
		rank[0] = 1;
		ret->rank[0]++;
		rank_field(p, f == CLIENT, ret, rank);
	}
}

static int rank_order(const struct policy_match_key *a, const struct policy_match_key *b)
{
	for (size_t i = 0; i < sizeof(a->rank) / sizeof(a->rank[0]); i++)
		if (a->rank[i] != b->rank[i])
			return a->rank[i] < b->rank[i] ? -1 : 1;
	return 0;
}

int policy_match_key_order(const struct policy_match_key *a, const struct policy_match_key *b)
{
	int c = rank_order(a, b);

	if (c == 0 && a->begin != b->begin)
		c = a->begin < b->begin ? -1 : 1;
	return c;
}

/* Copy the literal bytes after the field's last wildcard; return their number. */
static uint8_t ending(const struct weir_match *m, int f, uint8_t ret[POLICY_PATTERN_MAX])
{
	const char *p = field_of(m, f);
	struct policy_addresses block;
	struct policy_token t;
	bool wild = false;
	uint8_t n = 0;

	if (!p || (f == CLIENT && policy_pattern_block(p, &block)))
		return 0;
	while (p && *p && n < POLICY_PATTERN_MAX) {
		const char *next = policy_pattern_next(p, &t);

		wild |= !t.literal;
		if (t.literal)
			ret[n++] = (uint8_t)p[*p == '\\'];
		else
			n = 0;
		p = next;
	}
	return wild && p && !*p ? n : 0;
}

void policy_match_ends(const struct weir_match *m, uint8_t ret_lens[POLICY_MATCH_FIELDS])
{
	uint8_t text[POLICY_PATTERN_MAX];

	for (int f = 0; f < FIELDS; f++)
		ret_lens[f] = ending(m, f, text);
}

uint64_t policy_match_end(const struct weir_match *m, const uint8_t lens[POLICY_MATCH_FIELDS])
{
	uint8_t text[POLICY_PATTERN_MAX];
	uint64_t hash = 0;

	for (int f = 0; f < FIELDS; f++) {
		uint8_t n = lens[f] ? ending(m, f, text) : 0;

		for (uint8_t i = 0; i < lens[f]; i++)
			hash = mix(hash, text[n - lens[f] + i]);
	}
	return hash;
}

int policy_match_compare(const struct weir_match *a, const struct weir_match *b)
{
	struct policy_match_key ka, kb;

	policy_match_key(a, &ka);
	policy_match_key(b, &kb);
	return rank_order(&ka, &kb);
}

/* ---- matches */

static bool field_overlap(const char *a, const char *b, bool client)
{
	struct policy_addresses ba, bb;

	if (!a || !b)
		return true;
	if (client) {
		bool block_a = policy_pattern_block(a, &ba), block_b = policy_pattern_block(b, &bb);

		if (block_a && block_b)
			return policy_pattern_same(&ba, &bb, ba.bits < bb.bits ? ba.bits : bb.bits);
		/* A block's addresses as text are too many to compare; and a block and a glob never
		 * tie. */
		if (block_a || block_b)
			return true;
	}
	return policy_pattern_overlap(a, b);
}

bool policy_match_overlap(const struct weir_match *a, const struct weir_match *b)
{
	for (int f = 0; f < FIELDS; f++)
		if (!field_overlap(field_of(a, f), field_of(b, f), f == CLIENT))
			return false;
	return true;
}

/* Return true if the pattern can fit a peer's address as shown; after a '%' any interface. */
static bool can_be_address(const char *p)
{
	bool wild = strpbrk(p, "*?[\\");
	struct policy_addresses one;
	char text[POLICY_PATTERN_MAX + 1] = "";

	if (!strchr(p, '%'))
		return wild ? policy_pattern_can(p, "0123456789abcdef.:")
			    : policy_pattern_block(p, &one);
	memcpy(text, p, strcspn(p, "%"));
	return wild || (policy_pattern_block(text, &one) && one.v6);
}

/* Return true if the pattern can fit a number as shown: without leading zeros. */
static bool can_be_number(const char *p)
{
	return policy_pattern_can(p, "0123456789") && (p[0] != '0' || !p[1 + strspn(p + 1, "*")]);
}

static const char *why_bad(int field, const char *pattern)
{
	struct policy_addresses block;
	struct policy_token t;
	const char *p = pattern;

	if (strlen(p) > POLICY_PATTERN_MAX)
		return "a pattern has at most 255 characters";
	if (field == CLIENT && strchr(p, '/'))
		return policy_pattern_block(p, &block)
			       ? NULL
			       : "not a block of addresses, as in 10.0.0.0/24 or fd00::/8";
	while (p && *p)
		p = policy_pattern_next(p, &t);
	if (!p)
		return "a pattern with a '[' that is not closed, or a '\\' at its end";
	if (field == CLIENT && !can_be_address(pattern))
		return "no client can have this address; valid are 10.0.0.7, fd00::7, 10.0.0.0/24 "
		       "or 10.0.*";
	if (field == UID && !can_be_number(pattern))
		return "no user can have this number; valid are 1000 or 10??";
	return NULL;
}

bool policy_match_bad(const struct weir_match *m, const char **ret_field, const char **ret_why)
{
	for (int f = 0; f < FIELDS; f++) {
		const char *p = field_of(m, f), *why = p ? why_bad(f, p) : NULL;

		if (why) {
			*ret_field = field_names[f];
			*ret_why = why;
			return true;
		}
	}
	return false;
}

static bool field_fits(const char *pattern, const char *text, bool client)
{
	struct policy_addresses block, address;

	if (!pattern)
		return true;
	if (client && text && policy_pattern_block(pattern, &block))
		return policy_pattern_block(text, &address) &&
		       policy_pattern_same(&block, &address, block.bits);
	return text ? policy_pattern_fits(pattern, text) : strspn(pattern, "*") == strlen(pattern);
}

bool policy_match_fits(const struct weir_match *m, const struct weir_who *who)
{
	const char *const texts[FIELDS] = {
		who->export_, who->client, who->uid, who->tls, who->path};

	for (int f = 0; f < FIELDS; f++)
		if (!field_fits(field_of(m, f), texts[f], f == CLIENT))
			return false;
	return true;
}

struct choice { /* the best so far */
	const struct weir_match *best;
	int owner;
};

static void consider(struct choice *c, const struct weir_policy *p, size_t tenant, size_t match,
	const struct weir_who *who)
{
	const struct weir_match *m = &p->tenants[tenant].match[match];

	if (!policy_match_fits(m, who) || (c->best && policy_match_compare(c->best, m) >= 0))
		return;
	c->best = m;
	c->owner = (int)tenant;
}

int policy_match_owner(const struct weir_policy *p, const struct weir_who *who)
{
	struct choice c = {NULL, p->default_tenant >= 0 ? p->default_tenant : -ENOENT};
	struct policy_index_span spans[POLICY_INDEX_SPANS];

	if (p->index) {
		policy_index_matches(p, who, spans);
		for (int s = 0; s < POLICY_INDEX_SPANS; s++)
			for (size_t i = 0; i < spans[s].n; i++)
				consider(&c, p, spans[s].at[i].tenant, spans[s].at[i].match, who);
		return c.owner;
	}
	for (size_t i = 0; i < p->n_tenants; i++)
		for (unsigned k = 0; k < p->tenants[i].n_match && !p->tenants[i].made; k++)
			consider(&c, p, i, k, who);
	return c.owner;
}

bool policy_match_serves(const struct weir_policy *p, const char *export_)
{
	const struct weir_who any = {.export_ = export_};

	if (!p->n_tenants || policy_match_owner(p, &any) >= 0)
		return true;
	for (size_t i = 0; i < p->n_tenants; i++)
		for (unsigned k = 0; k < p->tenants[i].n_match; k++) {
			const char *pattern = p->tenants[i].match[k].export_;

			if (!pattern || policy_pattern_fits(pattern, export_))
				return true;
		}
	return false;
}

bool policy_match_same(const struct weir_match *a, const struct weir_match *b)
{
	return same_text(a->export_, b->export_) && same_text(a->client, b->client) &&
	       same_text(a->uid, b->uid) && same_text(a->tls, b->tls) &&
	       same_text(a->path, b->path);
}

bool policy_tls_same(const struct weir_policy_tls *a, const struct weir_policy_tls *b)
{
	return same_text(a->cert, b->cert) && same_text(a->key, b->key) &&
	       same_text(a->ca, b->ca) && same_text(a->psk, b->psk);
}
