# SPDX-License-Identifier: BSD-3-Clause
# Weights on real I/O: two fio clients of weights 1:3 get 1:3, and a changed weight takes effect
# within 100 ms.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

command -v fio >/dev/null || skip "no fio"

# 8 servers of 8 ms each: 1,000 requests a second, and a window of 8 that is always full. Clients
# have 256 requests each in flight, so that one which is delayed for a quarter of a second still
# waits in the gate.
cat >weir.yaml <<END
listen: "unix:$here/s.sock"
resources: [{name: disk, back: "model:server,rate=1k,service=fixed,servers=8+memory:16M", depth: 8}]
exports:
  - {name: a, size: 8 MiB}
  - {name: b, offset: 8 MiB, size: 8 MiB}
tenants:
  - {name: a, weight: 1, match: {export: a}}
  - {name: b, weight: 3, match: {export: b}}
END
serve gate --api "unix:$here/api.sock" weir.yaml

python3 -B - <<'END' || fail "weights do not hold"
import time
from kept import *

fio = Fio({"a": {}, "b": {}}, seconds=9, iodepth=256)
await_queue("ab", 100)
time.sleep(0.5)
a = Look()
time.sleep(3)
b = Look()
x = Between(a, b)
check(x.backlogged("a", "b"), "both wait")
near("b by a, weights 3:1", x.ratio("b", "a"), 3, 0.05)

# Each change is in force 100 ms after the request: from then on the ratio is the new one.
for weight in 9, 1, 3:
    asked = time.monotonic()
    ask("PUT", "/v1/set/a.weight", str(weight))
    time.sleep(max(0, asked + 0.1 - time.monotonic()))
    a = Look()
    time.sleep(0.8)
    x = Between(a, Look())
    check(x.backlogged("a", "b"), "both wait")
    near("a by b from 100 ms after the change to %d:3" % weight, x.ratio("a", "b"), weight / 3, 0.05)
report = fio.end()
# The clients' own counts while the weights were 1:3.
near("b by a, as fio has it", fio.rate("b", 0.6, 3.1) / fio.rate("a", 0.6, 3.1), 3, 0.05)
end = Look()
check(end.t["a"]["errors"] + end.t["b"]["errors"] == 0, "no errors")
for t in "ab":
    check(end.t[t]["served"] == report[t]["read"]["total_ios"], "the gateway counts", end.t[t]["served"], "of", t,
          "and fio", report[t]["read"]["total_ios"])
finish()
END
serve_stop gate
