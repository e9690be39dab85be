/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control-join: the election's requests to the store, and versions as policies of the controller.
 *
 * METHOD  After each answer, and whenever the machine's state may have changed, the election says what to do next. The machine
 *         is told its generation once, or that it has none.
 */
#include "serve/host/control-join.h"
#include "base/container.h"
#include "base/no-memory.h"
#include "control/elect/elect.h"
#include "serve/loop/log.h"
#include "serve/member/content.h"
#include "serve/member/follower.h"
#include "serve/member/member-impl.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEAVE (2 * WEIR_SEC) /* for the answer that the lease is given back */

struct control_joined {
	struct control *control;
	struct follower *follower;
	struct follower_files files;
	struct elect elect;
	unsigned lease; /* s */
	struct loop_timer timer, leaving;
	uint64_t highest;               /* generation that is used up */
	uint64_t generation;            /* for which the machine has its mandate; 0: none */
	uint64_t leading;               /* the generation under which it grants; 0: it does not */
	bool trusted;                   /* as was said last */
	char leader[PEER_NAME_MAX + 1]; /* by the store; "": none */
	struct weir_err why;            /* the last request failed; rc 0: it did not */
	void (*left)(struct control *l);
};

/* ---- the machine */

static void say_trust(struct control_joined *x, weir_time now)
{
	bool trusted = elect_trusts(&x->elect, now);

	if (trusted == x->trusted || !x->generation)
		return;
	x->trusted = trusted;
	if (trusted)
		log_event(LOG_LEVEL_INFO, "lease-trusted", NULL);
	else
		log_event(LOG_LEVEL_WARNING, "lease-not-trusted", "why", x->why.text, "now",
			"granting while a majority of the servers follows", NULL);
}

static void decide(struct control_joined *x)
{
	struct control *l = x->control;
	weir_time now = loop_boot_clock();
	uint64_t g = elect_generation(&x->elect, now, x->highest);
	char text[24];

	if (x->generation && !x->elect.created) {
		log_event(LOG_LEVEL_WARNING, "not-elected", "leader", x->leader, NULL);
		x->generation = 0;
		x->trusted = false;
		l->lead->elect(l->machine, 0);
	} else if (g && g != x->generation) {
		x->generation = g;
		x->trusted = true;
		log_event(
			LOG_LEVEL_INFO, "elected", "generation", log_number(text, (double)g), NULL);
		l->lead->elect(l->machine, g);
		loop_set(l->loop, &l->timer, loop_clock());
	}
	say_trust(x, now);
}

static const char *role(const struct control_joined *x)
{
	return x->leading ? "granting" : x->generation ? "elected" : "standby";
}

void control_join_look(struct control *l, const struct cluster_status *st)
{
	struct control_joined *x = l->joined;
	uint64_t leading = st->started ? st->generation : 0, highest;

	if (!x)
		return;
	highest = st->standby ? st->highest : st->generation - 1;
	if (highest != x->highest)
		loop_set(l->loop, &x->timer, loop_clock());
	x->highest = highest;
	x->leading = leading;
	publish_facts(follower_publish(x->follower),
		json_pack("{s:s, s:I}", "state", role(x), "generation", (json_int_t)leading));
}

/* ---- requests */

static void act(struct control_joined *x);

static void take_key(struct control_joined *x, const struct store_key *k, struct elect_answer *a)
{
	json_t *j = json_loadb(k->value, k->length, JSON_DECODE_ANY, NULL);
	const char *name;

	if (strcmp(k->key, ELECT_LEADER) == 0) {
		name = json_string_value(json_object_get(j, "name"));
		a->lease = k->lease;
		a->created = k->created;
		snprintf(x->leader, sizeof(x->leader), "%s", name ? name : "?");
	} else if (strcmp(k->key, ELECT_OFFSET) == 0) {
		a->offset = (uint64_t)json_integer_value(j);
		a->offset_changed = k->changed;
	}
	json_decref(j);
}

static void answered(void *arg, int rc, const struct store_result *r, const struct weir_err *err)
{
	struct control_joined *x = arg;
	struct elect_answer a = {0};

	if (rc == -ESHUTDOWN || x->left)
		return;
	if (rc == 0) {
		a = (struct elect_answer){.lease = r->lease,
			.ttl = (weir_time)r->ttl * WEIR_SEC,
			.held = r->held,
			.revision = r->revision};
		if (x->elect.doing == ELECT_READ)
			x->leader[0] = 0;
		for (size_t i = 0; i < r->n; i++)
			take_key(x, &r->keys[i], &a);
		x->why = (struct weir_err){0};
	} else if (rc != -ENOENT) {
		x->why = *err;
	}
	elect_end(&x->elect, loop_boot_clock(), rc, &a);
	act(x);
}

static void campaign(struct control_joined *x)
{
	struct store_condition c[] = {
		{.key = ELECT_LEADER}, {.key = ELECT_OFFSET, .changed = x->elect.offset_changed}};
	json_t *j = json_pack("{s:s}", "name", follower_name(x->follower));
	char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;
	struct store_change put = {.key = ELECT_LEADER,
		.value = text ? text : "{}",
		.length = text ? strlen(text) : 2,
		.lease = x->elect.lease};
	struct store_request q = {.kind = STORE_TXN,
		.conditions = c,
		.n_conditions = 2,
		.changes = &put,
		.n_changes = 1};

	store_ask(follower_store(x->follower), &q, answered, x);
	free(text);
	json_decref(j);
}

static void raise_offset(struct control_joined *x)
{
	struct store_condition c[] = {{.key = ELECT_LEADER, .changed = x->elect.created},
		{.key = ELECT_OFFSET, .changed = x->elect.offset_changed}};
	char text[24];
	struct store_change put = {.key = ELECT_OFFSET, .value = text};
	struct store_request q = {.kind = STORE_TXN,
		.conditions = c,
		.n_conditions = 2,
		.changes = &put,
		.n_changes = 1};

	put.length =
		(size_t)snprintf(text, sizeof(text), "%llu", (unsigned long long)x->elect.raise);
	store_ask(follower_store(x->follower), &q, answered, x);
}

static void send_request(struct control_joined *x, enum elect_act act)
{
	struct store_request q = {.ttl = x->lease, .lease = x->elect.lease, .brisk = true};

	if (act == ELECT_CAMPAIGN) {
		campaign(x);
		return;
	}
	if (act == ELECT_RAISE) {
		raise_offset(x);
		return;
	}
	q.kind = act == ELECT_GRANT ? STORE_GRANT : act == ELECT_KEEP ? STORE_KEEP : STORE_LIST;
	q.prefix = ELECT_PREFIX;
	store_ask(follower_store(x->follower), &q, answered, x);
}

static void act(struct control_joined *x)
{
	weir_time now = loop_boot_clock(), at;
	enum elect_act next;

	decide(x);
	next = elect_next(&x->elect, now, x->highest, &at);
	if (next != ELECT_WAIT)
		send_request(x, next);
	else if (at != WEIR_NEVER)
		loop_set(x->control->loop, &x->timer, loop_clock() + (at > now ? at - now : 0));
}

static void act_due(struct loop_timer *t, weir_time now)
{
	act(container_of(t, struct control_joined, timer));
}

/* ---- versions */

/* Make the policy of the own file, as it is now, with the tenants of a version. */
static int make_policy(struct control_joined *x, const struct versions_text *v,
	struct weir_policy **ret_policy, struct weir_err *err)
{
	static struct weir_policy_remarks remarks;
	const struct follower_files *f = &x->files;
	char *local;
	size_t n;
	int rc = f->reader(f->reader_arg, "", f->file, &local, &n, err);

	if (rc < 0)
		return rc;
	rc = content_parse_at(local, f->file, v->text, record_length(&v->record), v->record.name,
		ret_policy, &remarks);
	free(local);
	if (rc == 0)
		content_sets(*ret_policy, &v->record, loop_date());
	else
		*err = remarks.errors[0];
	return rc;
}

static void put_version(void *arg, const struct versions_text *v)
{
	struct control_joined *x = arg;
	struct weir_policy *p;
	struct weir_err err;
	int rc = make_policy(x, v, &p, &err);

	if (rc == 0)
		rc = control_policy_take(x->control, p, NULL, &err);
	follower_done(x->follower, rc, &err);
}

/* SIGHUP. */
static int reread(void *arg, struct weir_policy **ret_policy, char **ret_text, struct weir_err *err)
{
	struct control_joined *x = arg;

	*ret_text = NULL;
	return make_policy(x, follower_in_force(x->follower), ret_policy, err);
}

/* ---- start and end */

int control_join_start(struct control *l, struct weir_err *err)
{
	const struct control_join *j = l->options.join;
	struct control_joined *x;
	struct follower_options o = {.loop = l->loop,
		.members = PUBLISH_CONTROLLERS,
		.known = PUBLISH_KNOWN_CONTROL,
		.put = put_version};
	int rc;

	if (!j)
		return 0;
	if (!l->machine)
		return weir_err_set(err, -EINVAL,
			"%s: with --join a 'cluster' with servers is needed", l->options.file);
	l->joined = x = o.arg = calloc(1, sizeof(*x));
	if (!x)
		return no_memory(err);
	x->control = l;
	x->timer.due = act_due;
	x->lease = j->lease ? j->lease : ELECT_TTL;
	x->elect.ttl = x->lease * WEIR_SEC;
	o.store = j->store;
	o.name = l->name;
	o.local = j->local;
	o.state = l->policy->state;
	rc = follower_new(&o, j->version, &x->follower, err);
	if (rc < 0)
		return rc;
	x->files = (struct follower_files){
		x->follower, strdup(l->options.file), l->options.reader, l->options.reader_arg};
	if (!x->files.file)
		return no_memory(err);
	l->options.reader = follower_read;
	l->options.reader_arg = &x->files;
	l->options.reread = reread;
	l->options.reread_arg = x;
	follower_start(x->follower);
	act(x);
	return 0;
}

static void leave_end(struct control_joined *x)
{
	void (*end)(struct control * l) = x->left;

	loop_set(x->control->loop, &x->leaving, WEIR_NEVER);
	if (end)
		end(x->control);
}

static void was_revoked(void *arg, int rc, const struct store_result *r, const struct weir_err *err)
{
	if (rc != -ESHUTDOWN)
		leave_end(arg);
}

static void leave_due(struct loop_timer *t, weir_time now)
{
	leave_end(container_of(t, struct control_joined, leaving));
}

void control_join_leave(struct control *l, void (*end)(struct control *l))
{
	struct control_joined *x = l->joined;
	struct store_request q = {.kind = STORE_REVOKE};

	if (!x || !x->elect.lease || x->left) {
		end(l);
		return;
	}
	x->left = end;
	l->lead->elect(l->machine, 0);
	loop_set(l->loop, &x->timer, WEIR_NEVER);
	x->leaving.due = leave_due;
	loop_set(l->loop, &x->leaving, loop_clock() + LEAVE);
	q.lease = x->elect.lease;
	store_ask(follower_store(x->follower), &q, was_revoked, x);
}

void control_join_free(struct control *l)
{
	struct control_joined *x = l->joined;

	if (!x)
		return;
	loop_set(l->loop, &x->timer, WEIR_NEVER);
	if (x->leaving.due)
		loop_set(l->loop, &x->leaving, WEIR_NEVER);
	follower_stop(x->follower);
	follower_free(x->follower);
	free(x->files.file);
	free(x);
	l->joined = NULL;
}

/* ---- what others see */

int control_join_check(const struct control *l, struct weir_err *err)
{
	const struct control_joined *x = l->joined;

	if (!x || elect_trusts(&x->elect, loop_boot_clock()))
		return 0;
	if (!x->generation)
		return weir_err_set(err, -EAGAIN, "this controller does not lead: %s does",
			*x->leader ? x->leader : "none");
	return weir_err_set(err, -EAGAIN,
		"nothing is changed while the store does not confirm that this controller leads: "
		"%s",
		*x->why.text ? x->why.text : "no answer yet");
}

json_t *control_join_json(const struct control *l)
{
	const struct control_joined *x = l->joined;
	weir_time now = loop_boot_clock();

	if (!x)
		return json_null();
	return json_pack("{s:s?, s:b, s:b, s:I, s:s?, s:I}", "leader",
		*x->leader ? x->leader : NULL, "elected", x->elect.created != 0, "trusted",
		elect_trusts(&x->elect, now), "generation", (json_int_t)x->generation, "fault",
		*x->why.text ? x->why.text : NULL, "version",
		(json_int_t)follower_in_force(x->follower)->record.number);
}
