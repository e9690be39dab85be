/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc-parda: one step of PARDA's equation 2 for every host, β as given. */
#include "control/parda/law.h"
#include "cli/alloc.h"
#include <errno.h>
#include <math.h>
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

struct hosts {
	struct host *host;
	bool local;
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

static int read_latency(const struct alloc_at *at, bool local, struct host *ret)
{
	int r = alloc_number(at, "latency", above_0, &ret->latency);

	/* A host without requests (ios 0) need not have one. */
	if (r == -ENOENT && (local || ret->ios > 0))
		return alloc_fail(at, "latency", "is missing");
	return alloc_absent_ok(r);
}

static int read_host(const struct alloc_at *at, void *arg, size_t i)
{
	struct hosts *h = arg;
	struct host *ret = &h->host[i];
	int r = alloc_keys(at, host_keys);

	if (r || (r = alloc_name(at, &ret->name)) ||
		(r = alloc_need(at, "window", at_least_0, &ret->window)) ||
		(r = alloc_need(at, "beta", at_least_0, &ret->beta)))
		return r;
	r = alloc_number(at, "ios", at_least_0, &ret->ios);
	if (r == -ENOENT)
		r = h->local ? 0 : alloc_fail(at, "ios", "is missing");
	return r ? r : read_latency(at, h->local, ret);
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
	struct hosts h = {0};
	json_t *list;
	int r = alloc_keys(&top, top_keys);

	if (r || (r = read_law(&top, &law)) ||
		(r = alloc_absent_ok(alloc_flag(&top, "local", &h.local))) ||
		(r = alloc_list(&top, "hosts", &list)))
		return r;
	h.host = calloc(json_array_size(list) + 1, sizeof(*h.host));
	r = h.host ? alloc_each(&top, "hosts", list, read_host, &h) : -ENOMEM;
	if (r == 0)
		r = write_out(&law, h.host, json_array_size(list), h.local, ret_out, err);
	free(h.host);
	return r;
}
