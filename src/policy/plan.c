/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan: an slo, and the keys that only a planner uses: links of the network, a tenant's trace and path.
 *
 *   slo     pN [reads | writes] < time [over time]
 *   links   [{name, rate, levels, overhead, mtu, device, dir, dscp}, …]
 *   path    names of one resource and of links: those before the resource carry requests, those after it replies
 *   together [a, b] or [[a, b], …]: tenants whose bursts come together
 */
#include "policy/impl.h"
#include "policy/plan.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const link_keys[] = {
	"name", "rate", "levels", "overhead", "mtu", "device", "dir", "dscp", NULL};

/* ---- slo */

#define SLO_FORM "must be a percentile and a time, as in p99.9 < 10ms"

/* Cut the spaces at both ends of a word of `len` bytes. */
static const char *trimmed(const char *text, size_t *len)
{
	size_t skip = strspn(text, " ");

	skip = skip < *len ? skip : *len;
	text += skip;
	*len -= skip;
	while (*len && text[*len - 1] == ' ')
		--*len;
	return text;
}

/* Take " reads" or " writes" off the end of the left side. */
static uint8_t slo_ops(const char *text, size_t *len)
{
	static const char *const words[] = {" reads", " writes"};
	static const uint8_t ops[] = {WEIR_OPS_READS, WEIR_OPS_WRITES};

	for (int i = 0; i < 2; i++) {
		size_t n = strlen(words[i]);

		if (*len > n && memcmp(text + *len - n, words[i], n) == 0) {
			*len -= n;
			trimmed(text, len);
			return ops[i];
		}
	}
	return 0;
}

static bool slo_percentile(
	struct policy_reading *r, yamldoc_node n, const char *text, size_t len, double *ret)
{
	char number[24];
	struct weir_err err;

	if (len == 3 && memcmp(text, "max", 3) == 0) {
		policy_refuse(r, n,
			"no finite time can be promised for the maximum; write a high "
			"percentile, as in p99.99 < 10ms");
		return false;
	}
	if (len < 2 || text[0] != 'p' || len > sizeof(number) || text[1] < '0' || text[1] > '9') {
		policy_refuse(r, n, SLO_FORM);
		return false;
	}
	memcpy(number, text + 1, len - 1);
	number[len - 1] = '\0';
	if (weir_units_count(number, ret, &err) < 0) {
		policy_refuse(r, n, "%s", err.text);
		return false;
	}
	if (!(*ret > 0 && *ret < 100)) {
		policy_refuse(r, n, "the percentile must be between 0 and 100, both excluded");
		return false;
	}
	return true;
}

/* Read a time of `len` bytes, which is `what` in messages. */
static bool slo_time(struct policy_reading *r, yamldoc_node n, const char *text, size_t len,
	const char *what, weir_time *ret)
{
	struct weir_err err;
	char word[64];

	text = trimmed(text, &len);
	snprintf(word, sizeof(word), "%.*s", (int)(len < sizeof(word) ? len : sizeof(word)), text);
	if (weir_units_time(word, ret, &err) < 0) {
		policy_refuse(r, n, "%s", err.text);
		return false;
	}
	if (*ret <= 0) {
		policy_refuse(r, n, "the %s must be more than 0", what);
		return false;
	}
	return true;
}

void policy_plan_read_slo(struct policy_reading *r, yamldoc_node n, struct weir_tenant *t)
{
	const char *text = yamldoc_text(n), *less = text ? strchr(text, '<') : NULL, *over;
	struct weir_tenant to = {.slo_at = policy_place(r, n)};
	size_t left = less ? (size_t)(less - text) : 0, right;

	if (!n.id)
		return;
	text = less ? trimmed(text, &left) : text;
	if (!left) {
		policy_refuse(r, n, SLO_FORM);
		return;
	}
	to.slo_ops = slo_ops(text, &left);
	if (!slo_percentile(r, n, text, left, &to.slo_percentile))
		return;
	over = strstr(++less, " over ");
	right = over ? (size_t)(over - less) : strlen(less);
	if (!slo_time(r, n, less, right, "time", &to.slo_latency))
		return;
	if (over && !slo_time(r, n, over + 6, strlen(over + 6), "window", &to.slo_window))
		return;
	policy_class_lay(t, &to, POLICY_GIVEN_SLO);
}

char *policy_plan_show_slo(const struct weir_tenant *t, char buf[POLICY_SLO_TEXT])
{
	const char *kind = t->slo_ops == WEIR_OPS_READS    ? " reads"
			   : t->slo_ops == WEIR_OPS_WRITES ? " writes"
							   : "";
	char latency[32], window[32];

	weir_units_show_time(t->slo_latency, latency, sizeof(latency));
	weir_units_show_time(t->slo_window, window, sizeof(window));
	snprintf(buf, POLICY_SLO_TEXT, "p%.12g%s < %s%s%s", t->slo_percentile, kind, latency,
		t->slo_window ? " over " : "", t->slo_window ? window : "");
	return buf;
}

/* ---- links */

static bool name_taken(const struct weir_policy *p, const char *name)
{
	return policy_plan_stage(p, name, &(struct policy_stage){0});
}

/* Read the device and the direction that a link is. */
static void read_device(struct policy_reading *r, yamldoc_node n, struct policy_link *to)
{
	static const char *const words[] = {"in", "out", NULL};
	const char *name = policy_get_string(r, n, "device");
	int dir;

	to->device = -1;
	if (!name && !yamldoc_has(n, "dir"))
		return;
	to->device = name ? policy_net_device(r->policy, name) : -1;
	if (policy_took(r, yamldoc_choice(n, "dir", words, &dir, &r->err)) == 0)
		to->dir = (enum policy_net_dir)dir;
	else if (!yamldoc_has(n, "dir"))
		policy_refuse(r, n, "a link with a device needs 'dir', in or out");
	if (!name)
		policy_refuse(r, n, "a link with a direction needs a device");
	else if (to->device < 0)
		policy_refuse(r, yamldoc_get(n, "device"), "no device '%s' in 'network'", name);
	else if (r->policy->network->devices[to->device].rate > 0 &&
		 to->rate > r->policy->network->devices[to->device].rate)
		policy_refuse(r, yamldoc_get(n, "rate"), "is above the rate of '%s'", name);
}

/* Read the marks of priorities: a list of numbers. */
static void read_dscp(struct policy_reading *r, yamldoc_node list, struct policy_link *to)
{
	if (!list.id)
		return;
	if (to->device < 0 || to->dir != POLICY_NET_OUT || yamldoc_kind(list) != YAMLDOC_LIST ||
		yamldoc_size(list) > POLICY_LINK_LEVELS) {
		policy_refuse(r, list,
			"must be a list of at most %d numbers, of a link with a device and 'dir: "
			"out'",
			POLICY_LINK_LEVELS);
		return;
	}
	for (size_t i = 0; i < yamldoc_size(list); i++) {
		const char *text = yamldoc_text(yamldoc_at(list, i));
		char *end;
		unsigned long v = text ? strtoul(text, &end, 10) : 64;

		if (!text || *end || !*text || v > 63) {
			policy_refuse(r, yamldoc_at(list, i), "must be a DSCP, from 0 to 63");
			return;
		}
		to->dscp[to->n_dscp++] = (uint8_t)v;
	}
}

/* Return false if it was refused. */
static bool read_link(struct policy_reading *r, yamldoc_node n, struct policy_link *to)
{
	size_t errors = r->remarks->n_errors;
	int64_t levels = POLICY_LINK_LEVELS;
	struct weir_rate rate = {0, WEIR_UNIT_BYTES};

	*to = (struct policy_link){.overhead = POLICY_LINK_OVERHEAD, .at = policy_place(r, n)};
	if (!policy_keys(r, n, link_keys))
		return false;
	to->name = policy_get_string(r, n, "name");
	if (!yamldoc_has(n, "name"))
		policy_refuse(r, n, "a link needs a name");
	else if (to->name && name_taken(r->policy, to->name))
		policy_refuse(r, yamldoc_get(n, "name"),
			"a second stage '%s': links and resources have names of their own",
			to->name);
	if (policy_took(r, yamldoc_rate(n, "rate", &rate, &r->err)) == -ENOENT)
		policy_refuse(r, n, "a link needs a rate");
	else if (rate.unit != WEIR_UNIT_BYTES || !(rate.per_second >= 1))
		policy_refuse(r, yamldoc_get(n, "rate"),
			"must be a rate of bytes or bits, at least 1 B/s");
	to->rate = rate.per_second;
	policy_took(r, yamldoc_int(n, "levels", 1, 64, &levels, &r->err));
	to->levels = (unsigned)levels;
	policy_took(r, yamldoc_size_of(n, "overhead", &to->overhead, &r->err));
	if (policy_took(r, yamldoc_size_of(n, "mtu", &to->mtu, &r->err)) == 0 && !to->mtu)
		policy_refuse(r, yamldoc_get(n, "mtu"), "must be more than 0");
	read_device(r, n, to);
	read_dscp(r, yamldoc_get(n, "dscp"), to);
	return r->remarks->n_errors == errors && !r->no_memory;
}

void policy_plan_read_links(struct policy_reading *r, yamldoc_node links)
{
	struct weir_policy *p = r->policy;

	if (!links.id || policy_took(r, yamldoc_list(links, &r->err)) != 0)
		return;
	p->links = policy_alloc(r, yamldoc_size(links) * sizeof(*p->links));
	for (size_t i = 0; p->links && i < yamldoc_size(links); i++)
		p->n_links += read_link(r, yamldoc_at(links, i), &p->links[p->n_links]);
}

bool policy_plan_stage(const struct weir_policy *p, const char *name, struct policy_stage *ret)
{
	for (size_t i = 0; i < p->n_resources; i++)
		if (strcmp(p->resources[i].name, name) == 0) {
			*ret = (struct policy_stage){false, (uint32_t)i};
			return true;
		}
	for (size_t i = 0; i < p->n_links; i++)
		if (strcmp(p->links[i].name, name) == 0) {
			*ret = (struct policy_stage){true, (uint32_t)i};
			return true;
		}
	return false;
}

double policy_plan_depth(const struct weir_resource *r)
{
	const struct key *k = r->controller ? r->controller->keys : NULL;
	double depth = r->depth;

	for (; k && k->name && r->settings; k++)
		if (strcmp(k->name, "wmax") == 0 && k->type == KEY_NUMBER)
			memcpy(&depth, (const char *)r->settings + k->offset, sizeof(depth));
	return ceil(depth);
}

/* ---- tenants */

static bool read_stage(struct policy_reading *r, yamldoc_node n,
	const struct policy_planned *before, struct policy_stage *ret)
{
	const char *name = NULL;

	if (policy_took(r, yamldoc_as_string(n, &name, &r->err)) != 0)
		return false;
	if (!policy_plan_stage(r->policy, name, ret)) {
		policy_refuse(r, n, "no resource or link '%s'", name);
		return false;
	}
	for (unsigned i = 0; i < before->n_path; i++)
		if (before->path[i].link == ret->link && before->path[i].index == ret->index) {
			policy_refuse(r, n, "'%s' stands twice", name);
			return false;
		}
	return true;
}

static void read_path(struct policy_reading *r, yamldoc_node n, struct policy_planned *to)
{
	struct policy_stage *path;
	unsigned storage = 0;

	to->path_at = policy_place(r, n);
	if (policy_took(r, yamldoc_list(n, &r->err)) != 0)
		return;
	to->path = path = policy_alloc(r, yamldoc_size(n) * sizeof(*path));
	for (size_t i = 0; path && i < yamldoc_size(n); i++) {
		const char *name = yamldoc_text(yamldoc_at(n, i));

		if (name && policy_cluster_elsewhere(r->policy, name)) {
			to->elsewhere = true;
			storage++;
			continue;
		}
		if (!read_stage(r, yamldoc_at(n, i), to, &path[to->n_path]))
			return;
		storage += !path[to->n_path++].link;
	}
	if (storage != 1)
		policy_refuse(r, n, "must have one resource; links may stand before and after it");
	if (to->elsewhere)
		to->n_path = 0;
}

/* Read the trace of a tenant: a file, or {file, tenant}. */
static void read_trace(struct policy_reading *r, yamldoc_node tenant, struct policy_planned *to)
{
	static const char *const keys[] = {"file", "tenant", NULL};
	yamldoc_node n = yamldoc_get(tenant, "trace");

	to->trace_at = policy_place(r, n.id ? n : tenant);
	if (yamldoc_kind(n) != YAMLDOC_MAP) {
		to->trace = policy_get_string(r, tenant, "trace");
		return;
	}
	if (!policy_keys(r, n, keys))
		return;
	to->trace = policy_get_string(r, n, "file");
	to->trace_of = policy_get_string(r, n, "tenant");
	if (!yamldoc_has(n, "file"))
		policy_refuse(r, n, "needs a file");
}

void policy_plan_read_tenant(struct policy_reading *r, yamldoc_node n, struct weir_tenant *t)
{
	yamldoc_node trace = yamldoc_get(n, "trace"), path = yamldoc_get(n, "path");
	struct policy_planned *to;

	if (!trace.id && !path.id)
		return;
	if (yamldoc_has(n, "children") || t->each) {
		policy_refuse(r, trace.id ? trace : path,
			"only a tenant that takes requests has a trace and a path");
		return;
	}
	to = policy_alloc(r, sizeof(*to));
	if (!to)
		return;
	*to = (struct policy_planned){0};
	read_trace(r, n, to);
	if (path.id)
		read_path(r, path, to);
	t->planned = to;
}

/* ---- together */

static void read_member(struct policy_reading *r, yamldoc_node n, unsigned group)
{
	const char *name = NULL;
	struct policy_planned *to;
	struct weir_tenant *t;
	int i;

	if (policy_took(r, yamldoc_as_string(n, &name, &r->err)) != 0)
		return;
	i = weir_policy_find(r->policy, name);
	t = i < 0 ? NULL : &r->policy->tenants[i];
	if (!t)
		policy_refuse(r, n, "no tenant '%s'", name);
	else if (!t->planned || !t->planned->trace)
		policy_refuse(r, n, "tenant '%s' has no trace", name);
	else if (t->planned->together)
		policy_refuse(r, n, "'%s' stands twice", name);
	else if ((to = policy_alloc(r, sizeof(*to)))) {
		*to = *t->planned;
		to->together = group;
		t->planned = to;
	}
}

void policy_plan_read_together(struct policy_reading *r, yamldoc_node n)
{
	bool lists;

	if (!n.id || policy_took(r, yamldoc_list(n, &r->err)) != 0)
		return;
	lists = yamldoc_size(n) && yamldoc_kind(yamldoc_at(n, 0)) == YAMLDOC_LIST;
	for (size_t i = 0; !lists && i < yamldoc_size(n); i++)
		read_member(r, yamldoc_at(n, i), 1);
	for (size_t i = 0; lists && i < yamldoc_size(n); i++) {
		yamldoc_node group = yamldoc_at(n, i);

		if (policy_took(r, yamldoc_list(group, &r->err)) != 0)
			return;
		for (size_t k = 0; k < yamldoc_size(group); k++)
			read_member(r, yamldoc_at(group, k), (unsigned)i + 1);
	}
}
