/* SPDX-License-Identifier: BSD-3-Clause */
/* brokers-show: what the brokers tell people and programs. */
#include "serve/shape/brokers-impl.h"
#include "serve/show/metrics-text.h"

/* Write "61.0 of 80 Gbit/s". */
static void write_part(char *to, size_t room, double part, double whole)
{
	bool giga = whole * 8 >= 1e9;
	double unit = giga ? 1e9 / 8 : 1e6 / 8;

	snprintf(to, room, "%.1f of %g %s", part / unit, whole / unit, giga ? "Gbit/s" : "Mbit/s");
}

void brokers_bound(const struct brokers *b, size_t node, enum shape_dir dir, char ret[128])
{
	const struct policy_network *n = b->config.policy->network;
	double rate = rack_rate(b->rack, dir, node);
	size_t alive = 1;
	char part[64];

	for (size_t i = 0; i < b->n_machines; i++)
		alive += i != b->own && b->machines[i].alive;
	switch (rack_bound(b->rack, dir, node)) {
	case RACK_BOUND_LINK:
		write_part(part, sizeof(part), rate, brokers_link(&b->config, dir));
		snprintf(ret, 128, "rack %.24s %s (its share %s, %zu machines)", n->rack,
			brokers_links[dir], part, alive);
		break;
	case RACK_BOUND_MAX:
		write_part(part, sizeof(part), brokers_cap(b, node, dir, 0), rate);
		snprintf(ret, 128, "its max in rack %.24s %s (here %s, %zu machines)", n->rack,
			brokers_links[dir], part, alive);
		break;
	case RACK_BOUND_FABRIC:
		write_part(part, sizeof(part), rate,
			brokers_share(&b->config, node, POLICY_NET_FABRIC, dir)->max);
		snprintf(ret, 128, "fabric (rack %.24s: %s)", n->rack, part);
		break;
	}
}

static json_t *machines_json(const struct brokers *b)
{
	json_t *list = json_array();

	for (size_t i = 0; i < b->n_machines; i++)
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:b}", "machine", b->machines[i].name,
				      "address", b->config.policy->network->machines[i], "alive",
				      i == b->own || b->machines[i].alive));
	return list;
}

static json_t *messages_json(const struct brokers *b)
{
	json_t *o = json_object();
	struct talk_stats s;

	talk_stats(b->config.talk, &s);
	for (int v = 0; v < PEER_VERDICTS; v++)
		json_object_set_new(o, peer_verdict_name((enum peer_verdict)v),
			json_integer((json_int_t)s.peers.verdicts[v]));
	json_object_set_new(o, "outside", json_integer((json_int_t)s.outside));
	json_object_set_new(o, "claims", json_integer((json_int_t)b->claims));
	json_object_set_new(o, "unknown", json_integer((json_int_t)rack_unknown(b->rack)));
	json_object_set_new(o, "sent", json_integer((json_int_t)s.peers.sent));
	json_object_set_new(o, "sent_bytes", json_integer((json_int_t)s.peers.sent_bytes));
	json_object_set_new(o, "failed", json_integer((json_int_t)s.peers.failed));
	return o;
}

static json_t *fabric_json(const struct brokers *b)
{
	const struct leader *f = &b->fabric;
	const struct policy_network *n = b->config.policy->network;
	struct lease_link_status st = {.address = n->fabric};
	weir_time left = f->until - loop_clock();

	if (!n->fabric)
		return NULL;
	if (f->link)
		lease_link_status(f->link, &st);
	return json_pack("{s:s, s:s, s:b, s:b, s:b, s:f, s:I, s:I}", "broker", n->fabric, "leader",
		leader_name(b), "leads", f->link != NULL, "connected", st.up, "stale", f->stale,
		"left_s", left > 0 ? (double)left / 1e9 : 0.0, "reports", (json_int_t)f->reports,
		"answers", (json_int_t)f->answers);
}

json_t *brokers_json(const struct brokers *b)
{
	const struct policy_network *n = b->config.policy->network;

	return json_pack("{s:s, s:s, s:f, s:f, s:b, s:b, s:b, s:o, s:o, s:o*}", "rack", n->rack,
		"machine", talk_name(b->config.talk), "down", n->capacity[SHAPE_IN], "up",
		n->capacity[SHAPE_OUT], "stale", b->stale, "scaled_down", b->scaled[SHAPE_IN],
		"scaled_up", b->scaled[SHAPE_OUT], "machines", machines_json(b), "messages",
		messages_json(b), "fabric", fabric_json(b));
}

static void write_message(FILE *to, const char *verdict, uint64_t n)
{
	fputs("weir_net_rack_messages_total", to);
	metrics_labels(to, "verdict", verdict, "", "");
	metrics_number(to, (double)n);
}

void brokers_metrics(const struct brokers *b, FILE *to)
{
	struct talk_stats s;
	size_t alive = 0;

	talk_stats(b->config.talk, &s);
	for (size_t i = 0; i < b->n_machines; i++)
		alive += i == b->own || b->machines[i].alive;
	metrics_single(to, "weir_net_rack_machines", "gauge",
		"Machines of the rack that were heard in the last 5 s.", (double)alive);
	metrics_single(to, "weir_net_rack_sent_bytes_total", "counter",
		"Bytes of messages to machines.", (double)s.peers.sent_bytes);
	if (b->config.policy->network->fabric) {
		metrics_single(to, "weir_net_fabric_leads", "gauge",
			"1: this machine leads its rack at the fabric's broker.",
			b->fabric.link != NULL);
		metrics_single(to, "weir_net_fabric_stale", "gauge",
			"1: limits of the fabric's broker came, and hold no longer.",
			b->fabric.stale);
	}
	metrics_family(to, "weir_net_rack_messages_total", "counter",
		"Messages from machines, by what became of them.");
	for (int v = 0; v < PEER_VERDICTS; v++)
		write_message(to, peer_verdict_name((enum peer_verdict)v), s.peers.verdicts[v]);
	write_message(to, "outside", s.outside);
	write_message(to, "claims", b->claims);
}
