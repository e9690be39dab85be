/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy-match: whose request it is.
 *
 * LAW     A match is a conjunction of at most five fields, each a shell glob or, for clients, a
 *         block of addresses. Of the matches that fit a request the most specific wins: more
 *         fields that exclude something (a "*" excludes nothing); else by the first field, in the
 *         order export, client, uid, tls, path, whose ranks differ. A field's rank is, in this
 *         order: excludes something; block before glob; bits of the block, or literal characters
 *         before the first wildcard (the end of a pattern without any counts as one more); literal
 *         characters altogether.
 * METHOD  Two globs overlap when the product of their automata accepts something: a table over
 *         (place in a, place in b), O(|a|·|b|). Two matches that tie and overlap in every field
 *         are ambiguous; such have equal keys (ranks, and the literal beginning of the first field
 *         that excludes something), so that sorting brings them together.
 * EXAMPLE {export: web-*, client: 10.0.0.0/24} (2 fields) wins over {export: web-1} (1 field),
 *         which wins over {export: web-*} (rank 6 against 4), which wins over {export: "*"}.
 */
#include "ctl/policy-index.h"
#include <errno.h>
#include <string.h>

enum { FIELDS = 5, PATTERN_MAX = 255 };
static const char *const field_names[FIELDS] = {"export", "client", "uid", "tls", "path"};

static const char *field_of(const struct weir_match *m, int f)
{
	const char *const fields[FIELDS] = {m->export_, m->client, m->uid, m->tls, m->path};

	return fields[f];
}

/* ---- globs */

struct token { /* one step of a glob: any run of characters, or one out of a set */
	bool star, literal;
	uint64_t set[4];
};

static void set_add(struct token *t, unsigned char c)
{
	t->set[c / 64] |= UINT64_C(1) << (c % 64);
}

static bool set_has(const struct token *t, unsigned char c)
{
	return t->set[c / 64] >> (c % 64) & 1;
}

/* "[a-z]", "[!a-z]": p stands behind the '['. NULL: it has no end. */
static const char *set_token(const char *p, struct token *t)
{
	bool invert = *p == '!' || *p == '^';
	const char *first = p += invert;

	for (; *p && (*p != ']' || p == first); p++) {
		unsigned lo = (unsigned char)*p, hi = lo;

		if (p[1] == '-' && p[2] && p[2] != ']') {
			hi = (unsigned char)p[2];
			p += 2;
		}
		for (; lo <= hi; lo++)
			set_add(t, (unsigned char)lo);
	}
	if (!*p)
		return NULL;
	for (int i = 0; invert && i < 4; i++)
		t->set[i] = ~t->set[i];
	return p + 1;
}

/* The token at p, which is not the end; what follows it, or NULL: the pattern is broken. */
static const char *next_token(const char *p, struct token *t)
{
	*t = (struct token){0};
	switch (*p) {
	case '*':
		t->star = true;
		return p + strspn(p, "*");
	case '?':
		memset(t->set, 0xff, sizeof(t->set));
		return p + 1;
	case '[':
		return set_token(p + 1, t);
	case '\\':
		if (!*++p)
			return NULL;
		/* fallthrough */
	default:
		t->literal = true;
		set_add(t, (unsigned char)*p);
		return p + 1;
	}
}

bool policy_match_glob(const char *pattern, const char *text)
{
	const char *star = NULL, *retry = NULL; /* behind the last star, and the text it left */
	struct token t;

	while (*text || *pattern) {
		if (*pattern) {
			const char *next = next_token(pattern, &t);

			if (!next)
				return false;
			if (t.star) {
				star = pattern = next;
				retry = text;
				continue;
			}
			if (*text && set_has(&t, (unsigned char)*text)) {
				pattern = next;
				text++;
				continue;
			}
		}
		if (!star || !*retry)
			return false;
		pattern = star;
		text = ++retry;
	}
	return true;
}

static size_t tokens(const char *pattern, struct token *ret)
{
	size_t n = 0;

	while (pattern && *pattern && n < PATTERN_MAX)
		pattern = next_token(pattern, &ret[n++]);
	return n;
}

static bool share_character(const struct token *a, const struct token *b)
{
	for (int i = 0; i < 4; i++)
		if (a->set[i] & b->set[i])
			return true;
	return false;
}

static bool globs_overlap(const char *a, const char *b)
{
	struct token ta[PATTERN_MAX], tb[PATTERN_MAX];
	bool rows[2][PATTERN_MAX + 1] = {{0}};
	size_t na = tokens(a, ta), nb = tokens(b, tb);

	/* row[j]: what is left of a from i and of b from j can make the same text. */
	for (size_t i = na + 1; i-- > 0;) {
		bool *row = rows[i % 2], *below = rows[(i + 1) % 2];

		for (size_t j = nb + 1; j-- > 0;) {
			bool star_a = i < na && ta[i].star, star_b = j < nb && tb[j].star;

			if (i == na && j == nb)
				row[j] = true;
			else if (star_a || star_b)
				row[j] = (i < na && (star_a || star_b) && below[j]) ||
					 (j < nb && row[j + 1]);
			else
				row[j] = i < na && j < nb && share_character(&ta[i], &tb[j]) &&
					 below[j + 1];
		}
	}
	return rows[0][0];
}

/* ---- blocks of addresses */

struct block {
	bool v6;
	uint8_t address[16];
	unsigned bits;
};

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 99;
}

/* A number of at most `most`, in at most `width` digits; what follows it, or NULL. */
static const char *number(const char *p, int base, int width, unsigned most, unsigned *ret)
{
	unsigned value = 0;
	int n = 0;

	for (; digit(*p) < base; p++) {
		value = value * (unsigned)base + (unsigned)digit(*p);
		if (++n > width || value > most)
			return NULL;
	}
	*ret = value;
	return n ? p : NULL;
}

static const char *parse_v4(const char *p, uint8_t *ret)
{
	for (int i = 0; i < 4; i++) {
		unsigned part;

		if (i > 0 && *p++ != '.')
			return NULL;
		p = number(p, 10, 3, 255, &part);
		if (!p)
			return NULL;
		ret[i] = (uint8_t)part;
	}
	return p;
}

/* RFC 4291 §2.2, with a last part in the form of an IPv4 address too. */
static const char *parse_v6(const char *p, uint8_t *ret)
{
	uint8_t parts[16] = {0};
	size_t used = 0, gap = 17; /* where the "::" stands; 17: nowhere */
	unsigned part;

	if (p[0] == ':' && p[1] != ':')
		return NULL;
	while (used < 16) {
		const char *next;

		if (p[0] == ':' && p[1] == ':') {
			if (gap != 17)
				return NULL;
			gap = used;
			p += 2;
			if (digit(*p) > 15)
				break;
		} else if (used > 0 && gap != used) {
			if (*p != ':')
				break;
			p++;
		}
		if (used <= 12 && (next = parse_v4(p, parts + used))) {
			used += 4;
			p = next;
			break;
		}
		p = number(p, 16, 4, 0xffff, &part);
		if (!p)
			return NULL;
		parts[used++] = (uint8_t)(part >> 8);
		parts[used++] = (uint8_t)part;
	}
	if (gap == 17 ? used != 16 : used > 14)
		return NULL;
	memset(ret, 0, 16);
	if (gap == 17)
		gap = used;
	memcpy(ret, parts, gap);
	memcpy(ret + 16 - (used - gap), parts + gap, used - gap);
	return p;
}

/* "10.0.0.0/24", "fd00::/8", or one address. */
static bool parse_block(const char *text, struct block *ret)
{
	const char *p;

	*ret = (struct block){0};
	p = parse_v4(text, ret->address);
	ret->v6 = !p || *p == ':';
	if (ret->v6)
		p = parse_v6(text, ret->address);
	if (!p)
		return false;
	ret->bits = ret->v6 ? 128 : 32;
	if (*p == '/')
		p = number(p + 1, 10, 3, ret->bits, &ret->bits);
	return p && !*p;
}

static bool same_beginning(const struct block *a, const struct block *b, unsigned bits)
{
	if (a->v6 != b->v6 || memcmp(a->address, b->address, bits / 8) != 0)
		return false;
	return bits % 8 == 0 ||
	       (a->address[bits / 8] ^ b->address[bits / 8]) >> (8 - bits % 8) == 0;
}

/* ---- specificity */

/* A field's rank in four numbers, and the beginning that every text it fits must have. */
static void rank_field(const char *p, bool client, struct policy_match_key *key, uint16_t *rank)
{
	bool first = key->len == 0 && key->rank[0] == 1, wild = false;
	struct block block;
	struct token t;

	if (client && parse_block(p, &block)) {
		rank[1] = 1;
		rank[2] = (uint16_t)block.bits;
		for (unsigned bit = block.bits; bit < 128; bit++)
			block.address[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
		if (first) {
			key->begin[0] = block.v6;
			memcpy(key->begin + 1, block.address, 16);
			key->len = 17;
		}
		return;
	}
	while (p && *p) {
		const char *next = next_token(p, &t);

		wild |= !t.literal;
		rank[2] += !wild;
		rank[3] += t.literal;
		if (first && !wild && key->len < sizeof(key->begin))
			key->begin[key->len++] = (uint8_t)p[*p == '\\'];
		p = next;
	}
	rank[2] += !wild;
}

void policy_match_key(const struct weir_match *m, struct policy_match_key *ret)
{
	*ret = (struct policy_match_key){{0}, 0, {0}};
	for (int f = 0; f < FIELDS; f++) {
		const char *p = field_of(m, f);
		uint16_t *rank = &ret->rank[1 + 4 * f];

		if (!p || strspn(p, "*") == strlen(p))
			continue;
		rank[0] = 1;
		ret->rank[0]++;
		rank_field(p, f == 1, ret, rank);
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

	if (c == 0 && a->len != b->len)
		c = a->len < b->len ? -1 : 1;
	return c ? c : memcmp(a->begin, b->begin, a->len);
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
	struct block ba, bb;

	if (!a || !b)
		return true;
	if (client) {
		bool block_a = parse_block(a, &ba), block_b = parse_block(b, &bb);

		if (block_a && block_b)
			return same_beginning(&ba, &bb, ba.bits < bb.bits ? ba.bits : bb.bits);
		/* A block's addresses as text are too many to compare; and the two never tie. */
		if (block_a || block_b)
			return true;
	}
	return globs_overlap(a, b);
}

bool policy_match_overlap(const struct weir_match *a, const struct weir_match *b)
{
	for (int f = 0; f < FIELDS; f++)
		if (!field_overlap(field_of(a, f), field_of(b, f), f == 1))
			return false;
	return true;
}

bool policy_match_bad(const struct weir_match *m, const char **ret_field, const char **ret_why)
{
	for (int f = 0; f < FIELDS; f++) {
		const char *p = field_of(m, f);
		struct block block;
		struct token t;

		if (!p)
			continue;
		*ret_field = field_names[f];
		if (strlen(p) > PATTERN_MAX) {
			*ret_why = "a pattern has at most 255 characters";
			return true;
		}
		if (f == 1 && strchr(p, '/') && !parse_block(p, &block)) {
			*ret_why = "not a block of addresses, as in 10.0.0.0/24 or fd00::/8";
			return true;
		}
		while (p && *p)
			p = next_token(p, &t);
		if (!p) {
			*ret_why = "a pattern with a '[' that is not closed, or a '\\' at its end";
			return true;
		}
	}
	return false;
}

static bool field_fits(const char *pattern, const char *text, bool client)
{
	struct block block, address;

	if (!pattern)
		return true;
	if (client && text && parse_block(pattern, &block))
		return parse_block(text, &address) && same_beginning(&block, &address, block.bits);
	return text ? policy_match_glob(pattern, text) : strspn(pattern, "*") == strlen(pattern);
}

static bool fits(const struct weir_match *m, const struct weir_who *who)
{
	const char *const texts[FIELDS] = {
		who->export_, who->client, who->uid, who->tls, who->path};

	for (int f = 0; f < FIELDS; f++)
		if (!field_fits(field_of(m, f), texts[f], f == 1))
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

	if (!fits(m, who) || (c->best && policy_match_compare(c->best, m) >= 0))
		return;
	c->best = m;
	c->owner = (int)tenant;
}

int weir_policy_match(const struct weir_policy *p, const struct weir_who *who)
{
	struct choice c = {NULL, p->default_tenant >= 0 ? p->default_tenant : -ENOENT};
	struct policy_index_span spans[2];

	if (p->index && who->export_) {
		policy_index_matches(p, who->export_, spans);
		for (int s = 0; s < 2; s++)
			for (size_t i = 0; i < spans[s].n; i++)
				consider(&c, p, spans[s].at[i].tenant, spans[s].at[i].match, who);
		return c.owner;
	}
	for (size_t i = 0; i < p->n_tenants; i++)
		for (unsigned k = 0; k < p->tenants[i].n_match; k++)
			consider(&c, p, i, k, who);
	return c.owner;
}
