# SPDX-License-Identifier: BSD-3-Clause
# An slo is never silent: policy check warns of it, the gateway measures it, and status, top,
# metrics and log show it.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

command -v curl >/dev/null || skip "no curl"
# slo PATH EXPRESSION: check that it is true for that tenant's slo, s
slo()
{
	weir status --json >status.json
	python3 - "$@" <<'END' || fail "$1: not $2: $(python3 -c 'import json
for t in json.load(open("status.json"))["tenants"]: print(t["path"], t["slo"])')"
import json, sys
s = {t["path"]: t["slo"] for t in json.load(open("status.json"))["tenants"]}[sys.argv[1]]
sys.exit(not eval(sys.argv[2]))
END
}

cat >weir.yaml <<END
listen: "unix:$here/s.sock"
resources:
  - {name: r1, back: "memory:16M"}
  - {name: r2, back: "memory:16M"}
exports:
  - {name: fast, resource: r1, size: 4 MiB}
  - {name: held-1, resource: r1, offset: 4 MiB, size: 4 MiB}
  - {name: held-2, resource: r2, size: 4 MiB}
  - {name: rest, resource: r2, offset: 4 MiB, size: 4 MiB}
  - {name: stuck, resource: r2, offset: 8 MiB, size: 4 MiB}
  - {name: half, resource: r2, offset: 12 MiB, size: 4 MiB}
tenants:
  - {name: fast, slo: "p99 < 2s", match: {export: fast}}
  - {name: held, slo: "p99.9 < 1ms", max: 100 iops, match: {export: "held-*"}}
  - {name: stuck, slo: "p99 < 100ms", max: 4 iops, match: {export: stuck}}
  - {name: half, slo: "p50 < 1s", max: 4 iops, match: {export: half}}
  - {name: rest, match: {export: rest}}
END
run 0 weir policy check weir.yaml
has stderr "weir.yaml:13:23: the slo of 'fast' and of 3 more is only measured and reported (warning)"
serve gate --api "unix:$here/api.sock" weir.yaml
has gate.log "only measured and reported"
slo rest 's is None'
slo fast 's["total"] == 0 and s["minute"]["met"] is None and s["hour"]["value_s"] is None'
weir status >stdout
has stdout 'p99.9 < 1ms'

# ---- every request is counted, from all resources, by its total latency
weir load -n 16 -d 16 "stuck=$(uri stuck)" >/dev/null 2>&1 &
serve_all="$serve_all $!"
run 0 weir load -n 500 -d 4 "fast=$(uri fast)" "rest=$(uri rest)"
run 0 weir load -n 40 -d 8 "1=$(uri held-1)" "2=$(uri held-2)"
slo fast 's["percentile"] == 99 and s["latency_s"] == 2 and s["good"] == s["total"] == 500'
slo fast 's["minute"]["met"] and s["hour"]["met"] and 0 <= s["minute"]["value_s"] <= 2 and s["hour"]["total"] == 500'
slo held 's["total"] == s["minute"]["total"] == 80 and s["good"] < 40'
slo held 's["minute"]["met"] is False and s["hour"]["met"] is False and 0.02 < s["minute"]["value_s"] < 5'
says 'warning slo-missed tenant=held slo="p99.9 < 1ms" over=1m was='
says 'slo-missed tenant=held slo="p99.9 < 1ms" over=1h'
hasnt gate.log 'tenant=fast slo'
# Waiting requests are a miss as soon as they wait for longer than the slo allows.
says 'slo-missed tenant=stuck slo="p99 < 100ms" over=1m'
slo stuck 's["minute"]["met"] is False'

# Each of them counts: of 20 at once, those that pass in the first second are good, and the others
# are not, done or not.
weir load -n 20 -d 20 "half=$(uri half)" >/dev/null 2>&1 &
serve_all="$serve_all $!"
python3 - <<'END' || fail "waiting requests do not count"
import json, subprocess, time
end = time.monotonic() + 10
while True:
    out = subprocess.run(["weir", "status", "--json"], check=True, capture_output=True, text=True).stdout
    s = {t["path"]: t["slo"] for t in json.loads(out)["tenants"]}["half"]
    if s["minute"]["total"] == 20:
        break
    assert time.monotonic() < end, s
    time.sleep(0.05)
print(s)
assert s["total"] < 20 and s["minute"]["good"] == s["good"] <= 8, s
assert s["minute"]["met"] is False and s["hour"]["met"] is False and s["minute"]["value_s"] > 1, s
END

# ---- the same in weir top and for Prometheus
weir top --once --interval 100ms >stdout
grep -q '^fast *p99 < 2s .*met .*100.00%$' stdout || fail "top: $(cat stdout)"
grep -q '^held *p99.9 < 1ms .*MISSED .*MISSED' stdout || fail "top: $(cat stdout)"
curl -fsS --unix-socket api.sock http://weir/metrics >metrics
has metrics 'weir_tenant_slo_requests_total{tenant="held"} 80'
has metrics 'weir_tenant_slo_good_total{tenant="fast"} 500'
has metrics 'weir_tenant_slo_percentile{tenant="held"} 99.9'
has metrics 'weir_tenant_slo_bound_seconds{tenant="held"} 0.001'
has metrics 'weir_tenant_slo_met{tenant="held",window="1m"} 0'
has metrics 'weir_tenant_slo_met{tenant="fast",window="1h"} 1'
has metrics 'weir_tenant_slo_seconds{tenant="held",window="1m"} '
hasnt metrics 'slo_met{tenant="rest"'

# ---- another slo: windows start again, counters go on; and no slo
run 0 weir set held.slo 'p99 < 5s'
slo held 's["total"] == 80 and s["minute"]["total"] == 0 and s["minute"]["met"] is None'
run 0 weir load -n 20 -d 2 "1=$(uri held-1)"
slo held 's["total"] == 100 and s["minute"]["total"] == s["minute"]["good"] == 20 and s["minute"]["met"]'
run 0 weir set held.slo none
slo held 's is None'
slo fast 's["total"] == 500 and s["minute"]["total"] == 500'
serve_stop gate
