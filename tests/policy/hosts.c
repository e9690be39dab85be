/* SPDX-License-Identifier: BSD-3-Clause */
/* hosts: peers and the controller of a window: keys, defaults, and errors. */
#include "control/parda/keys.h"
#include "policy/policy.h"
#include "policy/text.h"

#define SETTINGS(p, i) ((const struct parda_settings *)(p)->resources[i].settings)

static void defaults(void)
{
	struct weir_policy *p = parse("resources: [{name: a}, {name: b, controller: none}]\n");

	CHECK_INT(p->peers.n_to, 0);
	CHECK(!p->peers.key && !p->peers.host && !p->peers.cluster && !p->peers.listen);
	CHECK_INT(p->peers.period, 2 * WEIR_SEC);
	CHECK(!p->resources[0].controller);
	CHECK(!p->resources[1].controller);
	weir_policy_free(p);
	p = parse("resources: [{name: a, controller: parda, threshold: 25ms}]\n");
	CHECK(p->resources[0].controller == &parda_controller);
	CHECK_INT(SETTINGS(p, 0)->threshold, 25 * WEIR_MS);
	CHECK_STR(SETTINGS(p, 0)->array, "a");
	CHECK_NEAR(SETTINGS(p, 0)->gamma, 0.8, 1e-9);
	CHECK_NEAR(SETTINGS(p, 0)->epsilon, 0.2, 1e-9);
	CHECK_NEAR(SETTINGS(p, 0)->wmin, 1, 1e-9);
	CHECK_NEAR(SETTINGS(p, 0)->wmax, 64, 1e-9);
	CHECK(!SETTINGS(p, 0)->estimate);
	weir_policy_free(p);
}

static void check_written(const struct weir_policy *p)
{
	const struct parda_settings *a = p->resources[0].settings;

	CHECK_INT(p->peers.n_to, 2);
	CHECK_STR(p->peers.to[0], "udp:h1:7000");
	CHECK_STR(p->peers.to[1], "udp:h2:7000");
	CHECK(p->peers.to_at[1].line == p->peers.to_at[0].line);
	CHECK(p->peers.to_at[1].column > p->peers.to_at[0].column);
	CHECK_STR(p->peers.listen_at.file, "t.yaml");
	CHECK_STR(p->peers.listen, "udp::7000");
	CHECK_STR(p->peers.key, "k");
	CHECK_STR(p->peers.cluster, "c");
	CHECK_STR(p->peers.host, "h1");
	CHECK_INT(p->peers.period, 500 * WEIR_MS);
	CHECK_STR(a->array, "lun0");
	CHECK_NEAR(a->gamma, 0.5, 1e-9);
	CHECK_NEAR(a->epsilon, 0, 1e-9);
	CHECK_NEAR(a->wmin, 0.25, 1e-9);
	CHECK_NEAR(a->wmax, 32, 1e-9);
	CHECK_INT(a->estimate, 1);
	CHECK_INT(a->smoothing, PARDA_BY_IO);
	CHECK_NEAR(a->alpha, 0.01, 1e-9);
	CHECK_INT(a->tau, 3 * WEIR_SEC);
	CHECK_INT(a->age, 7);
	CHECK_INT(a->size_fixed, 32768);
	CHECK(a->start && a->stranger);
}

static void all_of_it(void)
{
	struct weir_policy *copy;
	struct weir_policy *p = parse(
		"peers: {to: [\"udp:h1:7000\", \"udp:h2:7000\"], listen: \"udp::7000\", key: k,\n"
		"  cluster: c, host: h1, period: 500ms}\n"
		"resources:\n"
		"  - {name: a, controller: parda, threshold: 25ms, parda: {array: lun0, gamma: "
		"0.5,\n"
		"     epsilon: 0, wmin: 0.25, wmax: 32, estimate: local, smoothing: io, alpha: "
		"0.01,\n"
		"     tau: 3s, age: 7, size_fixed: 32 KiB, start: depth, stranger: ignore}}\n");

	check_written(p);
	CHECK_INT(policy_copy(p, &copy), 0);
	weir_policy_free(p);
	check_written(copy); /* in memory of its own */
	weir_policy_free(copy);
	p = parse("peers: file:/shared/peers\n");
	CHECK_INT(p->peers.n_to, 1);
	CHECK_STR(p->peers.to[0], "file:/shared/peers");
	weir_policy_free(p);
	p = parse("peers: [\"udp:h1:1\", \"udp:h2:1\", \"udp:h3:1\"]\n");
	CHECK_INT(p->peers.n_to, 3);
	weir_policy_free(p);
}

static void found_threshold(void)
{
	struct weir_policy *p = parse("resources:\n"
				      "  - {name: a, controller: parda, threshold: auto}\n"
				      "  - {name: b, controller: parda, threshold: auto,\n"
				      "     parda: {threshold_max: 40ms}}\n");

	CHECK(SETTINGS(p, 0)->find && SETTINGS(p, 1)->find);
	CHECK_INT(SETTINGS(p, 0)->threshold, 100 * WEIR_MS);
	CHECK_INT(SETTINGS(p, 1)->threshold, 40 * WEIR_MS);
	weir_policy_free(p);
}

static void slots(void)
{
	struct weir_policy *p =
		parse("resources:\n"
		      "  - {name: a, controller: parda, threshold: 9ms}\n"
		      "  - {name: b, cost: bytes, controller: parda, threshold: 9ms}\n"
		      "  - {name: c, cost: bytes, controller: parda, threshold: 9ms,\n"
		      "     parda: {slot: 64 KiB}}\n");

	CHECK_INT(SETTINGS(p, 0)->slot, 0);
	CHECK_INT(SETTINGS(p, 1)->slot, 16384);
	CHECK_INT(SETTINGS(p, 2)->slot, 65536);
	weir_policy_free(p);
#define BYTES(x)                                                                                   \
	"resources: [{name: a, cost: bytes, controller: parda, threshold: 1ms, parda: {" x "}}]\n"
	refused(BYTES("slot: 1 B"), "512");
	refused(BYTES("slot: 64 MiB"), "32 MiB");
	refused("resources: [{name: a, controller: parda, threshold: 1ms, parda: {slot: 8 KiB}}]\n",
		"cost: bytes");
}

static void bad_ones(void)
{
	refused("resources: [{name: a, controller: parda}]\n", "needs a threshold");
	refused("resources: [{name: a, controller: padra, threshold: 1ms}]\n", "parda");
	refused("resources: [{name: a, threshold: 1ms}]\n", "controller: parda");
	refused("resources: [{name: a, parda: {wmax: 4}}]\n", "controller: parda");
	refused("resources: [{name: a, controller: parda, threshold: 0s}]\n", "more than 0");
#define PARDA(x) "resources: [{name: a, controller: parda, threshold: 1ms, parda: {" x "}}]\n"
	refused(PARDA("threshold_max: 4ms"), "threshold: auto");
	refused(PARDA("gamma: 0"), "gamma");
	refused(PARDA("gamma: 1.5"), "gamma");
	refused(PARDA("wmin: 0"), "wmin");
	refused(PARDA("wmin: 65"), "wmin");
	refused(PARDA("wmax: 2M"), "wmax");
	refused(PARDA("epsilon: 101"), "epsilon");
	refused(PARDA("alpha: 2"), "alpha");
	refused(PARDA("age: 0"), "age");
	refused(PARDA("estimate: global"), "estimate");
	refused(PARDA("wax: 4"), "did you mean 'wmax'");
	refused("peers: {to: [here]}\n", "address");
	refused("peers: {period: 10ms}\n", "100 ms");
	refused("peers: {hots: a}\n", "did you mean 'host'");
	refused("peers: {host: two words}\n", "without spaces");
	refused("peers: {host: \"\"}\n", "must not be empty");
	refused("peers: {host: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}\n",
		"1 to 63 bytes");
	weir_policy_free(
		parse("peers: {host: "
		      "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde}\n"));
}

static void shares(void)
{
	struct weir_policy *p = parse("tenants:\n"
				      "  - {name: a, weight: 20}\n"
				      "  - name: g\n"
				      "    weight: 10\n"
				      "    children:\n"
				      "      - {name: x, weight: 3}\n"
				      "      - {name: y, weight: 1}\n");

	CHECK_NEAR(weir_policy_shares(p, (size_t)weir_policy_find(p, "a")), 20, 1e-9);
	CHECK_NEAR(weir_policy_shares(p, (size_t)weir_policy_find(p, "g/x")), 7.5, 1e-9);
	CHECK_NEAR(weir_policy_shares(p, (size_t)weir_policy_find(p, "g/y")), 2.5, 1e-9);
	weir_policy_free(p);
}

int main(void)
{
	RUN(defaults);
	RUN(all_of_it);
	RUN(found_threshold);
	RUN(slots);
	RUN(bad_ones);
	RUN(shares);
	return 0;
}
