/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * impl: shared by the files of this folder and serve/host; gateway.h is the manual.
 *
 * OWNERSHIP
 * Everything in struct gateway belongs to the main thread, unless marked otherwise. The policy in
 * force is one pointer: resources borrow it (resource_swap), so a swap goes: make the new one, swap
 * it in every resource (gateway_each), then set `policy`, `version`, and free the old one. Nothing
 * else keeps a pointer into it beyond one round of the main loop: resources are found by name,
 * tenants by index only if the swap updates the index (struct client).
 *
 * THREADS
 * The main thread calls workers by gateway_each (loop_call: it waits until a worker's next round,
 * tens of µs). A worker never waits for the main thread, only posts.
 */
#pragma once

#include "serve/back/volumes.h"
#include "serve/store/extra.h"
#include "serve/store/state.h"
#include "serve/gateway/gateway.h"
#include "serve/loop/chunk.h"
#include "serve/loop/daemon.h"
#include "serve/snapshot/version.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

struct aside;
struct cluster;            /* cluster.c */
struct gateway_change;     /* serve/gateway/change.c */
struct gateway_divide;     /* serve/gateway/divide.c */
struct gateway_each_table; /* serve/gateway/each.c */
struct folders;            /* serve/store/folder.c */
struct gateway_ledger;     /* serve/gateway/ledger.c */
struct gateway_replace;    /* serve/gateway/replace.c */
struct gateway_slo;        /* serve/gateway/slo.c */
struct record;             /* record.c */
struct reports;            /* serve/host/reports.c */
struct tls;

struct worker {
	struct gateway *gateway;
	unsigned index;
	int core; /* pinned to; -1: not */
	pthread_t thread;
	bool running; /* the thread was started; its loop must be stopped and joined */
	struct loop *loop;
	struct chunk_pool *pool;
	struct front *front; /* connections of its clients, on the worker's thread */
};

/* One resource, from its opening until its last reader has gone; serve/gateway/resources.c. A resource of the next policy with
 * the same name and another back end is another one. */
struct gateway_resource {
	char *name, *back_name; /* back_name: "" if it has volumes */
	bool volumes;
	struct worker *worker;
	struct resource *resource;
	uint64_t number;   /* in the order of opening, from 1 on */
	atomic_bool known; /* size and resource_info are known: its back end was reached once */
	_Atomic(uint64_t) size; /* bytes */
	bool bypassed;          /* serve/gateway/bypass.c's */
	struct gateway *gateway;
	struct gateway_change *change; /* that waits until it is removed; NULL: none */
	struct loop_task learned;      /* posted by its worker when they are known */
	struct request flush;          /* serve/gateway/run.c's, at the end */
	atomic_bool flushing;          /* it is under way */
	struct {
		uint64_t activity;     /* at the last check */
		bool again;            /* check again, whatever its activity */
	} slo;                         /* serve/gateway/slo.c's */
	struct report_member *member;  /* serve/host/reports.c's; NULL: none */
	struct cluster_member *server; /* serve/host/cluster.c's; NULL: none */

	/* private to serve/gateway/resources.c */
	atomic_uint refs;              /* the gateway, its volumes, looks under way */
	uint64_t opened, left;         /* versions of the policy: its first; the first without it */
	bool parts;                    /* the policy that is being made lacks it */
	bool entered;                  /* the policy in force has, or had, it */
	bool started;                  /* its thread has it */
	bool leaving;                  /* in the gateway's list of those; no new reader */
	struct gateway_resource *next; /* of that list */
	struct gateway_version *version; /* that it has while it leaves */
	struct loop_task leave, drained, end, gone;
	struct loop_timer drain; /* its thread's */
	bool flushed, late;      /* its thread's: the last step; its delay was logged */
	weir_time away_by;       /* its thread's: then no request waits for its upstream */
};

/* A volume of a resource; serve/gateway/volume.c. Of the main thread, but for the calls of its back end. */
struct gateway_volume {
	char *name, *back_name;
	struct policy_file file; /* as in its export */
	struct policy_file id;   /* of the file or device that is open; ino 0: it is none */
	struct gateway_resource *resource;
	struct back *back;      /* the resource's once it was added; from then on only for `info` */
	uint32_t slot;          /* of back_volumes */
	bool added;             /* the resource's thread has it */
	atomic_bool known;      /* size and info are known: its back end was reached once */
	_Atomic(uint64_t) size; /* bytes */
	struct back_volume_counts counts;
	struct loop_task learned, leave, left; /* known; to be removed; removed */
	struct gateway_change *change;         /* that waits until it is removed; NULL: none */
	struct gateway_volume *next, **link;   /* of those that are being removed */
};

struct gateway_volumes {
	struct gateway_volume **all; /* by name */
	size_t n, room;
};

struct gateway_listener {
	struct loop_fd fd; /* first */
	struct gateway *gateway;
	const struct front_ops *front; /* the protocol of its clients */
	char *text, *address; /* as the policy has it, NULL: systemd's; as clients have it */
	bool entered;         /* the loop has it */
	dev_t dev;            /* of a unix socket's file that we made; ino 0: none of ours */
	ino_t ino;
};

struct gateway_listeners {
	struct gateway_listener **all;
	size_t n;
};

struct gateway {
	struct loop *loop; /* the main thread's */
	struct gateway_options options;
	weir_time started;

	/* The policy in force. serve/gateway/policy.c changes these. */
	struct gateway_version *in_force; /* owns policy, text and name */
	const struct weir_policy *policy;
	struct weir_policy *base; /* the file's policy, without overrides */
	char *file;               /* name given at the start, reread on SIGHUP */
	uint64_t version;         /* 1 at the start; one more with every swap */
	weir_time open_by;        /* until when opening a policy's upstreams waits for them */
	const char *text, *name;  /* of the file of the last apply; text: NUL-ended */
	char *state;              /* folder for overrides; NULL: nothing is kept */
	weir_policy_reader *reader;
	void *reader_arg;
	struct extras extras; /* volumes of the API */
	struct gateway_override *overrides;
	size_t n_overrides;
	uint64_t plan_number; /* of the last plan; 0: there was none */
	struct gateway_divide *divide;
	struct gateway_each_table *each; /* NULL: not started yet */
	struct reports *reports;         /* NULL: no controllers that have peers */
	struct cluster *cluster;         /* NULL: it is in none */
	struct gateway_ledger *ledger;   /* NULL: it is not kept */
	struct gateway_slo *slo;         /* NULL: not started yet */

	struct worker *workers; /* WORKERS_MOST */
	unsigned n_workers;     /* running, but for the start */
	unsigned n_made;        /* and those made for a change that is not in force yet */
	struct gateway_resource **resources; /* of the policy in force, in its order */
	size_t n_resources;
	uint64_t resources_opened;
	struct gateway_resource *resources_leaving; /* removed, and not freed yet */
	struct gateway_volumes volumes;
	struct gateway_volume *volumes_leaving; /* removed, and not freed yet … */
	pthread_mutex_t leaving_lock;           /* … from any thread */
	atomic_bool volumes_wait;               /* some volume was not opened before one has left */
	struct folders *folders;                /* the thread's that makes drafts */
	uint64_t folders_version;               /* of the policy in force */
	struct gateway_note unserved;           /* volumes that it should have; a line for each */
	struct loop_fd folders_fd;
	struct loop_timer folders_timer;

	struct gateway_listener **listeners;
	size_t n_listeners;
	struct loop_timer accept_again; /* after a pause */
	int spare_fd;            /* given up for a moment to turn a client away without EMFILE */
	struct front_door *door; /* handshakes under way */
	struct tls *tls;         /* of the policy in force; connections have their own reference */

	struct daemon daemon;
	struct loop_timer stop_timer;
	struct gateway_replace *replace; /* NULL: no process can take over */
	bool stopping;
	bool given_up; /* requests inside at stop_by were dropped */
	bool flushing; /* all clients are gone; back ends are being flushed */
	bool abandoned; /* a large policy is still being read, or a back end opened: their memory stays */
	bool stuck;        /* a back end does not return requests: it cannot be freed */
	weir_time stop_by; /* then requests inside are dropped */
	weir_time away_by; /* then no request waits for an unreachable back end */

	struct record *record;      /* under way, or NULL */
	struct gateway_look *looks; /* under way */
	atomic_bool looks_end;
	struct aside *aside;
	struct gateway_change *changes, **changes_last; /* the first is in progress */
	struct loop_timer change_retry;
	struct gateway_change *refresh; /* a refresh that waits for its turn; NULL: none */
	struct gateway_change *leaves;  /* in force, and waiting for volumes that leave */
	bool switching;                 /* some resources have the next version already */
	atomic_bool changes_end;
	atomic_uint_fast64_t connections, refused, broken;
};

/* ---- serve/gateway/listen.c */

/* Listen on options.listen or the policy's addresses, and on options.sockets. -EINVAL: no
 * address. */
int gateway_listen(struct gateway *g, struct weir_err *err);
/* Open the addresses of a policy that are not open yet. Main thread. On error none stays open. */
int gateway_listeners_open(struct gateway *g, const struct weir_policy *p,
	struct gateway_listeners *ret, struct weir_err *err);
/* The policy is in force: accept clients at the new addresses, and close those that it lacks; their connections stay. 0, or
 * -ENOMEM. */
int gateway_listeners_enter(struct gateway *g, struct gateway_listeners *l);
/* Close addresses that were not entered. */
void gateway_listeners_free(struct gateway_listeners *l);
/* Close them all, and remove the files of unix sockets that are still ours. */
void gateway_unlisten(struct gateway *g);

/* ---- serve/gateway/run.c */

/* Prepare the signals for gateway_run: daemon.h. */
int gateway_signals(struct gateway *g);
void gateway_signals_end(struct gateway *g);
/* Return true if there are clients, or requests inside. Workers running. */
bool gateway_busy(struct gateway *g);
/* Flush its back end, on its thread: `flushing` until that is done. */
void gateway_resource_flush(struct gateway_resource *r);

/* Return true while a back end is being flushed by that. */
bool gateway_flushing(const struct gateway *g);

/* ---- serve/gateway/listen.c */

/* Accept clients, or let them wait. */
void gateway_accept(struct gateway *g, bool yes);

/* ---- gateway.c */

/* Call fn for every resource on its worker's thread, one after the other in order, and wait. Stop
 * at the first that returns a negative number, and return that; *ret_index is its index (may be
 * NULL). Main thread, workers running. */
typedef int gateway_each_fn(void *arg, struct gateway_resource *r);
int gateway_each(struct gateway *g, gateway_each_fn *fn, void *arg, size_t *ret_index);
/* The same in one call for each thread, in the order of threads: on a busy machine each call waits for its thread to run. */
int gateway_all(struct gateway *g, gateway_each_fn *fn, void *arg);
/* Call fn for one of them. */
int gateway_at(struct gateway_resource *r, gateway_each_fn *fn, void *arg);
/* A resource has left: the one of its name that replaced it is bypassed as it was. */
void gateway_bypass_left(struct gateway *g, const struct gateway_resource *old);
/* Return the change of the resource of that name to this version. */
struct resource_change gateway_version_change(
	const struct gateway_version *v, const char *resource);
/* Wait until all tasks posted to the workers before have run. */
void gateway_settle(struct gateway *g);
/* Return true if all workers run, as they do unless the start has failed. */
bool gateway_runs(const struct gateway *g);

/* Read the credentials of a policy from its files; *ret_tls NULL: it has none. */
int gateway_tls_read(const struct weir_policy *p, struct tls **ret_tls, struct weir_err *err);

/* ---- serve/gateway/export.c */

/* Return the resource of that name, or NULL. */
struct gateway_resource *gateway_resource(const struct gateway *g, const char *name);
/* Check that the exports of a policy fit the back ends of its resources, `list` in the policy's order; those that are not
 * open are NULL. -EINVAL with a message. */
int gateway_fits(struct gateway *g, const struct weir_policy *p,
	struct gateway_resource *const *list, struct weir_err *err);

/* Return the bytes of an export of the policy; 0: not known yet. fresh: volumes that are opened and not in force yet, or
 * NULL. */
uint64_t gateway_export_size(struct gateway *g, const struct weir_policy *p,
	const struct gateway_volumes *fresh, const char *name);

/* A resource became known: log the exports that do not fit it. */
void gateway_fits_resource(struct gateway *g, const struct gateway_resource *r);

/* ---- serve/gateway/resources.c */

/* Return true if an open resource can continue with the other settings; else it is replaced. */
bool gateway_resource_stays(const struct weir_resource *a, const struct weir_resource *b);
/* List the resources of a policy, in its order: those that stay, and new ones, which are opened. *ret_list: malloc'ed.
 * Any thread, while nothing else changes the policy. On error none stays open. */
int gateway_resources_open(struct gateway *g, const struct weir_policy *p,
	struct gateway_resource ***ret_list, struct weir_err *err);
/* Start a new one on its thread. Does nothing if it runs. 0, or a negative errno with a message. */
int gateway_resource_start(struct gateway_resource *r, struct weir_err *err);
/* Main thread: the list is in force. Take it, and let those that it lacks go: their clients are disconnected, and each is
 * flushed and freed after its last request. was: the version that they have. */
void gateway_resources_enter(struct gateway *g, struct gateway_resource **list, size_t n,
	struct gateway_version *was, struct gateway_change *c);
/* A change waits for them no longer. */
void gateway_resources_unwait(struct gateway *g, const struct gateway_change *c);
/* Main thread: the list is not put in force: close the new ones. NULL is fine. */
void gateway_resources_drop(
	struct gateway *g, struct gateway_resource **list, size_t n, struct gateway_version *of);
/* Any thread: keep the resource until it is put again. */
void gateway_resource_hold(struct gateway_resource *r);
void gateway_resource_put(struct gateway_resource *r);
/* Return true if two names of back ends name the same file, device or upstream, by whatever options. */
bool gateway_same_storage(const char *a, const char *b);
/* Return true while a removed resource may still write to that storage of this one. Main thread. */
bool gateway_resource_blocked(const struct gateway_resource *r, const char *back);
/* Wait no longer for unreachable back ends of those that leave. Main thread, workers running. */
void gateway_leaving_abandon(struct gateway *g);
/* The end: wait a moment for those that leave. The main loop does not run. */
void gateway_leaving_end(struct gateway *g);
/* Free the back ends and gates on their threads, unless some hold requests; then, after the volumes, the rest. */
void gateway_resources_end(struct gateway *g);
void gateway_resources_free(struct gateway *g);

/* ---- serve/gateway/volume.c */

struct back;

/* Return true if the volume's path may be a symbolic link: a user who may write to a folder of volumes must not make the gateway open
 * other files. */
bool gateway_volume_links(const struct weir_export *e);
/* Open the back end of a volume, or (e NULL) of the resource, of a policy, for the resource's thread. May block. */
int gateway_back_open(struct gateway *g, const struct weir_policy *p,
	const struct weir_resource *spec, const struct gateway_resource *r,
	const struct weir_export *e, struct back **ret_back, struct weir_err *err);
/* Open the volumes of the policy that are not open yet; list: its resources. Any thread, while nothing else changes the
 * volumes. On error none stays open. */
int gateway_volumes_open(struct gateway *g, const struct weir_policy *p,
	struct gateway_resource *const *list, struct gateway_volumes *ret_new,
	struct gateway_note *refused, struct weir_err *err);
/* Return true if the volume of a policy is open, at its resource. */
bool gateway_volume_is_open(
	struct gateway *g, const struct weir_export *e, const struct gateway_resource *at);
/* Check the files of volumes and resources that a policy adds and that came through the API: they must be in folders in which
 * the gateway has some already, or that are folders of its volumes, and no links. 0, or -EINVAL with a message. Any thread, as
 * above. */
int gateway_volumes_allowed(struct gateway *g, const struct weir_policy *p, struct weir_err *err);
/* Make room for them in the gateway's list, so that gateway_volumes_enter cannot fail. Main thread. 0 or -ENOMEM. */
int gateway_volumes_room(struct gateway *g, const struct gateway_volumes *fresh);
/* Give the new volumes of a resource to it; on its thread, or before it runs. Return 0, or a negative errno, then
 * gateway_volumes_undo. */
int gateway_volumes_add(
	struct gateway_volumes *fresh, struct gateway_resource *r, struct weir_err *err);
/* Take the resource's back again; on its thread. */
void gateway_volumes_undo(struct gateway_volumes *fresh, struct gateway_resource *r);
/* Main thread: the policy is in force. The new ones can be found from now on; those that the policy no longer has are removed
 * when their last request is done. */
void gateway_volumes_enter(
	struct gateway *g, struct gateway_volumes *fresh, struct gateway_change *c);
/* Return true if a client is connected to the volume; take the size of its storage anew. On its resource's thread. */
bool gateway_volume_busy(const struct gateway_volume *v);
int gateway_volume_grown(const struct gateway_volume *v);
/* The change waits for no volume any more. */
void gateway_volumes_unwait(struct gateway *g, const struct gateway_change *c);
/* Free those that are being removed; no thread runs. */
void gateway_volumes_end(struct gateway *g);
/* Free the list and the volumes that were not added. */
void gateway_volumes_free(struct gateway_volumes *list);
const struct gateway_volume *gateway_volume_find(const struct gateway *g, const char *name);
/* Return what is wrong with a volume that is open, a constant; NULL: nothing. */
const char *gateway_volume_trouble(const struct gateway_volume *v);
const struct gateway_volume *gateway_volumes_find(
	const struct gateway_volumes *list, const char *name);

/* ---- serve/gateway/policy.c and serve/gateway/divide.c, called by gateway_new and
 * gateway_free. */

/* Read the overrides (g->state is set, no back end is open yet), and put policy (owned, also on
 * failure), text and name in force with them. Overrides that no longer fit (e.g. the tenant was
 * removed) are logged and dropped. */
int gateway_policy_start(struct gateway *g, struct weir_policy *p, const char *text,
	const char *name, struct weir_err *err);
void gateway_policy_stop(struct gateway *g);
/* At the start, when the back ends are open: put limits by size in force. */
int gateway_policy_sizes(struct gateway *g, struct weir_err *err);
/* Start dividing, by a timer of g->loop, if there is more than one resource; the workers run and
 * the policy is in their gates. gateway_divide_policy: g->policy is now the prepared one. */
int gateway_divide_start(struct gateway *g);
void gateway_divide_stop(struct gateway *g);
void gateway_divide_policy(struct gateway *g);
/* The process before this one has used all tokens of limits that are shared and not divided. */
void gateway_divide_spent(struct gateway *g);
/* on: divide nothing until it is off again. Return true if no message about parts is in flight
 * either, so that gateway_divide_prepare may be called from another thread. */
bool gateway_divide_pause(struct gateway *g, bool on);
/* Prepare before the resources are swapped to p, with p's resources; NULL: the swap failed. 0 or -ENOMEM. */
int gateway_divide_prepare(
	struct gateway *g, const struct weir_policy *p, struct gateway_resource *const *list);
/* Return the parts that a resource will have under the prepared policy p, for its change; NULL: it has whole limits. They stay
 * until the next prepare. */
const double *gateway_divide_rows(
	struct gateway *g, struct gateway_resource *r, const struct weir_policy *p);
/* Give a resource its parts under policy p, right after it was swapped to that. On the resource's
 * thread while the main one waits. 0, or a negative errno with a message. */
int gateway_divide_swapped(struct gateway *g, struct gateway_resource *r,
	const struct weir_policy *p, struct weir_err *err);
/* A client came or left: check whether there is something to divide. Main thread. */
void gateway_divide_wake(struct gateway *g);

/* ---- worker.c */

#define WORKERS_MOST 1024 /* as many as `threads` may have */

/* Make more workers, as many as the policy and the options want for its resources: they are run by workers_run. Any thread, while
 * nothing else makes some. 0 or a negative errno with a message. */
int workers_make(struct gateway *g, const struct weir_policy *p, struct weir_err *err);
/* Run those that do not run yet. Main thread. */
int workers_run(struct gateway *g, struct weir_err *err);
/* Divide the memory for payloads that the policy in force has over the workers. Main thread. */
void workers_memory(struct gateway *g);
int worker_init(struct worker *w, struct gateway *g, unsigned index, size_t memory, int core);
int worker_run(struct worker *w); /* starts the thread */
/* Call fn on the worker's thread, in its next round; wait, and return its result. */
int worker_call(struct worker *w, int (*fn)(void *arg, struct worker *w), void *arg);
void worker_stop(struct worker *w); /* stops its loop and joins */
void worker_free(struct worker *w);

/* ---- record.c */

/* After a swap of the policy: the tenants have new indices, and resources came and went. Main thread; does nothing
 * without a recording. */
void record_policy(struct gateway *g);

/* ---- serve/gateway/change.c */

void gateway_change_retry(struct loop_timer *t, weir_time now);
/* A volume that the change waits for was closed. Main thread. */
void gateway_change_left(struct gateway_change *c);

/* ---- serve/gateway/refresh.c */

/* Make the policy anew from all that it consists of (serve/gateway/policy.c, build): a source of volumes or tenants has
 * changed. It is a change as every other: prepared aside, applied in steps. Requests that come before it began are one.
 * If it fails, this is logged and the policy in force stays; the next change of any kind tries again. Main thread. */
void gateway_refresh(struct gateway *g);
/* The same because a folder may have changed; scan: read the folders whole. Nothing is made anew if no file came or went. */
void gateway_refresh_folders(struct gateway *g, bool scan);
/* Follow the folders of volumes, from the loop; and end that. */
int gateway_folders_start(struct gateway *g);
void gateway_folders_stop(struct gateway *g);
/* A change was made: the events until then were read. Wait for the next. */
void gateway_folders_follow(struct gateway *g);
