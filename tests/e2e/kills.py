# SPDX-License-Identifier: BSD-3-Clause
"""kills: for tests that kill upstreams and gateways. Used by kill-*.py.

WEIR_KILLS is the number of kills (10), WEIR_SEED the seed of everything random here (1). A third-party client,
libnbd, is driven by Blocks, which knows the required content of every block. A fault anywhere is added to `faults`,
and ends the test.
"""
import atexit, os, random, signal, stat, struct, subprocess, sys, threading, time, zlib
import nbd

KILLS = int(os.environ.get("WEIR_KILLS", "10"))
SEED = int(os.environ.get("WEIR_SEED", "1"))
HERE = os.getcwd()
os.environ["WEIR_SOCKET"] = HERE + "/api.sock"
PATIENCE = 60  # s; more than anything here takes unless it hangs
print("WEIR_SEED=%d WEIR_KILLS=%d" % (SEED, KILLS), flush=True)
faults = []
stop = threading.Event()
children = []


def rng(name):
    """Return random numbers for one part, so that one part's pace does not change another's."""
    return random.Random(zlib.crc32(name.encode()) + (SEED << 32))


def fault(text):
    faults.append(text)
    stop.set()


def check(fine, text):
    if not fine:
        end("failed: " + text)


def end(text):
    print(text, "(WEIR_SEED=%d WEIR_KILLS=%d)" % (SEED, KILLS), file=sys.stderr, flush=True)
    for name in sorted(n for n in os.listdir(".") if n.endswith((".log", ".out"))):
        print("---", name, file=sys.stderr)
        sys.stderr.write("".join(open(name, errors="replace").readlines()[-60:]))
    _end_all()
    sys.stderr.flush()
    os._exit(1)


def no_faults():
    check(not faults, "; ".join(faults[:3]))


def wait_for(what, text, patience=PATIENCE):
    until = time.monotonic() + patience
    while not what():
        no_faults()
        check(time.monotonic() < until, "not after %d s: %s" % (patience, text))
        time.sleep(0.01)


def pause(seconds):
    stop.wait(seconds)
    no_faults()


@atexit.register
def _end_all():
    for child in children:
        if child.poll() is None:
            child.kill()


def start(argv, out, **more):
    """Start a process that does not outlive the test; its output is appended to the file `out`."""
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=open(out, "a"), stderr=subprocess.STDOUT, **more)
    children.append(child)
    return child


def run(*argv):
    """Run it, which must succeed, and return its output."""
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=2 * PATIENCE)
    check(done.returncode == 0, "%s: status %d: %s" % (" ".join(argv), done.returncode, done.stdout))
    return done.stdout


class Server:
    """A process that may be killed and restarted. `ready` is made when it is ready: its socket, or a file with
    its pid."""

    def __init__(self, name, argv, ready):
        self.name, self.argv, self.ready = name, argv, ready
        self.child, self.kills = None, 0
        self.start()

    def start(self):
        if os.path.exists(self.ready):
            os.unlink(self.ready)
        self.child = start(self.argv, self.name + ".log")

    def is_ready(self):
        try:
            made = os.stat(self.ready)
        except FileNotFoundError:
            return False
        return made.st_size > 0 or stat.S_ISSOCK(made.st_mode)

    def await_ready(self):
        wait_for(lambda: self.is_ready() or self.child.poll() is not None, self.name + " is ready")
        check(self.child.poll() is None, self.name + " ended by itself")

    def kill(self, or_ended=False):
        check(or_ended or self.child.poll() is None, "%s ended by itself: %s" % (self.name, self.child.returncode))
        self.child.kill()
        self.child.wait()
        children.remove(self.child)
        self.kills += 1

    def end(self):
        """End it by SIGTERM, so that sanitizers can report."""
        self.child.terminate()
        check(self.child.wait(PATIENCE) in (0, -signal.SIGTERM), "%s: status %d" % (self.name, self.child.returncode))
        children.remove(self.child)


def take_turns(lives, look):
    """Run generators, each of which yields the seconds that it sleeps. From one thread: nbdkit ends with the
    thread that started it. `look` is called now and then."""
    order = [(time.monotonic(), i, life) for i, life in enumerate(lives)]
    while order:
        order.sort()
        at, i, life = order.pop(0)
        while (left := at - time.monotonic()) > 0:
            pause(min(left, 0.1))
            look()
        try:
            order.append((time.monotonic() + next(life), i, life))
        except StopIteration:
            pass
        no_faults()


def uri(export, path="w.sock"):
    return "nbd+unix:///%s?socket=%s/%s" % (export, HERE, path)


def connect(export):
    h = nbd.NBD()
    h.connect_uri(uri(export))
    return h


class Load:
    """weir load --verify until it is stopped."""

    def __init__(self, export, offset, *more):
        self.name = "load-" + export
        self.area = ["--offset", offset, "--length", "16M", "--size", "4k:80,64k:15,256k:5", "--seed", str(SEED + 1),
                     "--verify", "--table", self.name + ".table"]
        self.child = start(["weir", "load", uri(export), "--connections", "4", "--depth", "8", "--duration", "3h",
                            "--reads", "50%", "--fua", "10%", "--flush-every", "200", *self.area, *more],
                           self.name + ".out")

    def look(self):
        if self.child.poll() is not None:
            fault("%s ended: status %d" % (self.name, self.child.returncode))

    def end(self):
        self.child.send_signal(signal.SIGINT)
        check(self.child.wait(PATIENCE) in (0, 130), "%s: status %d" % (self.name, self.child.returncode))
        check(" 0 wrong" in open(self.name + ".out").read(), self.name + " found wrong blocks")

    def check_file(self, path):
        """Check the known content in the file itself, through a gateway that does nothing else."""
        direct = Server("direct", ["weir", "serve", "--api", "none", "--pidfile", "direct.pid", "--listen",
                                   "unix:%s/d.sock" % HERE, "file:%s?read_only" % path], "direct.pid")
        direct.await_ready()
        out = run("weir", "load", uri("", "d.sock"), "--requests", "0", *self.area)
        check(" 0 wrong" in out, self.name + ": " + out)
        direct.end()


class Blocks:
    """Clients of one export, by libnbd, one thread and one connection each, that write, zero, trim, flush and
    read blocks at random. Each has blocks of its own, so that their content is known; flushes are for the
    blocks of all. Data that were flushed, or written with FUA, must be in the file `disk` when the answer
    comes."""

    BLOCK = 4096
    EACH = 160  # blocks: few, so that most are written again before they are flushed
    GONE = ("ENOTCONN", "ECONNRESET", "EPIPE", "ESHUTDOWN", "EINVAL", None)  # libnbd's errors for a lost server

    def __init__(self, export, disk, clients=4, survives=False):
        self.export, self.survives = export, survives
        self.fd = os.open(disk, os.O_RDONLY)
        self.lock = threading.Lock()
        n = clients * self.EACH
        self.holds = [None] * n  # content; None: anything
        self.version = [0] * n  # number of writes
        self.busy = [False] * n
        self.serial = self.flushes = self.checked = self.reads = self.cut = 0
        self.threads = [threading.Thread(target=self.client, args=(i,), daemon=True) for i in range(clients)]
        for t in self.threads:
            t.start()

    def connect(self):
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return connect(self.export)
            except nbd.Error:
                if not self.survives or time.monotonic() > until:
                    raise
                if stop.wait(0.02):
                    return None

    def client(self, i):
        r = rng("%s %d" % (self.export, i))
        h = None
        try:
            while not stop.is_set():
                h = h or self.connect()
                try:
                    h and self.step(h, r, i * self.EACH)
                except nbd.Error as e:
                    if not self.survives or e.errno not in self.GONE:
                        raise
                    with self.lock:
                        self.cut += 1
                    h = None
        except Exception as e:
            fault("client %d of %s: %s %s" % (i, self.export, type(e).__name__, e))

    def step(self, h, r, base):
        at = r.randrange(self.EACH)
        # Some requests are one piece in the gateway, some are several.
        n = min(r.choice((1, 1, 1, 2, 4, 16, 64, 100)), self.EACH - at)
        first, kind = base + at, r.random()
        if kind < 0.55:
            self.write(h, first, n, "write", fua=kind < 0.1)
        elif kind < 0.65:
            self.write(h, first, n, "zero", fua=kind < 0.57, no_hole=r.random() < 0.5)
        elif kind < 0.70:
            self.write(h, first, n, "trim")
        elif kind < 0.92:
            self.read(h, first, n)
        else:
            self.flush(h)

    def write(self, h, first, n, what, fua=False, no_hole=False):
        with self.lock:
            self.serial += 1
            for b in range(first, first + n):
                self.busy[b], self.holds[b] = True, None
                self.version[b] += 1
        flags = (nbd.CMD_FLAG_FUA if fua else 0) | (nbd.CMD_FLAG_NO_HOLE if no_hole else 0)
        at, length, holds = first * self.BLOCK, n * self.BLOCK, None
        try:
            if what == "write":
                data = b"".join(struct.pack("<QQ", self.serial, b) * (self.BLOCK // 16) for b in range(first, first + n))
                h.pwrite(data, at, flags)
                holds = [data[i:i + self.BLOCK] for i in range(0, length, self.BLOCK)]
            elif what == "zero":
                h.zero(length, at, flags)
                holds = [bytes(self.BLOCK)] * n
            else:
                h.trim(length, at, flags)  # reads may return anything until the next write
        finally:
            with self.lock:
                for i in range(n):
                    self.busy[first + i] = False
                    self.holds[first + i] = holds and holds[i]
        if fua and holds:
            self.in_file(range(first, first + n), "written with FUA")

    def read(self, h, first, n):
        data = h.pread(n * self.BLOCK, first * self.BLOCK)
        for i in range(n):
            self.compare(first + i, data[i * self.BLOCK:(i + 1) * self.BLOCK], "read")
        self.reads += 1

    def flush(self, h):
        with self.lock:
            before = [(b, self.version[b]) for b in range(len(self.busy)) if not self.busy[b]]
        h.flush()
        with self.lock:
            self.flushes += 1
            # Only while no client writes to them; the lock ensures it.
            self.in_file((b for b, v in before if not self.busy[b] and self.version[b] == v), "flushed")

    def in_file(self, blocks, why):
        for b in blocks:
            self.compare(b, os.pread(self.fd, self.BLOCK, b * self.BLOCK), why)
            self.checked += 1

    def compare(self, b, got, why):
        if self.holds[b] is not None and got != self.holds[b]:
            show = [struct.unpack("<QQ", d[:16]) for d in (self.holds[b], got)]
            fault("%s block %d, %s: must be %s, is %s" % (self.export, b, why, *show))

    def end(self):
        """After `stop`: the last flush."""
        for t in self.threads:
            t.join(PATIENCE)
            check(not t.is_alive(), "a client of %s hangs" % self.export)
        h = connect(self.export)
        for b in range(0, len(self.holds), 16):
            self.read(h, b, min(16, len(self.holds) - b))
        self.flush(h)
        h.shutdown()
        no_faults()
