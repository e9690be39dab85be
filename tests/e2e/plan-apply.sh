# SPDX-License-Identifier: BSD-3-Clause
# A plan in force: two tenants beside a flood keep their slos with it and miss them without; it survives a restart; one that was made
# for another policy or profile is refused; a change of the policy says what it makes untrue; status, metrics and log.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-plan.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

command -v curl >/dev/null || skip "no curl"
api_at=api.sock

plan_trace db.trace web.trace
plan_profile ssd1.profile
cat >weir.yaml <<END
listen: "unix:$here/s.sock"
state: "$here/state"
resources:
  - {name: ssd1, back: "model:server,rate=200,servers=4,service=fixed+memory:24M", depth: 4, profile: ssd1.profile}
exports:
  - {name: db, resource: ssd1, size: 8 MiB}
  - {name: web, resource: ssd1, offset: 8 MiB, size: 8 MiB}
  - {name: flood, resource: ssd1, offset: 16 MiB, size: 8 MiB}
tenants:
  - {name: db, slo: "p90 < 250ms", trace: db.trace, match: {export: db}}
  - {name: web, slo: "p90 < 400ms", trace: web.trace, match: {export: web}}
  - {name: flood, weight: 8, match: {export: flood}}
END
run 0 weir policy check weir.yaml
hasnt stderr "only measured"

# load: replay the traces beside the flood
load()
{
	serve gate --api "unix:$here/api.sock" weir.yaml
	weir load -d 64 -t 30s "flood=$(uri flood)" >/dev/null 2>&1 &
	flood=$!
	serve_all="$serve_all $flood"
	sleep 0.5
	weir replay db.trace "$(uri db)" >/dev/null 2>&1 &
	one=$!
	weir replay web.trace "$(uri web)" >/dev/null 2>&1 || fail "the replay of web"
	wait $one || fail "the replay of db"
	weir status --json >status.json
	weir status >status.txt
	curl -s --unix-socket api.sock http://weir/metrics >metrics.txt
	kill $flood
	wait $flood || :
}
slos() # EXPECTED: met or missed, of both tenants
{
	python3 - "$1" <<'END'
import json, sys
s = {t["path"]: t["slo"]["minute"] for t in json.load(open("status.json"))["tenants"] if t["slo"]}
print({k: (v["value_s"], v["good"], v["total"]) for k, v in s.items()})
sys.exit(not all(v["total"] == 120 and v["met"] is (sys.argv[1] == "met") for v in s.values()))
END
}

load
slos missed || fail "the slos are met without a plan: the test shows nothing"
api GET /v1/plan
[ "$(cat code)" = 404 ] || fail "there is a plan"
run 0 weir plan --apply --out plan.json weir.yaml
has stdout "the plan is in force"
says "info plan number=1"
serve_stop gate

# ---- it is kept over a restart
with()
{
	load
	has status.txt "plan 1, of 2 tenants"
	slos met && return
	serve_stop gate
	return 3
}
in_rounds with || fail "the slos are missed with the plan: $(cat status.json)"
python3 - <<'END' || fail "the status: $(cat status.json)"
import json
s = json.load(open("status.json"))
t = {t["path"]: t["plan"] for t in s["tenants"]}
assert s["plan"]["number"] == 1 and s["plan"]["tenants"] == 2 and s["plan"]["untrue"] == [] and s["plan"]["age_s"] > 0
assert t["flood"] is None
for name, priority in ("db", 0), ("web", 1):
    c, = t[name]
    assert c["resource"] == "ssd1" and c["priority"] == priority and c["in"] + c["out"] == 120, c
    assert c["in"] >= 108, c
END
has metrics.txt 'weir_plan_number 1'
has metrics.txt 'weir_tenant_plan_in_total{tenant="db",resource="ssd1"}'
has status.txt "IN PROFILE"

# ---- a tenant that exceeds its profile is said, and held to best effort
weir load -d 16 -t 6s "web=$(uri web)" >/dev/null 2>&1
says 'warning out-of-profile tenant=web resource=ssd1 why="sends '
says 'its profile over'
weir status >stdout
has stdout "web sends "
has stdout "held to best effort (ssd1, for "

# ---- digests
sed 's/250ms/240ms/' weir.yaml >other.yaml
run 2 weir plan --apply other.yaml
has stderr "the plan does not fit the policy in force; plan: it was made for another policy: "
has stderr "tenant db was planned for p90 < 240 ms, and its slo is p90 < 250ms"
python3 - <<'END'
import json
p = json.load(open("plan.json"))
json.dump(p | {"profiles": {"ssd1": "0" * 64}}, open("profile.json", "w"))
p["tenants"][0]["name"] = "nobody"
json.dump(p, open("tenant.json", "w"))
open("broken.json", "w").write('{"version": 1,')
END
api PUT /v1/plan profile.json
[ "$(cat code)" = 400 ] || fail "another profile is taken"
has stdout "another profile of ssd1: 000000000000"
api PUT /v1/plan tenant.json
has stdout "tenant nobody is no tenant any more"
api PUT /v1/plan broken.json
has stdout '"error": "plan:1:'
api GET /v1/plan
has stdout '"number": 1,'

# ---- a change of the policy
run 0 weir policy apply --dry-run other.yaml
has stdout "plan: it was made for another policy: "
has stdout "plan: tenant db was planned for p90 < 250 ms, and its slo is p90 < 240ms"
has stdout "nothing was changed"
run 0 weir set ssd1.depth 8
has stdout "plan: ssd1 has a depth of 8, and its profile was measured at 4"
run 0 weir set ssd1.depth auto
has stdout "plan: ssd1 has no stated depth, and its profile was measured at 4"
api PUT /v1/plan plan.json
[ "$(cat code)" = 400 ] || fail "a plan without a stated depth is taken"
has stdout "ssd1 has no stated depth"
run 0 weir set --unset ssd1.depth
run 0 weir policy apply other.yaml
has stdout "plan again"
says "warning plan-untrue why="
weir status >stdout
has stdout "plan: tenant db was planned for"
run 0 weir plan --apply other.yaml
says "info plan number=2"
weir status >stdout
hasnt stdout "was planned for"

# ---- no plan
api DELETE /v1/plan
[ "$(cat code)" = 200 ] || fail "the plan is not removed: $(cat stdout)"
api DELETE /v1/plan
[ "$(cat code)" = 404 ] || fail "it is removed twice"
weir status >stdout
hasnt stdout "plan 2"
has state/plan.json '"plan": null'
serve_stop gate
# the file that `tenants` names is part of the policy
sed '/^tenants:/,$d' weir.yaml >outer.yaml
echo "tenants: tenants.yaml" >>outer.yaml
sed '1,/^tenants:/d' weir.yaml >tenants.yaml
serve gate --api "unix:$here/api.sock" outer.yaml
run 0 weir plan --apply --out plan.json outer.yaml
sed -i 's/weight: 8/weight: 9/' tenants.yaml
run 2 weir plan --apply outer.yaml
has stderr "it was made for another policy: "
run 0 weir policy apply outer.yaml
has stdout "plan: it was made for another policy: "
run 0 weir plan --apply outer.yaml
serve_stop gate
# a plan file that is damaged is put aside
echo '{"number": 7, "plan": {"version": 1}}' >state/plan.json
serve gate --api "unix:$here/api.sock" weir.yaml
has gate.log "state-damaged"
serve_stop gate
# a profile that was measured on a larger device is one of another device
sed 's/^depth: 4/&\ndevice: 1 GiB/' ssd1.profile >large && mv large ssd1.profile
serve gate --api "unix:$here/api.sock" weir.yaml
run 2 weir plan --apply weir.yaml
has stderr "resource 'ssd1': profile: it was measured on a device of 1 GiB, and this one has 24 MiB"
sed -i 's/^device: .*/device: 8 MiB/' ssd1.profile # that of an export
kill -HUP "$(cat gate.pid)"
until weir plan --apply weir.yaml >stdout 2>stderr; do sleep 0.1; done
serve_stop gate
