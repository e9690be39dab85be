/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check: whose a request is, in builds with -Ddebug_checks=true.
 *
 * There `reserved` of struct weir_req says whether the caller, the queue or the resource has the request, and
 * each call asserts that the caller hands over what is his to hand over: a request that is submitted twice
 * ends the program at the second submit, and not at some later call in a list that is a circle. Other builds
 * neither look nor write.
 */
#ifndef WEIR_GATE_CHECK_H
#define WEIR_GATE_CHECK_H

#include <weir/gate.h>
#include <assert.h>

enum check_place {
	CHECK_CALLER = 0, /* a zeroed request */
	CHECK_QUEUED = 0x5155,
	CHECK_INSIDE = 0x494e, /* handed out by next, and not done */
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

/* Taken back from the queue. */
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

#endif
