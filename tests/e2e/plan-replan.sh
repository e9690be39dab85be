# SPDX-License-Identifier: BSD-3-Clause
# Plans that change under load: an slo, a tenant and a tenant's pattern change, each followed by a new plan from the cluster's
# controller, and the controller is killed. No request is lost; the old plan stays until the new one is put; that is in
# force within a second; and the tenants with slos keep them beside a flood, all along. Without plans they do not.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-plan.sh"
. "$WEIR_SOURCE/tests/lib-cluster.sh"

command -v curl >/dev/null || skip "no curl"
here=$PWD
cluster_key key
python3 - <<'END'
def trace(name, seconds, burst):
    with open(name, "w") as f:
        f.write("# weir-trace 1\n")
        for second in range(seconds):
            for i in range(burst):
                f.write(f"{second * 10**9} R {i * 65536} 4096 0\n")
trace("db.trace", 16, 20)
trace("web.trace", 6, 20)
trace("web2.trace", 8, 30)
trace("app.trace", 6, 20)
END
plan_profile ssd.profile
tenants() # DB'S SLO, WEB'S TRACE, APP or none
{
	cat >tenants.yaml <<END
tenants:
  - {name: db, slo: "p90 < $1", trace: db.trace, path: [s1], match: {export: db}}
  - {name: web, slo: "p90 < 600ms", trace: $2, path: [s1], match: {export: web}}
END
	[ "$3" = none ] || echo '  - {name: app, slo: "p90 < 800ms", trace: app.trace, path: [s1], match: {export: app}}' >>tenants.yaml
	echo '  - {name: flood, weight: 8, match: {export: "*"}}' >>tenants.yaml
}
files() # in $here
{
	common="cluster: {name: test, key: key, controller: \"unix:$here/c.sock\", servers: [s1], period: 1s}
resources: [{name: s1, back: \"model:server,rate=200,servers=4,service=fixed+memory:16M\", depth: 4, capacity: 190 iops, profile: ssd.profile, controller: pshift}]
tenants: tenants.yaml"
	printf '%s\napi: "unix:%s/c.api"\n' "$common" "$here" >control.yaml
	cat >s1.yaml <<END
$common
listen: "unix:$here/s1.sock"
state: "$here/state"
exports:
  - {name: db, resource: s1, size: 4 MiB}
  - {name: web, resource: s1, offset: 4 MiB, size: 4 MiB}
  - {name: app, resource: s1, offset: 8 MiB, size: 4 MiB}
  - {name: flood, resource: s1, offset: 12 MiB, size: 4 MiB}
END
}
uri() # EXPORT
{
	echo "nbd+unix:///$1?socket=$here/s1.sock"
}
plan() # NUMBER: plan, put it at the controller, and see it in force
{
	[ $plans = yes ] || return 0
	run 0 weir plan --out plan.json control.yaml
	[ "$(cluster_state s1 'd["plan"]["number"] if d["plan"] else 0')" = $(($1 - 1)) ] || fail "the old plan has not stayed"
	curl -s -X PUT --data-binary @plan.json -o answer -w '%{http_code} %{time_total}\n' --unix-socket c.api http://weir/v1/plan >put
	read -r code time <put
	[ "$code" = 200 ] || fail "plan $1: $code: $(cat answer)"
	[ "$(cluster_state s1 'd["plan"]["number"], d["plan"]["untrue"]')" = "$1 []" ] || fail "plan $1 is not in force"
	python3 -c "import sys; sys.exit(not $time <= 1)" || late=1
}
change() # as tenants: at the server and at the controller
{
	tenants "$@"
	run 0 env WEIR_SOCKET="$here/s1.api" weir policy apply s1.yaml
	[ $plans = no ] || has stdout "plan again"
	kill -HUP "$(cat c.pid)"
	tries=0
	until [ "$(grep -c 'policy text="read again"' c.log)" = "$reads" ]; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] || fail "the controller has not read its policy: $(cat c.log)"
		sleep 0.05
	done
	reads=$((reads + 1))
}
round()
{
	late=0
	reads=1
	rm -rf state
	files
	tenants 300ms web.trace none
	control c control.yaml
	serve s1 --api "unix:$here/s1.api" s1.yaml
	await c 'd["state"]' granting
	plan 1
	weir load -d 64 -t 17s --json "flood=$(uri flood)" >flood.json 2>flood.err &
	flood=$!
	weir replay --json db.trace "$(uri db)" >db.json 2>db.err &
	db=$!
	weir replay --json web.trace "$(uri web)" >web.json 2>web.err &
	web=$!
	serve_all="$serve_all $flood $db $web"
	sleep 2
	change 250ms web.trace none
	plan 2
	sleep 1
	change 250ms web.trace app
	plan 3
	weir replay --json app.trace "$(uri app)" >app.json 2>app.err &
	app=$!
	serve_all="$serve_all $app"
	wait $web || fail "the replay of web: $(cat web.err)"
	change 250ms web2.trace app
	plan 4
	weir replay --json web2.trace "$(uri web)" >web2.json 2>web2.err &
	web=$!
	serve_all="$serve_all $web"
	kill -KILL "$(cat c.pid)"
	sleep 2
	[ $plans = no ] || [ "$(cluster_state s1 'd["plan"]["number"]')" = 4 ] || fail "the plan has not survived the controller"
	reads=1
	control c control.yaml
	[ $plans = no ] || await c '[s["plan"]["number"] for s in d["servers"]]' "[4]"
	await c 'd["state"]' granting
	plan 5
	for job in "$db" "$web" "$app" "$flood"; do
		wait "$job" || fail "a client failed: $(cat ./*.err)"
	done
	serve_stop s1
	serve_stop c
	[ $late = 0 ] || return 3
	python3 - <<'END' >kept || fail "a request is lost: $(cat ./*.json)"
import json, sys
ok = True
for name, n, most in ("db", 320, 250), ("web", 120, 600), ("app", 120, 800), ("web2", 240, 600):
    r = json.load(open(f"{name}.json"))
    r = r[0] if isinstance(r, list) else r
    print(name, r["requests"], r["p90_ns"] / 1e6, "ms, most", most)
    assert r["requests"] == n and not r["errors"] and not r["reconnects"] and not r["missed"], (name, r)
    ok &= r["p90_ns"] <= most * 1e6
print("all slos kept" if ok else "an slo is missed")
END
	cat kept
	grep -q "all slos kept" kept || return 3
}
# Both at the same time, each with a gateway, a controller and clients of its own. A client that is late for want of a core is late in both.
both()
{
	rm -rf without
	mkdir without
	cp key ./*.trace ssd.profile without/
	(
		cd without || exit 1
		here=$PWD plans=no serve_all=
		trap 'kill -KILL $serve_all 2>/dev/null' EXIT
		round
	) >without.out 2>&1 &
	without=$!
	serve_all="${serve_all-} $without"
	got=0
	round || got=$?
	other=0
	wait $without || other=$?
	[ $other = 3 ] || fail "every slo was kept without plans, or the run failed: $other: $(cat without.out)"
	return $got
}
plans=yes
in_rounds both || fail "an slo was missed, or a plan was not in force within a second: $(cat put)"
grep -q "an slo is missed" without/kept || fail "the run without plans has not come to its end: $(cat without.out)"
