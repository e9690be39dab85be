/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/container.h"
#include "serve/lease/lease-link.h"
#include "serve/loop/dial.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_MOST (5 * WEIR_SEC)  /* per attempt; longer than a SYN that is lost twice */
#define AGAIN_FIRST  (100 * WEIR_MS) /* a controller that is restarted is back in less */
#define AGAIN_USUAL  (5 * WEIR_SEC)  /* default */
#define STEADY       (10 * WEIR_SEC) /* a connection that lasted so long was no failed attempt */

struct lease_link {
	struct lease_link_config config;
	struct loop_timer again;
	struct dial *dial;
	struct lease_conn *conn;
	weir_time wait, began; /* before the next attempt; of the connection */
	bool said_down;
	struct lease_link_status status;
	char address[];
};

static void down(struct lease_link *l, const char *why)
{
	weir_time now = loop_clock();
	uint16_t noise;

	l->status.downs++;
	if (l->status.up || !l->status.since)
		l->status.since = now;
	l->status.up = false;
	strncpy(l->status.why, why, sizeof(l->status.why) - 1);
	if (!l->said_down && !l->config.quiet)
		log_event(LOG_LEVEL_WARNING, "controller-lost", "server", l->config.conn.name,
			"controller", l->address, "why", why, NULL);
	l->said_down = true;
	if (l->began && now - l->began > STEADY)
		l->wait = 0;
	l->began = 0;
	l->wait = l->wait ? 2 * l->wait : AGAIN_FIRST;
	if (l->wait > l->config.retry)
		l->wait = l->config.retry;
	randombytes_buf(&noise, sizeof(noise));
	loop_set(l->config.conn.loop, &l->again,
		now + l->wait / 2 + l->wait * (weir_time)noise / UINT16_MAX);
}

/* ---- a connection */

static void receive(void *arg, struct lease_conn *c, struct lease_message *m)
{
	struct lease_link *l = arg;

	if (!l->status.up) {
		l->status.up = true;
		l->status.since = loop_clock();
		l->said_down = false;
		if (!l->config.quiet)
			log_event(LOG_LEVEL_INFO, "controller", "server", l->config.conn.name,
				"controller", l->address, NULL);
	}
	l->config.receive(l->config.arg, m);
}

static void over(void *arg, struct lease_conn *c, enum peer_verdict v, const char *why)
{
	struct lease_link *l = arg;

	l->conn = NULL;
	down(l, why); /* which is c's */
	lease_conn_free(c);
	if (l->config.down)
		l->config.down(l->config.arg);
}

static void greeted(void *arg, struct lease_conn *c)
{
	struct lease_link *l = arg;

	if (l->config.up)
		l->config.up(l->config.arg);
}

static void dialled(void *arg, int fd, const struct weir_err *err)
{
	struct lease_link *l = arg;
	struct lease_conn_config config = l->config.conn;
	int r = fd;

	l->dial = NULL;
	if (fd < 0) {
		down(l, err->text);
		return;
	}
	config.side = LEASE_SERVER;
	config.receive = receive;
	config.greeted = greeted;
	config.over = over;
	config.arg = l;
	r = lease_conn_new(&config, fd, &l->conn);
	if (r < 0)
		down(l, strerror(-r));
	else
		l->began = loop_clock();
}

static void attempt(struct loop_timer *t, weir_time now)
{
	struct lease_link *l = container_of(t, struct lease_link, again);
	int r = dial_start(l->config.conn.loop, l->address, CONNECT_MOST, dialled, l, &l->dial);

	if (r < 0)
		down(l, strerror(-r));
}

/* ---- from start to end */

int lease_link_new(const struct lease_link_config *config, struct lease_link **ret)
{
	size_t n = strlen(config->address) + 1;
	struct lease_link *l = calloc(1, sizeof(*l) + n);
	int r;

	if (!l)
		return -ENOMEM;
	l->config = *config;
	if (!config->retry)
		l->config.retry = AGAIN_USUAL;
	else if (config->retry < AGAIN_FIRST)
		l->config.retry = AGAIN_FIRST;
	memcpy(l->address, config->address, n);
	l->status.address = l->address;
	l->again.due = attempt;
	r = loop_set(config->conn.loop, &l->again, loop_clock());
	if (r < 0) {
		free(l);
		return r;
	}
	*ret = l;
	return 0;
}

void lease_link_free(struct lease_link *l)
{
	if (!l)
		return;
	loop_set(l->config.conn.loop, &l->again, WEIR_NEVER);
	dial_drop(l->dial);
	lease_conn_free(l->conn);
	free(l);
}

int lease_link_send(struct lease_link *l, uint8_t *frame, size_t n)
{
	return l->conn ? lease_conn_send(l->conn, frame, n) : -ENOTCONN;
}

int lease_link_tell(struct lease_link *l, struct lease_message *m)
{
	return l->conn ? lease_conn_tell(l->conn, m) : -ENOTCONN;
}

void lease_link_status(const struct lease_link *l, struct lease_link_status *ret)
{
	*ret = l->status;
}
