/* SPDX-License-Identifier: BSD-3-Clause */
/* store-impl: between store.c and the kinds of stores. */
#pragma once

#include "serve/store/store.h"

/* Changes of a prefix from a revision on. rc: 0; -ESTALE: the store has forgotten some of them, and the watch has ended; else the
 * store was not reached, and the watch goes on when it is: then 0 is given without events. */
typedef void store_watched(void *arg, int rc, const struct store_event *events, size_t n,
	uint64_t revision, const struct weir_err *err);

struct store_watch; /* a kind's own */

struct store_ops {
	const char *name; /* what stands before the colon */
	int (*open)(
		struct loop *l, const char *rest, struct store **ret_store, struct weir_err *err);
	void (*close)(struct store *s); /* without followers; frees it */
	void (*ask)(struct store *s, const struct store_request *q, store_done *done, void *arg);
	/* Return NULL without memory. */
	struct store_watch *(*watch)(
		struct store *s, const char *prefix, uint64_t from, store_watched *fn, void *arg);
	void (*unwatch)(struct store_watch *w); /* its function is not called again; not from it */
};

struct store { /* first member of a kind's own */
	const struct store_ops *ops;
	struct loop *loop;
	struct store_follow *follows;
	char *shown; /* store_name */
};

extern const struct store_ops store_sqlite_ops, store_etcd_ops;

static inline bool store_has_prefix(const char *key, const char *prefix)
{
	while (*prefix && *key == *prefix) {
		key++;
		prefix++;
	}
	return !*prefix;
}
