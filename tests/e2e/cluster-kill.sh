# SPDX-License-Identifier: BSD-3-Clause
# The controller of a cluster dies and returns: no tenant exceeds its max in any period, and a
# tenant whose demand does not move keeps its min. Without the controller, servers keep their last
# grants, and then use their static parts.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-cluster.sh"

cluster_start 3

# From 2.5 s to 5 s of eight there is no controller: within the four periods for which entitlements hold.
round_of()
{
	cluster_watch 3 8
	cluster_load 3 8 &
	load=$!
	sleep 2.5
	kill -KILL "$(cat c.pid)"
	sleep 1.5
	curl -s --unix-socket s1.api http://localhost/v1/status >held.json
	sleep 1
	control c control.yaml
	wait "$load" || fail "weir load"
	wait "$watch" || fail "a max was exceeded: $(cat ledgers)"
	cluster_kept 0.9
}
for round in 1 2 3; do
	round_of && break
	[ "$round" -lt 3 ] || fail "mins or limits are not kept without a controller"
done
python3 -c '
import json
d = json.load(open("held.json"))
p = d["resources"][0]["pshift"]
assert p["state"] in ("leased", "held"), p["state"]
assert not d["controllers"][0]["up"] and d["controllers"][0]["why"], d["controllers"]' || fail "the controller's loss in s1's log"
has s1.log controller-lost
[ "$(grep -c controller-lost s1.log)" -le 3 ] || fail "every attempt is logged"
await c 'd["state"]' granting
await s1 'd["resources"][0]["pshift"]["state"]' leased

# The controller is gone for good: every server has its part of each max, and the parts add up to
# the max.
kill -KILL "$(cat c.pid)"
await s2 'd["resources"][0]["pshift"]["state"]' static
[ "$(cluster_state s2 '{l["tenant"]: l["cap"] for l in d["resources"][0]["pshift"]["leases"]}')" = "{'b2': 150, 'b3': 100}" ] ||
	fail "static parts: $(cluster_state s2 'd["resources"][0]["pshift"]["leases"]')"
for s in 1 2 3; do
	serve_stop "s$s"
done
