/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * elect: which of several controllers leads, by a lease in a store; and the generation under which it does.
 *
 * SOURCE   Gray, Cheriton: Leases, SOSP 1989; the generation is a sequencer as in Burrows: The Chubby lock service, OSDI 2006,
 *          §2.4.
 * LAW      (1) The leader is the controller whose lease has the key elect/leader. The key is created by a transaction that fails
 *          if it exists, and goes with the lease.
 *          (2) Its generation is the create revision of that key + the number in elect/offset: a later leader's is higher, since
 *          revisions grow. The transaction that creates the key fails if the offset is not the one that was read.
 *          (3) A leader leads under a generation only if that is above all that any server reports. Otherwise it raises the offset
 *          first, by a transaction that fails if the key is no longer its own. So a store that was restored from a backup, with
 *          lower revisions, is not refused, nor are generations reused that stand-ins had meanwhile.
 *          (4) It trusts its lease until the time at which the last keep-alive that was answered was sent, + the lease's time
 *          − 20 %, by a clock that goes on while the machine sleeps: the store counts from a later moment. It begins to lead only
 *          with a lease that it trusts.
 *          (5) A leader whose lease is not trusted goes on: the servers' majority decides then (control/pshift/pshift.h), and a
 *          new leader, with its higher generation, has that majority first. It stands down when the store says that the lease or
 *          the key is gone.
 * SYMBOLS  now: ns, CLOCK_BOOTTIME; highest: the highest generation that is used up: reported by a server, or of this
 *          controller itself and lost; not the one under which it leads.
 * METHOD   One request at a time, chosen by elect_next: a lease; its renewal, every quarter of its time; a look at the keys after
 *          each; the key, if there is none; the offset. An answer that did not come, or was no, is followed by a look.
 * DIFFERS  Standbys look every quarter of a lease's time, and follow no watch: a leader that ends gives its lease back, and one
 *          that is lost is noticed a quarter later than its lease's end.
 * EXAMPLE  created 40, offset 0: generation 40. A server reports 57: the offset becomes 18, the generation 58. The next leader's
 *          key is created at 90, its generation is 108.
 *
 * Pure: the caller sends the requests (serve/host/control-elect.c).
 */
#pragma once

#include <weir/clock.h>
#include <stdbool.h>
#include <stdint.h>

#define ELECT_PREFIX "elect/"
#define ELECT_LEADER "elect/leader" /* a JSON object with the leader's name */
#define ELECT_OFFSET "elect/offset" /* a number */
#define ELECT_TTL    5              /* s */

enum elect_act {
	ELECT_WAIT,
	ELECT_GRANT, /* a lease of ttl */
	ELECT_KEEP,  /* the lease alive */
	ELECT_READ,  /* both keys, as the store's majority has them */
	ELECT_CAMPAIGN, /* if there is no leader, and the offset is at offset_changed: create its key with the lease */
	ELECT_RAISE, /* if the leader's key was changed at `created`, and the offset at offset_changed: put `raise` there */
};

struct elect { /* zero it, and set ttl; the rest is private, but for a look */
	weir_time ttl;
	uint64_t lease;    /* 0: none */
	weir_time trusted; /* until then */
	uint64_t created;  /* revision of the leader's key, which is ours; 0: it is not */
	bool other;        /* another one leads */
	uint64_t offset, offset_changed; /* its revision; 0: there is no such key */
	uint64_t raise;
	/* private */
	enum elect_act doing; /* WAIT: nothing is under way */
	weir_time sent, renew, retry;
	bool looked;
};

struct elect_answer {                    /* of a request that the store did */
	uint64_t lease;                  /* GRANT; READ: of the leader's key, 0: there is none */
	weir_time ttl;                   /* GRANT, KEEP */
	bool held;                       /* CAMPAIGN, RAISE */
	uint64_t revision;               /* CAMPAIGN, RAISE: of the change */
	uint64_t created;                /* READ: of the leader's key */
	uint64_t offset, offset_changed; /* READ */
};

/* Return the next request, which the caller sends now and ends by elect_end; or WAIT, and when to ask again. */
enum elect_act elect_next(struct elect *e, weir_time now, uint64_t highest, weir_time *ret_at);
/* rc 0: done, with its answer. -ENOENT: there is no such lease. Else it is not known if it was done. */
void elect_end(struct elect *e, weir_time now, int rc, const struct elect_answer *a);
/* Return the generation under which to lead from now on; 0: none. */
uint64_t elect_generation(const struct elect *e, weir_time now, uint64_t highest);
static inline bool elect_trusts(const struct elect *e, weir_time now)
{
	return e->created && now < e->trusted;
}
