/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/shape/program.h"
#include "base/no-memory.h"
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
/* The generated code is not held to this project's warnings. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wcast-align"
#pragma GCC diagnostic ignored "-Woverlength-strings"
#include "serve/shape/shape.skel.h"
#pragma GCC diagnostic pop

#define SPARE 1024 /* sets of cgroups and interfaces that appear */

struct program {
	struct shape_bpf *bpf;
	uint32_t sets; /* that the map has room for */
	int processors;
	uint32_t nodes;
	struct shape_count *counts; /* the map, in our memory; MAP_FAILED: it is not */
	size_t counts_size;
	struct ring_buffer *samples;
	void (*sampled)(void *arg, const struct shape_sample *s);
	void *sampled_arg;
};

/* ---- loading */

static __thread char last_words[160]; /* of libbpf */

static int keep_words(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level == LIBBPF_WARN && !last_words[0])
		vsnprintf(last_words, sizeof(last_words), format, args);
	return 0;
}

static int fail(int e, const char *what, struct weir_err *err)
{
	char *end = strchr(last_words, '\n');

	if (end)
		*end = '\0';
	return weir_err_set(
		err, e, "%s: %s%s%s", what, strerror(-e), last_words[0] ? ": " : "", last_words);
}

static void configure(struct program *p, const struct program_config *c)
{
	struct shape_config *to = (struct shape_config *)&p->bpf->rodata->config;
	const struct rules *r = c->rules;

	*to = (struct shape_config){.words = (uint32_t)(r->n + 63) / 64,
		.tag = c->tag,
		.cgroups = r->cgroups,
		.interfaces = r->interfaces,
		.header = c->header,
		.nodes = (uint32_t)c->nodes,
		.tcp = c->tcp,
		.udp = c->udp,
		.fabric = c->fabric};
	memcpy(to->any, r->any, sizeof(to->any));
	p->bpf->bss->interface_sets[0] = (uint16_t)r->any[SHAPE_INTERFACE];
	memcpy(p->bpf->bss->ports, r->port, sizeof(r->port));
	memcpy(p->bpf->bss->dscps, r->dscp, sizeof(r->dscp));
	memcpy(p->bpf->bss->owners, r->owner, r->n * sizeof(*r->owner));
	p->sets = (uint32_t)r->n_sets + (r->cgroups || r->interfaces ? SPARE : 0);
	bpf_map__set_max_entries(p->bpf->maps.sets, p->sets);
	bpf_map__set_max_entries(
		p->bpf->maps.counts, (uint32_t)SHAPE_COUNT(c->nodes, p->processors, 0, 0));
}

static int fill_maps(struct program *p, const struct rules *r)
{
	int e = 0;

	for (uint32_t i = 0; e == 0 && i < r->n_sets; i++)
		e = program_set(p, i, &r->sets[i]);
	for (size_t i = 0; e == 0 && i < r->n_blocks; i++) {
		struct shape_block block = {.bits = r->blocks[i].bits};

		memcpy(block.address, r->blocks[i].address, sizeof(block.address));
		e = bpf_map__update_elem(p->bpf->maps.addresses, &block, sizeof(block),
			&r->blocks[i].set, sizeof(r->blocks[i].set), BPF_ANY);
	}
	return e;
}

static int on_sample(void *arg, void *data, size_t size)
{
	const struct program *p = arg;

	if (size == sizeof(struct shape_sample))
		p->sampled(p->sampled_arg, data);
	return 0;
}

/* Get at the counters without system calls, and at the samples. */
static int map_memory(struct program *p)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	p->counts_size = SHAPE_COUNT(p->nodes, p->processors, 0, 0) * sizeof(*p->counts);
	p->counts_size = (p->counts_size + page - 1) / page * page;
	p->counts = mmap(
		NULL, p->counts_size, PROT_READ, MAP_SHARED, bpf_map__fd(p->bpf->maps.counts), 0);
	if (p->counts == MAP_FAILED)
		return -errno;
	p->samples = ring_buffer__new(bpf_map__fd(p->bpf->maps.samples), on_sample, p, NULL);
	return p->samples ? 0 : -errno;
}

int program_new(const struct program_config *c, struct program **ret, struct weir_err *err)
{
	struct program *p = calloc(1, sizeof(*p));
	int e;

	libbpf_set_print(keep_words);
	last_words[0] = '\0';
	if (!p)
		return no_memory(err);
	p->counts = MAP_FAILED;
	p->nodes = (uint32_t)c->nodes;
	p->processors = libbpf_num_possible_cpus();
	p->bpf = shape_bpf__open();
	if (!p->bpf) {
		e = -errno;
		program_free(p);
		return fail(e, "the classifier in BPF", err);
	}
	configure(p, c);
	e = shape_bpf__load(p->bpf);
	if (e == 0)
		e = fill_maps(p, c->rules);
	if (e == 0)
		e = map_memory(p);
	if (e) {
		program_free(p);
		return fail(e,
			e == -EPERM ? "bpf(2), which needs CAP_BPF and CAP_NET_ADMIN"
				    : "the classifier in BPF",
			err);
	}
	*ret = p;
	return 0;
}

void program_free(struct program *p)
{
	if (!p)
		return;
	ring_buffer__free(p->samples);
	if (p->counts != MAP_FAILED)
		munmap(p->counts, p->counts_size);
	shape_bpf__destroy(p->bpf);
	free(p);
}

/* ---- devices */

static int attach(const struct bpf_program *program, int index, enum bpf_tc_attach_point point)
{
	struct bpf_tc_hook hook = {.sz = sizeof(hook), .ifindex = index, .attach_point = point};
	struct bpf_tc_opts opts = {.sz = sizeof(opts),
		.handle = 1,
		.priority = PROGRAM_PRIORITY,
		.flags = BPF_TC_F_REPLACE,
		.prog_fd = bpf_program__fd(program)};

	return bpf_tc_attach(&hook, &opts);
}

/* Attach a program to each direction of a device; the clsact qdisc is made if it is missing. */
static int attach_both(int index, const struct bpf_program *in, const struct bpf_program *out,
	struct weir_err *err)
{
	struct bpf_tc_hook hook = {.sz = sizeof(hook),
		.ifindex = index,
		.attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS};
	int e;

	last_words[0] = '\0';
	e = bpf_tc_hook_create(&hook);
	if (e && e != -EEXIST)
		return fail(e, "clsact", err);
	e = attach(out, index, BPF_TC_EGRESS);
	if (e == 0)
		e = attach(in, index, BPF_TC_INGRESS);
	return e ? fail(e, "the classifier at the device", err) : 0;
}

int program_attach(struct program *p, int index, struct weir_err *err)
{
	return attach_both(index, p->bpf->progs.weir_in, p->bpf->progs.weir_out, err);
}

int program_attach_interface(struct program *p, int index, struct weir_err *err)
{
	return attach_both(
		index, p->bpf->progs.weir_out_interface, p->bpf->progs.weir_in_interface, err);
}

int program_detach(int index, bool clsact, struct weir_err *err)
{
	static const enum bpf_tc_attach_point points[] = {BPF_TC_INGRESS, BPF_TC_EGRESS};
	struct bpf_tc_hook hook = {.sz = sizeof(hook),
		.ifindex = index,
		.attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS};
	int e = 0;

	libbpf_set_print(keep_words);
	last_words[0] = '\0';
	if (clsact) /* with both points this is the whole qdisc, and all that is attached to it */
		e = bpf_tc_hook_destroy(&hook);
	for (int i = 0; e == 0 && !clsact && i < 2; i++) {
		struct bpf_tc_opts opts = {
			.sz = sizeof(opts), .handle = 1, .priority = PROGRAM_PRIORITY};

		hook.attach_point = points[i];
		e = bpf_tc_detach(&hook, &opts);
		e = e == -ENOENT || e == -EINVAL ? 0 : e; /* it was not there */
	}
	return e && e != -ENOENT && e != -EINVAL ? fail(e, "the classifier at the device", err) : 0;
}

/* ---- maps */

void program_slots(struct program *p, const struct tree *t)
{
	for (size_t i = 0; i < t->n; i++) {
		p->bpf->bss->slots[i] = t->nodes[i].slot;
		p->bpf->bss->marks[i] = t->nodes[i].mark;
	}
}

void program_beat(struct program *p, uint64_t now)
{
	__atomic_store_n(&p->bpf->bss->beat, now, __ATOMIC_RELAXED);
}

int program_set(struct program *p, uint32_t number, const struct shape_set *s)
{
	if (number >= p->sets)
		return -ENOSPC;
	return bpf_map__update_elem(
		p->bpf->maps.sets, &number, sizeof(number), s, sizeof(*s), BPF_ANY);
}

void program_interface_set(struct program *p, unsigned number, uint32_t set)
{
	p->bpf->bss->interface_sets[number] = (uint16_t)set;
}

int program_interface(struct program *p, int index, uint32_t number)
{
	return bpf_map__update_elem(
		p->bpf->maps.interfaces, &index, sizeof(index), &number, sizeof(number), BPF_ANY);
}

void program_interface_gone(struct program *p, int index)
{
	bpf_map__delete_elem(p->bpf->maps.interfaces, &index, sizeof(index), 0);
}

int program_cgroup(struct program *p, uint64_t id, uint32_t set)
{
	return bpf_map__update_elem(
		p->bpf->maps.cgroups, &id, sizeof(id), &set, sizeof(set), BPF_ANY);
}

void program_cgroup_gone(struct program *p, uint64_t id)
{
	bpf_map__delete_elem(p->bpf->maps.cgroups, &id, sizeof(id), 0);
}

int program_enter_cgroup(struct program *p, int fd, struct bpf_link **ret)
{
	struct bpf_link *l = bpf_program__attach_cgroup(p->bpf->progs.weir_in_cgroup, fd);

	if (!l)
		return -errno;
	*ret = l;
	return 0;
}

void program_leave_cgroup(struct bpf_link *l)
{
	bpf_link__destroy(l);
}

struct shape_count program_count(const struct program *p, size_t node, enum shape_dir dir)
{
	struct shape_count sum = {0};

	for (int i = 0; i < p->processors; i++) {
		const struct shape_count *c = &p->counts[SHAPE_COUNT(p->nodes, i, node, dir)];

		sum.bytes += __atomic_load_n(&c->bytes, __ATOMIC_RELAXED);
		sum.packets += __atomic_load_n(&c->packets, __ATOMIC_RELAXED);
		sum.marked += __atomic_load_n(&c->marked, __ATOMIC_RELAXED);
	}
	return sum;
}

void program_samples(
	struct program *p, void (*each)(void *arg, const struct shape_sample *s), void *arg)
{
	p->sampled = each;
	p->sampled_arg = arg;
	ring_buffer__consume(p->samples);
}

int program_flow(const struct program *p, const struct shape_flow *f, uint32_t *ret)
{
	return bpf_map__lookup_elem(p->bpf->maps.flows, f, sizeof(*f), ret, sizeof(*ret), 0);
}

int program_leaf(struct program *p, const struct shape_to *to, const struct shape_leaf *l)
{
	return bpf_map__update_elem(p->bpf->maps.leaves, to, sizeof(*to), l, sizeof(*l), BPF_ANY);
}

void program_leaf_gone(struct program *p, const struct shape_to *to)
{
	bpf_map__delete_elem(p->bpf->maps.leaves, to, sizeof(*to), 0);
}

int program_measure(struct program *p, enum shape_dir dir, const void *packet, size_t n, int times,
	double *ret_ns)
{
	struct bpf_test_run_opts o = {
		.sz = sizeof(o), .data_in = packet, .data_size_in = (uint32_t)n, .repeat = times};
	int e;

	program_beat(p, (uint64_t)1 << 62); /* alive: runtime classes */
	e = bpf_prog_test_run_opts(
		bpf_program__fd(dir == SHAPE_IN ? p->bpf->progs.weir_in : p->bpf->progs.weir_out),
		&o);
	if (e == 0)
		*ret_ns = o.duration;
	return e;
}
