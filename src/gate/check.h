/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check: ownership of requests, in builds with -Ddebug_checks=true.
 *
 * `reserved` of struct weir_req says whether the caller, the queue or the resource owns the request, and each
 * function asserts the state that it expects: a request that is submitted twice aborts the program at the second
 * submit, and not at some later call in a list that has become a circle. Other builds neither read nor write the
 * field.
 */
#pragma once

#include <weir/gate.h>
#include <assert.h>

enum check_place {
	CHECK_CALLER = 0, /* a zeroed request */
	CHECK_QUEUED = 0x5155,
	CHECK_INSIDE = 0x494e, /* handed out by weir_gate_next, and not done */
};

#ifdef WEIR_DEBUG_CHECKS
static inline void check_submit(struct weir_req *const *reqs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert(reqs[i]->reserved != CHECK_QUEUED && "request submitted twice");
		assert(reqs[i]->reserved != CHECK_INSIDE && "request submitted before it is done");
		assert(reqs[i]->reserved == CHECK_CALLER && "request not zeroed");
		reqs[i]->reserved = CHECK_QUEUED;
	}
}

static inline void check_next(struct weir_req *const *reqs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert(reqs[i]->reserved == CHECK_QUEUED && "request changed while it was queued");
		reqs[i]->reserved = CHECK_INSIDE;
	}
}

static inline void check_done(struct weir_req *const *reqs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert(reqs[i]->reserved == CHECK_INSIDE && "request done that is not inside");
		reqs[i]->reserved = CHECK_CALLER;
	}
}

/* Take a request back from the queue. */
static inline void check_cancel(struct weir_req *r)
{
	assert(r->reserved == CHECK_QUEUED && "request changed while it was queued");
	r->reserved = CHECK_CALLER;
}
#else
static inline void check_submit(struct weir_req *const *reqs, size_t n)
{
}
static inline void check_next(struct weir_req *const *reqs, size_t n)
{
}
static inline void check_done(struct weir_req *const *reqs, size_t n)
{
}
static inline void check_cancel(struct weir_req *r)
{
}
#endif
