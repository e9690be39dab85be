/* SPDX-License-Identifier: BSD-3-Clause */
/* facts: the values that pShift shows of one server, its leases, and its links to the
 * controllers. */
#pragma once

#include "control/facts.h"
#include "control/pshift/server.h"

struct pshift_facts_bucket { /* of one bucket of the server */
	bool here;           /* it belongs to a tenant of the policy in force */
	bool active;         /* it had a request */
	uint32_t tenant;     /* index */
	uint64_t last;       /* tokens used in the last period */
	int64_t more;        /* tokens used since the server's last count */
};

struct pshift_facts_of { /* pshift_facts.fill's `of` */
	const struct pshift_server *server;
	double capacity;      /* tokens a second, as estimated */
	uint64_t last_period; /* the one before this; 0: none yet */
	uint64_t looks;
	weir_time busy; /* ns of all looks */
	/* Get bucket i, 0 … n − 1; of more than PSHIFT_FACTS_LEASES only those with a request are
	 * listed. `more` is only asked for those. */
	void (*bucket)(void *arg, size_t i, bool more, struct pshift_facts_bucket *ret);
	void *arg;
	size_t n;
	bool unlisted; /* list none: these tenants are not the site's */
};
#define PSHIFT_FACTS_LEASES 1000

struct pshift_facts_self {
	struct pshift_server_status status;
	const char *state;
	bool leased;
	double capacity;
	uint64_t last_period, looks, leases_all; /* leases_all: including those not listed */
	weir_time busy;
};

struct pshift_facts_lease {
	struct facts_row row; /* key: tenant */
	struct pshift_server_tokens tokens;
	uint64_t last;
};

extern const struct facts_kind pshift_facts;
