/* SPDX-License-Identifier: BSD-3-Clause */
/* peer: the common parts of datagrams and files: names, counters, logging. */
#include "serve/peer/peer-impl.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#define SAY_AGAIN (60 * WEIR_SEC) /* ns between two lines about one kind of problem */
#define SAME      PEER_VERDICTS   /* its place in `said` */

static bool is_udp(const char *address)
{
	return strncmp(address, "udp", 3) == 0;
}

int peer_check(const char *const *addresses, struct weir_err *err)
{
	if (!addresses[0])
		return weir_err_set(err, -EINVAL, "peers: no address is given");
	if (is_udp(addresses[0]))
		return peer_udp_check(addresses, err);
	if (addresses[1])
		return weir_err_set(err, -EINVAL,
			"peers: '%s' cannot be combined with others, only udp:HOST:PORT can",
			addresses[0]);
	return peer_file_check(addresses[0], err);
}

int peer_init(struct peers *p, const struct peers_ops *ops, const struct peer_config *config,
	struct weir_err *err)
{
	const char *cluster = config->cluster ? config->cluster : "weir";
	int r;

	if (peer_name_check(config->name) < 0)
		return weir_err_set(err, -EINVAL,
			"host '%s': a name has 1 to %d bytes and no spaces", config->name,
			PEER_NAME_MAX);
	p->ops = ops;
	p->config = *config;
	p->last.cluster = peer_hash(cluster);
	strncpy(p->last.name, config->name, PEER_NAME_MAX);
	r = peer_key_read(config->key, cluster, &p->key, err);
	while (r == 0 && !p->last.instance)
		randombytes_buf(&p->last.instance, sizeof(p->last.instance));
	return r;
}

int peer_open(const struct peer_config *config, struct peers **ret_peers, struct weir_err *err)
{
	int r = peer_check(config->addresses, err);

	if (r < 0)
		return r;
	return is_udp(config->addresses[0]) ? peer_udp_open(config, ret_peers, err)
					    : peer_file_open(config, ret_peers, err);
}

const struct peer_message *peer_next(struct peers *p, enum peer_kind kind)
{
	p->last.kind = kind;
	p->last.sequence++;
	p->last.sent = loop_clock();
	return &p->last;
}

void peer_send(struct peers *p, const struct peer_report *reports, unsigned n)
{
	if (n > PEER_REPORTS_MAX)
		n = PEER_REPORTS_MAX;
	if (n)
		memcpy(p->last.reports, reports, n * sizeof(*reports));
	p->last.n_reports = n;
	p->ops->send(p);
}

void peer_tell(struct peers *p, const struct sockaddr_storage *to, enum peer_kind kind,
	const uint64_t *words, unsigned n)
{
	p->ops->tell(p, to, kind, words, n);
}

void peer_stats(const struct peers *p, struct peer_stats *ret)
{
	*ret = p->stats;
	p->ops->stats(p, ret);
}

uint64_t peer_instance(const struct peers *p)
{
	return p->last.instance;
}

void peer_close(struct peers *p, void (*closed)(void *arg), void *arg)
{
	p->closed = closed;
	p->closed_arg = arg;
	p->ops->close(p);
}

void peer_closed(struct peers *p)
{
	peer_key_forget(&p->key);
	if (p->closed)
		p->closed(p->closed_arg);
}

/* ---- what came */

static bool may_say(struct peers *p, unsigned what)
{
	weir_time now = loop_now(p->config.loop);

	if (p->said[what] && now - p->said[what] < SAY_AGAIN)
		return false;
	p->said[what] = now;
	return true;
}

/* Return true for a problem: not for normal losses of the network, or effects of hosts that come
 * and go. */
static bool is_trouble(enum peer_verdict v)
{
	return v == PEER_NOISE || v == PEER_VERSION || v == PEER_CLUSTER || v == PEER_FORGED ||
	       v == PEER_BROKEN || v == PEER_CROWD;
}

void peer_count(struct peers *p, enum peer_verdict v, const char *from)
{
	char total[24];

	p->stats.verdicts[v]++;
	if (!is_trouble(v) || !may_say(p, v))
		return;
	log_event(LOG_LEVEL_WARNING, "peer-refused", "why", peer_verdict_name(v), "from", from,
		"total", log_number(total, (double)p->stats.verdicts[v]), NULL);
}

void peer_deliver(struct peers *p, const struct peer_message *m,
	const struct sockaddr_storage *from, bool same, weir_time now)
{
	char instance[24];

	if (same) {
		p->stats.same++;
		memcpy(p->stats.same_name, m->name, sizeof(m->name));
		snprintf(instance, sizeof(instance), "%016" PRIx64, m->instance);
		if (may_say(p, SAME))
			log_event(LOG_LEVEL_WARNING, "peer-same-name", "host", m->name, "instance",
				instance, NULL);
	}
	if (peer_has_words(m->kind))
		p->config.hear(p->config.arg, m, from, now);
	else
		p->config.receive(p->config.arg, m, now);
}
