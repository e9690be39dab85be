/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-net-classify: the cost of the shaper's programs in the kernel for each packet, at 1,000 services by port.
 *
 * METHOD  The kernel runs a program on one packet again and again (BPF_PROG_TEST_RUN), and reports the mean time: so the packet's rules
 *         are in the processor's caches, as those of a busy service are. Needs CAP_BPF and CAP_NET_ADMIN; without, there are no rows.
 */
#include "bench/bench.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef WEIR_SHAPE
#include "policy/policy.h"
#include "serve/shape/program.h"
#include "serve/shape/tree.h"

#define SERVICES 1000
#define PORT     5001 /* of the first */
#define PACKET   1442 /* bytes: Ethernet, IPv4, UDP, 1,400 */

/* A packet of the last service. */
static void make_packet(uint8_t *p, enum shape_dir dir)
{
	static const uint8_t head[] = {0x08, 0x00, 0x45, 0, (PACKET - 14) >> 8,
		(PACKET - 14) & 0xff, 0, 1, 0, 0, 64, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2};
	uint16_t port = PORT + SERVICES - 1;
	uint8_t *at = p + 34 + (dir == SHAPE_IN ? 2 : 0);

	memset(p, 0, PACKET);
	memcpy(p + 12, head, sizeof(head));
	p[34] = p[36] = 0x9c; /* the other port */
	at[0] = (uint8_t)(port >> 8);
	at[1] = (uint8_t)port;
}

static struct weir_policy *make_policy(struct weir_err *err)
{
	struct weir_policy *p = NULL;
	size_t len;
	char *text;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	fprintf(f, "network: {devices: [{name: v0, rate: 10 Gbit/s}]}\ntenants:\n");
	for (int i = 0; i < SERVICES; i++)
		fprintf(f, "  - {name: s%d, net: {}, match: {port: %d}}\n", i, PORT + i);
	if (fclose(f) == 0)
		weir_policy_parse(text, len, "bench", &p, err);
	free(text);
	return p;
}

static int measure(struct bench *b, struct program *p)
{
	static const char *const names[] = {"classify and meter a packet that arrives",
		"classify a packet that leaves"},
				 *const keys[] = {"net.classify.in", "net.classify.out"};
	uint8_t packet[PACKET];

	for (int d = 0; d < SHAPE_DIRS; d++) {
		struct bench_samples ours = {0};

		make_packet(packet, (enum shape_dir)d);
		for (unsigned i = 0; i < b->runs; i++) {
			double ns;
			int r = program_measure(p, (enum shape_dir)d, packet, sizeof(packet),
				b->quick ? 20000 : 200000, &ns);

			if (r)
				return r;
			bench_sample(&ours, ns);
		}
		bench_add(b, names[d], "ns", &ours, "<= 200 ns")->key = keys[d];
	}
	return 0;
}

int bench_net_classify(struct bench *b)
{
	struct program_config c = {.tag = 1, .header = 14};
	struct program *program = NULL;
	struct rules *rules = NULL;
	struct tree *tree = NULL;
	struct weir_err err;
	struct weir_policy *p = make_policy(&err);
	int r = p ? tree_new(p, &tree, &err) : -ENOMEM;

	if (r == 0)
		r = rules_new(p, tree->of, &rules);
	if (r == 0) {
		c.rules = rules;
		c.nodes = tree->n;
		r = program_new(&c, &program, &err);
		if (r == 0)
			program_slots(program, tree);
		r = r == 0 ? measure(b, program) : r == -ENOMEM ? r : 0; /* not permitted */
	}
	program_free(program);
	rules_free(rules);
	tree_free(tree);
	weir_policy_free(p);
	return r;
}

#else

int bench_net_classify(struct bench *b)
{
	return 0;
}

#endif
