# SPDX-License-Identifier: BSD-3-Clause
# Shadow mode on an overloaded SSD with closed-loop clients: the estimates have a range, the result
# of enforcement lies in it, and no more shadow requests wait than the clients have outstanding.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

cat >weir.yaml <<END
listen: "unix:$here/s.sock"
enforce: false
resources: [{name: ssd, back: "model:ssd,channels=2,dies=2,latency=1ms+memory:64M", depth: 16}]
exports:
  - {name: a, resource: ssd, size: 32 MiB}
  - {name: b, resource: ssd, offset: 32 MiB}
tenants:
  - {name: a, max: 800 iops, match: {export: a}}
  - {name: b, match: {export: b}}
END
serve gate --api "unix:$here/api.sock" weir.yaml

python3 -B - <<'END' || fail "shadow mode"
import time
from kept import *


def rates(seconds):
    a = Look()
    time.sleep(seconds)
    b = Look()
    span = Between(a, b).shortest
    return {n: (b.t[n]["served"] - a.t[n]["served"]) / span for n in ("a", "b")}, b.t


def compare():
    ask("PUT", "/v1/set/enforce", "false")
    report = load("-t", "5s", "-d", "64", "a=" + uri("a"), "b=" + uri("b"))
    time.sleep(1)
    said, t = rates(1.3)
    ask("PUT", "/v1/set/enforce", "true")
    time.sleep(0.5)
    got, _ = rates(1.3)
    report.process.kill()
    report.process.communicate()
    fits = True
    for n in "a", "b":
        s = t[n]["shadow"]
        low, high = said[n] * s["low"], said[n] * s["high"]
        print("%s: shadow %.0f (%.0f-%.0f; %d outstanding, think %.4f s, %d queued), enforced %.0f" %
              (n, said[n], low, high, s["outstanding"], s["think_s"], t[n]["queued"], got[n]))
        check(s["closed"] == 1 and s["outstanding"] == 64, "%s: 64 outstanding" % n)
        check(t[n]["queued"] <= 64, "%s: %d shadows wait" % (n, t[n]["queued"]))
        fits &= low <= got[n] <= high
    return fits


# The machine may be busy in one of the two runs only: then repeat.
check(any(compare() for i in range(3)), "enforcement lies in the range")
finish()
END
serve_stop gate
