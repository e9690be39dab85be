/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control: the controller of a cluster under pShift; control/pshift/pshift.h defines the protocol.
 *
 * The driver does three things:
 *   pshift_control_receive   passes each report
 *   pshift_control_step      is called at pshift_control_due at the latest; also after reports
 *   `send`                   sends a message to one server
 *
 * ROUNDS   Servers measure when a period begins, and every interval. When all have reported, or an
 *          eighth of an interval after the first report, tokens are placed again: those of the rest
 *          of this period (claims and caps), and those of a whole one (entitlements). Not if
 *          nothing changed; and a bucket that can be served as much with the tokens that its
 *          servers hold keeps them. A server's last report is extrapolated: used + serving·t, and
 *          so on. A server that has been silent for a period counts with no capacity, so that
 *          R-tokens go elsewhere.
 * INTERVAL (the paper's future work) If reported demand differs from the expected by more than 10 %
 *          of the servers' capacity in the interval, the interval is halved; below 2 %, it grows by
 *          a quarter.
 * LIMITS   Raised only by the rest in the books (control/pshift/books.h): a part that one server
 *          gives up is given to another when the first has acknowledged, one round trip later.
 *          Every server of a bucket keeps a floor: 1/16 of the limit in all, less if the
 *          reservation is nearly the limit, at least 1 token each. Of the unwanted rest half is
 *          spread, half is kept for new demand.
 *
 * Nothing here locks or reads a clock; one thread. O(entries) a round; an entry is a bucket at a
 * server.
 */
#ifndef WEIR_CONTROL_PSHIFT_CONTROL_H
#define WEIR_CONTROL_PSHIFT_CONTROL_H

#include "control/pshift/alloc.h"
#include "control/pshift/pshift.h"

struct pshift_control;

/* How R-tokens are placed. All but the first exist to show the effect of shifting in
 * experiments. */
enum pshift_placing {
	PSHIFT_SHIFT,
	PSHIFT_SPLIT,  /* in proportion to demand, whatever the servers can do */
	PSHIFT_RANDOM, /* the same, but the servers of each bucket's parts are drawn at random */
};

struct pshift_control_config {
	const char *name; /* copied; peer_name_check */
	uint64_t cluster;
	uint64_t instance; /* random at each start; its last bit is set from `rank` */
	/* 0: a controller. Else the rank of a server that may stand in: it leads only while no
	 * controller does and buckets wait for their reservations. */
	unsigned rank;
	weir_time length; /* ns of a QoS period */
	weir_time shortest,
		longest; /* ns of an interval; 0: length/20, length/2. Equal: it is fixed */
	const struct pshift_parallel *parallel; /* for placing; NULL: one thread. Borrowed */
	enum pshift_placing placing;
	/* Send a message to a server, or lose it, before returning. */
	void (*send)(void *arg, size_t server, const struct lease_message *m);
	void *arg;
};

/* 0, -EINVAL or -ENOMEM. */
int pshift_control_new(const struct pshift_control_config *config, struct pshift_control **ret);
void pshift_control_free(struct pshift_control *c);
uint64_t pshift_control_instance(const struct pshift_control *c); /* as in its messages */

/* Add a server of the cluster by the name in its reports. Return its index from 0, or -ENOMEM,
 * -EINVAL. */
int64_t pshift_control_server(struct pshift_control *c, const char *name);

struct pshift_control_bucket {
	uint64_t id;
	int64_t reservation; /* tokens a period, over all servers */
	int64_t limit;       /* the same, or LEASE_NO_LIMIT */
	uint32_t parts;      /* servers that have a static part of limit / parts; ≥ 1 */
};
/* Add a bucket, or change a known one (a lower limit holds from the period after the next). Return
 * its index from 0, or -EINVAL, -ENOMEM. */
int64_t pshift_control_bucket(struct pshift_control *c, const struct pshift_control_bucket *b);

/* PEER_TAKEN; PEER_OLD: known already; PEER_UNPROVEN: restarted, and is asked first; PEER_NOISE:
 * from a server outside the cluster; PEER_BROKEN: not for a controller; PEER_CROWD: no memory. */
enum peer_verdict pshift_control_receive(
	struct pshift_control *c, weir_time now, const struct lease_message *m);
/* 0; -ENOMEM (the next step repeats it). */
int pshift_control_step(struct pshift_control *c, weir_time now);
weir_time pshift_control_due(const struct pshift_control *c);

/* ---- looking at it */

struct pshift_control_status {
	uint64_t generation, period;
	bool started;   /* it knows the servers' holdings, and grants */
	bool standby;   /* it neither grants nor asks servers to follow it … */
	bool led;       /* … and another controller is followed */
	bool overdrawn; /* static parts of a bucket exceed its limit: policies differ */
	weir_time interval;
	size_t servers, heard, silent; /* in all; reported in full; silent for a period */
	size_t buckets, entries,
		waiting; /* waiting: limits that wait until a server gives up some */
	/* of a period's reservations with the present demand: see control/pshift/alloc.h */
	int64_t asked, phi;
	uint64_t rounds, grants, tokens; /* placed; messages; entries in them */
};
void pshift_control_status(const struct pshift_control *c, struct pshift_control_status *ret);

/* Report demand that no allocation can meet, by the last round: one line for each group of full
 * servers (control/pshift/alloc.h). The functions return names of servers and buckets by index. 0
 * or -ENOMEM. */
int pshift_control_explain(struct pshift_control *c, pshift_name *server_name,
	pshift_name *bucket_name, void *arg, void (*line)(void *arg, const char *words));

#endif
