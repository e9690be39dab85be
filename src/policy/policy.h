/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy: the structures of a policy, for all rooms of this tree. Programs that use libweir see
 * them as opaque, so that a new key or controller changes no ABI.
 */
#pragma once

#include "control/controller.h"
#include "policy/net.h"
#include <weir/policy.h>
#include "base/arena.h"

struct weir_policy_tls {        /* files; NULL: not stated */
	const char *cert, *key; /* own certificate and key */
	const char *ca;         /* trusted authorities */
	const char *psk;        /* lines of NAME:HEXKEY */
	bool required;          /* gateway: clients without TLS are refused */
};

/* Rights of a client of the API; each role has those of the roles before it. */
enum policy_role { POLICY_ROLE_NONE, POLICY_ROLE_READ, POLICY_ROLE_OPERATE, POLICY_ROLE_ADMIN };
#define POLICY_ROLES 4
const char *policy_role_name(enum policy_role r); /* "none", "read", "operate", "admin" */
int policy_role_read(const char *name);           /* of "read" to "admin"; or -EINVAL */

struct policy_access_client {     /* one of user, group and cert is given */
	const char *user, *group; /* of this machine: a name or a number */
	const char *cert;         /* a pattern of a certificate's common name */
	enum policy_role role;
};

struct policy_access {                        /* `access`: who may use the API; NULL: not stated */
	struct weir_policy_tls tls;           /* of the API on TCP */
	const char *tokens;                   /* file */
	const char *audit;                    /* file */
	struct policy_access_client *clients; /* in `memory` */
	size_t n_clients;
};

struct weir_policy_peers { /* the other hosts, see weir-peers(7); NULL: not stated */
	const char **to;   /* addresses */
	size_t n_to;
	const char *listen, *key, *cluster;
	struct weir_place *to_at, listen_at; /* places in the file; to_at: of each of `to` */
	const char *host;                    /* name of this host; NULL: the machine's name */
	weir_time period;                    /* between two steps of the controllers */
};

struct weir_policy_cluster {      /* servers under one controller; n_servers 0: none */
	const char *name;         /* never NULL in a cluster */
	const char *key;          /* file */
	const char **controllers; /* addresses at which servers find the controller */
	size_t n_controllers;
	const char **listen; /* addresses at which it listens, if they differ */
	size_t n_listen;
	const char **servers; /* names of resources, over all machines; sorted */
	size_t n_servers;
	weir_time period;   /* a QoS period */
	weir_time interval; /* between two rounds of the controller; 0: it adapts */
	/* Addresses of the first servers, by name, while they stand in for the controller; none:
	 * beside the controller's unix socket. */
	const char **stand_ins;
	size_t n_stand_ins;
	bool no_stand_in; /* no server stands in */
	struct weir_place at;
};

#define POLICY_LAB_PROFILES 8 /* profile buckets per tenant */

enum policy_lab_given { /* keys of a tenant's `lab` */
	POLICY_LAB_PRIORITY = 1 << 3,
	POLICY_LAB_DEADLINE = 1 << 4,
	POLICY_LAB_PROFILE = 1 << 5,
	POLICY_LAB_RTOKENS = 1 << 6,
	POLICY_LAB_LTOKENS = 1 << 7,
	POLICY_LAB_RGRANT = 1 << 8,
	POLICY_LAB_LGRANT = 1 << 9,
};

struct policy_lab_tenant {  /* `lab` of a tenant, for experiments */
	size_t tenant;      /* index */
	unsigned given;     /* enum policy_lab_given */
	int priority;       /* 0 … 63; -1: none */
	weir_time deadline; /* order EDF; 0: none */
	struct weir_bucket_spec profile[POLICY_LAB_PROFILES];
	unsigned n_profile;
	struct weir_bucket_spec rtokens, ltokens; /* size 0: none */
	double rgrant, lgrant;                    /* in a change: tokens added once */
	struct weir_place at;
};

enum policy_lab_plan { POLICY_LAB_NO_PLAN, POLICY_LAB_MEISTER, POLICY_LAB_EDF };
enum policy_lab_only { POLICY_LAB_ALL, POLICY_LAB_STEADY, POLICY_LAB_SHARP };

struct policy_lab_resource { /* `lab` of a resource, for experiments */
	enum weir_order order;
	enum policy_lab_plan plan; /* made by the simulator before the run */
	unsigned pairs; /* of a plan: most buckets of a tenant, up to POLICY_LAB_PROFILES */
	enum policy_lab_only only; /* of a plan: the buckets that are used */
	bool holds;                /* of a plan: its buckets hold requests */
	unsigned levels;           /* of a plan: priorities that the stage can tell apart */
	bool blocking; /* of a plan: its bounds count requests of lower priority inside */
	double margin; /* of a plan: the device may take so many times the estimate; 1 or more */
	bool aligned;  /* of a plan: the workloads start so that their longest bursts coincide */
	bool estimates;
	weir_time estimate_io; /* device time of a request … */
	double estimate_rate;  /* … plus its bytes ÷ this, per second; 0: nothing */
	const char *profile;   /* file with the device time instead; NULL: none */
	struct weir_place at;
};

#define POLICY_LINK_LEVELS 7
struct policy_link { /* a stage of a planner: a port of the network, in one direction */
	const char *name;
	double rate;       /* bytes per second */
	unsigned levels;   /* priorities that it can tell apart */
	uint64_t overhead; /* bytes with each request and each reply */
	uint64_t mtu;      /* bytes: packets of messages interleave; 0: they do not */
	int device;        /* of `network`, in this direction; negative: not stated */
	enum policy_net_dir dir;
	/* DSCP of packets of a plan's priorities from 0 on, for switches; those beyond are left as they are. */
	uint8_t dscp[POLICY_LINK_LEVELS];
	unsigned n_dscp;
	struct weir_place at;
};
#define POLICY_LINK_OVERHEAD 128

struct policy_stage { /* of a path */
	bool link;
	uint32_t index; /* of the link, or the resource */
};

struct policy_planned {    /* keys of a tenant for a planner */
	const char *trace; /* file; NULL: none */
	const char *
		trace_of; /* a tenant of the file; NULL: the one of that name, if the file names tenants */
	const struct policy_stage *path;
	unsigned n_path;   /* 0: not stated */
	unsigned together; /* tenants of one number have their bursts together; 0: none */
	bool elsewhere;    /* its path is stated, and leads to another server of the cluster */
	struct weir_place trace_at, path_at;
};

struct weir_resource {
	const char *name, *back;             /* back: NULL when not stated, or if it has volumes */
	bool volumes;                        /* each of its exports has a back end of its own */
	const struct controller *controller; /* NULL: none */
	bool implied;         /* the controller is not named: the rest of the policy asks for it */
	const void *settings; /* of the controller, in the policy's memory */
	size_t settings_len;
	double depth;         /* the window until a controller sets it; 0: auto; POLICY_DEPTH_… */
	uint64_t depth_bytes; /* the window in bytes, not set by controllers; 0: none */
	enum weir_unit cost;
	struct weir_rate capacity[2]; /* stated, requests and bytes; per_second 0: not stated */
	bool capacity_auto;           /* no capacity is stated: learned */
	uint32_t run;
	uint64_t run_distance, credit;
	uint32_t io_unit; /* bytes that count as one request; larger ones count ⌈bytes/io_unit⌉ */
	double flush_cost, trim_cost; /* in requests, whole, ≥ 1 */
	/* back_at, capacity_at: places of these values, if stated */
	struct weir_place at, back_at, capacity_at;
	/* Access to the back end; 0: the back end's own default. */
	unsigned connections; /* to an upstream */
	weir_time timeout;    /* an upstream that is unreachable for longer is an error */
	weir_time stall;      /* volumes: one without a completion for so long is stalled; 0: 1 s */
	uint64_t keep;        /* bytes of writes kept until they are flushed */
	bool direct;          /* bypass the page cache */
	bool threads;         /* use threads and never io_uring */
	bool read_only;       /* no writes, whatever its exports say */
	/* lock: false: other programs may write to its file meanwhile */
	bool shared;
	struct weir_policy_tls tls; /* of an upstream */
	const char *profile;        /* file, of the work of requests; NULL: none */
	struct weir_place profile_at;
	struct policy_lab_resource lab;
};

/* Depths for experiments. */
#define POLICY_DEPTH_OPEN 1e6  /* `depth: none`: more than is ever inside */
#define POLICY_DEPTH_SHUT -1.0 /* `depth: 0`: the gate is closed */

#define POLICY_STALL_LEAST (100 * WEIR_MS)
#define WEIR_POLICY_KEEP_LEAST                                                                     \
	(1u << 20) /* bytes: a smaller buffer would flush after every few writes */

enum policy_given { /* keys of a class, or of a tenant */
	POLICY_GIVEN_WEIGHT = 1 << 0,
	POLICY_GIVEN_MIN = 1 << 1,
	POLICY_GIVEN_MAX = 1 << 2, /* with its burst */
	POLICY_GIVEN_SLO = 1 << 3,
};

struct policy_class { /* a named set of knobs */
	const char *name;
	struct weir_tenant knobs; /* weight, min, max, slo */
	unsigned given;           /* enum policy_given */
	struct weir_place at;
};

enum policy_by { /* the fields of a match in which the tenants of a template differ */
	POLICY_BY_EXPORT = 1 << 0,
	POLICY_BY_CLIENT = 1 << 1,
	POLICY_BY_UID = 1 << 2,
	POLICY_BY_TLS = 1 << 3,
};

struct weir_each {               /* a template; the match is its tenant's */
	struct weir_tenant leaf; /* knobs of a tenant: the class's and its own */
	struct weir_tenant own;  /* only its own keys, for an export that has a class */
	unsigned given;          /* which those are */
	const char *name;        /* of a tenant: "vm-{export}" */
	unsigned by;             /* enum policy_by */
	weir_time expire_after;  /* after the last client left */
	uint32_t max_tenants;
	uint32_t n_made; /* tenants that exist */
	struct weir_place at;
};

enum policy_export_from {
	POLICY_EXPORT_FILE,  /* the policy's file */
	POLICY_EXPORT_ADDED, /* the API */
	POLICY_EXPORT_FOUND  /* a folder of the resource's volumes */
};

struct policy_file {   /* the identity of a file, by which another one with its path differs */
	uint64_t dev;  /* 0: any, as it may change with a restart */
	uint64_t ino;  /* 0: not known */
	uint64_t born; /* ns since 1970; 0: its file system does not say */
};

static inline bool policy_file_same(const struct policy_file *a, const struct policy_file *b)
{
	return a->ino == b->ino && a->born == b->born && (a->dev == b->dev || !a->dev || !b->dev);
}

struct weir_export { /* a part of a resource, or a volume, under a name that clients ask for */
	const char *name;
	int resource; /* index */
	const char *
		back; /* of a volume: its own storage behind the resource's gate; NULL: a part of the resource's */
	uint64_t offset; /* bytes */
	uint64_t size;   /* bytes; 0: up to the resource's end */
	struct weir_place at;
	bool read_only;
	enum policy_export_from from;
	const char *description; /* shown to clients; NULL: none */
	const char *class_;      /* in place of the class of a template; NULL: none */
	struct policy_file file; /* of a volume that a folder has */
};

struct weir_folder {        /* of a resource's volumes: each file in it that fits is one */
	int resource;       /* index */
	const char *dir;    /* absolute */
	const char *match;  /* pattern of files' names */
	const char *name;   /* of the volume, with {stem} or {name}; policy/folder.h */
	const char *class_; /* NULL: none */
	bool read_only;
	struct weir_place at;
};

enum weir_policy_log_level {
	WEIR_POLICY_LOG_ERROR,
	WEIR_POLICY_LOG_WARNING,
	WEIR_POLICY_LOG_INFO,
	WEIR_POLICY_LOG_DEBUG
};
enum weir_policy_log_form { WEIR_POLICY_LOG_TEXT, WEIR_POLICY_LOG_JSON };

struct weir_policy {
	struct weir_tenant *tenants; /* parents before children */
	size_t n_tenants;
	struct weir_resource *resources;
	size_t n_resources;
	bool enforce;        /* false: shadow mode */
	struct arena memory; /* owns every string above, and the lists of them */
	struct weir_export *exports;
	size_t n_exports;
	struct policy_class *classes; /* in `memory` */
	size_t n_classes;
	struct weir_folder *folders;
	size_t n_folders;
	struct policy_link *links; /* in `memory` */
	size_t n_links;
	const char **listen; /* "unix:/run/weir/nbd.sock", "tcp:127.0.0.1:10809" */
	size_t n_listen;
	/* index of the tenant for requests that match none; -1: these are refused */
	int default_tenant;
	/* For the gateway; NULL or 0: not stated. */
	const char **api; /* addresses of the HTTP API, as in listen */
	size_t n_api;
	const char *token; /* file; there is one when api names a TCP address */
	struct policy_access access;
	const char *state;        /* folder for state kept across a restart */
	const char *recordings;   /* folder for recorded traces */
	const char *tenants_text; /* text of the file that `tenants` names; NULL: it names none */
	unsigned threads;         /* workers; 0: auto */
	uint64_t buffers;         /* key `memory`: bytes for payloads, all threads together */
	weir_time client_timeout; /* time after which clients give up; 0: never */
	enum weir_policy_log_level log_level; /* INFO when not stated */
	enum weir_policy_log_form log_form;
	struct weir_policy_tls tls;
	struct weir_policy_peers peers;
	struct weir_policy_cluster cluster;
	bool lab;                       /* keys for experiments are accepted */
	struct policy_lab_tenant *labs; /* in order of tenants */
	size_t n_labs;
	struct policy_network *network;   /* in `memory`; NULL: none */
	const struct policy_index *index; /* in `memory`; NULL: policy built by hand */
};

/* Return true if each resource is one export, whole: none is stated, and no resource has volumes, now or later. */
static inline bool policy_whole(const struct weir_policy *p)
{
	bool whole = !p->n_exports;

	for (size_t i = 0; whole && i < p->n_resources; i++)
		whole = !p->resources[i].volumes;
	return whole;
}

/* Return true if both have the same fields. */
bool policy_match_same(const struct weir_match *a, const struct weir_match *b);
/* Return true if both name the same files. */
bool policy_tls_same(const struct weir_policy_tls *a, const struct weir_policy_tls *b);

bool policy_access_same(const struct policy_access *a, const struct policy_access *b);

/* Return the `lab` of a tenant, or NULL. */
const struct policy_lab_tenant *policy_lab_of(const struct weir_policy *p, size_t tenant);
/* Check that a gateway can apply the policy's `lab`; if not, -EINVAL with the key's name. */
int policy_lab_served(const struct weir_policy *p, struct weir_err *err);
/* The part of it about the controller of a resource. */
int policy_lab_controls(const struct weir_resource *r, struct weir_err *err);

/* As weir_policy_parse_all; with `lab`, keys for experiments are accepted. */
int policy_parse_lab(const char *text, size_t len, const char *name, bool lab,
	weir_policy_reader *reader, void *reader_arg, struct weir_policy **ret_policy,
	struct weir_policy_remarks *ret_remarks);

/* policy_parse_tenants: as weir_policy_parse_all of such a list or map alone. Their `servers` may have any names.
 *
 * policy_parse_more: as weir_policy_parse_all of a policy with more tenants after its own: a list of tenants, or a map with the key `tenants`.
 * *ret_first is the index of the first of them. */
struct policy_text {
	const char *text;
	size_t len;
	const char *name; /* for messages */
};
int policy_parse_tenants(const struct policy_text *tenants, struct weir_policy **ret_policy,
	struct weir_policy_remarks *ret_remarks);
int policy_parse_more(const struct policy_text *policy, const struct policy_text *more,
	weir_policy_reader *reader, void *reader_arg, struct weir_policy **ret_policy,
	size_t *ret_first, struct weir_policy_remarks *ret_remarks);

/* Make a resource with every default, as `{name: NAME}` gives it. `name` is borrowed. */
void policy_resource_default(const char *name, struct weir_resource *ret_resource);

/* The version of the policy (NULL: none) that the controller of a resource sees; `rules` and `next` are the caller's.
 * bounds: by tenant; NULL if there is no cluster. All are borrowed. */
struct controller_version policy_version(const struct weir_policy *p, const struct weir_resource *r,
	const struct weir_bounds *bounds);
/* Its tenant i: of v->of, a policy. */
struct controller_tenant policy_version_tenant(const struct controller_version *v, size_t i);

/* Copy a policy with all its strings, to change a value in the copy. 0 or -ENOMEM. Freed by weir_policy_free, like the
 * original. */
int policy_copy(const struct weir_policy *from, struct weir_policy **ret_policy);
/* In a policy without tenants all clients are equal: add one tenant, called "everybody", for all
 * unmatched requests. Does nothing if there are tenants. 0 or -ENOMEM. */
int policy_copy_everybody(struct weir_policy *p);
