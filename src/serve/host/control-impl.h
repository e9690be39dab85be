/* SPDX-License-Identifier: BSD-3-Clause */
/* control-impl: what the files of the control share. Nobody else includes it, but their tests. */
#pragma once

#include "control/controller.h"
#include "control/ids.h"
#include "policy/impl.h"
#include "serve/loop/daemon.h"
#include "serve/http/http.h"
#include "serve/host/fabric-host.h"
#include "serve/lease/lease-hub.h"
#include "serve/host/control.h"

struct control_server { /* by its index in the controller */
	char name[PEER_NAME_MAX + 1];
	struct lease_hub_server *link; /* NULL: it is not connected */
	struct lease_report last;      /* that it sent; length 0: none yet */
	weir_time at;                  /* when */
	uint64_t reports, grants;      /* messages from it and to it */
	bool told;                     /* `has` is from its connection */
	struct lease_has has;          /* what it last said about plans */
	char why[LEASE_WHY_MAX + 1];   /* it refused that one; "": it did not */
};

struct control_bucket {       /* by its index in the controller */
	char *path;           /* of its tenant */
	uint64_t reading;     /* the last one that had it */
	bool gone, next_gone; /* from the policy: it has no claim any more */
	/* In force; and as read: tokens a period; limit: LEASE_NO_LIMIT */
	struct policy_cluster_tokens is, next;
};

struct control_reading { /* of a policy, in steps */
	struct loop_timer timer;
	const struct weir_bounds *bounds; /* of its tenants; borrowed … */
	struct weir_bounds *own;          /* … unless computed */
	uint64_t number;
	size_t tenants, buckets; /* done, of the policy; of those known, for the gone ones */
};

struct control_asking; /* a client that waits for servers to take a plan */

struct control_plan {    /* control-plan.c */
	uint64_t number; /* 0: there was none */
	char *text;      /* NULL: none is in force */
	size_t length;
	uint8_t digest[LEASE_DIGEST];
	double applied; /* s since 1970 */
	struct loop_timer timer;
	struct control_asking *asking;
};

struct control {
	struct loop *loop;
	const struct weir_policy *policy;
	unsigned rank; /* not 0: it stands in, and loop and policy are its gateway's */
	struct control_options options;
	struct daemon daemon;
	struct peer_key key;
	const struct cluster_lead *lead; /* the machine of the controller, and its functions */
	void *machine;
	struct lease_hub *hub;
	struct fabric_host *
		fabric; /* NULL: the policy has no fabric; without a cluster it is all, and `machine` is NULL */
	struct http *http; /* NULL: none */
	struct control_plan plan;
	struct control_joined *joined; /* control-join.h; NULL: it is not of a cluster in a store */
	struct plans *plans;           /* serve/host/plans.h; NULL: none was asked for */
	weir_time started;

	struct control_server *servers;
	size_t n_servers;
	struct ids server_ids; /* by peer_hash of the name */
	struct control_bucket *buckets;
	size_t n_buckets, room_buckets;
	struct control_reading reading;

	char name[PEER_NAME_MAX + 1];
	uint64_t cluster, instance;
	uint8_t *frame; /* of what is sent */
	size_t frame_room;
	struct loop_timer timer;
	bool said_start; /* that it grants … */
	bool granted;    /* … as it did before */
	/* How long rounds took: CPU of this thread, in a step and in sending; for `weir bench`. */
	weir_time busy;
	uint64_t rounds;
	uint64_t unknown; /* reports of servers that the policy does not name */
};

/* control-policy.c: begin to read l->policy: its servers at once, its buckets in steps, which the loop's timer does, too.
 * Buckets that left keep their place, without a claim. Nothing else changes before the last step. bounds: of the policy,
 * borrowed while it is read; NULL: computed. 0 or -ENOMEM. */
int control_policy_begin(struct control *l, const struct weir_bounds *bounds);
#define CONTROL_POLICY_STEP 2048 /* buckets a step: about a millisecond */
int control_policy_step(
	struct control *l); /* 1: more is to be done; 0; -ENOMEM: the old ones stay */
void control_policy_stop(struct control *l);   /* drop what was begun */
void control_policy_reload(struct control *l); /* SIGHUP; what is wrong is logged */
/* Begin to read a policy, which is taken, with its text (NULL: it stays). 0, -ENOMEM, or -EINVAL: it may not follow the one in
 * force. */
int control_policy_take(struct control *l, struct weir_policy *p, char *text, struct weir_err *err);
/* For the hub, of the policy in force and that which is read: the most entries of a report; the most connections. */
size_t control_policy_entries(const struct control *l);
size_t control_policy_connections(const struct control *l);

/* control-plan.c: the plan of the cluster. Only a controller that grants sends it, with a number above those of all its servers; so of
 * two controllers' plans the later wins. */
int control_plan_start(struct control *l, struct weir_err *err); /* read the kept one */
void control_plan_stop(struct control *l);
void control_plan_greet(struct control *l, struct control_server *s); /* it has connected */
void control_plan_hear(struct control *l, struct control_server *s, const struct lease_message *m);
void control_plan_send(struct control *l); /* to all servers that lack it; it grants from now on */
struct json_t *control_plan_server(const struct control *l, const struct control_server *s);
void control_get_plan(struct control *l, struct http_request *q, struct http_reply *ret);
void control_put_plan(struct control *l, struct http_request *q, struct http_reply *ret);
void control_delete_plan(struct control *l, struct http_request *q, struct http_reply *ret);
void control_post_plan(struct control *l, struct http_request *q, struct http_reply *ret);
void control_post_admit(struct control *l, struct http_request *q, struct http_reply *ret);

/* control-api.c */
int control_api_start(struct control *l, struct weir_err *err);
