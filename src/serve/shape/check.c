/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check: what this kernel and the devices have of what the shaper needs, and what is used instead.
 *
 * METHOD  Qdiscs and programs are tried on the loopback device of a new network namespace, in a child, so that nothing of this
 *         one changes.
 */
#include "serve/shape/impl.h"
#include "base/no-memory.h"
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct report {
	shaper_tell *tell;
	void *arg;
	unsigned faults;
};

static void say(struct report *r, enum shaper_finding finding, const char *what, const char *text)
{
	r->faults += finding == SHAPER_FAULT;
	r->tell(r->arg, finding, what, text);
}

/* ---- the kernel */

struct probe { /* what the child found: 0 or a negative errno */
	int namespace, htb, classifier, clsact, tbf, fq, prio, ets;
	char why[200]; /* of the classifier */
};

static int try_kind(struct tc *t, const struct tc_link *lo, const char *kind)
{
	struct tc_queue q = {.handle = 0x10000};
	int r;

	snprintf(q.kind, sizeof(q.kind), "%s", kind);
	r = tc_root_put(t, lo, &q, NULL);
	return r == -ENOENT ? r : 0; /* a kind that exists may refuse to be without options */
}

static void try_classifier(const struct tc_link *lo, struct probe *p)
{
	struct weir_policy empty = {0};
	uint16_t none = 0;
	struct rules *rules;
	struct program *program;
	struct weir_err err = {""};

	if (rules_new(&empty, &none, &rules) < 0) {
		p->classifier = -ENOMEM;
		return;
	}
	p->classifier = program_new(
		&(struct program_config){.rules = rules, .nodes = 1, .tag = 1}, &program, &err);
	snprintf(p->why, sizeof(p->why), "%s", err.text);
	if (p->classifier == 0) {
		p->clsact = program_attach(program, lo->index, &err);
		program_free(program);
	}
	rules_free(rules);
}

static struct probe probe_here(void)
{
	struct probe p = {.htb = -EPERM, .classifier = -EPERM, .clsact = -EPERM};
	struct tc t = {0};
	struct tc_link lo;

	if (unshare(CLONE_NEWNET) < 0) {
		p.namespace = -errno;
		return p;
	}
	if (tc_open(&t, NULL) < 0 || tc_link(&t, "lo", &lo, NULL) < 0)
		return p;
	p.tbf = try_kind(&t, &lo, "tbf");
	p.fq = try_kind(&t, &lo, "fq");
	p.prio = try_kind(&t, &lo, "prio");
	p.ets = try_kind(&t, &lo, "ets");
	p.htb = tc_root_add(&t, &lo, SHAPE_MAJOR, true, NULL);
	try_classifier(&lo, &p);
	tc_close(&t);
	return p;
}

static int probe_kernel(struct probe *ret, struct weir_err *err)
{
	int pipes[2], status;
	ssize_t got;
	pid_t child;

	if (pipe(pipes) < 0)
		return weir_err_set(err, -errno, "pipe: %s", strerror(errno));
	child = fork();
	if (child == 0) {
		struct probe p = probe_here();

		_exit(write(pipes[1], &p, sizeof(p)) != (ssize_t)sizeof(p));
	}
	close(pipes[1]);
	got = child < 0 ? -1 : read(pipes[0], ret, sizeof(*ret));
	close(pipes[0]);
	if (child > 0)
		waitpid(child, &status, 0);
	return got == (ssize_t)sizeof(*ret)
		       ? 0
		       : weir_err_set(err, -EIO, "the kernel could not be tried");
}

static void tell_unused(struct report *r, const char *kind, int found)
{
	say(r, SHAPER_NOTE, kind, found ? "not there; not needed" : "there; not used yet");
}

static void tell_kernel(struct report *r, const struct probe *p)
{
	char root[PATH_MAX];

	if (p->namespace) {
		say(r, SHAPER_FAULT, "rights",
			"no network namespace may be made, so that nothing was tried: "
			"CAP_SYS_ADMIN "
			"to check, CAP_NET_ADMIN and CAP_BPF to run");
		return;
	}
	say(r, p->htb ? SHAPER_FAULT : SHAPER_FINE, "htb",
		!p->htb  ? "there; one lock for a device: from about 10 Gbit/s of small packets it "
			   "takes a core"
		: p->tbf ? "not there, nor tbf: nothing can be shaped"
			 : "not there; tbf is, which is not used yet: nothing can be shaped");
	say(r, p->classifier ? SHAPER_FAULT : SHAPER_FINE, "bpf",
		p->classifier ? p->why : "the classifier loads");
	if (!p->classifier)
		say(r, p->clsact ? SHAPER_FAULT : SHAPER_FINE, "clsact",
			p->clsact ? "not there" : "there");
	if (cgroups_root(root, sizeof(root)) == 0)
		say(r, SHAPER_FINE, "cgroups", root);
	else
		say(r, SHAPER_NOTE, "cgroups",
			"none of version 2: match ports and addresses instead");
	tell_unused(r, "fq", p->fq);
	tell_unused(r, "prio", p->prio);
	tell_unused(r, "ets", p->ets);
}

/* ---- devices and matches */

static bool has_functions(const char *device)
{
	char path[96];
	unsigned n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/device/sriov_numvfs", device);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fscanf(f, "%u", &n) != 1)
		n = 0;
	fclose(f);
	return n > 0;
}

static void tell_device(struct report *r, struct tc *t, const struct tree *tree,
	const struct policy_device *d, double rate, const struct device_guard *g)
{
	struct weir_err err;
	struct tc_link l;
	char text[200];

	if (tc_link(t, d->name, &l, &err) < 0 || device_check(t, &l, g, &err) < 0) {
		const char *words = strncmp(err.text, d->name, strlen(d->name)) == 0
					    ? err.text + strlen(d->name) + 2
					    : err.text;

		say(r, SHAPER_FAULT, d->name, words);
		return;
	}
	snprintf(text, sizeof(text), "%.4g Mbit/s, segments of %u packets%s%s", rate * 8e-6,
		tree_segments(tree, rate, l.mtu), device_held(t, &l) ? ", shaped already" : "",
		has_functions(d->name) ? ", virtual functions (SR-IOV) pass by unseen" : "");
	say(r, SHAPER_FINE, d->name, text);
}

static void tell_match(struct report *r, const struct weir_tenant *t,
	const struct policy_net_match *m, bool cgroups, bool seen, bool rack)
{
	const char *in = rack ? "limited by feedback to senders" : "counted";
	char what[300], text[160], port[16], dscp[8];

	snprintf(port, sizeof(port), m->port == m->port_last ? "%u" : "%u-%u", m->port,
		m->port_last);
	snprintf(dscp, sizeof(dscp), "%d", m->dscp);
	snprintf(what, sizeof(what), "%s:%s%s%s%s%s%s%s%s%s%s", t->path,
		m->cgroup ? " cgroup " : "", m->cgroup ? m->cgroup : "",
		m->interface ? " interface " : "", m->interface ? m->interface : "",
		m->port ? " port " : "", m->port ? port : "", m->address ? " address " : "",
		m->address ? m->address : "", m->dscp >= 0 ? " dscp " : "",
		m->dscp >= 0 ? dscp : "");
	if (m->cgroup && !cgroups)
		say(r, SHAPER_NOTE, what, "never matches: no cgroups of version 2");
	else if (m->cgroup || m->interface) {
		snprintf(text, sizeof(text),
			!seen ? "there is no such %s yet; it is matched when it appears"
			: m->cgroup
				? "out: shaped, by the sending socket; in: %s, by the receiving one"
				: "out: shaped, what comes from there and leaves by a device; in: "
				  "%s, what goes there",
			seen        ? in
			: m->cgroup ? "cgroup"
				    : "interface");
		say(r, seen ? SHAPER_FINE : SHAPER_NOTE, what, text);
	} else {
		snprintf(text, sizeof(text), "out: shaped; in: %s", in);
		say(r, SHAPER_FINE, what, text);
	}
}

static void tell_matches(
	struct report *r, struct tc *t, const struct weir_policy *p, struct rules *rules)
{
	bool mounted = cgroups_look(rules) >= 0;

	interfaces_look(rules, t, p->network);

	for (size_t i = 0; i < p->n_tenants; i++)
		for (unsigned k = 0; p->tenants[i].net && k < p->tenants[i].net->n_match; k++) {
			const struct policy_net_match *m = &p->tenants[i].net->match[k];
			bool seen = false;

			for (size_t j = 0; j < rules->n; j++)
				seen |= rules->match[j] == m && rules->seen[j];
			tell_match(r, &p->tenants[i], m, mounted, seen, p->network->rack);
		}
	if (!p->network->rack)
		say(r, SHAPER_NOTE, "in",
			"nothing that arrives is limited: without `rack` there is no key for "
			"feedback to senders");
	say(r, SHAPER_NOTE, "not seen",
		"loopback, traffic between containers of one bridge, RDMA, SR-IOV and DPDK: what "
		"never "
		"reaches a named device");
}

static int tell_policy(struct report *r, struct tc *t, const struct weir_policy *p,
	const struct device_guard *g, struct weir_err *err)
{
	struct tree *tree = NULL;
	struct rules *rules = NULL;
	double *rates = calloc(p->network->n_devices, sizeof(*rates));
	int e = rates ? shaper_rates(p->network, rates, err) : no_memory(err);

	if (e == 0)
		e = tree_new(p, &tree, err);
	if (e == 0 && rules_new(p, tree->of, &rules) < 0)
		e = no_memory(err);
	for (size_t i = 0; e == 0 && i < p->network->n_devices; i++)
		tell_device(r, t, tree, &p->network->devices[i], rates[i], g);
	if (e == 0)
		tell_matches(r, t, p, rules);
	rules_free(rules);
	tree_free(tree);
	free(rates);
	return e;
}

int shaper_check(const struct weir_policy *p, const struct device_guard *g, shaper_tell *tell,
	void *arg, struct weir_err *err)
{
	struct report r = {tell, arg, 0};
	struct probe probe;
	struct tc t = {0};
	int e = probe_kernel(&probe, err);

	if (e)
		return e;
	tell_kernel(&r, &probe);
	if (p && !p->network)
		return weir_err_set(err, -EINVAL,
			"the policy has no 'network', so that there is nothing to shape");
	if (p && (e = tc_open(&t, err)) == 0) {
		e = tell_policy(&r, &t, p, g, err);
		tc_close(&t);
	}
	return e          ? e
	       : r.faults ? weir_err_set(err, -ENOTSUP,
				    "%u of these would keep the shaper from running", r.faults)
			  : 0;
}
