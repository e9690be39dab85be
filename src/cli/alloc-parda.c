/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc-parda: one step of PARDA's equation 2 for every host, β as given. */
#include "control/parda/law.h"
#include "cli/alloc.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const top_keys[] = {
	"threshold", "gamma", "wmin", "wmax", "local", "hosts", NULL};
static const char *const host_keys[] = {"name", "window", "beta", "latency", "ios", NULL};
static const struct alloc_range at_least_0 = {.most = HUGE_VAL};
static const struct alloc_range above_0 = {.most = HUGE_VAL, .above = true};

struct host {
	const char *name;
	double window, beta, latency, ios;
};

static int read_law(const struct alloc_at *at, struct parda_law *ret)
{
	struct alloc_range gamma = {.most = 1, .above = true};
	int r;

	*ret = (struct parda_law){.gamma = 0.8, .wmax = HUGE_VAL};
	if ((r = alloc_need(at, "threshold", above_0, &ret->threshold)) ||
		(r = alloc_absent_ok(alloc_number(at, "gamma", gamma, &ret->gamma))) ||
		(r = alloc_absent_ok(alloc_number(at, "wmin", at_least_0, &ret->wmin))) ||
		(r = alloc_absent_ok(alloc_number(at, "wmax", at_least_0, &ret->wmax))))
		return r;
	return ret->wmax < ret->wmin ? alloc_fail(at, "wmax", "must be at least wmin") : 0;
}

/* Read a host, except its latency: a host without requests (ios 0) need not have one. */
static int read_host(const struct alloc_at *at, bool local, struct host *ret)
{
	int r = alloc_keys(at, host_keys);

	if (r || (r = alloc_name(at, &ret->name)) ||
		(r = alloc_need(at, "window", at_least_0, &ret->window)) ||
		(r = alloc_need(at, "beta", at_least_0, &ret->beta)) ||
		(r = alloc_number(at, "ios", at_least_0, &ret->ios)))
		return r == -ENOENT ? (local ? 0 : alloc_fail(at, "ios", "is missing")) : r;
	return 0;
}

static int read_latency(const struct alloc_at *at, bool local, struct host *ret)
{
	int r = alloc_number(at, "latency", above_0, &ret->latency);

	if (r == -ENOENT && (local || ret->ios > 0))
		return alloc_fail(at, "latency", "is missing");
	return alloc_absent_ok(r);
}

static int read_hosts(json_t *list, bool local, struct weir_err *err, struct host **ret_hosts)
{
	struct host *hosts = calloc(json_array_size(list) + 1, sizeof(*hosts));
	char path[64];
	json_t *item;
	size_t i;
	int r = hosts ? 0 : -ENOMEM;

	for (i = 0; r == 0 && (item = json_array_get(list, i)); i++) {
		struct alloc_at at = {path, item, err};

		snprintf(path, sizeof(path), "hosts[%zu]", i);
		r = read_host(&at, local, &hosts[i]);
		if (r == 0)
			r = read_latency(&at, local, &hosts[i]);
	}
	if (r) {
		free(hosts);
		return r;
	}
	*ret_hosts = hosts;
	return 0;
}

/* Return the mean latency over the hosts, weighted by IOs; 0 if there were none. */
static double cluster_latency(const struct host *hosts, size_t n)
{
	double ios = 0, sum = 0;

	for (size_t i = 0; i < n; i++) {
		ios += hosts[i].ios;
		sum += hosts[i].ios > 0 ? hosts[i].ios * hosts[i].latency : 0;
	}
	return ios > 0 ? sum / ios : 0;
}

static int write_out(const struct parda_law *law, const struct host *hosts, size_t n, bool local,
	json_t **ret_out, struct weir_err *err)
{
	double cluster = cluster_latency(hosts, n);
	json_t *list = json_array(), *out;
	bool finite = isfinite(cluster);

	for (size_t i = 0; i < n && finite; i++) {
		double latency = local ? hosts[i].latency : cluster;
		double window = parda_window(law, hosts[i].window, hosts[i].beta, latency);

		finite = isfinite(window);
		if (finite)
			json_array_append_new(list,
				json_pack("{s:s, s:f}", "name", hosts[i].name, "window", window));
	}
	if (!finite) {
		json_decref(list);
		return weir_err_set(
			err, -EINVAL, "hosts: the numbers are too large to calculate with");
	}
	out = cluster > 0 ? json_pack("{s:f, s:o}", "latency", cluster, "hosts", list)
			  : json_pack("{s:n, s:o}", "latency", "hosts", list);
	if (!out || json_array_size(list) != n) {
		json_decref(out);
		return -ENOMEM;
	}
	*ret_out = out;
	return 0;
}

int alloc_parda(json_t *in, json_t **ret_out, struct weir_err *err)
{
	struct alloc_at top = {"", in, err};
	struct parda_law law;
	struct host *hosts;
	bool local = false;
	json_t *list;
	int r = alloc_keys(&top, top_keys);

	if (r || (r = read_law(&top, &law)) ||
		(r = alloc_absent_ok(alloc_flag(&top, "local", &local))) ||
		(r = alloc_list(&top, "hosts", &list)) ||
		(r = read_hosts(list, local, err, &hosts)))
		return r;
	r = alloc_unique(&top, "hosts", list);
	if (r == 0)
		r = write_out(&law, hosts, json_array_size(list), local, ret_out, err);
	free(hosts);
	return r;
}
