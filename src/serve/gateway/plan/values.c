/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/gateway/plan/values.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int plan_refuse(struct plan_reading *r, const char *what, const char *why)
{
	return weir_err_set(r->err, -EINVAL, "plan: %s: %s", what, why);
}

/* ---- the text */

int plan_refuse_here(struct plan_reading *r, const char *why)
{
	int line = 1;

	for (const char *c = r->text; c < r->at; c++)
		line += *c == '\n';
	return weir_err_set(r->err, -EINVAL, "plan:%d: %s", line, why);
}

/* Return the next character that is no space; 0: the end, or a NUL. */
char plan_next(struct plan_reading *r)
{
	while (r->at < r->end &&
		(*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r'))
		r->at++;
	return r->at < r->end ? *r->at : 0;
}

/* Read one value; NULL with a message. */
json_t *plan_value(struct plan_reading *r)
{
	json_error_t fault;
	json_t *j = json_loadb(r->at, (size_t)(r->end - r->at),
		JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &fault);

	if (j)
		r->at += fault.position;
	else
		plan_refuse_here(r, fault.text);
	return j;
}

/* After an element: return 1 if another one follows, 0 at the end, or -EINVAL. */
int plan_more(struct plan_reading *r, char end)
{
	char c = plan_next(r);

	if (c != ',' && c != end)
		return plan_refuse_here(r, "',' or the end of a list or map expected");
	r->at++;
	return c == ',';
}

/* ---- values of a tenant, without the library's objects: they take most of the time */

/* Write a string to r->names, which stays where it is; "" if the value is none. 0 or -EINVAL. */
int plan_string(struct plan_reading *r)
{
	const char *c = plan_next(r) == '"' ? r->at + 1 : r->end;
	json_t *j;

	while (c < r->end && *c != '"' && *c != '\\' && (unsigned char)*c - 0x20u < 0x5f)
		c++;
	if (c < r->end && *c == '"') {
		size_t n = (size_t)(c - r->at - 1);

		memcpy(r->names, r->at + 1, n);
		r->names[n] = 0;
		r->at = c + 1;
		return 0;
	}
	j = plan_value(r);
	if (!j)
		return -EINVAL;
	if (json_is_string(j) && strlen(json_string_value(j)) == json_string_length(j))
		strcpy(r->names, json_string_value(j));
	else
		r->names[0] = 0;
	json_decref(j);
	return 0;
}

/* Take digits; *m: up to 19 of them, added to it. Return their number, or 20: there are more. */
static unsigned digits(const char **c, const char *end, uint64_t *m)
{
	unsigned n = 0;

	for (; *c < end && **c >= '0' && **c <= '9'; (*c)++, n++)
		if (n < 19)
			*m = 10 * *m + (uint64_t)(**c - '0');
	return n < 20 ? n : 20;
}

/* Take an exponent, if there is one; false: it has no digits. */
static bool exponent(const char **c, const char *end, int *ret)
{
	bool minus;
	uint64_t m = 0;
	unsigned n;

	*ret = 0;
	if (*c == end || (**c | 0x20) != 'e')
		return true;
	minus = ++*c < end && **c == '-';
	*c += minus || (*c < end && **c == '+');
	n = digits(c, end, &m);
	*ret = n < 4 ? (int)m : 9999;
	*ret = minus ? -*ret : *ret;
	return n > 0;
}

/*
 * Read a number; NAN if the value is none. 0 or -EINVAL. Up to 15 digits are an exact integer, and so is 10 to the 22nd or less: their
 * product or quotient, rounded once, is what the library would return.
 */
int plan_number(struct plan_reading *r, double *ret, bool *ret_whole)
{
	static const double tens[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
		1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	const char *c = (plan_next(r), r->at);
	uint64_t m = 0;
	unsigned whole = digits(&c, r->end, &m), part = 0;
	bool dot = whole && c < r->end && *c == '.', good;
	const char *mantissa;
	int power;
	json_t *j;

	if (dot) {
		c++;
		part = digits(&c, r->end, &m);
	}
	mantissa = c;
	good = exponent(&c, r->end, &power) && (part || !dot);
	power -= (int)part;
	if (good && whole && whole + part <= 15 && (whole == 1 || *r->at != '0') &&
		abs(power) <= 22 && c < r->end && strchr(" \t\r\n,]}", *c)) {
		*ret = power < 0 ? (double)m / tens[-power] : (double)m * tens[power];
		*ret_whole = !dot && mantissa == c;
		r->at = c;
		return 0;
	}
	j = plan_value(r);
	if (!j)
		return -EINVAL;
	*ret = json_is_number(j) ? json_number_value(j) : NAN;
	*ret_whole = json_is_integer(j);
	json_decref(j);
	return 0;
}

int plan_skip(struct plan_reading *r)
{
	json_t *j = plan_value(r);

	json_decref(j);
	return j ? 0 : -EINVAL;
}

/* Read an object's members: `member` reads the value of keys[i]. *ret_given: a bit for each that was there; 0 if the value is no
 * object. 0 or -EINVAL. */
int plan_object(struct plan_reading *r, const char *const *keys, plan_member_fn *member, void *to,
	unsigned *ret_given)
{
	unsigned key, given = 0;
	int rc = 1;

	*ret_given = 0;
	if (plan_next(r) != '{')
		return plan_skip(r);
	r->at++;
	if (plan_next(r) == '}') {
		r->at++;
		return 0;
	}
	while (rc > 0) {
		if (plan_next(r) != '"')
			return plan_refuse_here(r, "a name and ':' expected");
		rc = plan_string(r);
		if (rc == 0 && plan_next(r) != ':')
			rc = plan_refuse_here(r, "a name and ':' expected");
		for (key = 0; rc == 0 && keys[key] && strcmp(keys[key], r->names) != 0;)
			key++;
		if (rc == 0 && keys[key] && given >> key & 1)
			rc = plan_refuse_here(r, "duplicate object key");
		if (rc < 0)
			return rc;
		r->at++;
		given |= keys[key] ? 1u << key : 0;
		rc = keys[key] ? member(r, key, to) : plan_skip(r);
		if (rc == 0)
			rc = plan_more(r, '}');
	}
	*ret_given = given;
	return rc;
}

/* Read a list: `item` reads one value. *ret_list: it is one. 0 or -EINVAL. */
int plan_list(struct plan_reading *r, int (*item)(struct plan_reading *r, void *to), void *to,
	bool *ret_list)
{
	int rc = 1;

	*ret_list = plan_next(r) == '[';
	if (!*ret_list)
		return plan_skip(r);
	r->at++;
	if (plan_next(r) == ']') {
		r->at++;
		return 0;
	}
	while (rc > 0) {
		rc = item(r, to);
		if (rc == 0)
			rc = plan_more(r, ']');
	}
	return rc;
}
