# SPDX-License-Identifier: BSD-3-Clause
# A controller that is one file and a line in the table of controllers (halve.c): weir policy keys, check and show, the
# manual, weir sim, weir serve, the API, /metrics, weir status and weir top have it. The program is weir with that line.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

[ "$(wc -l <"$WEIR_SOURCE/tests/control/example/halve.c")" -lt 150 ] || fail "the controller has 150 lines or more"

# ---- keys
run 0 weir policy keys
has stdout "halve: halves the window while latency is over a threshold"
run 0 weir policy keys halve
has stdout "threshold (from 100us to 60s; default: 10ms)"

# ---- the manual
python3 "$WEIR_SOURCE/tools/man-keys" "$WEIR" "$WEIR_SOURCE/docs/man/weir-policy.5.pod" page.pod || fail "man-keys"
run 0 pod2man --errors=die page.pod page.5
for line in '=item C<halve>' 'Halves the window while latency is over a threshold.' '=item B<halve>' \
	'A map of parameters for C<controller: halve>.' '=item B<most>'; do
	grep -qxF "$line" page.pod || fail "the manual has no line: $line"
done

# ---- policy check and show. A server that does a request in 1 ms, one at a time.
policy() # CONTROLLER [SETTINGS]
{
	cat <<END
listen: "unix:$PWD/s.sock"
resources: [{name: ost, back: "model:server,rate=1k,service=fixed,servers=1+memory:16M", depth: 32, controller: $1${2:+, halve: $2}}]
tenants: [{name: a, weight: 1, match: {export: ost}}]
END
}
policy halve '{threshold: 5ms, period: 50ms}' >weir.yaml
run 0 weir policy check weir.yaml
run 0 weir policy show weir.yaml
has stdout halve
for wrong in '{threshold: 0s}' '{treshold: 5ms}' '{most: 0}'; do
	policy halve "$wrong" >wrong.yaml
	run 2 weir policy check wrong.yaml
done
has stderr "wrong.yaml:2:"
has stderr "must be from 1 to 65536"
policy halv >wrong.yaml
run 2 weir policy check wrong.yaml
has stderr "halve"
policy tbf '{threshold: 5ms}' >wrong.yaml
run 2 weir policy check wrong.yaml
has stderr "halve is for 'controller: halve'"

# ---- weir sim: latency is the window in ms, so the window is 32, 16, 8, 4, 5, 6, 3, 4, 5, 6, 3 …
cat >sim.yaml <<END
name: halve
description: a window that is halved
duration: 2s
sample: 50ms
devices:
  - {name: ost, kind: server, rate: 1k iops, service: fixed, servers: 1,
     policy: {depth: 32, controller: halve, halve: {threshold: 5ms, period: 50ms}, tenants: [{name: a, match: {export: "*"}}]}}
hosts: [{name: a, policy: {depth: none}, workloads: [{outstanding: 64}]}]
END
run 0 weir sim -o out sim.yaml
grep -qx 'halve  *inside_end  *window_end  *halved' stdout || fail "no table of the controller's facts: $(cat stdout)"
has out/summary.csv "halve.server.window_end,requests,"
for file in halve.server.window halve.server.latency halve.a.inside; do
	[ -s out/$file.csv ] || fail "weir sim wrote no $file.csv: $(ls out)"
done
awk -F, 'NR > 2 { if (n++ < 2) next; if ($2 < 3 || $2 > 6) bad = $0; if ($2 < last) falls++; last = $2 }
	END { print n " windows, " falls + 0 " halved" bad; exit !(n > 20 && falls >= 5 && !bad) }' out/halve.server.window.csv ||
	fail "windows: $(tr '\n' ' ' <out/halve.server.window.csv)"

# ---- weir serve, the API, /metrics, status and top
serve gate --api "unix:$PWD/api.sock" weir.yaml
export WEIR_SOCKET="$PWD/api.sock"
weir load -t 30s "nbd+unix:///ost?socket=$PWD/s.sock,depth=64" >load.out 2>&1 &
serve_all="$serve_all $!" # ended with the gateway
get() # PATH
{
	curl -s --unix-socket api.sock "http://localhost/$1"
}
tries=0
until get metrics >metrics && grep -q '^weir_halve_halved_total{resource="ost"} [^0]' metrics; do
	tries=$((tries + 1))
	[ $tries -lt 200 ] || fail "the window was never halved: $(grep halve metrics)"
	sleep 0.05
done
has metrics '# TYPE weir_halve_halved_total counter'
has metrics '# TYPE weir_halve_window gauge'
has metrics 'weir_halve_latency_seconds{resource="ost"} 0.'
has metrics 'weir_halve_inside{resource="ost",tenant="a"}'
run 0 weir status --json
python3 - stdout <<'END' || fail "status --json: $(cat stdout)"
import json, sys

ost = json.load(open(sys.argv[1]))["resources"][0]
halve = ost["halve"]
assert ost["controller"] == "halve"
assert halve["halved"] >= 1 and 1 <= halve["window"] <= 16 and halve["latency_s"] > 0, halve
assert [t["tenant"] for t in halve["tenants"]] == ["a"]
END
run 0 weir policy show
has stdout halve
run 0 weir status
has stdout "HALVE"
has stdout "HALVED"
run 0 weir top --once --interval 100ms
has stdout "HALVED"
has stdout "INSIDE"

# ---- another threshold while requests are in flight, and then no controller: the window is the policy's again
policy halve '{threshold: 1s, most: 20, period: 50ms}' >weir.yaml
run 0 weir policy apply weir.yaml
tries=0
until get metrics | grep -q '^weir_halve_window{resource="ost"} 20$'; do
	tries=$((tries + 1))
	[ $tries -lt 200 ] || fail "the window does not grow to 20: $(get metrics | grep halve)"
	sleep 0.05
done
policy none >weir.yaml
run 0 weir policy apply weir.yaml
run 0 weir status --json
python3 -c 'import json; r = json.load(open("stdout"))["resources"][0]; assert r["window"] == 32 and "halve" not in r or r["halve"] is None, r' ||
	fail "without the controller: $(cat stdout)"
serve_stop gate
