# SPDX-License-Identifier: BSD-3-Clause
# pShift on four servers (the paper's Experiment 3, smaller): tenants on {s1}, {s1, s2}, … {s1 …
# s4}, all busy everywhere. Without a controller the tenant on s1 only gets a quarter of it; with
# tokens every tenant has its min, and none exceeds its max in any period.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-cluster.sh"

cluster_key key
cluster_files 4
weir policy check control.yaml s1.yaml s4.yaml || fail "the policy is refused"

# Without limits, all tenants are equal.
sed 's/^cluster.*//; s/, controller: pshift//; s/tenants.yaml/plain.yaml/' s1.yaml >plain-s1.yaml
sed 's/min.*match/match/' tenants.yaml >plain.yaml
serve plain plain-s1.yaml
weir load --depth 16 --duration 2s --json b1="nbd+unix:///b1?socket=$PWD/s1.sock" b2="nbd+unix:///b2?socket=$PWD/s1.sock" \
	b3="nbd+unix:///b3?socket=$PWD/s1.sock" b4="nbd+unix:///b4?socket=$PWD/s1.sock" >plain.json || fail "weir load"
python3 -c '
import json
import sys
got = json.load(open("plain.json"))[0]["iops"]
sys.exit(not 60 < got < 120)' || fail "without control b1 does not have a quarter of s1"
serve_stop plain

control c control.yaml
cluster_up 4
await c 'd["state"]' granting
has c.log 'server server=s3'

# Repeat on a busy machine.
for round in 1 2 3; do
	cluster_watch 4 6
	cluster_load 4 6 || fail "weir load"
	wait "$watch" || fail "a max was exceeded: $(cat ledgers)"
	cluster_kept 0 && break
	[ "$round" -lt 3 ] || fail "mins or limits are not kept"
done

# The controller's own status.
[ "$(cluster_state c 'all(s["connected"] and s["state"] == "leased" for s in d["servers"])')" = True ] || fail "servers are not leased"
[ "$(cluster_state c 'd["generation"] >= 1 and d["overdrawn"]')" = False ] || fail "overdrawn"
[ "$(cluster_state s1 'd["resources"][0]["pshift"]["state"]')" = leased ] || fail "s1 is not leased"
[ "$(cluster_state s1 'sorted(l["tenant"] for l in d["resources"][0]["pshift"]["leases"])')" = "['b1', 'b2', 'b3', 'b4']" ] ||
	fail "s1 does not show its tenants"
curl -s --unix-socket c.api http://localhost/metrics >metrics.txt
has metrics.txt 'weir_control_granting 1'
has metrics.txt 'weir_control_server_connected{server="s4"} 1'
curl -s --unix-socket s1.api http://localhost/metrics >metrics.txt
has metrics.txt 'weir_pshift_leased{resource="s1"} 1'
has metrics.txt 'weir_pshift_claim_tokens{resource="s1",tenant="b1"}'
for s in 1 2 3 4; do
	serve_stop "s$s"
done
serve_stop c
