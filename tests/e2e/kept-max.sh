# SPDX-License-Identifier: BSD-3-Clause
# A max on real I/O: within 1 % over every second, in requests and in bytes; and in total over two
# back ends on two threads, while clients come and go.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

command -v fio >/dev/null || skip "no fio"

cat >weir.yaml <<END
listen: "unix:$here/s.sock"
threads: 2
resources:
  - {name: one, back: "memory:32M"}
  - {name: two, back: "memory:32M"}
exports:
  - {name: requests, resource: one, size: 8 MiB}
  - {name: bytes, resource: one, offset: 8 MiB, size: 8 MiB}
  - {name: both1, resource: one, offset: 16 MiB, size: 8 MiB}
  - {name: both2, resource: two, size: 8 MiB}
tenants:
  - {name: requests, max: 1k iops, match: {export: requests}}
  - {name: bytes, max: 20 MiB/s, match: {export: bytes}}
  - {name: both, max: 800 iops, match: {export: "both*"}}
END
serve gate --api "unix:$here/api.sock" weir.yaml

python3 -B - <<'END' || fail "a max does not hold"
from kept import *

PIECE = 65536

def kept(name, all, rate, least, one, what="dispatched"):
    at_most(name, all, rate, 1.01, one, what)
    at_least(name, all, rate, 0.99, least, one, what)

# The second back end's client starts 2 s later, and the first one's stops 2 s before the end.
fio = Fio({"requests": {}, "bytes": {"bs": "64k", "iodepth": 64}, "both1": {"runtime": 5},
           "both2": {"startdelay": 2, "runtime": 5}}, seconds=7, rw="randrw", size="8m", iodepth=256)
await_queue(["requests", "bytes", "both"], 50)
all = looks(6.5)
report = fio.end()
kept("requests", all, 1000, 100, 1)
kept("bytes", all, 20 << 20, 30, PIECE, "bytes")
# One request per gate.
kept("both", all, 800, 100, 2)
# The clients' own count: all requests over the whole time.
for name, rate in ("requests", 1000), ("bytes", 320):
    ios = sum(report[name][k]["total_ios"] for k in ("read", "write"))
    ms = max(report[name][k]["runtime"] for k in ("read", "write"))
    check(ios <= 1.01 * rate * ms / 1000 + 2, "%s: fio counts %d in %d ms" % (name, ios, ms))
check(all[-1].r["one"]["thread"] != all[-1].r["two"]["thread"], "two back ends on two threads")
finish()
END
serve_stop gate
