# SPDX-License-Identifier: BSD-3-Clause
# Malicious clients, at the same resource and on the same thread as a good one, each kind alone and
# then all together: memory stays bounded, the good client sees no error, reads what it wrote, and
# its p99 changes by less than 20 %.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

[ "$(ulimit -Hn)" -ge 5000 ] || skip "fewer than 5,000 descriptors"
ulimit -n 5000
port=$((20000 + $$ % 20000))
export NBD_PORT="$port"

# 64 servers of 30 ms: 2,100 requests a second. The good client uses 1,000. The bad ones have a max
# of 500, so that there is capacity for both; they demand much more, and the rest waits in the gate.
truncate -s 16M disk.img
cat >weir.yaml <<END
listen: ["unix:$here/s.sock", "tcp:127.0.0.1:$port"]
memory: 32 MiB
resources: [{name: disk, back: "model:server,latency=30ms,servers=64+file:$here/disk.img", depth: 64}]
exports:
  - {name: good, size: 8 MiB}
  - {name: bad, offset: 8 MiB, size: 8 MiB}
tenants:
  - {name: good, match: {export: good}}
  - {name: bad, max: 500 iops, match: {export: bad}}
END
serve gate --api "unix:$here/api.sock" --log-level error weir.yaml

python3 -B - <<'END' || { tail -n 5 gate.log >&2; fail "bad clients affect others"; }
import csv, os, statistics, subprocess, sys, time
from kept import *

ATTACK = os.path.join(os.environ["PYTHONPATH"], "attack.py")
PID = open("gate.pid").read().strip()


def memory(what):
    """Return MiB: VmRSS, now, or VmHWM, the peak."""
    return [int(l.split()[1]) for l in open("/proc/%s/status" % PID) if l.startswith(what)][0] / 1024


def beside(kinds, alone, during):
    """Run a client that reads, writes and checks, 1,000 times a second, and after a second bad ones beside it.
    Add its p99 of each 100 ms to the lists."""
    seconds = 2.5 if "crowd" in kinds else 1.3
    good = load("-t", "%gs" % (seconds + 1.9), "-r", "1000", "--arrivals", "even", "--reads", "70%", "--verify",
                "--series", "good.csv", "good=" + uri("good"))
    began = time.monotonic()
    time.sleep(1)
    since = time.monotonic() - began
    bad = subprocess.Popen([sys.executable, "-B", ATTACK, str(seconds), *kinds])
    time.sleep(0.7 * seconds)
    look = Look()
    while "crowd" in kinds and look.all["clients"] < 1950 and bad.poll() is None:
        time.sleep(0.1)
        look = Look()
    check(bad.wait(60) == 0, "the bad clients did not do their part")
    until = time.monotonic() - began
    job = good.end()["good"]
    for row in csv.DictReader(open("good.csv")):
        t, p99 = float(row["time_s"]), float(row["p99_us"]) / 1000
        if 0.1 < t <= since or until + 0.2 < t <= seconds + 1.9:
            alone.append(p99)
        elif since + 0.3 < t <= until:
            during.append(p99)
    check(not job["errors"] and job["wrong"] == 0 and job["reconnects"] == 0 and job["missed"] == 0,
          "good: %d requests, %d blocks checked" % (job["requests"], job["checked"]))
    print("        %.1f MiB of memory, %.1f MiB of payloads, %d connections" %
          (memory("VmRSS"), look.all["buffers"]["used"] / (1 << 20), look.all["clients"]), flush=True)
    if "crowd" in kinds:
        check(look.all["clients"] >= 1950, "%d connections" % look.all["clients"])


start = memory("VmRSS")
sanitized = memory("VmSize") > 1 << 20  # a sanitizer's shadow memory, which is not the gateway's

# ---- each kind alone, and all

# The median of the p99s of 100 ms each: a busy machine stops all processes for a moment now and
# then. If that is too coarse, measure for longer: delays by the machine even out, and delays by bad
# clients do not.
for kinds in ["deaf=40"], ["drip=20", "half=40", "silent=5"], ["giant=3", "noise=3"], ["leaver=3"], ["crowd"], \
        ["deaf=20", "drip=4", "half=10", "giant", "leaver=2", "noise", "silent=5", "crowd"]:
    alone, during, moved = [], [], 2
    print("       ", *kinds, flush=True)
    for i in range(4):
        beside(kinds, alone, during)
        moved = statistics.median(during) / statistics.median(alone)
        if moved < 1.2:
            break
    check(moved < 1.2, "p99 %.2f ms, beside them %.2f: %+.1f %%" %
          (statistics.median(alone), statistics.median(during), 100 * moved - 100))

# ---- memory

# Payloads have 32 MiB, and an eighth more for fragmentation; received bytes not yet parsed an
# eighth of that; jobs 2 MiB; a connection, with the bytes read behind a request that has to wait,
# at most 8 KiB: 16 MiB for 2,000; 500 handshakes 2 KiB each; and 8 MiB are for all the rest.
most = start + 36 + 4 + 2 + 16 + 1 + 8
peak = memory("VmHWM")
check(sanitized or peak < most, "%.1f MiB at most, of %.1f" % (peak, most))
# Everything is released.
for i in range(100):
    look = Look()
    if look.all["clients"] == 0 and look.all["buffers"]["used"] == 0 and look.t["bad"]["queued"] == 0:
        break
    time.sleep(0.1)
check(look.all["clients"] == 0, "%d clients are left" % look.all["clients"])
check(look.all["buffers"]["used"] == 0, "%d bytes of payloads are left" % look.all["buffers"]["used"])
check(look.t["bad"]["queued"] + look.t["bad"]["in_flight"] == 0, "all their requests are gone")
check(len(os.listdir("/proc/%s/fd" % PID)) < 40, "%d descriptors" % len(os.listdir("/proc/%s/fd" % PID)))
finish()
END
serve_stop gate
