# SPDX-License-Identifier: BSD-3-Clause
# A max is reached while every core is busy: 1k iops for a client with 8 requests in flight, beside
# one busy loop per core. A preloaded library records when the gateway sends requests to its
# upstream.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

command -v cc >/dev/null || skip "no C compiler"
command -v fio >/dev/null || skip "no fio"
cc -O2 -shared -fPIC -o clock-shim.so "$WEIR_SOURCE/tests/e2e/clock-shim.c"

# Everything here runs at one priority, above the rest of the machine if that is allowed.
renice -n -10 $$ >renice.out 2>&1 || true
echo -10 2>/dev/null >/proc/self/autogroup || true

serve up --listen "unix:$here/up.sock" memory:32M
cat >weir.yaml <<END
listen: "unix:$here/s.sock"
resources: [{name: disk, back: "nbd+unix:///?socket=$here/up.sock"}]
exports: [{name: disk}]
tenants: [{name: all, max: 1k iops, match: {export: disk}}]
END
CLOCK_SHIM="$here/calls" LD_PRELOAD="$here/clock-shim.so" serve gate weir.yaml

python3 -B - <<'END' || fail "a max is not reached on a busy machine"
import os, struct, sys
from kept import *

RATE, SECONDS = 1000, 10
WARM = 0.3     # s after the first request
CATCH = 0.025  # s: a longer stop of the gateway or the client costs tokens. One busy loop a core causes none.
ENTRY = struct.Struct("=qiiII")
REPLIES = [struct.unpack("=I", struct.pack(">I", m))[0] for m in (0x67446698, 0x668E33EF)]  # simple, structured


def dispatched(since):
    """Return the times at which requests were sent to the upstream. Each is 28 bytes: all of them are reads."""
    calls = []
    for at, fd, n, magic, out in ENTRY.iter_unpack(open("calls", "rb").read()):
        if not at:
            break
        calls.append((at / 1e9, fd, n, magic, out))
    upstream = {fd for at, fd, n, magic, out in calls if not out and magic in REPLIES}
    return [at for at, fd, n, magic, out in calls if out and fd in upstream and at > since for i in range(n // 28)]


def worst_second(times):
    most = j = 0
    for i, t in enumerate(times):
        while j < len(times) and times[j] < t + 1:
            j += 1
        most = max(most, j - i)
    return most


def waited(*pids):
    """Return the seconds in which threads of these processes were runnable and did not run, and those stolen from
    the machine."""
    stolen = int(open("/proc/stat").readline().split()[8]) / os.sysconf("SC_CLK_TCK")
    return stolen + sum(sum(delays(p).values()) for p in pids)


began = time.monotonic()
busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for i in range(os.cpu_count())]
try:
    fio = Fio({"disk": {}}, seconds=SECONDS + 1, iodepth=8, size="16m")
    pids = [open("gate.pid").read().strip(), open("up.pid").read().strip(), fio.process.pid]
    before = waited(*pids)
    time.sleep(SECONDS + 0.5)
    kept_back = waited(*pids) - before
    report = fio.end()
finally:
    for p in busy:
        p.kill()
        p.wait()
times = dispatched(began)
start = times[0] + WARM
end = start + SECONDS
ios = [t for t in times if start <= t < end]
stops = [b - a - CATCH for a, b in zip(ios, ios[1:]) if b - a > CATCH]
lost = min(sum(stops), kept_back)
print("%d requests in %d s; %d stops of over %d ms, %.3f s more than that; kept from running %.3f s" %
      (len(ios), SECONDS, len(stops), CATCH * 1000, sum(stops), kept_back))
check(len(ios) >= 0.98 * RATE * (SECONDS - lost), "at least %d, which must be %.0f" %
      (len(ios), 0.98 * RATE * (SECONDS - lost)))
check(len(ios) <= 1.01 * RATE * SECONDS, "at most %d" % len(ios))
check(worst_second(times) <= 1.05 * RATE + 1, "%d in the worst second" % worst_second(times))
got = report["disk"]["read"]["total_ios"]
check(abs(got - len(times)) <= 8, "%d by the client, %d sent to the upstream" % (got, len(times)))
finish()
END
serve_stop gate
serve_stop up
