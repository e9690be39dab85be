# SPDX-License-Identifier: BSD-3-Clause
# A plan of a cluster: put at its controller, it is in force at every server; it stays when the controller dies and when a server
# restarts; a later controller goes on from the servers' number; a server with other tenants refuses it and says why, and takes
# it after it has the same tenants; a plan of many parts; and a plan is removed everywhere.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-plan.sh"
. "$WEIR_SOURCE/tests/lib-cluster.sh"

command -v curl >/dev/null || skip "no curl"
here=$PWD
cluster_key key
plan_trace db.trace web.trace
plan_profile ssd.profile
cat >tenants.yaml <<END
tenants:
  - {name: db, slo: "p90 < 250ms", trace: db.trace, path: [s1], min: 20 iops, match: {export: db}}
  - {name: web, slo: "p90 < 250ms", trace: web.trace, path: [s2], match: {export: web}}
  - {name: flood, match: {export: "*"}}
END
head="cluster: {name: test, key: key, controller: \"unix:$here/c.sock\", servers: [s1, s2], period: 1s}"
resource() # NAME
{
	echo "{name: $1, back: \"model:server,rate=200,servers=4,service=fixed+memory:8M\", depth: 4, capacity: 150 iops, profile: ssd.profile, controller: pshift}"
}
cat >control.yaml <<END
$head
api: "unix:$here/c.api"
resources: [$(resource s1), $(resource s2)]
tenants: tenants.yaml
END
for s in 1 2; do
	cat >s$s.yaml <<END
$head
listen: "unix:$here/s$s.sock"
state: "$here/state$s"
resources: [$(resource s$s)]
exports: [{name: db, resource: s$s, size: 4 MiB}, {name: web, resource: s$s, offset: 4 MiB, size: 4 MiB}]
tenants: tenants.yaml
END
done
api_at=c.api
answers() # STATUS
{
	[ "$(cat code)" = "$1" ] || fail "$(cat code), not $1: $(cat stdout)"
}
numbers() # NUMBER: at both servers
{
	await s1 'd["plan"] and d["plan"]["number"]' "$1"
	await s2 'd["plan"] and d["plan"]["number"]' "$1"
}

run 0 weir policy check control.yaml s1.yaml s2.yaml
control c control.yaml
cluster_up 2
await c 'd["state"]' granting

# ---- planned and applied at the controller
api GET /v1/plan
answers 404
api POST /v1/plan
answers 200
python3 -c 'import json; p = json.load(open("stdout")); assert p["feasible"] and len(p["tenants"]) == 2' || fail "not planned: $(cat stdout)"
api PUT /v1/plan/admit
answers 405
export WEIR_SOCKET="$here/c.api"
run 0 weir plan --apply --out plan.json control.yaml
has stdout "s1: in force"
has stdout "s2: in force"
has stdout "the plan is in force"
numbers 1
for s in 1 2; do
	weir load -d 1 -t 0.3s "db=nbd+unix:///db?socket=$here/s$s.sock" "web=nbd+unix:///web?socket=$here/s$s.sock" >/dev/null 2>&1
	[ "$(cluster_state s$s 'sorted((t["path"], t["plan"][0]["resource"]) for t in d["tenants"] if t["plan"])')" = \
		"[('$([ $s = 1 ] && echo db || echo web)', 's$s')]" ] || fail "claims at s$s: $(cluster_state s$s '[(t["path"], t["plan"]) for t in d["tenants"]]')"
	[ "$(cluster_state s$s 'd["plan"]["untrue"]')" = "[]" ] || fail "untrue at s$s: $(cluster_state s$s 'd["plan"]["untrue"]')"
done
api GET /v1/plan
answers 200
[ "$(cluster_state c '[s["plan"]["state"] for s in d["servers"]]')" = "['in force', 'in force']" ] || fail "the controller's status"
has c.log "plan server=s2 number=1"

# ---- a plan for another policy
sed 's/period: 1s/period: 2s/' control.yaml >other.yaml
run 2 weir plan --apply other.yaml
has stderr "the plan does not fit the controller's policy; it was made for another: "
numbers 1

# ---- the controller dies, a server restarts
kill -9 "$(cat c.pid)"
sleep 0.3
numbers 1
serve_stop s1
serve s1 --api "unix:$here/s1.api" s1.yaml
numbers 1
control c control.yaml
await c 'd["state"]' granting
await c '[s["plan"]["number"] for s in d["servers"]]' "[1, 1]"
numbers 1

# ---- of many parts, by the next controller
python3 -c '
import json
p = json.load(open("plan.json"))
p["said"] = "x" * 300000
json.dump(p, open("long.json", "w"))'
api PUT /v1/plan long.json
answers 200
numbers 2

# ---- a server with other tenants
sed 's/20 iops/30 iops/; s/p90 < 250ms/p90 < 240ms/' tenants.yaml >tenants2.yaml
sed 's/tenants: tenants.yaml/tenants: tenants2.yaml/' s2.yaml >other2.yaml
run 0 env WEIR_SOCKET="$here/s2.api" weir policy apply other2.yaml
has stdout "plan: the cluster's controller has another file of tenants: "
has stdout "plan: tenant db was planned for p90 < 250 ms, and its slo is p90 < 240ms"
api PUT /v1/plan plan.json
answers 409
has stdout "s1: in force"
has stdout "s2: refused: the plan does not fit the policy in force; plan: the cluster's controller has another file of tenants: "
[ "$(cluster_state s1 'd["plan"]["number"]')" = 3 ] || fail "s1 has not taken it"
[ "$(cluster_state s2 'd["plan"]["number"]')" = 2 ] || fail "s2 has taken it"
has s2.log "plan-refused number=3"
run 0 env WEIR_SOCKET="$here/s2.api" weir policy apply s2.yaml
numbers 3
[ "$(cluster_state s2 'd["plan"]["untrue"]')" = "[]" ] || fail "untrue at s2"

# ---- a server that is away meanwhile
serve_stop s2
api PUT /v1/plan plan.json
answers 409
has stdout "s2: not connected"
serve s2 --api "unix:$here/s2.api" s2.yaml
numbers 4

# ---- removed
api DELETE /v1/plan
answers 200
await s1 'd["plan"]' None
await s2 'd["plan"]' None
api DELETE /v1/plan
answers 404

# ---- kept by a controller with a state folder, for a server that has lost it
serve_stop c
echo "state: \"$here/statec\"" >>control.yaml
control c control.yaml
await c 'd["state"]' granting
run 0 weir plan --apply control.yaml
numbers 6
serve_stop c
serve_stop s2
rm -r state2
serve s2 --api "unix:$here/s2.api" s2.yaml
[ "$(cluster_state s2 'd["plan"]')" = None ] || fail "a plan without a state"
control c control.yaml
numbers 6
serve_stop c
serve_stop s1
serve_stop s2
