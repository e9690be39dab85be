/* SPDX-License-Identifier: BSD-3-Clause */
/* keep: a frozen resource passes nothing and goes on in order; another one with its levels passes no more than it would have. */
#include "serve/handover/record.h"
#include "serve/resource-rig.h"
#include <unistd.h>

#define LIMITED "tenants: [{name: a, max: 10 iops, match: {export: a}}]"

struct seen {
	uint64_t n, last;
	bool in_order;
};

static void look(void *arg, struct request *q)
{
	struct seen *s = arg;

	s->in_order &= s->n++ == 0 || q->io.offset > s->last;
	s->last = q->io.offset;
}

static void test_freeze(void)
{
	struct seen s = {.in_order = true};
	struct asker a;
	struct world w;
	uint64_t done;

	world_new(&w, DISK LIMITED, false);
	join(&w, &a, "a", 0);
	for (unsigned i = 0; i < 40; i++)
		ask(&a, i);
	run_world(&w, WEIR_SEC);
	resource_freeze(w.resource, true);
	run_world(&w, WEIR_SEC / 10); /* the back end returns what it has */
	CHECK(resource_is_quiet(w.resource));
	done = a.done;
	CHECK(done >= 10 && done < 20);
	CHECK_INT(w.resource->queued, 0);
	ask(&a, 40);
	run_world(&w, WEIR_SEC);
	CHECK_INT(a.done, done);
	resource_each_waiting(w.resource, look, &s);
	CHECK_INT(s.n, 41 - done);
	CHECK(s.in_order);
	resource_freeze(w.resource, false);
	run_world(&w, 10 * WEIR_SEC);
	CHECK_INT(a.done, 41);
	CHECK_INT(a.errors, 0);
	world_free(&w);
}

/* Requests that pass in the first half second, with the levels of another gate, or without. */
static uint64_t passes(struct record_out *o)
{
	struct asker a;
	struct world w;
	uint64_t done;

	world_new(&w, DISK LIMITED, false);
	w.now = WEIR_SEC;
	turn(&w);
	if (o) {
		/* (The body of a record, without its header.) */
		struct record_in all = {.at = o->data + 32, .end = o->data + o->n}, in;
		const char *name;

		CHECK(record_section(&all, &name, &in));
		CHECK_INT(resource_take(w.resource, &in), 0);
		CHECK(!in.bad);
	}
	join(&w, &a, "a", 0);
	for (unsigned i = 0; i < 40; i++)
		ask(&a, i);
	run_world(&w, WEIR_SEC / 2);
	done = a.done;
	run_world(&w, 10 * WEIR_SEC);
	world_free(&w);
	return done;
}

static void test_levels(void)
{
	struct record_out o = {0};
	struct asker a;
	struct world w;
	size_t begun;

	world_new(&w, DISK LIMITED, false);
	join(&w, &a, "a", 0);
	for (unsigned i = 0; i < 40; i++)
		ask(&a, i);
	run_world(&w, WEIR_SEC);
	resource_freeze(w.resource, true);
	begun = record_begin(&o, "levels");
	resource_keep(w.resource, &o);
	record_end(&o, begun);
	CHECK_INT(o.error, 0);
	resource_freeze(w.resource, false);
	run_world(&w, 10 * WEIR_SEC);
	world_free(&w);
	CHECK(passes(NULL) > 5); /* its burst, too */
	/* One every 100 ms; the last has no reply yet. */
	CHECK_INT(passes(&o), 4);
	record_out_free(&o);
}

int main(void)
{
	RUN(test_freeze);
	RUN(test_levels);
	return 0;
}
