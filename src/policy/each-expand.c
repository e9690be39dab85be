/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * each-expand: make the tenants of templates, and decide which of their mins fit.
 *
 * METHOD  Expand: the tenants are written into a new array behind their template's `others`, by name, so that a list of
 *         tenants shows them there; indices are moved along. O(n log n).
 *         Fit: the tenants that may lose their min are put in order. They are tried all at once; if the limits do not pass the
 *         check, the first half is decided, then the other one, and so on: in the end each has its min that fits beside those
 *         before it. More mins never make a policy valid, so a min is not tried that is at least one that was refused, at
 *         the same place. O(n log n) for each refused min that is smaller than those before it.
 */
#include "policy/each.h"
#include "policy/impl.h"
#include "policy/index.h"
#include "base/same.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RAW 600 /* bytes of a pattern: every byte of the longest name with an escape */

struct add { /* a tenant to be made */
	char name[POLICY_EACH_NAME];
	int of;       /* the template's tenant */
	size_t order; /* in the list */
	size_t lead;  /* the first of its name in the list */
	bool taken;
};

/* ---- which */

static int by_name(const void *a, const void *b)
{
	const struct add *x = a, *y = b;
	int c = x->of != y->of ? (x->of < y->of ? -1 : 1) : strcmp(x->name, y->name);

	return c ? c : (x->order < y->order ? -1 : x->order > y->order);
}

static int by_order(const void *a, const void *b)
{
	const struct add *x = a, *y = b;

	return x->order < y->order ? -1 : x->order > y->order;
}

/* Compare the fields by which the template's tenants differ. */
static bool same_sender(unsigned by, const struct weir_who *a, const struct weir_who *b)
{
	return (!(by & POLICY_BY_EXPORT) || same_text(a->export_, b->export_)) &&
	       (!(by & POLICY_BY_CLIENT) || same_text(a->client, b->client)) &&
	       (!(by & POLICY_BY_UID) || same_text(a->uid, b->uid)) &&
	       (!(by & POLICY_BY_TLS) || same_text(a->tls, b->tls));
}

static size_t find_adds(
	const struct weir_policy *p, const struct policy_instance *list, size_t n, struct add *ret)
{
	size_t many = 0;

	for (size_t i = 0; i < n; i++) {
		struct add *a = &ret[many];

		a->of = policy_match_owner(p, &list[i].who);
		if (a->of < 0 || !p->tenants[a->of].each ||
			(list[i].gone && p->tenants[a->of].each->by & POLICY_BY_EXPORT) ||
			!policy_each_name(p->tenants[a->of].each, &list[i].who, a->name))
			continue;
		a->order = a->lead = i;
		many++;
	}
	return many;
}

/* Take the first of each name, in the order of the list, until the template has enough. Return how many. */
static size_t take_instances(const struct weir_policy *p, const struct policy_instance *list,
	struct add *adds, size_t n, uint32_t *made)
{
	size_t taken = 0;

	qsort(adds, n, sizeof(*adds), by_name);
	for (size_t i = 1; i < n; i++)
		if (adds[i].of == adds[i - 1].of && strcmp(adds[i].name, adds[i - 1].name) == 0)
			adds[i].lead = adds[i - 1].lead;
	qsort(adds, n, sizeof(*adds), by_order);
	for (size_t i = 0; i < n; i++) {
		const struct weir_each *e = p->tenants[adds[i].of].each;

		if (adds[i].lead != adds[i].order || made[adds[i].of] >= e->max_tenants ||
			p->n_tenants + taken >= POLICY_TENANTS_MAX)
			continue;
		adds[i].taken = true;
		made[adds[i].of]++;
		taken++;
	}
	qsort(adds, n, sizeof(*adds), by_name);
	return taken;
}

/* ---- one of them */

/* Write the text as a pattern that fits only it. */
static const char *literal(struct policy_reading *r, const char *text)
{
	char to[RAW];
	size_t n = 0;

	for (; *text && n + 3 < sizeof(to); text++) {
		if (strchr("*?[\\", *text))
			to[n++] = '\\';
		to[n++] = *text;
	}
	to[n] = '\0';
	return policy_string(r, to);
}

/* The match of the template that fits, with the sender's values in place of the patterns. */
static struct weir_match *match_of(
	struct policy_reading *r, const struct weir_tenant *t, const struct weir_who *who)
{
	struct weir_match *m = policy_alloc(r, sizeof(*m));
	unsigned k = 0, by = t->each->by;

	while (k + 1 < t->n_match && !policy_match_fits(&t->match[k], who))
		k++;
	if (!m)
		return NULL;
	*m = t->match[k];
	if (by & POLICY_BY_EXPORT)
		m->export_ = literal(r, who->export_);
	if (by & POLICY_BY_CLIENT)
		m->client = policy_string(r, who->client);
	if (by & POLICY_BY_UID)
		m->uid = policy_string(r, who->uid);
	if (by & POLICY_BY_TLS)
		m->tls = literal(r, who->tls);
	return m;
}

static const struct policy_class *class_of(
	const struct weir_policy *p, const struct weir_each *e, const struct weir_who *who)
{
	int i = e->by & POLICY_BY_EXPORT ? policy_index_export(p, who->export_) : -1;

	return i >= 0 && p->exports[i].class_ ? policy_class_find(p, p->exports[i].class_) : NULL;
}

static struct weir_tenant make(struct policy_reading *r, const struct weir_policy *from,
	const struct add *a, const struct weir_who *who)
{
	const struct weir_tenant *above = &from->tenants[a->of];
	const struct policy_class *c = class_of(from, above->each, who);
	struct weir_tenant t = above->each->leaf;

	if (c) { /* in place of the template's class, and before its keys */
		t = (struct weir_tenant){.first_child = -1, .next_sibling = -1, .weight = 1};
		policy_class_lay(&t, &above->each->own, above->each->given);
		policy_class_lay(&t, &c->knobs, c->given);
		t.class_ = c->name;
	}
	t.made = true;
	t.at = above->each->at;
	t.name = policy_string(r, a->name);
	t.path = policy_tenant_path(r, a->of, a->name);
	t.match = match_of(r, above, who);
	t.n_match = 1;
	return t;
}

/* ---- the new array */

struct move {
	const struct weir_policy *from; /* as it was */
	struct weir_tenant *to;
	size_t n;
	int *place; /* by old index: the new one */
};

/* Write the tenants of a template behind its `others`. Return how many adds were used. */
static size_t put_made(struct policy_reading *r, struct move *m, const struct add *adds, size_t n,
	struct policy_instance *list, int others)
{
	int of = m->from->tenants[others].parent, last = (int)m->n - 1;
	size_t i;

	for (i = 0; i < n && adds[i].of == of; i++) {
		const struct policy_instance *who = &list[adds[i].order];
		size_t lead = adds[i].lead;

		if (adds[i].taken && !r->no_memory) {
			m->to[m->n] = make(r, m->from, &adds[i], &who->who);
			m->to[m->n].parent = of;
			m->to[m->n].next_sibling = -1;
			list[adds[i].order].tenant = (int)m->n;
			m->to[last].next_sibling = -2 - (int)m->n; /* a new index, not an old one */
			last = (int)m->n++;
		} else if (same_sender(m->from->tenants[of].each->by, &who->who, &list[lead].who)) {
			list[adds[i].order].tenant = list[lead].tenant;
		}
	}
	m->to[last].next_sibling = m->from->tenants[others].next_sibling;
	return i;
}

static int moved(const struct move *m, int old)
{
	return old >= 0 ? m->place[old] : old < -1 ? -2 - old : -1;
}

static void put_all(struct policy_reading *r, struct move *m, const struct add *adds, size_t n,
	struct policy_instance *list)
{
	size_t used = 0;

	for (size_t i = 0; i < m->from->n_tenants; i++) {
		m->place[i] = (int)m->n;
		m->to[m->n++] = m->from->tenants[i];
		if (m->from->tenants[i].others)
			used += put_made(r, m, adds + used, n - used, list, (int)i);
	}
	for (size_t i = 0; i < m->n; i++) {
		struct weir_tenant *t = &m->to[i];

		t->parent = moved(m, t->parent);
		t->first_child = moved(m, t->first_child);
		t->next_sibling = moved(m, t->next_sibling);
	}
}

static void count_made(struct policy_reading *r, struct move *m, const uint32_t *made)
{
	for (size_t i = 0; i < m->from->n_tenants; i++) {
		struct weir_tenant *t = &m->to[m->place[i]];
		struct weir_each *e = made[i] ? policy_each_copy(r, t->each) : NULL;

		if (!e)
			continue;
		e->n_made = made[i];
		t->each = e;
	}
}

static void replace(struct policy_reading *r, struct move *m)
{
	struct weir_policy *p = r->policy;

	for (size_t i = 0; i < p->n_labs; i++)
		p->labs[i].tenant = (size_t)m->place[p->labs[i].tenant];
	p->default_tenant = moved(m, p->default_tenant);
	free(p->tenants);
	p->tenants = m->to;
	p->n_tenants = m->n;
	m->to = NULL;
	policy_index_make(r);
}

int policy_each_expand(struct weir_policy *p, struct policy_instance *list, size_t n)
{
	struct policy_reading r = {.policy = p};
	struct add *adds = policy_scratch(&r, n, sizeof(*adds));
	uint32_t *made = policy_scratch(&r, p->n_tenants, sizeof(*made));
	struct move m = {.from = p, .place = policy_scratch(&r, p->n_tenants, sizeof(*m.place))};
	size_t many = 0, taken = 0;

	for (size_t i = 0; i < n; i++)
		list[i].tenant = -1;
	if (!r.no_memory) {
		many = find_adds(p, list, n, adds);
		taken = take_instances(p, list, adds, many, made);
	}
	if (taken && (m.to = policy_scratch(&r, p->n_tenants + taken, sizeof(*m.to)))) {
		put_all(&r, &m, adds, many, list);
		count_made(&r, &m, made);
		if (!r.no_memory)
			replace(&r, &m);
	}
	free(m.to);
	free(m.place);
	free(adds);
	free(made);
	return r.no_memory ? -ENOMEM : 0;
}

/* ---- mins */

struct candidate { /* for a min */
	int tenant;
	unsigned n_min;
	int reach;
	struct weir_bounds need;
	const char *why; /* its min was refused; NULL: not yet */
};

struct fit {
	struct policy_reading r;
	const struct weir_policy *was;
	bool strict;
	struct candidate *order;
	size_t n;
	size_t *refused; /* indices of `order`, of those that were tried */
	size_t n_refused;
};

/* Return the first error of the limits, or of those of one tenant; NULL: there is none. */
static const char *wrong(struct fit *f, const struct weir_tenant *only)
{
	f->r.remarks->n_errors = f->r.remarks->n_warnings = 0;
	if (only)
		policy_check_leaf(&f->r, only);
	else
		policy_check_limits(&f->r);
	return f->r.remarks->n_errors ? f->r.remarks->errors[0].text : NULL;
}

static void turn(struct fit *f, const struct candidate *c, const char *why)
{
	struct weir_tenant *t = &f->r.policy->tenants[c->tenant];

	t->n_min = why ? 0 : c->n_min;
	t->min_off = why;
}

static bool at_least(const struct weir_bounds *a, const struct weir_bounds *b)
{
	for (unsigned s = 0; s < WEIR_LIMITS; s++)
		if (a->min[s] < b->min[s])
			return false;
	return true;
}

/* Return why a min that counts at the same nodes, and is no larger, was refused. */
static const char *refused_before(const struct fit *f, const struct candidate *c)
{
	const struct weir_tenant *t = f->r.policy->tenants;

	for (size_t i = 0; i < f->n_refused; i++) {
		const struct candidate *other = &f->order[f->refused[i]];

		if (t[c->tenant].parent == t[other->tenant].parent && c->reach == other->reach &&
			at_least(&c->need, &other->need))
			return other->why;
	}
	return NULL;
}

/* Decide on a part of the order: those before it are decided, those after it are off. */
static void admit(struct fit *f, size_t from, size_t to)
{
	size_t middle = from + (to - from) / 2;
	const char *why;

	for (size_t i = from; i < to; i++)
		turn(f, &f->order[i], refused_before(f, &f->order[i]));
	why = wrong(f, NULL);
	if (!why)
		return;
	if (to - from == 1)
		why = f->order[from].why = policy_string(&f->r, why);
	for (size_t i = from; i < to && why; i++)
		turn(f, &f->order[i], why);
	if (to - from == 1) {
		f->refused[f->n_refused++] = from;
		return;
	}
	admit(f, from, middle);
	admit(f, middle, to);
}

/* ---- candidates */

/* Return the tenant as it was; NULL: it is new. */
static const struct weir_tenant *before(
	const struct fit *f, const struct weir_tenant *t, const struct weir_who *who)
{
	int i = !f->was ? -1
		: who   ? weir_policy_match(f->was, who)
			: weir_policy_find(f->was, t->path);

	return i >= 0 && !f->was->tenants[i].others ? &f->was->tenants[i] : NULL;
}

/* Return true if the change has to leave the tenant its min. */
static bool must_stay(const struct fit *f, const struct weir_tenant *was, const char *own_fault)
{
	if (!f->strict || !was)
		return false;
	if (was->min_off)
		return own_fault && strcmp(own_fault, was->min_off) != 0;
	return was->n_min || !was->n_min_by_size; /* the size was not known */
}

/* Add the tenant if its min may be taken away, and it is one of those that had it, or of the others. */
static void add_candidate(
	struct fit *f, bool *seen, int tenant, const struct weir_who *who, bool had)
{
	struct weir_tenant *t = &f->r.policy->tenants[tenant];
	const struct weir_tenant *was = before(f, t, who);
	struct candidate *c = &f->order[f->n];
	struct weir_bounds old = {{0}, {0}};
	const char *fault;

	if (seen[tenant] || !t->n_min)
		return;
	*c = (struct candidate){.tenant = tenant, .n_min = t->n_min};
	policy_bounds_leaf(t, &c->need);
	if (was)
		policy_bounds_leaf(was, &old);
	if (at_least(&old, &c->need) != had)
		return;
	seen[tenant] = true;
	fault = wrong(f, t);
	if (must_stay(f, was, fault))
		return;
	if (fault) {
		fault = policy_string(&f->r, fault);
		if (fault)
			turn(f, c, fault);
		return;
	}
	c->reach = policy_check_reach(f->r.policy, t);
	f->n++;
}

static void add_candidates(struct fit *f, bool *seen, const struct policy_instance *list, size_t n)
{
	for (int had = 1; had >= 0; had--) {
		for (size_t i = 0; i < n; i++)
			if (list[i].tenant >= 0)
				add_candidate(f, seen, list[i].tenant, &list[i].who, had);
		for (size_t i = 0; i < f->r.policy->n_tenants; i++)
			if (f->r.policy->tenants[i].n_min_by_size)
				add_candidate(f, seen, (int)i, NULL, had);
	}
}

int policy_each_fit(struct weir_policy *p, const struct policy_instance *list, size_t n,
	const struct weir_policy *was, bool strict)
{
	struct weir_policy_remarks *remarks = calloc(1, sizeof(*remarks));
	struct fit f = {.r = {.policy = p, .remarks = remarks}, .was = was, .strict = strict};
	bool *seen = policy_scratch(&f.r, p->n_tenants, sizeof(*seen));

	f.order = policy_scratch(&f.r, p->n_tenants, sizeof(*f.order));
	f.refused = policy_scratch(&f.r, p->n_tenants, sizeof(*f.refused));
	if (remarks && !f.r.no_memory) {
		add_candidates(&f, seen, list, n);
		if (f.n && wrong(&f, NULL)) {
			for (size_t i = 0; i < f.n; i++)
				turn(&f, &f.order[i], "");
			if (!wrong(&f,
				    NULL)) /* else the check reports the fault, which is elsewhere */
				admit(&f, 0, f.n);
		}
	}
	free(f.order);
	free(f.refused);
	free(seen);
	free(remarks);
	return !remarks || f.r.no_memory ? -ENOMEM : 0;
}
