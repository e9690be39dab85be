/* SPDX-License-Identifier: BSD-3-Clause */
/* rules: of random packets and random matches the tables find the service that a search through all matches finds. */
#include "serve/shape/rules.h"
#include "policy/pattern.h"
#include "policy-parse.h"
#include "base/rng.h"

#define SERVICES 40
#define PACKETS  400

static const char *const cgroups[] = {"", "a", "a/b", "a/b/c", "d", "d/web-1"};
static const char *const patterns[] = {"a", "a/*", "*web*", "d/web-1", "none"};
static const char *const interfaces[] = {"vnet0", "vnet1", "tap0"};
static const char *const interface_patterns[] = {"vnet*", "vnet1", "tap?"};
static const char *const blocks[] = {
	"10.0.0.0/8", "10.1.0.0/16", "10.1.2.3", "fd00::/8", "0.0.0.0/0"};

/* Append a random match of a service to a policy. */
static void add_match(struct rng *r, char *text)
{
	char *p = text + strlen(text);
	bool any = false;

	p += sprintf(p, "{");
#define FIELD(...)                                                                                 \
	do {                                                                                       \
		p += sprintf(p, "%s", any ? ", " : "");                                            \
		p += sprintf(p, __VA_ARGS__);                                                      \
		any = true;                                                                        \
	} while (0)
	if (rng_below(r, 3) == 0)
		FIELD("cgroup: \"%s\"", patterns[rng_below(r, 5)]);
	if (rng_below(r, 4) == 0)
		FIELD("interface: \"%s\"", interface_patterns[rng_below(r, 3)]);
	if (rng_below(r, 2) == 0)
		FIELD("port: %d-%d", 1 + (int)rng_below(r, 4), 5 + (int)rng_below(r, 4));
	if (rng_below(r, 2) == 0)
		FIELD("address: \"%s\"", blocks[rng_below(r, 5)]);
	if (!any || rng_below(r, 4) == 0)
		FIELD("dscp: %d", (int)rng_below(r, 4));
	sprintf(p, "}");
}

struct packet {
	int cgroup, interface; /* -1: none */
	uint16_t port;
	uint8_t dscp;
	uint8_t address[16];
};

static bool fits_block(const char *text, const uint8_t address[16])
{
	struct policy_addresses block, own = {.v6 = true, .bits = 128};
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};

	memcpy(own.address, address, 16);
	if (memcmp(address, v4, 12) == 0) {
		own = (struct policy_addresses){.bits = 32};
		memcpy(own.address, address + 12, 4);
	}
	return policy_pattern_block(text, &block) && block.v6 == own.v6 &&
	       policy_pattern_same(&block, &own, block.bits);
}

/* A rule names a cgroup and all inside of it. */
static bool fits_cgroup(const char *pattern, int cgroup)
{
	char path[32];

	if (cgroup < 0)
		return false;
	for (snprintf(path, sizeof(path), "%s", cgroups[cgroup]);;) {
		char *slash = strrchr(path, '/');

		if (policy_pattern_fits(pattern, path))
			return true;
		if (!path[0])
			return false;
		*(slash ? slash : path) = '\0';
	}
}

static bool fits(const struct policy_net_match *m, const struct packet *p)
{
	return (!m->cgroup || fits_cgroup(m->cgroup, p->cgroup)) &&
	       (!m->interface || (p->interface >= 0 && policy_pattern_fits(m->interface,
							       interfaces[p->interface]))) &&
	       (!m->port || (p->port >= m->port && p->port <= m->port_last)) &&
	       (!m->address || fits_block(m->address, p->address)) &&
	       (m->dscp < 0 || p->dscp == m->dscp);
}

/* The rank of the best match of all, which only one service may have; services with it: *ret. */
static void search(const struct weir_policy *p, const struct packet *k, bool ret[SERVICES + 1])
{
	int best[POLICY_NET_RANK] = {0}, rank[POLICY_NET_RANK];

	memset(ret, 0, SERVICES + 1);
	ret[0] = true;
	for (size_t i = 0; i < p->n_tenants; i++)
		for (unsigned m = 0; m < p->tenants[i].net->n_match; m++) {
			int order = 0;

			if (!fits(&p->tenants[i].net->match[m], k))
				continue;
			policy_net_rank(&p->tenants[i].net->match[m], rank);
			for (int f = 0; f < POLICY_NET_RANK && !order; f++)
				order = rank[f] - best[f];
			if (order > 0) {
				memcpy(best, rank, sizeof(best));
				memset(ret, 0, SERVICES + 1);
			}
			if (order >= 0)
				ret[i + 1] = true;
		}
}

static struct packet random_packet(struct rng *r)
{
	static const uint8_t addresses[][16] = {{[10] = 255, 255, 10, 1, 2, 3},
		{[10] = 255, 255, 10, 1, 9, 9}, {[10] = 255, 255, 10, 9, 9, 9},
		{[10] = 255, 255, 192, 168, 0, 1}, {0xfd, 1}, {0xfe, 0x80}};
	struct packet p = {(int)rng_below(r, 7) - 1, (int)rng_below(r, 4) - 1,
		(uint16_t)rng_below(r, 10), (uint8_t)rng_below(r, 5), {0}};

	memcpy(p.address, addresses[rng_below(r, 6)], 16);
	return p;
}

/* The sets of a cgroup as a walk from the root finds them. */
static uint32_t cgroup_set(struct rules *r, int cgroup)
{
	uint32_t set = r->any[SHAPE_CGROUP];
	char path[32];

	if (cgroup < 0)
		return set;
	set = (uint32_t)rules_cgroup(r, set, "");
	for (const char *c = cgroups[cgroup]; *c; c++)
		if (!c[1] || c[1] == '/') {
			snprintf(path, sizeof(path), "%.*s", (int)(c + 1 - cgroups[cgroup]),
				cgroups[cgroup]);
			set = (uint32_t)rules_cgroup(r, set, path);
		}
	return set;
}

static void random_policy(uint64_t seed)
{
	struct rng rng;
	uint16_t node[SERVICES];
	char *text = calloc(1, 65536);
	struct weir_policy *p;
	struct weir_err err;
	struct rules *r;
	size_t before;

	CHECK(text != NULL);
	rng_init(&rng, seed, "rules");
	strcpy(text, "tenants:\n");
	for (int i = 0; i < SERVICES; i++) { /* only matches that tie with no earlier one */
		before = strlen(text);
		sprintf(text + before, "  - {name: s%d, match: ", i);
		add_match(&rng, text);
		strcat(text, "}\n");
		if (weir_policy_parse(text, strlen(text), "t", &p, &err) < 0) {
			text[before] = '\0';
			sprintf(text + before,
				"  - {name: s%d, match: {port: %d, address: 10.77.0.%d}}\n", i,
				1000 + i, i);
		} else {
			weir_policy_free(p);
		}
		node[i] = (uint16_t)(i + 1);
	}
	p = parse(text);
	CHECK_INT(rules_new(p, node, &r), 0);
	for (int k = 0; k < PACKETS; k++) {
		struct packet one = random_packet(&rng);
		struct rules_packet packet = {.cgroup = cgroup_set(r, one.cgroup),
			.interface = one.interface < 0 ? r->any[SHAPE_INTERFACE]
						       : (uint32_t)rules_interface(
								 r, interfaces[one.interface]),
			.port = one.port,
			.dscp = one.dscp};
		bool best[SERVICES + 1];
		uint16_t found;

		memcpy(packet.address, one.address, 16);
		found = rules_find(r, &packet);
		search(p, &one, best);
		if (!best[found])
			FAIL("seed %d, packet %d: service %u is not the best\n%s", (int)seed, k,
				found, text);
	}
	rules_free(r);
	weir_policy_free(p);
	free(text);
}

int main(void)
{
	for (uint64_t seed = 1; seed <= 12; seed++)
		random_policy(seed);
	return 0;
}
