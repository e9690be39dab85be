/* SPDX-License-Identifier: BSD-3-Clause */
/* show: the value of a key, as a file has it. */
#include "policy/override/impl.h"
#include "policy/plan.h"
#include "policy/by-size.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

struct text {
	char *at;
	size_t used;
};

__attribute__((format(printf, 2, 3))) static void put_text(struct text *t, const char *fmt, ...)
{
	size_t room = POLICY_OVERRIDE_TEXT - t->used;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(t->at + t->used, room, fmt, args);
	va_end(args);
	t->used += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

/* The limits of a tenant that are shown: those that are fixed, then those by size. */
struct shown {
	const struct weir_limit *fixed;
	unsigned n_fixed;
	const struct weir_by_size *by_size;
	unsigned n_by_size;
	bool burst;
};

static unsigned slot_of(const struct shown *s, unsigned i)
{
	return i < s->n_fixed ? weir_limit_slot(s->fixed[i].unit, s->fixed[i].ops)
			      : weir_limit_slot(s->by_size[i - s->n_fixed].unit,
					s->by_size[i - s->n_fixed].ops);
}

/* Return true if limit i is shown: not one that was made of one by size, nor one without a burst. */
static bool is_shown(const struct shown *s, unsigned i)
{
	for (unsigned k = 0; i < s->n_fixed && k < s->n_by_size; k++)
		if (slot_of(s, s->n_fixed + k) == slot_of(s, i))
			return false;
	if (!s->burst)
		return true;
	return (i < s->n_fixed ? s->fixed[i].burst_rate : s->by_size[i - s->n_fixed].burst_rate) >
	       0;
}

static void put_one(struct text *t, const struct shown *s, unsigned i)
{
	const struct weir_by_size *by = i < s->n_fixed ? NULL : &s->by_size[i - s->n_fixed];
	const struct weir_limit *l = by ? NULL : &s->fixed[i];
	enum weir_unit unit = by ? by->unit : l->unit;
	char rate[32], span[32], all[POLICY_SIZE_TEXT];

	if (by && !s->burst) {
		put_text(t, "%s", policy_size_show(by, all));
	} else if (!s->burst) {
		put_text(t, "%s",
			weir_units_show_rate(
				(struct weir_rate){l->rate, unit}, rate, sizeof(rate)));
	} else {
		weir_units_show_rate((struct weir_rate){by ? by->burst_rate : l->burst_rate, unit},
			rate, sizeof(rate));
		put_text(t, "%s for %s", rate,
			weir_units_show_time(
				by ? by->burst_for : l->burst_for, span, sizeof(span)));
	}
}

static unsigned count(const struct shown *s, int class_)
{
	unsigned found = 0;

	for (unsigned i = 0; i < s->n_fixed + s->n_by_size; i++)
		found += is_shown(s, i) && (class_ < 0 || slot_of(s, i) % 3 == (unsigned)class_);
	return found;
}

/* Write `rate`, `[rate, rate]`, or by class `{all: …, reads: …}`. */
static void put_limits(struct text *t, const struct shown *s)
{
	static const char *const words[] = {"all", "reads", "writes"};
	unsigned total = count(s, -1);
	bool classes = total != count(s, 0), first_class = true;

	if (!total)
		put_text(t, "none");
	put_text(t, "%s", classes ? "{" : "");
	for (int c = 0; c < 3; c++) {
		unsigned many = count(s, c), n = 0;

		if (!many)
			continue;
		if (classes)
			put_text(t, "%s%s: ", first_class ? "" : ", ", words[c]);
		first_class = false;
		put_text(t, "%s", many > 1 ? "[" : "");
		for (unsigned i = 0; i < s->n_fixed + s->n_by_size; i++)
			if (is_shown(s, i) && slot_of(s, i) % 3 == (unsigned)c) {
				put_text(t, "%s", n++ ? ", " : "");
				put_one(t, s, i);
			}
		put_text(t, "%s", many > 1 ? "]" : "");
	}
	put_text(t, "%s", classes ? "}" : "");
}

static void put_tenant(struct text *t, const struct weir_tenant *of, enum what what)
{
	struct shown min = {of->min, of->n_min, of->min_by_size, of->n_min_by_size, false};
	struct shown max = {of->max, of->n_max, of->max_by_size, of->n_max_by_size, what == BURST};
	char slo[POLICY_SLO_TEXT];

	if (what == WEIGHT)
		put_text(t, "%.12g", of->weight);
	else if (what == MIN || what == MAX || what == BURST)
		put_limits(t, what == MIN ? &min : &max);
	else if (of->slo_percentile > 0)
		put_text(t, "%s", policy_plan_show_slo(of, slo));
	else
		put_text(t, "none");
}

static void put_resource(struct text *t, const struct weir_resource *of, enum what what)
{
	char a[32], b[32];

	if (what == DEPTH) {
		put_text(t, of->depth_bytes ? "{requests: " : "");
		put_text(t, of->depth > 0 ? "%.6g" : "auto", of->depth);
		if (of->depth_bytes)
			put_text(t, ", bytes: %s}",
				weir_units_show_size(of->depth_bytes, a, sizeof(a)));
		return;
	}
	weir_units_show_rate(of->capacity[0], a, sizeof(a));
	weir_units_show_rate(of->capacity[1], b, sizeof(b));
	if (of->capacity[0].per_second > 0 && of->capacity[1].per_second > 0)
		put_text(t, "[%s, %s]", a, b);
	else
		put_text(t, "%s",
			of->capacity[0].per_second > 0   ? a
			: of->capacity[1].per_second > 0 ? b
							 : "auto");
}

void policy_override_show_tenant(
	const struct weir_tenant *t, const char *key, char ret_text[POLICY_OVERRIDE_TEXT])
{
	struct text to = {ret_text, 0};

	ret_text[0] = '\0';
	put_tenant(&to, t, policy_override_what(key));
}

int policy_override_show(
	const struct weir_policy *p, const char *key, char ret_text[POLICY_OVERRIDE_TEXT])
{
	struct text t = {ret_text, 0};
	struct target of;

	if (policy_override_find(p, key, &of, NULL) < 0)
		return -ENOENT;
	ret_text[0] = '\0';
	if (of.what == ENFORCE)
		put_text(&t, "%s", p->enforce ? "true" : "false");
	else if (of.what >= DEPTH)
		put_resource(&t, &p->resources[of.index], of.what);
	else
		put_tenant(&t, &p->tenants[of.index], of.what);
	return 0;
}
