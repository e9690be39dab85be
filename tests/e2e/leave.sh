# SPDX-License-Identifier: BSD-3-Clause
# Two thousand clients disconnect at every point of the protocol, while every core is busy:
# descriptors, clients, requests and memory return to their values from before.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

export NBD_PORT=$((20000 + $$ % 20000))
cat >weir.yaml <<END
listen: ["unix:$here/s.sock", "tcp:127.0.0.1:$NBD_PORT"]
memory: 32 MiB
resources: [{name: disk, back: "memory:16M"}]
exports: [{name: disk}]
tenants: [{name: all, match: {export: "*"}}]
END
serve gate --api "unix:$here/api.sock" --log-level error weir.yaml

python3 -B - <<'END' || { tail -n 5 gate.log >&2; fail "resources of clients that left are still in use"; }
import os, random, socket, struct, subprocess, sys, threading, time
from kept import *
from nbdraw import *

PID, PORT = open("gate.pid").read().strip(), int(os.environ["NBD_PORT"])
HELLO = struct.pack(">I", 3)
GO = option(7, struct.pack(">I", 4) + b"disk" + struct.pack(">H", 0))
REQUESTS = [
    request(READ, 0, 4096) * 4,
    request(READ, 0, 1 << 20) * 4,
    request(READ, 0, 256 << 10) * 8 + request(DISC, 0, 0),
    request(WRITE, 0, 65536) + bytes(65536) + request(DISC, 0, 0),
    request(WRITE, 0, 1 << 20) + bytes(1 << 20) + request(FLUSH, 0, 0) + request(DISC, 0, 0),
    request(TRIM, 0, 65536) + request(ZEROES, 0, 4096) + request(FLUSH, 0, 0) + request(DISC, 0, 0),
    request(DISC, 0, 0),
    request(99, 0, 0) * 3,
]
r = random.Random(1)


def hang_up(s, way):
    if way == "reset":
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    elif way != "close":
        s.shutdown({"half": socket.SHUT_WR, "whole": socket.SHUT_RDWR}[way])
        time.sleep(0.001)
    s.close()


def visit(how):
    """Run one client. `how`: its point in the protocol, requests, how many of their bytes, and how it leaves."""
    tcp, stage, data, cut, way = how
    s = connect(port=PORT) if tcp else connect(path=NBD)
    try:
        if stage == 0:
            s.sendall(HELLO[:cut % 5])
        elif stage == 1:
            receive(s, 18)
            s.sendall((HELLO + option(3, b"") + GO)[:cut % 60])
        else:
            greet(s)
            go(s, "disk")
            s.setblocking(False)
            s.send(data[:cut % (len(data) + 1)] if stage == 2 else data)
    except (BlockingIOError, ConnectionError):
        pass
    try:
        hang_up(s, way)
    except OSError:
        s.close()


def some(n):
    return [(r.random() < 0.3, r.choice((0, 1, 2, 3, 3, 3)), r.choice(REQUESTS), r.randrange(1 << 21),
             r.choice(("close", "reset", "half", "whole"))) for i in range(n)]


def visit_all(visits):
    threads = [threading.Thread(target=lambda k=k: [visit(v) for v in visits[k::4]]) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def memory():
    return [int(l.split()[1]) for l in open("/proc/%s/status" % PID) if l.startswith("VmRSS")][0] / 1024


def left():
    look = Look()
    t = look.t["all"]
    return {"clients": look.all["clients"], "listed clients": len(ask("GET", "/v1/clients")["clients"]),
            "payload bytes": look.all["buffers"]["used"], "requests": t["queued"] + t["in_flight"],
            "descriptors": len(os.listdir("/proc/%s/fd" % PID)) - descriptors}


def want_base():
    for i in range(100):
        l = left()
        if not any(l.values()):
            break
        time.sleep(0.05)
    for what, n in l.items():
        check(n == 0, "%d %s left" % (n, what))


Look()  # opens the API's own first descriptors
descriptors = len(os.listdir("/proc/%s/fd" % PID))
busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for i in range(os.cpu_count())]
try:
    visit_all(some(500))
    want_base()
    before = memory()
    visit_all(some(1500))
    want_base()
    check(memory() < before + 4, "%.1f MiB of memory, after a quarter of them %.1f" % (memory(), before))
finally:
    for p in busy:
        p.kill()
        p.wait()
finish()
END
serve_stop gate
