/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control: the controller of a cluster under pShift; control/pshift/pshift.h has the protocol.
 *
 * Whoever drives it does three things:
 *   pshift_control_receive   hands over each report
 *   pshift_control_step      at the latest when pshift_control_due says; after reports, too
 *   `send`                   carries its messages to one server
 *
 * ROUNDS   Servers measure when a period begins, and every interval. When all have been heard, or an eighth of an
 *          interval after the first news, tokens are placed again with what has been heard by then:
 *          of the rest of this period (claims and caps), and of a whole one (entitlements). Not if
 *          nothing changed; and a bucket that can be served as much with the tokens that its servers hold
 *          keeps them. What was heard last of a server is carried on: used + serving·t, and so on. Of
 *          who has been silent for a period the capacity counts as none, so that R-tokens go elsewhere.
 * INTERVAL (the paper's future work) Where demands that were reported differ from what was expected by
 *          more than 10 % of what the servers can do in the interval, it is halved; by less than 2 %, it
 *          grows by a quarter.
 * LIMITS   Raised only by what the books leave (control/pshift/books.h): what one server gives up is another's
 *          when the first has said so, one round trip later. Every server of a bucket keeps a floor:
 *          1/16 of the limit in all, less where the reservation is nearly the limit, 1 token each at least.
 *          Of what nobody wants half is spread, half is kept for whoever wants it next.
 *
 * Nothing here locks or reads a clock; one thread. O(entries) a round; an entry is a bucket at a server.
 */
#ifndef WEIR_CONTROL_PSHIFT_CONTROL_H
#define WEIR_CONTROL_PSHIFT_CONTROL_H

#include "control/pshift/alloc.h"
#include "control/pshift/pshift.h"

struct pshift_control;

/* How R-tokens are placed. All but the first are there so that an experiment can show what shifting does. */
enum pshift_placing {
	PSHIFT_SHIFT,
	PSHIFT_SPLIT,  /* in proportion to demand, whatever the servers can do */
	PSHIFT_RANDOM, /* the same, but each bucket's parts at servers drawn at random */
};

struct pshift_control_config {
	const char *name; /* copied; peer_name_check */
	uint64_t cluster;
	uint64_t instance; /* random at each start; its last bit becomes what `rank` says */
	/* 0: a controller. Else the rank of a server that may stand in: it leads only while no controller does, and
	 * buckets wait for their reservations. */
	unsigned rank;
	weir_time length; /* ns of a QoS period */
	weir_time shortest,
		longest; /* ns of an interval; 0: length/20, length/2. Equal: it is fixed */
	const struct pshift_parallel *parallel; /* for placing; NULL: one thread. Borrowed */
	enum pshift_placing placing;
	/* A message for a server: to be sent or lost before this returns. */
	void (*send)(void *arg, size_t server, const struct lease_message *m);
	void *arg;
};

/* 0, -EINVAL or -ENOMEM. */
int pshift_control_new(const struct pshift_control_config *config, struct pshift_control **ret);
void pshift_control_free(struct pshift_control *c);
uint64_t pshift_control_instance(const struct pshift_control *c); /* as its messages have it */

/* Who belongs to the cluster: the name that its reports carry. Its index from 0, or -ENOMEM, -EINVAL. */
int64_t pshift_control_server(struct pshift_control *c, const char *name);

struct pshift_control_bucket {
	uint64_t id;
	int64_t reservation; /* tokens a period, over all servers */
	int64_t limit;       /* the same, or LEASE_NO_LIMIT */
	uint32_t parts;      /* servers that have a static part of limit / parts; ≥ 1 */
};
/* A new bucket, or other numbers of a known one (a limit that falls holds from the period after the
 * next): its index from 0, or -EINVAL, -ENOMEM. */
int64_t pshift_control_bucket(struct pshift_control *c, const struct pshift_control_bucket *b);

/* PEER_TAKEN; PEER_OLD: known already; PEER_UNPROVEN: started anew, and is asked first; PEER_NOISE: of who does not belong here; PEER_BROKEN: not for a
 * controller; PEER_CROWD: no memory. */
enum peer_verdict pshift_control_receive(
	struct pshift_control *c, weir_time now, const struct lease_message *m);
/* 0; -ENOMEM (the next step makes up for it). */
int pshift_control_step(struct pshift_control *c, weir_time now);
weir_time pshift_control_due(const struct pshift_control *c);

/* ---- looking at it */

struct pshift_control_status {
	uint64_t generation, period;
	bool started; /* it knows what the servers hold, and grants */
	bool standby; /* it neither grants nor asks servers to follow it … */
	bool led;     /* … and another controller is followed */
	bool overdrawn; /* static parts of some bucket are more than its limit: a policy that differs */
	weir_time interval;
	size_t servers, heard, silent; /* in all; reported in full; silent for a period */
	size_t buckets, entries,
		waiting; /* waiting: limits that wait for a server to give up some */
	int64_t asked,
		phi; /* of a period's reservations with the demand of now: see control/pshift/alloc.h */
	uint64_t rounds, grants, tokens; /* placed; messages; entries in them */
};
void pshift_control_status(const struct pshift_control *c, struct pshift_control_status *ret);

/* What no allocation can meet, with the demand of the last round: one line for each group of servers that
 * are full (control/pshift/alloc.h). names: of a server and of a bucket, by index. 0 or -ENOMEM. */
int pshift_control_explain(struct pshift_control *c, pshift_name *server_name,
	pshift_name *bucket_name, void *arg, void (*line)(void *arg, const char *words));

#endif
