/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * store: keys and values that outlive a process and that several may share; the plug for what keeps them.
 *
 *   sqlite:FOLDER       embedded: a database in that folder, for the processes of one machine (sqlite.c)
 *   etcd:URL,URL…?KEY=VALUE&…   etcd, version 3, by its JSON gateway (etcd.c)
 *
 * Every change has a revision, greater than all before it. A transaction changes several keys, or none if one of its conditions
 * does not hold. Keys with a lease are removed when the lease is kept alive no longer. Everything happens on the loop: a request
 * is copied, and its `done` is called once, later, from the loop; or from store_close, with -ESHUTDOWN.
 *
 * Errors, with a message: -EAGAIN: the store was not reached, and nothing was changed; -ETIMEDOUT: no answer came, and the change may have
 * been made or not; -EPROTO: the answer is none of such a store; -EACCES: the store refuses this user; -EINVAL: it refuses the request;
 * -ENOENT: there is no such lease; -ENOSPC: the store is full; -EIO; -ENOMEM.
 */
#pragma once

#include <weir/err.h>
#include "serve/loop/loop.h"
#include <stddef.h>

#define STORE_KEY_MAX   256               /* bytes of a key: printable ASCII */
#define STORE_VALUE_MAX ((size_t)1 << 20) /* bytes; etcd takes 1.5 MiB in one request */
#define STORE_TXN_MAX   100               /* conditions, changes; etcd takes 128 */

struct store;

struct store_key { /* in a result: valid during the call */
	const char *key;
	const void *value; /* a NUL follows it */
	size_t length;
	uint64_t created, changed; /* revisions */
	uint64_t lease;            /* 0: none */
};

struct store_condition {
	const char *key;
	bool exists;      /* the key exists, whatever its revision is */
	uint64_t changed; /* else it was changed last at this revision; 0: there is no such key */
};

struct store_change {
	const char *key;
	bool remove;
	const void *value;
	size_t length;
	uint64_t lease; /* 0: none */
};

enum store_kind { STORE_LIST, STORE_TXN, STORE_GRANT, STORE_KEEP, STORE_REVOKE };

struct store_request { /* zero it */
	enum store_kind kind;
	/* list, in the order of keys */
	const char *prefix; /* of the keys */
	const char *after;  /* only keys behind this one; NULL: all */
	bool exact;         /* the prefix is the key */
	bool names;         /* without values */
	bool stale;         /* an older state will do, which a store without a majority has, too */
	size_t limit;       /* 0: 100 */
	/* txn */
	const struct store_condition *conditions;
	size_t n_conditions;
	const struct store_change *changes;
	size_t n_changes;
	bool brisk; /* ask the next server after a second without an answer */
	/* grant: s; keep, revoke: the lease */
	unsigned ttl;
	uint64_t lease;
};

struct store_result {
	uint64_t revision; /* of the store; txn: of the change */
	bool held;         /* txn: the conditions held, and the change is made */
	const struct store_key *keys;
	size_t n;
	bool more;      /* list: there are more keys */
	uint64_t lease; /* grant */
	unsigned ttl;   /* grant, keep: s */
};

typedef void store_done(
	void *arg, int rc, const struct store_result *result, const struct weir_err *err);

/* Open the store of that name; nothing is sent to a server yet. 0, -ENOMEM, -EINVAL: the name is wrong; or -EIO. */
int store_open(struct loop *l, const char *name, struct store **ret_store, struct weir_err *err);
/* Return false if it is an embedded store that nothing has made yet, which store_open would make. */
bool store_made(const char *name);
/* End the requests and followers, and free it. On the loop's thread, or after it. NULL is fine. */
void store_close(struct store *s);
const char *store_name(const struct store *s); /* for messages, as store_shown */
/* Copy the name of a store, or a URL of one, for messages: without options, and without a user and password before an '@'. NULL: no
 * memory. */
char *store_shown(const char *name);

void store_ask(struct store *s, const struct store_request *q, store_done *done, void *arg);

/* ---- follow */

struct store_event {
	struct store_key key;
	bool removed; /* only its name is set */
};

/*
 * Follow all keys of a prefix. `seen` is called with all of them first (fresh: a key that is not among them is gone), and then
 * with each change, in order; of several changes of one key only the last may be seen. When the store was away and has
 * forgotten what changed meanwhile, the whole is read again, as fresh. `trouble` (may be NULL) is called when the store is
 * not reached, with the reason; and with NULL when it is again.
 */
struct store_follow { /* owned by the caller, until store_unfollow or store_close; zero it */
	const char *prefix;
	void (*seen)(struct store_follow *f, bool fresh, const struct store_event *events, size_t n,
		uint64_t revision);
	void (*trouble)(struct store_follow *f, const char *why);
	/* private */
	struct store *store;
	struct store_follow *next, **link;
	struct store_gather *gather;
	struct store_watch *watch;
	struct loop_timer retry;
	bool failed;
};
void store_follow(struct store *s, struct store_follow *f);
void store_unfollow(struct store_follow *f); /* twice is fine; not in `seen` and `trouble` */
