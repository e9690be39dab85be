/* SPDX-License-Identifier: BSD-3-Clause */
/* lessor-impl: shared by the files of the lessor, and their tests. */
#ifndef WEIR_SERVE_HOST_LESSOR_IMPL_H
#define WEIR_SERVE_HOST_LESSOR_IMPL_H

#include "control/pshift/control.h"
#include "control/pshift/ids.h"
#include "serve/loop/daemon.h"
#include "serve/api/http.h"
#include "serve/host/lease-hub.h"
#include "serve/host/lessor.h"

struct lessor_server { /* by its index in the controller */
	char name[PEER_NAME_MAX + 1];
	struct lease_guest *guest; /* NULL: not connected */
	struct lease_report last;  /* its last report; length 0: none yet */
	weir_time at;              /* when */
	uint64_t reports, grants;  /* messages from it and to it */
};

struct lessor_bucket {              /* by its index in the controller */
	char *path;                 /* of its tenant */
	bool gone;                  /* removed from the policy: it has no claim any more */
	int64_t reservation, limit; /* tokens a period; limit: LEASE_NO_LIMIT */
};

struct lessor {
	struct loop *loop;
	const struct weir_policy *policy;
	unsigned rank; /* not 0: it stands in, and loop and policy belong to its gateway */
	struct lessor_options options;
	struct daemon daemon;
	struct peer_key key;
	struct pshift_control *control;
	struct lease_hub *hub;
	struct http *http; /* NULL: none */
	weir_time started;

	struct lessor_server *servers;
	size_t n_servers;
	struct pshift_ids server_ids; /* by peer_hash of the name */
	struct lessor_bucket *buckets;
	size_t n_buckets;
	struct pshift_ids bucket_ids;

	char name[PEER_NAME_MAX + 1];
	uint64_t cluster, instance;
	uint8_t *frame; /* output buffer */
	size_t frame_room;
	struct loop_timer timer;
	bool said_start; /* the start of granting was logged … */
	bool granted;    /* … it has granted before */
	/* CPU time of this thread for rounds, in a step and in sending; for `weir bench`. */
	weir_time busy;
	uint64_t rounds;
	uint64_t unknown; /* reports of servers that are not in the policy */
};

/* lessor-policy.c: add the servers and buckets of l->policy to the controller. Removed ones keep
 * their place, without a claim. 0 or -ENOMEM. */
int lessor_policy_take(struct lessor *l);
void lessor_policy_reload(struct lessor *l); /* SIGHUP; errors are logged */

/* lessor-api.c */
int lessor_api_start(struct lessor *l, struct weir_err *err);

#endif
