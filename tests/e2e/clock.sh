# SPDX-License-Identifier: BSD-3-Clause
# The latency in /metrics is the time from the return of the recv that received a request to the
# return of the send that sent the last byte of its reply. A preloaded library records when these
# return; the client measures on its own.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

command -v cc >/dev/null || skip "no C compiler"
cc -O2 -shared -fPIC -o clock-shim.so "$WEIR_SOURCE/tests/e2e/clock-shim.c"

# start NAME BACK [OPTION]...: start a gateway with the library preloaded, for the export "disk"
start()
{
	name=$1
	cat >"$name.yaml" <<-END
	listen: "unix:$here/$name.sock"
	resources: [{name: disk, back: "$2", depth: 8}]
	exports: [{name: disk}]
	tenants: [{name: all, match: {export: disk}}]
	END
	shift 2
	CLOCK_SHIM="$here/$name.calls" LD_PRELOAD="$here/clock-shim.so" \
		serve "$name" --api "unix:$here/$name.api" --log-level error "$@" "$name.yaml"
}
start gate memory:64M
start bare memory:64M --bare
start model "model:server,latency=1ms,servers=8,service=fixed+memory:64M"

python3 -B - <<'END' || fail "latencies differ from those of the clients"
import http.client, socket, statistics, struct, time
from kept import check, finish
from nbdraw import *

MIB = 1 << 20
MAGIC = struct.unpack("=I", struct.pack(">I", 0x25609513))[0]
ENTRY = struct.Struct("=qiiII")


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("weir")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Gateway:
    def __init__(self, name):
        self.name = name
        self.nbd = client("disk", path=name + ".sock")
        self.api = Unix(name + ".api")

    def shown(self):
        """Return the sum in seconds, and the number of requests."""
        self.api.request("GET", "/metrics")
        lines = dict(l.rsplit(" ", 1) for l in self.api.getresponse().read().decode().splitlines() if l[0] != "#")
        of = 'weir_tenant_latency_seconds_%s{tenant="all"}'
        return float(lines.get(of % "sum", 0)), int(lines.get(of % "count", 0))

    def ask(self, size):
        """Do one read. Return its latency by the gateway and by the client, in seconds."""
        sum, count = self.shown()
        began = time.monotonic()
        self.nbd.sendall(request(READ, 0, size))
        left = 16 + size
        while left:
            left -= len(self.nbd.recv(left))
        took = time.monotonic() - began
        for i in range(100):  # the reply may arrive before its send has returned
            now, n = self.shown()
            if n > count:
                break
        assert n == count + 1, (self.name, n, count)
        return now - sum, took

    def noted(self):
        """Return the latencies by the library, of all requests in order."""
        of, all = None, []
        for at, fd, n, magic, out in ENTRY.iter_unpack(open(self.name + ".calls", "rb").read()):
            if not at:
                break
            if not out and magic == MAGIC:
                of = fd
                all.append([at, 0])
            elif out and fd == of:
                all[-1][1] = at
        return [(b - a) / 1e9 for a, b in all]


def median(all):
    return statistics.median(all) * 1e6


def differ(size, n, *gateways):
    """For each gateway, in turn: return the medians of the gateway's latency, the client's and the difference,
    µs."""
    seen = [[] for g in gateways]
    for i in range(n):
        for g, to in zip(gateways, seen):
            shown, took = g.ask(size)
            asked[g.name].append(shown)
            to.append((shown, took))
    return [(median(s for s, t in to), median(t for s, t in to), median(t - s for s, t in to)) for to in seen]


def near(a, b):
    """Return true if a client waits as much longer than shown as it does without a gate."""
    return abs(a - b) <= 20 + 0.1 * b


gate, bare, model = Gateway("gate"), Gateway("bare"), Gateway("model")
asked = {"gate": [], "bare": [], "model": []}
for size in 4096, MIB:
    for i in range(4):  # repeat if the machine was busy
        both = differ(size, 40, gate, bare)
        a, b = both[0][2], both[1][2]
        if near(a, b):
            break
    for what, (shown, took, more) in zip(("gate", "bare"), both):
        check(0 < shown <= took, "%s, %d KiB: %.1f us, at the client %.1f" % (what, size >> 10, shown, took))
    check(near(a, b), "%d KiB: the client waits %.1f us longer than shown, without a gate %.1f" % (size >> 10, a, b))

# If the machine wakes threads late, the client alone takes more than a tenth of 1 ms: then the bare
# loop shows how much.
for i in range(6):
    (shown, took, a), (_, _, b) = differ(4096, 40, model, bare)
    if took <= 1.1 * shown:
        break
check(1000 <= shown <= took <= max(1.1 * shown, shown + 20 + 1.1 * b),
      "a device of 1 ms: %.1f us, at the client %.1f; without a gate %.1f us more" % (shown, took, b))

# Request by request: the library's timestamps are close to the program's. One in ten may have been
# preempted between them.
for g in gate, bare, model:
    noted = g.noted()
    check(len(noted) == len(asked[g.name]), "%s: %d requests" % (g.name, len(noted)))
    off = sorted(abs(a - b) * 1e6 for a, b in zip(noted, asked[g.name]))
    check(off[len(off) * 9 // 10] <= 20, "%s: %.2f us from the library's stamps, nine in ten %.2f" %
          (g.name, off[len(off) // 2], off[len(off) * 9 // 10]))
finish()
END
for name in gate bare model; do
	serve_stop "$name"
done
