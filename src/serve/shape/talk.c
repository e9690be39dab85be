/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/shape/talk.h"
#include "base/no-memory.h"
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define CLUSTER "weir-links" /* of all machines with the key, whatever their racks */
#define LATE    (2 * WEIR_SEC)

struct talk {
	struct talk_config config;
	struct peers *peers;
	struct sockaddr_storage *at; /* of the machines */
	size_t n, own;
	char name[PEER_NAME_MAX + 1];
	uint64_t outside;
};

/* ---- addresses */

static uint16_t port_of(const struct sockaddr_storage *at)
{
	return ntohs(at->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)at)->sin6_port
					       : ((const struct sockaddr_in *)at)->sin_port);
}

static void address_of(const struct sockaddr_storage *at, uint8_t ret[16])
{
	if (at->ss_family == AF_INET6) {
		memcpy(ret, &((const struct sockaddr_in6 *)at)->sin6_addr, 16);
		return;
	}
	memset(ret, 0, 10);
	ret[10] = ret[11] = 0xff;
	memcpy(ret + 12, &((const struct sockaddr_in *)at)->sin_addr, 4);
}

/* Set `ret` to an address at this machine's port. */
static int socket_address(
	const struct talk *t, const uint8_t address[16], struct sockaddr_storage *ret)
{
	static const uint8_t v4[12] = {[10] = 0xff, 0xff};
	const struct sockaddr_storage *own = &t->at[t->own];

	*ret = (struct sockaddr_storage){.ss_family = own->ss_family};
	if (own->ss_family == AF_INET6) {
		struct sockaddr_in6 *to = (struct sockaddr_in6 *)ret;

		to->sin6_port = ((const struct sockaddr_in6 *)own)->sin6_port;
		memcpy(&to->sin6_addr, address, 16);
	} else {
		struct sockaddr_in *to = (struct sockaddr_in *)ret;

		if (memcmp(address, v4, sizeof(v4)) != 0)
			return -EAFNOSUPPORT;
		to->sin_port = ((const struct sockaddr_in *)own)->sin_port;
		memcpy(&to->sin_addr, address + 12, 4);
	}
	return 0;
}

/* Return the index of a machine of the rack, or a negative number. */
static int machine_at(const struct talk *t, const struct sockaddr_storage *from)
{
	uint8_t address[16], other[16];

	address_of(from, address);
	for (size_t i = 0; i < t->n; i++) {
		address_of(&t->at[i], other);
		if (memcmp(address, other, 16) == 0 && port_of(from) == port_of(&t->at[i]))
			return (int)i;
	}
	return -ENOENT;
}

/* ---- messages */

static void on_report(void *arg, const struct peer_message *m, weir_time now)
{
	/* proofs of presence, and farewells: there is nothing in them */
}

static void on_words(
	void *arg, const struct peer_message *m, const struct sockaddr_storage *from, weir_time now)
{
	struct talk *t = arg;
	uint8_t address[16];
	int machine;

	if (m->kind == PEER_FEEDBACK) {
		address_of(from, address);
		if (t->config.feedback)
			t->config.feedback(t->config.arg, address, m->words, m->n_reports, now);
		return;
	}
	machine = machine_at(t, from);
	if (machine < 0 || (size_t)machine == t->own)
		t->outside++;
	else if (m->kind == PEER_LIMITS)
		t->config.limits(
			t->config.arg, (size_t)machine, m->name, m->words, m->n_reports, now);
	else
		t->config.usage(
			t->config.arg, (size_t)machine, m->name, m->words, m->n_reports, now);
}

void talk_usage(struct talk *t, const uint64_t *words, unsigned n)
{
	peer_tell(t->peers, NULL, PEER_USAGE, words, n);
}

void talk_limits(struct talk *t, const uint64_t *words, unsigned n)
{
	peer_tell(t->peers, NULL, PEER_LIMITS, words, n);
}

int talk_feedback(struct talk *t, const uint8_t address[16], const uint64_t *words, unsigned n)
{
	struct sockaddr_storage to;
	int r = socket_address(t, address, &to);

	if (r == 0)
		peer_tell(t->peers, &to, PEER_FEEDBACK, words, n);
	return r;
}

size_t talk_own(const struct talk *t)
{
	return t->own;
}

const char *talk_name(const struct talk *t)
{
	return t->name;
}

uint16_t talk_port(const struct talk *t)
{
	return port_of(&t->at[t->own]);
}

void talk_stats(const struct talk *t, struct talk_stats *ret)
{
	*ret = (struct talk_stats){.outside = t->outside};
	peer_stats(t->peers, &ret->peers);
}

/* ---- from start to end */

/* Open the socket at address `own`, with all other machines as those to send to. */
static int open_peers(struct talk *t, const char **addresses, struct weir_err *err)
{
	const struct policy_network *n = t->config.network;
	struct peer_config c = {.loop = t->config.loop,
		.addresses = addresses,
		.listen = n->machines[t->own],
		.name = t->config.machine,
		.cluster = CLUSTER,
		.key = n->rack_key,
		.late = LATE,
		.receive = on_report,
		.hear = on_words,
		.arg = t};
	size_t k = 0;

	for (size_t i = 0; i < n->n_machines; i++)
		if (i != t->own)
			addresses[k++] = n->machines[i];
	if (!k) /* alone: there must be some address, and a machine does not hear itself */
		addresses[k++] = n->machines[t->own];
	addresses[k] = NULL;
	return peer_open(&c, &t->peers, err);
}

static int start(struct talk *t, const char **addresses, struct weir_err *err)
{
	const struct policy_network *n = t->config.network;
	int r;

	memcpy(addresses, n->machines, n->n_machines * sizeof(*addresses));
	addresses[n->n_machines] = NULL;
	r = peer_own(addresses, t->at, err);
	if (r < 0)
		return r;
	t->own = (size_t)r;
	return open_peers(t, addresses, err);
}

int talk_new(const struct talk_config *c, struct talk **ret, struct weir_err *err)
{
	size_t n = c->network->n_machines;
	struct talk *t = calloc(1, sizeof(*t));
	const char **addresses = calloc(n + 2, sizeof(*addresses));
	int r;

	if (t)
		*t = (struct talk){.config = *c, .at = calloc(n + 1, sizeof(*t->at)), .n = n};
	r = t && t->at && addresses ? start(t, addresses, err) : no_memory(err);
	free(addresses);
	if (r) {
		talk_free(t);
		return r;
	}
	t->config.network = NULL;
	t->config.machine = NULL;
	strncpy(t->name, c->machine, PEER_NAME_MAX);
	*ret = t;
	return 0;
}

void talk_free(struct talk *t)
{
	if (!t)
		return;
	if (t->peers)
		peer_close(t->peers, NULL, NULL);
	free(t->at);
	free(t);
}
