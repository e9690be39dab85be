/* SPDX-License-Identifier: BSD-3-Clause */
/* scenario-hosts: the list `hosts`, and their tenants at a device's gate. */
#include "base/no-memory.h"
#include "sim/scenario/scenario.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOSTS_MAX 100000u /* about 2 GB; more must be a mistake */

static const char *const host_keys[] = {"name", "count", "device", "request", "reply", "retry",
	"workloads", "policy", "clients", NULL};

static int read_device(
	yamldoc_node map, const struct scenario *s, struct scenario_group *g, struct weir_err *err)
{
	const char *name;
	int r = yamldoc_string(map, "device", &name, err), i;

	if (r == -ENOENT) {
		if (s->n_devices == 1)
			return 0;
		return yamldoc_error(map, err, "a host needs a 'device' if there is more than one");
	}
	if (r)
		return r;
	i = scenario_station_find(s, name, 0, s->n_devices);
	if (i < 0)
		return yamldoc_error(
			yamldoc_get(map, "device"), err, "no device is named '%s'", name);
	g->device = (uint32_t)i;
	return 0;
}

/* `request: l1` or `request: [l1, l2]`, in the order of travel. */
static int read_hops(yamldoc_node map, const char *key, const struct scenario *s, uint32_t *hops,
	unsigned *ret_n, struct weir_err *err)
{
	yamldoc_node n = yamldoc_get(map, key);
	bool list = yamldoc_kind(n) == YAMLDOC_LIST;
	size_t count = !n.id ? 0 : list ? yamldoc_size(n) : 1;

	if (count > SCENARIO_HOPS)
		return yamldoc_error(n, err, "must be at most %d links", SCENARIO_HOPS);
	for (size_t i = 0; i < count; i++) {
		yamldoc_node one = list ? yamldoc_at(n, i) : n;
		const char *name = yamldoc_text(one);
		int found = name ? scenario_station_find(s, name, s->n_devices, s->n_stations)
				 : -ENOENT;
		if (found < 0)
			return yamldoc_error(one, err, "no link is named '%s'", name ? name : "");
		hops[i] = (uint32_t)found;
	}
	*ret_n = (unsigned)count;
	return 0;
}

static int read_group(
	yamldoc_node map, struct scenario *s, struct scenario_group *g, struct weir_err *err)
{
	int64_t count = 1;
	int r;

	g->at = yamldoc_place(map);
	g->retry = 200 * WEIR_MS; /* as TCP's retransmission timeout */
	if ((r = scenario_moved_check(map, SCENARIO_HOST, err)) ||
		(r = yamldoc_map(map, host_keys, err)) ||
		(r = scenario_name_read(map, &g->name, err)) ||
		(r = yamldoc_optional(yamldoc_int(map, "count", 1, HOSTS_MAX, &count, err))) ||
		(r = read_device(map, s, g, err)) ||
		(r = read_hops(map, "request", s, g->request, &g->n_request, err)) ||
		(r = read_hops(map, "reply", s, g->reply, &g->n_reply, err)) ||
		(r = yamldoc_optional(yamldoc_time(map, "retry", &g->retry, err))))
		return r;
	if (g->retry <= 0)
		return yamldoc_error(map, err, "retry: must be more than 0");
	g->count = (uint32_t)count;
	g->numbered = yamldoc_get(map, "count").id != 0;
	return scenario_host_policy_read(map, s, g, err);
}

static int by_name(const void *a, const void *b)
{
	const struct scenario_host *x = *(const struct scenario_host *const *)a;
	const struct scenario_host *y = *(const struct scenario_host *const *)b;

	return strcmp(x->name, y->name);
}

static int check_host_names(const struct scenario *s, struct weir_err *err)
{
	const struct scenario_host **sorted = calloc(s->n_hosts, sizeof(struct scenario_host *));
	int r = 0;

	if (!sorted)
		return no_memory(err);
	for (uint32_t i = 0; i < s->n_hosts; i++)
		sorted[i] = &s->hosts[i];
	qsort(sorted, s->n_hosts, sizeof(*sorted), by_name);
	for (uint32_t i = 1; i < s->n_hosts && r == 0; i++) {
		if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
			r = weir_err_at(err, -EINVAL, s->groups[sorted[i]->group].at,
				"two hosts are named '%s'", sorted[i]->name);
	}
	free(sorted);
	return r;
}

/* Name every host: `name`, or with a count name1 … nameN. */
static int name_hosts(struct scenario *s, struct weir_err *err)
{
	size_t room = 0, h = 0;
	char *p;

	for (uint32_t i = 0; i < s->n_groups; i++) {
		room += s->groups[i].count * (strlen(s->groups[i].name) + 12);
		s->n_hosts += s->groups[i].count;
		if (s->n_hosts > HOSTS_MAX)
			return weir_err_at(err, -EINVAL, s->groups[i].at,
				"there are more than %u hosts", HOSTS_MAX);
	}
	s->hosts = calloc(s->n_hosts, sizeof(*s->hosts));
	s->names = p = malloc(room);
	if (!s->hosts || !p)
		return no_memory(err);
	for (uint32_t i = 0; i < s->n_groups; i++) {
		const struct scenario_group *g = &s->groups[i];
		for (uint32_t k = 0; k < g->count; k++, h++) {
			s->hosts[h] = (struct scenario_host){p, i, k};
			p += (g->numbered ? sprintf(p, "%s%u", g->name, k + 1)
					  : sprintf(p, "%s", g->name)) +
			     1;
		}
	}
	return check_host_names(s, err);
}

int scenario_hosts_read(yamldoc_node root, struct scenario *s, struct weir_err *err)
{
	yamldoc_node list = yamldoc_get(root, "hosts");
	size_t n;
	int r;

	if ((r = scenario_list(root, "hosts", &n, err)))
		return r;
	if (n == 0)
		return yamldoc_error(root, err, "a scenario needs 'hosts'");
	s->groups = calloc(n, sizeof(*s->groups));
	if (!s->groups)
		return no_memory(err);
	for (size_t i = 0; i < n; i++) {
		s->n_groups = (uint32_t)i + 1;
		if ((r = read_group(yamldoc_at(list, i), s, &s->groups[i], err)))
			return r;
	}
	return name_hosts(s, err);
}

/* ---- the tenants of hosts at a device's gate */

/* The tenant of an export "HOST/TENANT", by the device's policy. */
static int match_leaf(const struct weir_policy *p, const char *host, const char *path)
{
	char export_[900];
	struct weir_who who = {.export_ = export_};

	snprintf(export_, sizeof(export_), "%s/%s", host, path);
	return weir_policy_match(p, &who);
}

int scenario_leaf_for(const struct scenario_gate *g, const char *host, const char *path)
{
	int leaf = g->policy ? match_leaf(g->policy, host, path) : -ENOENT;

	if (leaf >= 0)
		return leaf;
	for (size_t i = 0; g->policy && i < g->policy->n_tenants; i++) {
		const struct weir_tenant *t = &g->policy->tenants[i];

		if (t->first_child < 0 && !t->n_match &&
			(strcmp(t->name, host) == 0 || strcmp(t->name, path) == 0))
			return (int)i;
	}
	return -ENOENT;
}

static int check_leaves(const struct scenario_station *st, const char *host,
	const struct weir_policy *p, struct weir_err *err)
{
	for (size_t t = 0; st->gate && st->gate->policy && t < p->n_tenants; t++) {
		const char *path = p->tenants[t].path;

		if (p->tenants[t].first_child < 0 && scenario_leaf_for(st->gate, host, path) < 0)
			return weir_err_at(err, -EINVAL, st->at,
				"the policy of '%s' has no tenant for '%s/%s': give one that name, "
				"or a 'match' of this export",
				st->name, host, path);
	}
	return 0;
}

int scenario_leaves_check(const struct scenario *s, struct weir_err *err)
{
	int r = 0;

	for (uint32_t i = s->n_devices; i < s->n_stations; i++)
		if (s->stations[i].gate && !s->stations[i].gate->policy)
			return weir_err_at(err, -EINVAL, s->stations[i].at,
				"the policy of a link needs 'tenants'");
	for (uint32_t h = 0; r == 0 && h < s->n_hosts; h++) {
		const struct scenario_group *g = &s->groups[s->hosts[h].group];
		const char *name = s->hosts[h].name;

		r = check_leaves(&s->stations[g->device], name, g->gate.policy, err);
		for (unsigned i = 0; r == 0 && i < g->n_request; i++)
			r = check_leaves(&s->stations[g->request[i]], name, g->gate.policy, err);
		for (unsigned i = 0; r == 0 && i < g->n_reply; i++)
			r = check_leaves(&s->stations[g->reply[i]], name, g->gate.policy, err);
	}
	return r;
}
