/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir bench hosts: the cost of sharing an array by PARDA: processor, network, data path.
 *
 * METHOD  Eight gateways, each a process, that report to each other over loopback by a list, and
 *         step every 100 ms, twenty times as often as usual; compared with the same gateways
 *         without a controller and without peers. CPU time is that of the processes, user and
 *         system, of all threads; the gateways have no clients, so that each step wakes sleeping
 *         threads, which is the most expensive case. The difference, over the periods and hosts, is
 *         the cost of a step for a host: to measure, decide, seal and send, and to receive the
 *         reports of the seven others. The gateways count the bytes that they send, without the
 *         headers of UDP and IPv4, which are added. Rows for other numbers of hosts are computed
 *         from a datagram that is really encoded.
 */
#include "bench/bench.h"
#include "cli/common/files.h"
#include "cli/common/process.h"
#include "cli/common/remote.h"
#include "wire/peer.h"
#include "serve/loop/loop.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HOSTS   8
#define PERIOD  (100 * WEIR_MS) /* the least period */
#define USUAL   (2 * WEIR_SEC)  /* the default period */
#define HEADERS (8 + 20)        /* bytes of UDP and IPv4 */

struct cluster {
	char dir[FILES_SCRATCH];
	uint16_t ports[HOSTS];
	struct peer hosts[HOSTS];
};

static void path_of(const struct cluster *c, const char *what, int i, char *ret, size_t len)
{
	snprintf(ret, len, "%s/%s%d", c->dir, what, i);
}

/* ---- set-up */

/* Find free ports of loopback: all are bound before the first is free again, so that all differ. */
static int find_ports(uint16_t ports[HOSTS])
{
	int fd[HOSTS], n = 0, r = 0;

	while (n < HOSTS && (r = process_bind_udp(&ports[n], &fd[n])) == 0)
		n++;
	while (n-- > 0)
		close(fd[n]);
	return r;
}

static void write_peers(FILE *f, const struct cluster *c, int own)
{
	fprintf(f,
		"peers: {period: 100ms, host: h%d, key: %s/key, listen: \"udp:127.0.0.1:%d\", to: "
		"[",
		own, c->dir, c->ports[own]);
	for (int i = 0, n = 0; i < HOSTS; i++)
		if (i != own)
			fprintf(f, "%s\"udp:127.0.0.1:%d\"", n++ ? ", " : "", c->ports[i]);
	fputs("]}\n", f);
}

static int write_policy(const struct cluster *c, int i, bool on, struct weir_err *err)
{
	char path[128];
	FILE *f;
	int r;

	path_of(c, "policy", i, path, sizeof(path));
	r = files_create(path, &f, err);
	if (r < 0)
		return r;
	if (on)
		write_peers(f, c, i);
	fprintf(f, "resources: [{name: lun, back: \"memory:16M\"%s}]\ntenants:\n",
		on ? ", controller: parda, threshold: 25ms" : "");
	for (int k = 0; k < 4; k++)
		fprintf(f,
			"  - {name: vm%d, weight: %d, match: {export: lun, client: 10.0.0.%d}}\n",
			k, k + 1, k);
	return files_close(f, path, 0, err);
}

static int start_host(struct cluster *c, int i, bool on, struct weir_err *err)
{
	char policy[128], socket[128], listen[140], api[140], log[128];
	const char *argv[] = {"weir", "serve", "--threads", "1", "--log-level", "error", "--listen",
		listen, "--api", api, policy, NULL};
	int r = write_policy(c, i, on, err);

	path_of(c, "policy", i, policy, sizeof(policy));
	path_of(c, "nbd", i, socket, sizeof(socket));
	path_of(c, "log", i, log, sizeof(log));
	snprintf(listen, sizeof(listen), "unix:%s", socket);
	snprintf(api, sizeof(api), "unix:%s/api%d", c->dir, i);
	return r ? r : peer_start(&c->hosts[i], argv, -1, socket, log, err);
}

static void stop_hosts(struct cluster *c)
{
	for (int i = 0; i < HOSTS; i++)
		peer_stop(&c->hosts[i]);
}

static int cluster_new(struct cluster *c, struct weir_err *err)
{
	char path[128];
	int r = find_ports(c->ports);

	if (r)
		return weir_err_set(err, r, "ports: %s", strerror(-r));
	r = files_make_scratch("hosts", c->dir, err);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/key", c->dir);
	return files_write_key(path, err);
}

/* ---- measure */

struct used {
	double cpu;  /* ns */
	double sent; /* bytes, with headers */
};

static int sent_by(const struct cluster *c, int i, double *ret, struct weir_err *err)
{
	char path[128];
	struct remote *remote;
	json_t *status = NULL;
	const json_t *peers;
	int r;

	path_of(c, "api", i, path, sizeof(path));
	if (remote_open(&verb_bench, path, NULL, NULL, NULL, &remote) >= 0)
		return weir_err_set(err, -EINVAL, "%s", path);
	r = remote_try(remote, "GET", "/v1/status", NULL, 0, &status, err);
	remote_close(remote);
	if (r)
		return r;
	peers = json_object_get(status, "peers");
	*ret = json_number_value(json_object_get(peers, "sent_bytes")) +
	       HEADERS * json_number_value(json_object_get(peers, "sent"));
	json_decref(status);
	return 0;
}

static int read_used(const struct cluster *c, bool on, struct used *ret, struct weir_err *err)
{
	struct used u = {0};
	int r = 0;

	for (int i = 0; r == 0 && i < HOSTS; i++) {
		double sent = 0;

		u.cpu += (double)peer_cpu(&c->hosts[i]);
		if (on)
			r = sent_by(c, i, &sent, err);
		u.sent += sent;
	}
	*ret = u;
	return r;
}

/* Measure one host in one period. */
static int run_hosts(
	struct cluster *c, bool on, weir_time span, struct used *ret, struct weir_err *err)
{
	struct used before, after;
	weir_time from = 0;
	int r = 0;

	for (int i = 0; r == 0 && i < HOSTS; i++)
		r = start_host(c, i, on, err);
	if (r == 0) {
		process_pause(WEIR_SEC); /* until all hosts know each other */
		r = read_used(c, on, &before, err);
		from = loop_clock();
		process_pause(span);
	}
	if (r == 0) {
		double periods = (double)(loop_clock() - from) / PERIOD * HOSTS;

		r = read_used(c, on, &after, err);
		ret->cpu = (after.cpu - before.cpu) / periods;
		ret->sent = (after.sent - before.sent) / periods;
	}
	stop_hosts(c);
	return r;
}

/* ---- rows */

/* Return the bytes of a datagram about one resource, with its headers. */
static double datagram(void)
{
	static const struct peer_message m = {
		.kind = PEER_REPORT, .instance = 1, .sequence = 1, .name = "h1", .n_reports = 1};
	uint8_t bytes[PEER_MAX];

	return (double)(peer_write(bytes, &m) + PEER_SEAL + HEADERS);
}

static void rows_traffic(struct bench *b, const struct bench_samples *measured)
{
	static const struct {
		const char *name;
		int datagrams; /* a period */
	} computed[] = {{"4 hosts, a list: a host sends", 3},
		{"64 hosts, a list: a host sends", 63}, {"1,000 hosts, a list: a host sends", 999},
		{"any number, a group: a host sends", 1},
		{"1,000 hosts, either way: a host receives", 999}};
	double rate = datagram() * WEIR_SEC / USUAL;
	struct bench_samples want = {0};

	bench_add_value(
		b, "a datagram about one resource, headers included", "B", datagram(), NULL);
	bench_sample(&want, (HOSTS - 1) * rate);
	bench_add_beside(b, "8 hosts, a list: a host sends, measured", "B/s", measured, "computed",
		&want, NULL);
	for (size_t i = 0; i < sizeof(computed) / sizeof(computed[0]); i++)
		bench_add_value(b, computed[i].name, "B/s", computed[i].datagrams * rate, NULL);
}

static int rows_cluster(struct bench *b, struct cluster *c, struct weir_err *err)
{
	weir_time span = b->quick ? 500 * WEIR_MS : 5 * WEIR_SEC;
	struct bench_samples cpu = {0}, part = {0}, sent = {0};
	int r = 0;

	for (unsigned i = 0; r == 0 && i < b->runs; i++) {
		struct used off = {0}, on = {0};

		r = run_hosts(c, false, span, &off, err);
		if (r == 0)
			r = run_hosts(c, true, span, &on, err);
		bench_sample(&cpu, (on.cpu - off.cpu) / 1000);
		bench_sample(&part, 100 * (on.cpu - off.cpu) / USUAL);
		bench_sample(&sent, on.sent * WEIR_SEC / USUAL);
	}
	if (r)
		return r;
	bench_add(b, "8 hosts: CPU of one, a period", "us", &cpu, NULL);
	bench_add(b, "  of a core, at a period of 2 s", "%", &part, "<= 0.1");
	rows_traffic(b, &sent);
	return 0;
}

int bench_hosts(struct bench *b, struct weir_err *err)
{
	struct cluster c = {.dir = ""};
	int r = cluster_new(&c, err);

	if (r == 0)
		r = rows_cluster(b, &c, err);
	stop_hosts(&c);
	files_remove_scratch(c.dir);
	return r ? r : bench_gateway_parda(b, err);
}
