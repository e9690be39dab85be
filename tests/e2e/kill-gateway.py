# SPDX-License-Identifier: BSD-3-Clause
"""A gateway that is killed at random times, in front of a file and of an upstream. Clients that reconnect (QEMU with
reconnect-delay, weir load --reconnect) go on; others (libnbd, nbdcopy) see at once that the server is gone, and no
other error. Flushed data are in the file; values set by weir set are kept."""
import os, re, subprocess, threading, time
import kills
from kills import HERE, KILLS, PATIENCE, Blocks, Load, Server, check, fault, pause, rng, run, stop, uri

EXPORTS = ("near", "far")
DELAY = 60  # s that QEMU waits for the server


def qemu(export):
    return ("driver=nbd,server.type=unix,server.path=%s/w.sock,export=%s,reconnect-delay=%d,open-timeout=%d" %
            (HERE, export, DELAY, DELAY))


class Qemu:
    """qemu-io: writes patterns, flushes, reads. It must notice nothing."""

    UNIT = 65536
    UNITS = 32

    def __init__(self, export):
        self.export, self.base = export, 16 << 20
        self.holds = {}
        self.fd = os.open(export + ".img", os.O_RDONLY)
        self.steps = 0
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def say(self, command):
        self.io.stdin.write(command + "\n")
        self.io.stdin.flush()
        answer = self.answer()
        if re.search("fail|error", answer, re.I):
            raise ValueError("qemu-io %s: %s" % (command, answer))

    def answer(self):
        """Wait until it prompts for the next command."""
        answer = ""
        while not answer.endswith("qemu-io> "):
            c = self.io.stdout.read(1)
            if not c:
                raise EOFError("qemu-io ended: " + answer)
            answer += c
        return answer

    def work(self):
        r = rng("qemu " + self.export)
        # In the C locale: the messages must be known.
        self.io = subprocess.Popen(["qemu-io", "--image-opts", qemu(self.export)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   env={**os.environ, "LC_ALL": "C"})
        kills.children.append(self.io)
        try:
            self.answer()
            while not stop.is_set():
                self.step(r)
            self.flush()
            self.io.stdin.write("quit\n")
            self.io.stdin.close()
            if self.io.wait(PATIENCE):
                raise ValueError("qemu-io: status %d" % self.io.returncode)
        except Exception as e:
            fault("qemu-io on %s: %s" % (self.export, e))

    def step(self, r):
        unit, kind, self.steps = r.randrange(self.UNITS), r.random(), self.steps + 1
        at = self.base + unit * self.UNIT
        if kind < 0.6:
            pattern = r.randrange(1, 256)
            self.say("write %s-P %d %d %d" % ("-f " if kind < 0.1 else "", pattern, at, self.UNIT))
            self.holds[unit] = pattern
            if kind < 0.1:
                self.check_file([unit], "FUA")
        elif kind < 0.7:
            self.say("write -z %d %d" % (at, self.UNIT))
            self.holds[unit] = 0
        elif kind < 0.9 and unit in self.holds:
            self.say("read -P %d %d %d" % (self.holds[unit], at, self.UNIT))
        else:
            self.flush()

    def flush(self):
        self.say("flush")
        self.check_file(self.holds, "flushed")

    def check_file(self, units, why):
        for u in units:
            got = os.pread(self.fd, self.UNIT, self.base + u * self.UNIT)
            if got != bytes([self.holds[u]]) * self.UNIT:
                raise ValueError("%s at %d is not in the file" % (why, self.base + u * self.UNIT))

    def end(self):
        self.thread.join(PATIENCE)
        check(not self.thread.is_alive(), "qemu-io on %s hangs" % self.export)


def convert():
    """qemu-img convert, of a file into the gateway, again and again; then the data must be equal."""
    r = rng("convert")
    with open("source.raw", "wb") as f:
        f.write(r.randbytes(8 << 20))
    while not stop.is_set():
        done = subprocess.run(["qemu-img", "convert", "-f", "raw", "-n", "-r", "16M", "source.raw", "--target-image-opts",
                               qemu("copy")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            fault("qemu-img convert: status %d: %s" % (done.returncode, done.stdout))
        with open("copy.img", "rb") as a, open("source.raw", "rb") as b:
            if a.read(8 << 20) != b.read():
                fault("qemu-img convert: what it wrote is not there")


class Copier:
    """nbdcopy, which does not reconnect: it fails, soon and with a message, when the gateway is killed."""

    def __init__(self):
        self.cut = 0
        self.child = None

    def start(self):
        if self.child is None:
            # At 16 MiB/s (the policy) a copy takes 4 s.
            self.child = subprocess.Popen(["nbdcopy", "--no-extents", "--", uri("slow"), "null:"], stdin=subprocess.DEVNULL,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            kills.children.append(self.child)
        elif self.child.poll() is not None:
            check(self.child.returncode == 0, "nbdcopy: " + self.child.stdout.read())
            self.child = None

    def killed(self):
        if self.child is None or self.child.poll() == 0:
            return
        began = time.monotonic()
        try:
            out, _ = self.child.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            check(False, "nbdcopy hangs after the gateway is gone")
        check(self.child.returncode != 0 and out, "nbdcopy: status %d: %s" % (self.child.returncode, out))
        check(time.monotonic() - began < 10, "nbdcopy noticed too late")
        self.child, self.cut = None, self.cut + 1


def life(gateway, copier, qemus):
    r = rng("kill gateway")
    while gateway.kills < KILLS:
        copier.start()
        yield r.choice((r.uniform(0.2, 0.8), r.uniform(0, 0.2)))
        if gateway.kills % 3 == 0:  # QEMU waits for a second before it reconnects, and longer after a failure
            before = [q.steps for q in qemus]
            while any(q.steps < n + 3 for q, n in zip(qemus, before)):
                yield 0.01
        gateway.kill()
        copier.killed()
        yield r.choice((0, r.uniform(0, 0.5)))
        gateway.start()
        gateway.await_ready()
        said = run("weir", "set")
        check(said == "other.weight 7\n", "a value set by weir set is lost: " + said)


def main():
    for name in EXPORTS + ("copy",):
        with open(name + ".img", "w") as f:
            f.truncate(64 << 20)
    # Not nbdkit: version 1.32 fails an assertion when a client disconnects in the middle of a
    # reply.
    upstream = Server("upstream", ["qemu-nbd", "--socket", HERE + "/up.sock", "--persistent", "--shared=16",
                                   "--format=raw", "--cache=writeback", "--discard=unmap", "far.img"], "up.sock")
    upstream.await_ready()
    with open("policy.yaml", "w") as f:
        f.write("""listen: "unix:%s/w.sock"
state: "%s/state"
resources:
  - {name: near, back: "file:%s/near.img"}
  - {name: far, back: "%s"}
  - {name: copy, back: "file:%s/copy.img"}
  - {name: slow, back: "memory:64M"}
tenants:
  - {name: slow, max: 16 MiB/s, match: {export: slow}}
  - {name: other, match: {export: "*"}}
""" % (HERE, HERE, HERE, uri("", "up.sock"), HERE))
    gateway = Server("gateway", ["weir", "serve", "--api", "unix:%s/api.sock" % HERE, "--pidfile", "gateway.pid",
                                 "policy.yaml"], "gateway.pid")
    gateway.await_ready()
    run("weir", "set", "other.weight", "7")
    blocks = [Blocks(name, name + ".img", clients=2, survives=True) for name in EXPORTS]
    loads = {name: Load(name, "32M", "--reconnect", "%ds" % DELAY) for name in EXPORTS}
    qemus = [Qemu(name) for name in EXPORTS]
    converter = threading.Thread(target=convert)
    converter.start()
    copier = Copier()
    kills.take_turns([life(gateway, copier, qemus)], lambda: [load.look() for load in loads.values()])
    pause(0.5)
    for load in loads.values():
        load.end()
    stop.set()
    for q in qemus:
        q.end()
    converter.join()
    for b in blocks:
        b.end()
        # Each kill disconnected each connected client once.
        check(KILLS // 2 <= b.cut <= 2 * KILLS, "%d kills, and clients of %s were disconnected %d times" %
              (KILLS, b.export, b.cut))
        print("%s: %d kills, cut off %d times; %d flushes and %d reads checked, %d blocks in the file" %
              (b.export, KILLS, b.cut, b.flushes, b.reads, b.checked))
    print("qemu-io: %s commands; nbdcopy: cut off %d times" % ([q.steps for q in qemus], copier.cut))
    check(copier.cut >= KILLS // 3, "nbdcopy was hardly connected")
    if copier.child and copier.child.poll() is None:
        copier.child.kill()
    kills.no_faults()
    gateway.end()
    upstream.end()
    for name, load in loads.items():
        load.check_file(name + ".img")


main()
