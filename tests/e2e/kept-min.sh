# SPDX-License-Identifier: BSD-3-Clause
# A min on real I/O, met beside a noisy neighbour of high weight; and large writes in pieces: a
# neighbour waits for one piece at most.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

command -v fio >/dev/null || skip "no fio"

# busy: 1,000 requests a second. wide: one after the other at 12.5 MiB/s, so that a piece of 256 KiB takes 20 ms
# and a write of 32 MiB 2.56 s.
cat >weir.yaml <<END
listen: "unix:$here/s.sock"
threads: 2
resources:
  - {name: busy, back: "model:server,rate=1k,service=fixed,servers=8+memory:16M", depth: 8}
  - {name: wide, back: "model:server,rate=100k,bandwidth=12.5MiB/s,service=fixed+memory:72M", depth: 1}
exports:
  - {name: meek, resource: busy, size: 8 MiB}
  - {name: noisy, resource: busy, offset: 8 MiB, size: 8 MiB}
  - {name: small, resource: wide, size: 8 MiB}
  - {name: large, resource: wide, offset: 8 MiB, size: 64 MiB}
tenants:
  - {name: meek, min: 400 iops, match: {export: meek}}
  - {name: noisy, weight: 1000, match: {export: noisy}}
  - {name: small, match: {export: small}}
  - {name: large, match: {export: large}}
END
serve gate --api "unix:$here/api.sock" weir.yaml

python3 -B - <<'END' || fail "a min does not hold, or large writes are not in pieces"
from kept import *

# The noisy client's 64 requests keep it backlogged; the meek client has enough in flight to be
# backlogged, too.
fio = Fio({"meek": {"iodepth": 128}, "noisy": {"iodepth": 64}, "small": {"iodepth": 1, "startdelay": 1},
           "large": {"iodepth": 2, "bs": "32m", "rw": "write", "size": "64m"}}, seconds=8)
await_queue(["meek", "noisy", "large"])
all = looks(6.5)
late = max(delays(fio.process.pid).values()) # of the client, since it began
report = fio.end()

# ---- min

at_least("meek", all, 400, 0.99, 50)
x = Between(all[0], all[-1])
check(x.passed("meek") <= 420 * x.longest + 60, "meek: no more than its min beside a weight of 1000:", x.passed("meek"))
check(x.passed("noisy") > 0, "noisy: what is left,", x.passed("noisy"))

# ---- pieces

# The waiting time of the small client, by its sum: one piece for each of its requests, and no more.
pieces, small = x.passed("large"), x.passed("small")
check(pieces >= 50 and report["large"]["write"]["total_ios"] >= 2, "large: %d pieces, of %d writes of 32 MiB" %
      (pieces, report["large"]["write"]["total_ios"]))
waits = sum(x.b.t["small"]["wait_s"].values()) - sum(x.a.t["small"]["wait_s"].values())
check(waits <= 0.0205 * (small + 1) + x.waited, "small: %d waited %.3f s, where a piece takes 0.02 s (%.3f s kept from running)"
      % (small, waits, x.waited))
check(waits >= 0.01 * small, "small: it waits for pieces")
# As the client sees it: 20 ms for the piece, 0.3 for itself. Delays of either process are added;
# for a p95 of 30 ms they must be 9.5 ms in at least 5 % of the requests. Two pieces would be 40 ms
# in all of them.
p95 = report["small"]["read"]["clat_ns"]["percentile"]["95.000000"] / 1e6
least = 0.0095 * 0.05 * small
check(p95 < 30 or x.waited + late >= least, "small: p95 %.1f ms (%.3f s kept from running; from %.3f s on it may be more)"
      % (p95, x.waited + late, least))
finish()
END
serve_stop gate
