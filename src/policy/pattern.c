/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * METHOD  Two globs overlap when the product of their automata accepts something: a table over
 *         (place in a, place in b), O(|a|·|b|).
 */
#include "policy/pattern.h"
#include <string.h>

/* ---- globs */

static void set_add(struct policy_token *t, unsigned char c)
{
	t->set[c / 64] |= UINT64_C(1) << (c % 64);
}

static bool set_has(const struct policy_token *t, unsigned char c)
{
	return t->set[c / 64] >> (c % 64) & 1;
}

/* Parse "[a-z]", "[!a-z]"; p is after the '['. NULL: no closing bracket. */
static const char *set_token(const char *p, struct policy_token *t)
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

/* Parse the token at p, which is not the end. Return the text after it, or NULL: the pattern is
 * malformed. */
const char *policy_pattern_next(const char *p, struct policy_token *t)
{
	*t = (struct policy_token){0};
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

bool policy_pattern_fits(const char *pattern, const char *text)
{
	/* after the last star, and the text at that point */
	const char *star = NULL, *retry = NULL;
	struct policy_token t;

	while (*text || *pattern) {
		if (*pattern && *pattern == *text && !strchr("*?[\\", *pattern)) {
			pattern++; /* a literal character, as most are */
			text++;
			continue;
		}
		if (*pattern) {
			const char *next = policy_pattern_next(pattern, &t);

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

static size_t tokens(const char *pattern, struct policy_token *ret)
{
	size_t n = 0;

	while (pattern && *pattern && n < POLICY_PATTERN_MAX)
		pattern = policy_pattern_next(pattern, &ret[n++]);
	return n;
}

static bool share_character(const struct policy_token *a, const struct policy_token *b)
{
	for (int i = 0; i < 4; i++)
		if (a->set[i] & b->set[i])
			return true;
	return false;
}

bool policy_pattern_can(const char *pattern, const char *bytes)
{
	struct policy_token t, allowed = {0};

	for (; *bytes; bytes++)
		set_add(&allowed, (unsigned char)*bytes);
	while (pattern && *pattern) {
		pattern = policy_pattern_next(pattern, &t);
		if (pattern && !t.star && !share_character(&t, &allowed))
			return false;
	}
	return pattern;
}

bool policy_pattern_overlap(const char *a, const char *b)
{
	struct policy_token ta[POLICY_PATTERN_MAX], tb[POLICY_PATTERN_MAX];
	bool rows[2][POLICY_PATTERN_MAX + 1] = {{0}};
	size_t na = tokens(a, ta), nb = tokens(b, tb);

	/* row[j]: the rest of a from i and of b from j can make the same text. */
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

/* Parse a number of at most `most`, in at most `width` digits. Return the text after it, or
 * NULL. */
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

/* Parse "10.0.0.0/24", "fd00::/8", or one address. */
bool policy_pattern_block(const char *text, struct policy_addresses *ret)
{
	const char *p;

	*ret = (struct policy_addresses){0};
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

bool policy_pattern_same(
	const struct policy_addresses *a, const struct policy_addresses *b, unsigned bits)
{
	if (a->v6 != b->v6 || memcmp(a->address, b->address, bits / 8) != 0)
		return false;
	return bits % 8 == 0 ||
	       (a->address[bits / 8] ^ b->address[bits / 8]) >> (8 - bits % 8) == 0;
}
