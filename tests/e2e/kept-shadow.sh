# SPDX-License-Identifier: BSD-3-Clause
# Shadow mode, enforce: false: nothing is delayed, and the counters estimate the effect; the same
# counters show it once the policy is enforced.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

# The device has room for all: 256 servers of 5 ms.
cat >weir.yaml <<END
listen: "unix:$here/s.sock"
enforce: false
resources: [{name: disk, back: "model:server,latency=5ms,servers=256+memory:16M", depth: 256}]
exports:
  - {name: held, size: 8 MiB}
  - {name: free, offset: 8 MiB, size: 8 MiB}
tenants:
  - {name: held, max: 100 iops, match: {export: held}}
  - {name: free, match: {export: free}}
END
serve gate --api "unix:$here/api.sock" weir.yaml

python3 -B - <<'END' || fail "shadow mode"
import time
from kept import *


def run():
    """Offer 400 a second for 3 s to both; return their results, and the snapshots before and after."""
    a = Look()
    report = load("-t", "3s", "-r", "400", "held=" + uri("held"), "free=" + uri("free"))
    time.sleep(1)
    all = looks(1.7)
    return a, all, report, max(delays(report.process.pid).values())


def waits(t):
    return sum(t["wait_s"].values())


a, all, report, late = run()
got = report.end()
x = Between(*all)
late += Between(a, all[-1]).waited
for name in "held", "free":
    check(got[name]["requests"] >= 1050, "%s: %d of about 1,200 were served" % (name, got[name]["requests"]))
    # 5 ms in the device, and delays of a busy machine: a request is late by 5 ms or more only if it
    # begins while one of both processes is kept from running. For half of them that would have to
    # be half of the 3 s. Under a max of 100 half of them would have waited over 4 s.
    p50 = got[name]["p50_ns"] / 1e6
    check(p50 < 10 or late >= 1.4, "%s: p50 %.2f ms (%.3f s kept from running)" % (name, p50, late))
# The estimate: 100 a second pass, the rest waits for its max; the other tenant does not wait.
at_most("held", all, 100, 1.01)
at_least("held", all, 100, 0.99, 50)
held = all[-1].t["held"]
check(held["queued"] >= 500 and held["waits_for"] == "max", "held: %d would wait, for %s" %
      (held["queued"], held["waits_for"]))
check(held["arrivals"] == held["queued"] + held["dispatched"], "held: each of %d counts once" % held["arrivals"])
grown = x.b.t["held"]["wait_s"]["max"] - x.a.t["held"]["wait_s"]["max"]
least = x.a.t["held"]["queued"] * x.shortest
check(grown >= 0.99 * least, "held: %.0f request-seconds of waiting, at least %.0f" % (grown, least))
check(waits(x.b.t["free"]) < 0.1 * waits(x.b.t["held"]), "free: %.3f" % waits(x.b.t["free"]))
check(x.passed("free") >= 350 * x.ran, "free: %d in %.2f s" % (x.passed("free"), x.shortest))

# The same load, enforced.
ask("PUT", "/v1/set/enforce", "true")
time.sleep(0.2)
a, all, report, late = run()
at_most("held", all, 100, 1.01)
at_least("held", all, 100, 0.99, 50)
check(all[-1].t["held"]["waits_for"] == "max", "held: waits for", all[-1].t["held"]["waits_for"])
report.process.kill()
report.process.communicate()
finish()
END
serve_stop gate
