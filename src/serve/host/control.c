/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control: reports in, grants out.
 *
 * METHOD  Reports are passed to the controller as they arrive; its steps run when it has something
 *         to do, each for all reports received by then: many servers cause few rounds of messages.
 *         Only during the start is each report answered at once. A message for a server that is not
 *         connected is lost, as any message may be.
 */
#include "base/array.h"
#include "base/no-memory.h"
#include "base/container.h"
#include "serve/host/control-join.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

/* ---- out */

static int frame_room(struct control *l, size_t entries)
{
	size_t need = LEASE_FRAME(entries);

	if (need <= l->frame_room)
		return 0;
	if (array_resize(&l->frame, need) < 0)
		return -ENOMEM;
	l->frame_room = need;
	return 0;
}

static void send_to(void *arg, size_t server, const struct lease_message *m)
{
	struct control *l = arg;
	struct control_server *s = &l->servers[server];

	if (!s->link || frame_room(l, m->n) < 0)
		return;
	if (lease_hub_send(s->link, l->frame, lease_write(l->frame, m)) == 0)
		s->grants++;
}

/* ---- in */

static void say_state(struct control *l)
{
	struct cluster_status st;
	char text[24];

	l->lead->status(l->machine, &st);
	control_join_look(l, &st);
	if (st.started == l->said_start)
		return;
	l->said_start = st.started;
	l->granted = true;
	control_plan_send(l);
	if (st.started)
		log_event(LOG_LEVEL_INFO, l->rank ? "standing-in" : "granting", "servers",
			log_number(text, (double)st.heard), NULL);
	else
		log_event(LOG_LEVEL_WARNING, "stood-down", "why",
			st.led ? "the servers follow another controller"
			       : "no majority of the servers follows",
			NULL);
}

/* Of two connections of one name the later counts: the other is of a server that was restarted, or whose
 * network was. */
static void attach(struct control *l, struct control_server *s, struct lease_hub_server *g)
{
	if (s->link == g)
		return;
	if (s->link)
		lease_hub_drop(s->link, NULL);
	s->link = g;
	lease_hub_set_user(g, s);
	s->told = false;
	if (l->rank)
		return;
	control_plan_greet(l, s);
	log_event(LOG_LEVEL_INFO, "server", "server", s->name, "from", lease_hub_peer(g), NULL);
}

static void receive(void *arg, struct lease_hub_server *g, struct lease_message *m)
{
	struct control *l = arg;
	size_t at = ids_find(&l->server_ids, peer_hash(m->name));
	enum peer_verdict v;

	if (m->kind == LEASE_HAS) {
		if (at != SIZE_MAX && l->servers[at].link == g)
			control_plan_hear(l, &l->servers[at], m);
		return;
	}
	if (at == SIZE_MAX) {
		l->unknown++;
		lease_hub_drop(g, "it is not a server of the cluster");
		return;
	}
	attach(l, &l->servers[at], g);
	v = l->lead->receive(l->machine, loop_clock(), m);
	if (v == PEER_BROKEN || v == PEER_NOISE) {
		l->servers[at].link = NULL;
		lease_hub_drop(g, "its report is inconsistent");
		return;
	}
	l->servers[at].last = m->report;
	l->servers[at].at = loop_clock();
	l->servers[at].reports++;
	say_state(l);
	if (!l->said_start) /* starting: all servers wait for its answer */
		loop_set(l->loop, &l->timer, loop_clock());
	else
		loop_set(l->loop, &l->timer, l->lead->due(l->machine));
}

static void gone(void *arg, struct lease_hub_server *g)
{
	struct control_server *s = lease_hub_user(g);

	if (s)
		s->link = NULL;
}

/* ---- rounds */

static void step(struct control *l)
{
	weir_time before = loop_clock();
	int rc = l->lead->step(l->machine, before);

	if (rc < 0)
		log_event(LOG_LEVEL_ERROR, "round", "why", strerror(-rc), NULL);
	l->rounds++;
	l->busy += loop_clock() - before;
	say_state(l);
	loop_set(l->loop, &l->timer, l->lead->due(l->machine));
}

static void due(struct loop_timer *t, weir_time now)
{
	step(container_of(t, struct control, timer));
}

/* ---- start */

int control_check(const struct weir_policy *p, struct weir_err *err)
{
	if (!p->cluster.n_servers && !(p->network && p->network->fabric))
		return weir_err_set(err, -EINVAL,
			"no 'cluster' and no 'fabric' of a 'network': there is nothing to control");
	if (!p->n_tenants)
		return weir_err_set(err, -EINVAL, "no tenants: there is nothing to control");
	return 0;
}

static int open_hub(struct control *l, struct weir_err *err)
{
	const struct weir_policy_cluster *c = &l->policy->cluster;
	struct lease_hub_config config = {.loop = l->loop,
		.key = &l->key,
		.cluster = l->cluster,
		.instance = l->instance,
		.name = l->name,
		.entries = control_policy_entries(l),
		.most = control_policy_connections(l),
		.receive = receive,
		.gone = gone,
		.arg = l};

	if (l->options.n_listen) {
		config.addresses = l->options.listen;
		config.n_addresses = l->options.n_listen;
	} else if (c->n_listen) {
		config.addresses = c->listen;
		config.n_addresses = c->n_listen;
	} else {
		config.addresses = c->controllers;
		config.n_addresses = c->n_controllers;
	}
	if (config.n_addresses > 1 && !c->n_listen && !l->options.n_listen)
		return weir_err_at(err, -EINVAL, c->at,
			"there are several controllers: 'listen' or --listen must give the address "
			"of this one");
	return lease_hub_new(&config, &l->hub, err);
}

static int open_control(struct control *l, const struct weir_bounds *bounds)
{
	const struct weir_policy_cluster *c = &l->policy->cluster;
	struct cluster_lead_config config = {.name = l->name,
		.cluster = l->cluster,
		.instance = l->instance,
		.rank = l->rank,
		.elected = l->options.join != NULL,
		.length = c->period,
		.shortest = c->interval,
		.longest = c->interval,
		.send = send_to,
		.arg = l};
	int rc = l->lead->new (&config, &l->machine);

	if (rc == 0)
		rc = control_policy_begin(l, bounds);
	if (rc == 0)
		do
			rc = control_policy_step(l); /* all, before it listens */
		while (rc > 0);
	return rc;
}

static int name_control(struct control *l, struct weir_err *err)
{
	char host[HOST_NAME_MAX + 1] = "";
	const char *name = l->options.name;

	gethostname(host, HOST_NAME_MAX);
	if (!name)
		name = host;
	if (peer_name_check(name) < 0)
		return weir_err_set(err, -EINVAL,
			"controller '%s': a name has 1 to %d bytes and no spaces", name,
			PEER_NAME_MAX);
	memcpy(l->name, name, strlen(name)); /* its length was checked */
	return 0;
}

static int read_key(struct control *l, struct weir_err *err)
{
	const struct weir_policy_cluster *c = &l->policy->cluster;
	int rc;

	l->cluster = peer_hash(c->name);
	rc = peer_key_read(c->key, c->name, &l->key, err);
	while (rc == 0 && !l->instance)
		randombytes_buf(&l->instance, sizeof(l->instance));
	return rc;
}

static int begin(struct control *l, const struct weir_bounds *bounds, struct weir_err *err)
{
	int rc = read_key(l, err);

	if (rc < 0)
		return rc;
	rc = open_control(l, bounds);
	if (rc < 0)
		return weir_err_set(err, rc, "%s", strerror(-rc));
	rc = open_hub(l, err);
	if (rc < 0)
		return rc;
	l->timer.due = due;
	return loop_set(l->loop, &l->timer, loop_clock());
}

static int open_fabric(struct control *l, struct weir_err *err)
{
	const struct policy_network *n = l->policy->network;
	bool alone = !l->policy->cluster.n_servers;
	struct fabric_host_config c = {.loop = l->loop,
		.name = l->name,
		.policy = l->policy,
		.listen = alone && l->options.n_listen ? l->options.listen[0] : NULL};

	return n && n->fabric ? fabric_host_new(&c, &l->fabric, err) : 0;
}

static void end(struct control *l)
{
	loop_stop(l->loop);
}

static void stop(void *arg)
{
	struct control *l = arg;

	sd_notify(0, "STOPPING=1");
	log_event(LOG_LEVEL_INFO, "stopping", NULL);
	control_join_leave(l, end);
}

static void reload(void *arg)
{
	control_policy_reload(arg);
}

static int start(struct control *l, struct weir_err *err)
{
	int rc = loop_new(&l->loop);

	if (rc == 0) {
		l->daemon = (struct daemon){.loop = l->loop,
			.stop = stop,
			.reload = reload,
			.arg = l,
			.signals = {.fd = -1}};
		rc = daemon_start(&l->daemon);
	}
	if (rc < 0)
		return weir_err_set(err, rc, "cannot wait for events: %s", strerror(-rc));
	rc = name_control(l, err);
	if (rc == 0 && l->policy->cluster.n_servers) {
		rc = control_plan_start(l, err);
		rc = rc ? rc : begin(l, NULL, err);
	}
	if (rc == 0)
		rc = open_fabric(l, err);
	if (rc == 0)
		rc = control_join_start(l, err);
	return rc < 0 ? rc : control_api_start(l, err);
}

int control_new(struct weir_policy *p, const struct control_options *o,
	struct control **ret_control, struct weir_err *err)
{
	struct control *l = calloc(1, sizeof(*l));
	int rc;

	if (!l) {
		weir_policy_free(p);
		free(o->text);
		return no_memory(err);
	}
	l->lead = controller_in_cluster()->lead;
	l->policy = p;
	l->options = *o;
	l->daemon.signals.fd = -1;
	l->started = loop_clock();
	rc = control_check(p, err);
	if (rc == 0)
		rc = start(l, err);
	if (rc < 0) {
		control_free(l);
		return rc;
	}
	*ret_control = l;
	return 0;
}

int control_stand_in(struct loop *loop, const struct weir_policy *p,
	const struct weir_bounds *bounds, const char *server, unsigned rank, const char *listen,
	struct control **ret_control, struct weir_err *err)
{
	struct control *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return no_memory(err);
	l->loop = loop;
	l->lead = controller_in_cluster()->lead;
	l->policy = p;
	l->rank = rank;
	l->options = (struct control_options){.name = server, .listen = &listen, .n_listen = 1};
	l->daemon.signals.fd = -1;
	rc = name_control(l, err);
	rc = rc ? rc : begin(l, bounds, err);
	/* both are the caller's */
	l->options = (struct control_options){0};
	if (rc < 0)
		control_free(l);
	else
		*ret_control = l;
	return rc;
}

int control_policy(struct control *l, const struct weir_policy *p, const struct weir_bounds *bounds)
{
	l->policy = p;
	return control_policy_begin(l, bounds);
}

int control_run(struct control *l)
{
	char servers[24], buckets[24];
	int rc;

	log_event(LOG_LEVEL_INFO, "ready", "listen",
		l->hub ? lease_hub_address(l->hub, 0) : fabric_host_address(l->fabric), "servers",
		log_number(servers, (double)l->n_servers), "buckets",
		log_number(buckets, (double)l->n_buckets), "version", WEIR_VERSION, NULL);
	daemon_ready(&l->daemon);
	rc = loop_run(l->loop);
	if (rc == 0)
		log_event(LOG_LEVEL_INFO, "stopped", NULL);
	return rc;
}

void control_free(struct control *l)
{
	if (!l)
		return;
	control_join_free(l);
	control_plan_stop(l);
	http_free(l->http);
	fabric_host_free(l->fabric);
	lease_hub_free(l->hub);
	control_policy_stop(l);
	if (l->timer.due)
		loop_set(l->loop, &l->timer, WEIR_NEVER);
	if (!l->rank)
		daemon_end(&l->daemon);
	if (l->machine)
		l->lead->free(l->machine);
	for (size_t i = 0; i < l->n_buckets; i++)
		free(l->buckets[i].path);
	free(l->buckets);
	free(l->servers);
	free(l->frame);
	ids_free(&l->server_ids);
	peer_key_forget(&l->key);
	if (!l->rank) {
		weir_policy_free((struct weir_policy *)l->policy); /* it is owned */
		free(l->options.text);
		loop_free(l->loop);
	}
	free(l);
}
