# SPDX-License-Identifier: BSD-3-Clause
# A window in bytes on real I/O: a reader of 4 KiB at a time beside one with 64 reads of 256 KiB in
# flight waits for one large read at most, and the large reader keeps 0.8 of its bandwidth. The
# window is set on a running gateway, and removed. The experiment mix-window-bytes shows the same in
# virtual time, on a faster device.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

cat >weir.yaml <<END
listen: "unix:$here/s.sock"
resources: [{name: ssd, back: "model:ssd,channels=2,dies=2,latency=1ms+memory:128M", depth: 8}]
exports:
  - {name: small, size: 64 MiB}
  - {name: large, offset: 64 MiB, size: 64 MiB}
tenants:
  - {name: small, match: {export: small}}
  - {name: large, match: {export: large}}
END
serve gate --api "unix:$here/api.sock" weir.yaml

python3 -B - <<'END' || fail "the window in bytes does not hold"
import json, os, subprocess
from kept import ask, check, finish

URI = "%s=nbd+unix:///%s?socket=" + os.environ["NBD_SOCKET"] + ",size=%s,depth=%d"
SMALL = URI % ("small", "small", "4k", 1)


def large(depth):
    return URI % ("large", "large", "256k", depth)


def load(seconds, *jobs):
    out = subprocess.run(["weir", "load", "-t", "%gs" % seconds, "--json", *jobs], stdout=subprocess.PIPE, check=True)
    return {j["job"]: j for j in json.loads(out.stdout)}


def depth(text):
    subprocess.run(["weir", "set", "ssd.depth", text], check=True)
    return ask("GET", "/v1/status")["resources"][0]


def go_first():
    """Run gateway and clients above the priority of other processes, if that is allowed: the test is about the
    gate, and a client that waits some ms for a core has its longest latencies from that. If it is not allowed,
    the p90 is judged instead of the p99. Return the percentile."""
    gateway = open("gate.pid").read().strip()
    try:
        for task in [0, *map(int, os.listdir("/proc/%s/task" % gateway))]:
            os.sched_setscheduler(task, os.SCHED_FIFO, os.sched_param(1))
        return "p99"
    except PermissionError:
        return "p90"


worst = go_first()
# Alone, all latencies of the small reader are equal; a p99 would include delays of the machine.
alone = load(0.5, SMALL)["small"]["p50_ns"]
piece = load(0.5, large(1))["large"]["p50_ns"]
most = load(1, large(64))["large"]["bytes_per_second"]
bound = alone + 1.2 * piece
without = load(1, SMALL, large(64))["small"]["p50_ns"]
check(without > 2 * bound, "without a window in bytes the median is %.2f ms, the bound for the %s %.2f ms" %
      (without / 1e6, worst, bound / 1e6))

shown = depth("{requests: 8, bytes: 384 KiB}")
check(shown["window"] == 8 and shown["window_bytes"] == 384 << 10, "status shows both windows")
# A second in which the machine stopped for some ms shows nothing about the gate: try another one.
for _ in range(6):
    both = load(1, SMALL, large(64))
    slow, part = both["small"][worst + "_ns"], both["large"]["bytes_per_second"] / most
    said = "%s %.2f ms, %.2f of the bandwidth" % (worst, slow / 1e6, part)
    print(said)
    if slow <= bound and part >= 0.8:
        break
check(slow <= bound and part >= 0.8, said)
check(depth("8")["window_bytes"] is None, "status shows no window in bytes any more")
finish()
END
serve_stop gate
