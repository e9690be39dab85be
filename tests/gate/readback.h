/* SPDX-License-Identifier: BSD-3-Clause */
/* readback: the gate's own account of its tree, knobs and levels against the reference. */
#ifndef WEIR_TESTS_GATE_READBACK_H
#define WEIR_TESTS_GATE_READBACK_H

#include "reference.h"
#include "test.h"
#include <errno.h>

static inline void readback_buckets(
	const struct ref_gate *g, const struct weir_gate *real, weir_time now, uint32_t n)
{
	const struct ref_node *node = &g->nodes[n];
	struct weir_bucket_spec specs[REF_BUCKETS];
	double levels[REF_BUCKETS];
	int k = 0;

	CHECK_INT(weir_gate_get_buckets(real, now, n, specs, levels, REF_BUCKETS), node->n_buckets);
	for (unsigned kind = WEIR_HOLD; kind <= WEIR_LTOKENS; kind++) {
		for (unsigned i = 0; i < node->n_buckets; i++) {
			struct ref_bucket b = node->b[i];

			if (b.spec.kind != kind)
				continue;
			if (b.stamp < now)
				ref_bucket_fill(&b, now);
			CHECK_INT(specs[k].kind, kind);
			CHECK_INT(specs[k].unit, b.spec.unit);
			CHECK_INT(specs[k].ops, b.spec.ops);
			CHECK(specs[k].rate == (double)b.rate / 1024);
			CHECK(specs[k].size == (double)(b.size / REF_UNIT));
			if (levels[k] != (double)b.level / (double)REF_UNIT)
				FAIL("node %u: bucket %d of kind %u holds %.17g, not %.17g", n, k,
					kind, levels[k], (double)b.level / (double)REF_UNIT);
			k++;
		}
	}
}

static inline void readback(const struct ref_gate *g, const struct weir_gate *real, weir_time now)
{
	weir_node n = WEIR_ROOT, parent;
	uint32_t nodes = 0;
	double value;

	do {
		const struct ref_node *node = &g->nodes[n];

		CHECK(node->used);
		CHECK_INT(weir_gate_is_leaf(real, n), node->leaf);
		CHECK_INT(weir_gate_get_parent(real, n, &parent), n == WEIR_ROOT ? -EINVAL : 0);
		if (n != WEIR_ROOT)
			CHECK_INT(parent, node->parent);
		if (node->leaf) {
			CHECK_INT(weir_gate_get(real, n, WEIR_KNOB_PRIORITY, &value), 0);
			CHECK_INT(value, node->priority);
		}
		readback_buckets(g, real, now, n);
		nodes++;
	} while ((n = weir_gate_next_node(real, n)) != WEIR_ROOT);
	for (uint32_t i = 0; i < g->n_nodes; i++)
		nodes -= g->nodes[i].used;
	CHECK_INT(nodes, 0);
}

#endif
