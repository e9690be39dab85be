/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gateway: `weir serve`: threads, listeners, exports, the policy in force, and its changes.
 *
 * The main thread runs the listeners, the handshakes (serve/front/door.c), the API and the
 * controllers' timers; workers run the data path. A resource lives on one worker. All functions
 * here are for the main thread.
 *
 *   gateway.c        start and end
 *   serve/gateway/export.c exports by name
 *   serve/gateway/run.c    signals; run, stop
 *   serve/gateway/listen.c sockets that listen; accept
 *   serve/gateway/policy.c the next version of the policy; overrides kept across a restart
 *   serve/gateway/change.c put it in force
 *   serve/gateway/resources.c  resources are opened, put in force and removed
 *   serve/gateway/volume.c the same for their volumes
 *   serve/gateway/bypass.c bypass the gate of a resource
 *   serve/gateway/divide.c max and min of tenants that use several resources
 *   serve/gateway/slo.c    slos of tenants: met or missed
 *   serve/gateway/ledger.c AdapTBF's loans, kept across a restart
 *   worker.c         a thread: its loop, memory and resources
 *   serve/gateway/fronts.c the front ends, by name
 *   serve/front/           connections of clients, by protocol
 */
#pragma once

#include <weir/err.h>
#include "policy/policy.h"
#include "serve/front/front.h"
#include "serve/loop/loop.h"
#include "serve/resource/resource.h"
#include "serve/snapshot/note.h"
#include "serve/snapshot/snapshot.h"

struct gateway;
struct gateway_link;
struct gateway_version;
struct worker;

struct gateway_options {
	unsigned threads;  /* workers; 0: the policy's, else one a core. At most one a resource */
	bool bare;         /* no gates: for benchmarks */
	size_t memory;     /* bytes of payload buffers; 0: the policy's, else 1 GiB */
	const char *state; /* folder for overrides; NULL: the policy's; else they are not kept */
	const int *cores;  /* workers are pinned to these; NULL: not pinned */
	size_t n_cores;
	const char *const *listen; /* addresses instead of the policy's; NULL: the policy's */
	size_t n_listen;
	const int *sockets; /* listening already (systemd's), non-blocking: beside those; owned */
	size_t n_sockets;
	bool read_only; /* every export, whatever the policy says */
	/* connections of controllers with other hosts (links.h), NULL-terminated; NULL: none */
	const struct gateway_link *const *links;
	/* without exports in the policy there is one, "": all of the first resource, under any
	 * name */
	bool any_name;
	/* called with each policy after the first when it is in force; may be NULL */
	void (*entered)(void *arg, const struct weir_policy *p);
	void *entered_arg;
};

/* Take the policy (owned, also on failure), open back ends and listeners; options are copied. Text
 * and name are kept for display, and `reread` reads the file again on SIGHUP. */
int gateway_new(struct weir_policy *p, const char *text, const char *name,
	const struct gateway_options *o, struct gateway **ret_gateway, struct weir_err *err);
void gateway_reader(struct gateway *g, weir_policy_reader *reader, void *arg);
/* Run until SIGTERM, SIGINT or gateway_stop. Then refuse new clients, let requests inside finish
 * (up to 5 s), and flush back ends. */
int gateway_run(struct gateway *g);
void gateway_stop(struct gateway *g); /* the second call drops requests inside */
void gateway_free(struct gateway *g);
struct loop *gateway_loop(struct gateway *g);
/* Run all tasks posted to the loop, which does not run. */
void gateway_drain(struct gateway *g);

/* ---- change */

/* Opens the gate of a resource (all that waits and all that comes goes past it), or closes it again; at
 * once, and until it is told otherwise or ends. -ENOENT: no such resource. */
int gateway_bypass(struct gateway *g, const char *resource, bool on, uint32_t *ret_released,
	struct weir_err *err);
const char *gateway_bypassed(const struct gateway *g, size_t i); /* i-th open one, or NULL */

/* A change of the policy: one version, applied whole or not at all (-EINVAL with a message), while requests are served.
 * A separate thread parses and compares; gates change in short steps. Changes run one after the other. `done` is called
 * from the loop, once, also when the gateway is freed before (-ESHUTDOWN); the note and err are valid during the
 * call. */
struct gateway_change;
/* A policy through the API: it may name only files that the policy in force names. text: malloc'ed, taken, with room
 * for a NUL behind it; its last `tenants` bytes are the text of the file that `tenants` names. keep: values of `set`
 * stay; else they are removed, and the note says so. dry: report the differences and change nothing. Each returns NULL
 * without memory. */
struct gateway_change *gateway_change_apply(
	char *text, size_t len, size_t tenants, const char *name, bool keep, bool dry);
/* "prod/db.max" "5k iops"; value NULL: back to what the policy says. Kept across a restart. */
struct gateway_change *gateway_change_set(const char *key, const char *value);
struct gateway_change *gateway_change_reload(void); /* SIGHUP */
/* The same with these values of `set` (copied) instead of those in force: another version of a cluster's policy. */
struct gateway_override;
struct gateway_change *gateway_change_follow(const struct gateway_override *sets, size_t n);
void gateway_change_dry(struct gateway_change *c); /* only say what would change; NULL is fine */
/* A plan's file (serve/gateway/plan.h), malloc'ed and taken; NULL: no plan. It is refused (-EINVAL) unless it was made for the policy
 * and the profiles in force. Kept across a restart. dry: say whether it would be taken. */
struct gateway_change *gateway_change_plan(char *text, size_t len, bool dry);
/* The same from the cluster's controller: its number, which must be higher than that of the last, and the digest of its file of tenants,
 * in hex, instead of the policy's. */
struct gateway_change *gateway_change_plan_of_cluster(
	char *text, size_t len, uint64_t number, const char *tenants);
/* A request about a volume that the file does not state. The same request twice is one change. -EBUSY: the name exists with
 * other parameters, or the file states the volume, or it has clients; -ENOENT: there is no such volume to change, or no such
 * resource; -EINVAL. Kept across a restart. */
enum gateway_volume_op { VOLUME_PUT, VOLUME_CHANGE, VOLUME_REMOVE };
struct gateway_volume_request { /* NULL or 0: not stated */
	enum gateway_volume_op op;
	const char *name, *resource;
	const char *back;   /* put: storage that exists */
	uint64_t size;      /* bytes; put: of a file that is created; change: it grows to that */
	const char *class_; /* change: "": none */
	bool force, keep;   /* remove: also if it has clients; leave its file where it is */
};
struct gateway_change *gateway_change_volume(const struct gateway_volume_request *q);
void gateway_change_free(struct gateway_change *c); /* one that was not started; NULL is fine */
typedef void gateway_changed_fn(
	void *arg, int rc, const struct gateway_note *note, const struct weir_err *err);
void gateway_change_start(
	struct gateway *g, struct gateway_change *c, gateway_changed_fn *done, void *arg);

/* ---- look */

/* Gather a snapshot without blocking, and call `done`, which owns it, from the loop; with NULL if
 * the gateway is freed before. clients_of: snapshot.h. 0 or -ENOMEM. */
typedef void gateway_look_fn(void *arg, struct snapshot *s);
int gateway_look(struct gateway *g, const char *clients_of, gateway_look_fn *done, void *arg);
/* Give up pending looks and refuse new ones. The loop does not run. */
void gateway_looks_stop(struct gateway *g);
uint64_t gateway_version(const struct gateway *g); /* of the policy in force: 1 at the start */
struct gateway_version *gateway_in_force(const struct gateway *g); /* borrowed */
const struct weir_policy *gateway_policy(const struct gateway *g);
const char *gateway_policy_text(const struct gateway *g);
/* Return the name of the policy file given at the start, and its reader; NULL: there is none. */
const char *gateway_own_file(
	const struct gateway *g, weir_policy_reader **ret_reader, void **ret_arg);
/* Get override i; return false if there is none. */
bool gateway_override(
	const struct gateway *g, size_t i, const char **ret_key, const char **ret_value);

/* One volume, for a list. */
struct gateway_volume_view {
	const char *name, *resource, *back, *class_; /* class_: NULL: none */
	/* Of its clients, which a template may have yet to make; "": not by its name alone. 16 names of 63 bytes, each with a separator. */
	char tenant[16 * 64];
	const char *from;    /* "file", "api" or "dir" */
	bool open;           /* false: it could not be opened */
	const char *trouble; /* what is wrong with it though it is open; NULL: nothing */
	uint64_t size;       /* bytes; 0: not known yet */
	uint32_t clients;
	uint64_t requests, bytes; /* since it was opened */
};
/* Get the volume of a name; or the i-th export if name is NULL, with the name NULL if it is no volume. Return false if there is
 * none. Valid until the loop runs again. */
bool gateway_volume_view(
	struct gateway *g, const char *name, size_t i, struct gateway_volume_view *ret);
/* Return the i-th reason why a volume, or a folder of them, is not served; NULL: no more. */
const char *gateway_volume_unserved(const struct gateway *g, size_t i);
/* Return the i-th remark of gateway_version; NULL: no more. */
const char *gateway_volume_remark(const struct gateway *g, size_t i);
/* Return the URI of an export, malloc'ed; NULL: no address that a client can use, or no memory. */
char *gateway_uri(const struct gateway *g, const char *export_);

/* Check that a client could be admitted. 0, or -EINVAL: there are tenants, and no client could
 * match one. Otherwise such a mistake would only show when the first client comes, or the last is
 * disconnected. Without tenants all clients are equal. */
int gateway_lets_in(const struct weir_policy *p, struct weir_err *err);
/* Check that no two volumes or resources that the policy names have one file or device, by any path, or a path where nothing
 * is yet; unless one of them does not lock the file, or both only read. 0, -ENOMEM; or
 * -EINVAL with a message that has both places. serve/gateway/twice.c */
int gateway_files_once(const struct weir_policy *p, struct weir_err *err);
/* Check the names of the back ends, of resources and of volumes, as far as possible without opening them. 0, or -EINVAL with a
 * message and its place. serve/gateway/export.c */
int gateway_backs_check(const struct weir_policy *p, struct weir_err *err);
/* Check that the file of a back end, which resource r or its volume `name` is to have, is not that of another volume or resource of
 * a policy, in the same sense, but those of folders count. 0, -ENOMEM, or -EBUSY with a message that names the other. */
int gateway_file_free(const struct weir_policy *p, const struct weir_resource *r, const char *name,
	const char *back, struct weir_err *err);

/* Check that the export lies inside its resource, of so many bytes. 0, or -EINVAL with a message
 * and its place. */
int gateway_export_fits(
	const struct weir_export *e, const char *resource, uint64_t size, struct weir_err *err);

/* ---- record: every request to a trace file, in weir's own format, until stopped or `most`
 * requests. Costs a bounded ring; what does not fit is counted, not waited for. */
int gateway_record(struct gateway *g, const char *path, uint64_t most, struct weir_err *err);
int gateway_record_stop(struct gateway *g, uint64_t *ret_recorded, uint64_t *ret_dropped);
/* Return true while a recording runs, and its counters; 0 if nothing was recorded since the last
 * stop. */
bool gateway_recording(struct gateway *g, uint64_t *ret_recorded, uint64_t *ret_dropped);

/* ---- for front ends: serve/front/front.h, struct front_site */

extern const struct front_ops
	*const gateway_fronts[]; /* ends with NULL; the first is the default */
/* Find the protocol of a listening address, and the start of the address after the protocol's name.
 * Return 0, or -EINVAL: no such protocol. */
int gateway_front(const char *text, const struct front_ops **ret_ops, const char **ret_address,
	struct weir_err *err);
int gateway_listen_check(const char *text, struct weir_err *err); /* as stream_listen_check */

extern const struct front_site gateway_site;
int gateway_find(struct gateway *g, const struct weir_who *who, struct front_place *ret);
const char *gateway_export(const struct gateway *g, size_t i);
void gateway_count(struct gateway *g, int connections, int refused, int broken);
