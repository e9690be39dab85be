/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  Qian et al.: "A configurable rule based classful token bucket filter network request
 *         scheduler for the Lustre file system", SC 2017; and the behaviour of Lustre 2.15's
 *         nrs_tbf. AdapTBF §II-A summarises it.
 * LAW     tokens' = min(depth, tokens + rate·(now − checked)); a request needs one. deadline = the
 *         time at which there is one; the class with the earliest goes first.
 * SYMBOLS tokens in 2⁻³² of one; rate per second; times in ns.
 * METHOD  A heap of the classes that have requests, by deadline; O(log classes) a request. Rules
 *         are a list, searched only when a class is made or rules changed.
 * DIFFERS From Lustre: the fraction of a token is kept at a dispatch (Lustre drops it, so a rate of
 *         1000 gives less); deadlines are those of tokens, so a class with tokens left is due since
 *         it had the first of them.
 * EXAMPLE rate 10, depth 3: of five requests at once three pass, the fourth 100 ms later, the fifth
 *         at 200 ms.
 */
#include "control/tbf/filter.h"
#include "base/heap.h"
#include "base/array.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ONE ((double)((uint64_t)1 << 32)) /* a token */

struct rule {
	char name[TBF_NAME];
	char *pattern; /* NULL: everything */
	double rate;
	uint64_t generation;
	struct rule *next;
};

struct class
{
	char *key;
	const struct rule *rule;
	/* of the rule, and of the list, when the class last matched them */
	uint64_t generation, sequence;
	double rate;
	double tokens;
	weir_time checked;
	uint64_t serial; /* order of the last check: breaks ties */
	uint32_t queued;
};

struct tbf {
	double depth;
	struct rule *rules; /* in order; the default is last */
	uint64_t sequence, generation, serial;
	struct class *classes;
	uint32_t n, room;
	uint32_t *place;
	struct heap heap;
};

/* ---- rules */

static bool good_name(const char *name)
{
	size_t len = strlen(name);

	return len >= 1 && len < TBF_NAME &&
	       strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
		       len;
}

static int add_rule(
	struct tbf *t, struct rule **at, const char *name, const char *pattern, double rate)
{
	struct rule *r = calloc(1, sizeof(*r));

	if (r && pattern)
		r->pattern = strdup(pattern);
	if (!r || (pattern && !r->pattern)) {
		free(r);
		return -ENOMEM;
	}
	memcpy(r->name, name, strlen(name));
	r->rate = rate;
	r->generation = ++t->generation;
	r->next = *at;
	*at = r;
	t->sequence++;
	return 0;
}

int tbf_new(unsigned depth, double default_rate, struct tbf **ret)
{
	struct tbf *t;
	int r;

	if (default_rate != 0 && !(default_rate > 0))
		return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->depth = (depth ? depth : TBF_DEPTH) * ONE;
	heap_init(&t->heap, NULL);
	r = add_rule(t, &t->rules, "default", NULL, default_rate > 0 ? default_rate : TBF_DEFAULT);
	if (r) {
		free(t);
		return r;
	}
	*ret = t;
	return 0;
}

static void free_rule(struct rule *r)
{
	free(r->pattern);
	free(r);
}

void tbf_free(struct tbf *t)
{
	if (!t)
		return;
	for (struct rule *r = t->rules, *next; r; r = next) {
		next = r->next;
		free_rule(r);
	}
	for (uint32_t i = 0; i < t->n; i++)
		free(t->classes[i].key);
	free(t->classes);
	free(t->place);
	heap_free(&t->heap);
	free(t);
}

static struct rule **find(struct tbf *t, const char *name)
{
	struct rule **at = &t->rules;

	while (*at && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	return at;
}

int tbf_start(struct tbf *t, const char *name, const char *pattern, double rate, const char *before)
{
	struct rule **at = before ? find(t, before) : &t->rules;

	if (!good_name(name) || !(rate > 0) || strspn(pattern, " ") == strlen(pattern))
		return -EINVAL;
	if (*find(t, name))
		return -EEXIST;
	return *at ? add_rule(t, at, name, pattern, rate) : -ENOENT;
}

int tbf_change(struct tbf *t, const char *name, double rate)
{
	struct rule *r = *find(t, name);

	if (!(rate > 0))
		return -EINVAL;
	if (!r)
		return -ENOENT;
	r->rate = rate;
	r->generation = ++t->generation;
	return 0;
}

int tbf_stop(struct tbf *t, const char *name)
{
	struct rule **at = find(t, name), *r = *at;

	if (!r)
		return 0;
	if (!r->pattern)
		return -EPERM;
	*at = r->next;
	for (uint32_t i = 0; i < t->n; i++) {
		/* the class searches for a rule at its next arrival */
		if (t->classes[i].rule == r)
			t->classes[i].rule = NULL;
	}
	free_rule(r);
	return 0;
}

/* Match one word of a pattern, which ends at a space or the end. For '*', backtrack to the last
 * one. */
static bool fits(const char *word, const char *key)
{
	const char *star = NULL, *mark = NULL;

	while (*key) {
		if (*word == '*') {
			star = ++word;
			mark = key;
		} else if (*word && *word != ' ' && *word == *key) {
			word++;
			key++;
		} else if (star) {
			word = star;
			key = ++mark;
		} else {
			return false;
		}
	}
	while (*word == '*')
		word++;
	return *word == '\0' || *word == ' ';
}

static const struct rule *match(const struct tbf *t, const char *key)
{
	for (const struct rule *r = t->rules;; r = r->next) {
		const char *word = r->pattern;

		if (!word)
			return r;
		while (*word) {
			size_t len = strcspn(word, " ");

			if (len && fits(word, key))
				return r;
			word += len + (word[len] == ' ');
		}
	}
}

const char *tbf_match(const struct tbf *t, const char *key, double *ret_rate)
{
	const struct rule *r = match(t, key);

	*ret_rate = r->rate;
	return r->name;
}

unsigned tbf_depth(const struct tbf *t)
{
	return (unsigned)(t->depth / ONE);
}

/* ---- classes */

static int more_classes(struct tbf *t)
{
	uint32_t room = t->room ? 2 * t->room : 16;

	if (array_resize(&t->classes, room) < 0 || array_resize(&t->place, room) < 0)
		return -ENOMEM;
	t->heap.place = t->place;
	if (heap_reserve(&t->heap, room))
		return -ENOMEM;
	t->room = room;
	return 0;
}

static int64_t class_of(struct tbf *t, weir_time now, const char *key)
{
	char *copy;

	for (uint32_t i = 0; i < t->n; i++) {
		if (strcmp(t->classes[i].key, key) == 0)
			return i;
	}
	if (t->n == t->room && more_classes(t))
		return -ENOMEM;
	copy = strdup(key);
	if (!copy)
		return -ENOMEM;
	t->classes[t->n] = (struct class){.key = copy, .checked = now};
	t->place[t->n] = HEAP_NOWHERE;
	return t->n++;
}

/* Find the class's rule again if a rule was started, or its own stopped or changed; then fill the
 * bucket. */
static void renew(struct tbf *t, struct class *c, weir_time now)
{
	if (!c->rule || c->sequence != t->sequence)
		c->rule = match(t, c->key);
	c->sequence = t->sequence;
	if (c->generation == c->rule->generation)
		return;
	c->generation = c->rule->generation;
	c->rate = c->rule->rate;
	c->tokens = t->depth;
	c->checked = now;
}

static double tokens_at(const struct tbf *t, const struct class *c, weir_time now)
{
	if (isinf(c->rate))
		return t->depth;
	return fmin(t->depth,
		c->tokens + c->rate * (double)(now - c->checked) * (ONE / (double)WEIR_SEC));
}

/* Return the time at which the class has, or will have, its first token. */
static weir_time deadline(const struct class *c)
{
	double wait = (ONE - c->tokens) / c->rate * ((double)WEIR_SEC / ONE);

	return c->checked + (weir_time)ceil(wait - 1e-6); /* undo a ns of rounding */
}

static void stand(struct tbf *t, uint32_t i)
{
	struct class *c = &t->classes[i];
	struct heap_item item = {isinf(c->rate) ? c->checked : deadline(c), c->serial, i};

	if (t->place[i] == HEAP_NOWHERE)
		(void)heap_push(&t->heap, item); /* cannot fail: there is room */
	else
		heap_move(&t->heap, t->place[i], item.key, item.serial);
}

int64_t tbf_submit(struct tbf *t, weir_time now, const char *key)
{
	int64_t i = class_of(t, now, key);
	struct class *c;

	if (i < 0)
		return i;
	c = &t->classes[i];
	renew(t, c, now);
	if (c->queued++ == 0)
		c->serial = ++t->serial;
	stand(t, (uint32_t)i);
	return i;
}

bool tbf_next(struct tbf *t, weir_time now, uint32_t *ret_class)
{
	const struct heap_item *first = heap_min(&t->heap);
	struct class *c;

	if (!first || first->key > now)
		return false;
	*ret_class = (uint32_t)first->value;
	c = &t->classes[*ret_class];
	c->tokens = fmax(0, tokens_at(t, c, now) - ONE);
	c->checked = now;
	c->serial = ++t->serial;
	if (--c->queued == 0)
		heap_remove(&t->heap, t->place[*ret_class]);
	else
		stand(t, *ret_class);
	return true;
}

weir_time tbf_wakeup(const struct tbf *t, weir_time now)
{
	const struct heap_item *first = heap_min(&t->heap);

	if (!first)
		return WEIR_NEVER;
	return first->key > now ? first->key : now;
}
