/* SPDX-License-Identifier: BSD-3-Clause */
/* cluster: pShift's machines as those of a cluster (control/cluster.h). */
#include "control/pshift/control.h"
#include "control/pshift/keys.h"
#include "control/pshift/server.h"

/* ---- the controller */

static int lead_new(const struct cluster_lead_config *config, void **ret)
{
	struct pshift_control *c;
	int r = pshift_control_new(config, &c);

	if (r == 0)
		*ret = c;
	return r;
}

static void lead_free(void *c)
{
	pshift_control_free(c);
}

static uint64_t lead_instance(const void *c)
{
	return pshift_control_instance(c);
}

static int64_t lead_server(void *c, const char *name)
{
	return pshift_control_server(c, name);
}

static int64_t lead_bucket(void *c, const struct cluster_bucket *b)
{
	return pshift_control_bucket(c, b);
}

static int64_t lead_stage(void *c, const struct cluster_bucket *b)
{
	return pshift_control_stage(c, b);
}

static void lead_enter(void *c)
{
	pshift_control_enter(c);
}

static void lead_elect(void *c, uint64_t generation)
{
	pshift_control_elect(c, generation);
}

static enum peer_verdict lead_receive(void *c, weir_time now, const struct lease_message *m)
{
	return pshift_control_receive(c, now, m);
}

static int lead_step(void *c, weir_time now)
{
	return pshift_control_step(c, now);
}

static weir_time lead_due(const void *c)
{
	return pshift_control_due(c);
}

static void lead_status(const void *c, struct cluster_status *ret)
{
	pshift_control_status(c, ret);
}

static int lead_explain(void *c, cluster_name *server, cluster_name *bucket, void *arg,
	void (*line)(void *arg, const char *words))
{
	return pshift_control_explain(c, server, bucket, arg, line);
}

const struct cluster_lead pshift_lead = {
	.new = lead_new,
	.free = lead_free,
	.instance = lead_instance,
	.server = lead_server,
	.bucket = lead_bucket,
	.stage = lead_stage,
	.enter = lead_enter,
	.elect = lead_elect,
	.receive = lead_receive,
	.step = lead_step,
	.due = lead_due,
	.status = lead_status,
	.explain = lead_explain,
};

/* ---- a server */

static int server_new(const struct cluster_server_config *config, void **ret)
{
	struct pshift_server *s;
	int r = pshift_server_new(config, &s);

	if (r == 0)
		*ret = s;
	return r;
}

static void server_free(void *s)
{
	pshift_server_free(s);
}

static int64_t server_add(void *s, const struct cluster_server_bucket *b)
{
	return pshift_server_add(s, b, 0);
}

static int server_look(
	void *s, weir_time now, const struct cluster_server_load *loads, double capacity)
{
	return pshift_server_look(s, now, loads, capacity);
}

static weir_time server_due(const void *s)
{
	return pshift_server_due(s);
}

static enum peer_verdict server_receive(void *s, weir_time now, const struct lease_message *m)
{
	return pshift_server_receive(s, now, m);
}

static void server_lost(void *s, uint64_t controller)
{
	pshift_server_lost(s, controller);
}

const struct cluster_server pshift_server = {
	.new = server_new,
	.free = server_free,
	.add = server_add,
	.look = server_look,
	.due = server_due,
	.receive = server_receive,
	.lost = server_lost,
};
