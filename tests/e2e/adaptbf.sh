# SPDX-License-Identifier: BSD-3-Clause
# AdapTBF, static rules and no control before real fio clients, each put in force while requests are
# in flight. A queue of 512 gets no more than a queue of 8, except without control.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

command -v fio >/dev/null || skip "no fio"

# 8 servers of 8 ms each: 1,000 requests a second.
policy() # MORE-KEYS [TOP]
{
	cat <<END
listen: "unix:$here/s.sock"
$2
resources: [{name: ost, back: "model:server,rate=1k,service=fixed,servers=8+memory:16M", depth: 8, $1}]
exports: [{name: a, size: 4 MiB}, {name: b, offset: 4 MiB, size: 4 MiB}, {name: c, offset: 8 MiB, size: 4 MiB}]
tenants:
  - {name: a, weight: 1, match: {export: a}}
  - {name: b, weight: 1, match: {export: b}}
  - {name: c, weight: 2, match: {export: c}}
END
}
policy "capacity: 1k iops, controller: adaptbf, adaptbf: {tokens: hold}" >hold.yaml
policy "controller: adaptbf, adaptbf: {guess: 900 iops}" >first.yaml
policy "controller: tbf, tbf: {default: 100 iops, rules: [{match: c, rate: 300 iops}]}" >static.yaml
policy "controller: none" "enforce: false" >none.yaml
serve gate --api "unix:$here/api.sock" hold.yaml

python3 -B - <<'END' || fail "shares by tokens are wrong"
import time
from kept import *

fio = Fio({"a": {"iodepth": 8}, "b": {"iodepth": 512}, "c": {"iodepth": 256}}, seconds=15)
await_queue("abc")


def measured(name, seconds=1.8):
    """Check a policy that has been in force for a while, again on a busy machine."""
    if name:
        ask("PUT", "/v1/policy?name=" + name, open(name).read())
    time.sleep(0.6)
    a = Look()
    time.sleep(seconds)
    return Between(a, Look())


def in_proportion(name):
    x = measured(name)
    if abs(x.ratio("a", "b") - 1) > 0.05 or abs(x.ratio("c", "a") - 2) > 0.1:
        x = measured(None)
    near("8 requests by 512, " + name, x.ratio("a", "b"), 1, 0.05)
    near("weight 2 by weight 1, " + name, x.ratio("c", "a"), 2, 0.05)
    all = x.passed("a", "b", "c")
    check(all >= 0.9 * 1000 * x.ran - 16, "%d in %.2f s" % (all, x.ran))
    adaptbf = x.b.r["ost"]["adaptbf"]
    check(adaptbf["tokens_off"] == 0 and adaptbf["records_off"] == 0, "both sums are exact")
    check({j["tenant"] for j in adaptbf["jobs"]} == set("abc"), "all three have tokens")


def clients():
    """Return the requests so far. In shadow mode the gate's own counters are estimates."""
    return {c["export"]: c["requests"] for c in ask("GET", "/v1/clients")["clients"]}


def listed(query):
    return [j["tenant"] for j in ask("GET", "/v1/status?" + query)["resources"][0]["adaptbf"]["jobs"]]


in_proportion("hold.yaml")
check(listed("tenant=b") == ["b"], "jobs of the tenants that are asked for")
check([listed("limit=1"), listed("limit=1&after=a"), listed("after=b")] == [["a"], ["b"], ["c"]], "pages of jobs")
x = measured("static.yaml")
for t, rate in ("a", 100), ("b", 100), ("c", 300):
    got = x.passed(t)
    check(rate * x.ran * 0.97 - 4 <= got <= rate * x.longest * 1.01 + 4, "%s: %d in %.2f s, static" % (t, got, x.longest))
check(x.b.r["ost"]["adaptbf"] is None and x.b.r["ost"]["controller"] == "tbf", "static rules")
in_proportion("first.yaml")
x = measured("none.yaml", 0)
a = clients()
time.sleep(1)
b = clients()
check(b["b"] - a["b"] > 4 * (b["a"] - a["a"]), "without control the deepest queue wins:",
      *("%s %d" % (t, b[t] - a[t]) for t in "abc"))

report = fio.end()
end = Look()
for t in "abc":
    check(end.t[t]["errors"] == 0, "no errors of", t)
    # All requests that a client had sent by then were answered, except those that may have waited.
    # (The gate's own counts are estimates in shadow mode.)
    check(report[t]["read"]["total_ios"] >= b[t] - 512, "nothing was lost of", t)
finish()
END
run 0 weir policy apply first.yaml
weir status >status.txt || fail "weir status"
has status.txt 'BY WEIGHT'
serve_stop gate
