# SPDX-License-Identifier: BSD-3-Clause
# Two controllers of one cluster at the same time: the servers follow the later one, the other
# stands down and says so, and no tenant exceeds its max in any period meanwhile.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-cluster.sh"

cluster_start 2 "\"unix:$PWD/c.sock\", \"unix:$PWD/c2.sock\""

cluster_watch 2 6
cluster_load 2 6 &
load=$!
sleep 2
control c2 --name second --listen "unix:$PWD/c2.sock" --api "unix:$PWD/c2.api" control.yaml
await c2 'd["state"]' granting
await c 'd["state"] == "granting"' False
wait "$load" || fail "weir load"
wait "$watch" || fail "a max was exceeded: $(cat ledgers)"
has c.log stood-down

# All servers follow the second controller only.
for s in 1 2; do
	[ "$(cluster_state "s$s" 'd["resources"][0]["pshift"]["state"]')" = leased ] || fail "s$s is not leased"
	[ "$(cluster_state "s$s" 'd["resources"][0]["pshift"]["generation"]')" = "$(cluster_state c2 'd["generation"]')" ] ||
		fail "s$s does not follow the second"
done
grants=$(cluster_state c 'sum(s["grants"] for s in d["servers"])')
sleep 2
[ "$(cluster_state c 'sum(s["grants"] for s in d["servers"])')" = "$grants" ] || fail "the first still grants"
for s in 1 2; do
	serve_stop "s$s"
done
serve_stop c2
serve_stop c
