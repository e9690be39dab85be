# SPDX-License-Identifier: BSD-3-Clause
"""many: a gateway with 100,000 tenants, 1,000 of them active, whose status is read and whose policy is changed.

  many.py policy FIRST   a policy; of its tenants the first 1,000 are the same for any FIRST
  many.py drive PID      read the status, change the policy and end the gateway, with probes meanwhile

Probes do a handshake, an API request and a read, one after the other, and record the time of each. The bounds are those
of an idle machine, plus the times of the same probes before and the slowness of a loop here.
"""
import http.client, os, resource, signal, socket, subprocess, sys, threading, time
import nbdraw

ALL, ACTIVE = int(os.environ.get("TENANTS", "100000")), 1000
CONTROLLER = os.environ.get("CONTROLLER", "none")
PAUSE = 0.1  # s
BUFFERS = 16 << 20


def policy(first):
    out = ["listen: unix:nbd.sock\napi: unix:api.sock\n",
           "resources:\n  - {name: disk, back: 'memory:1G', depth: 32, controller: %s}\nexports:\n" % CONTROLLER]
    out += [f"  - {{name: vm{i:06}, resource: disk, size: 64 KiB, offset: {64 * i} KiB}}\n" for i in range(ACTIVE)]
    out += ["tenants:\n"]
    out += [f"  - {{name: t{i:06}, weight: {1 + i % 7}, max: 50k iops, match: {{export: vm{i:06}}}}}\n" for i in range(ACTIVE)]
    out += [f"  - {{name: t{i:06}, weight: {1 + i % 7}, max: 5k iops, match: {{tls: t{i:06}}}}}\n"
            for i in range(first, first + ALL - ACTIVE)]
    return "".join(out)


class Api(http.client.HTTPConnection):
    def __init__(self):
        super().__init__("weir", timeout=60)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect("api.sock")


def ask(path, method="GET", body=None):
    """Return the seconds and the reply's bytes."""
    began, c = time.monotonic(), Api()
    c.request(method, path, body)
    r = c.getresponse()
    data = r.read()
    assert r.status == 200, (path, r.status, data[:300])
    c.close()
    return time.monotonic() - began, data


def read(client):
    client.sendall(nbdraw.request(nbdraw.READ, 0, 4096))
    assert nbdraw.reply(client, 4096) == (0, 0)


def fetch(path, *more):
    """Do the same in another process, so that the probes' own does not wait for it."""
    out = subprocess.run(["curl", "-sf", "--unix-socket", "api.sock", "-o", "fetched", "-w", "%{time_total}", *more,
                          "http://weir" + path], stdout=subprocess.PIPE, check=True).stdout
    return float(out), open("fetched", "rb").read()


class Probes:
    """Probe handshake, API and reads: the longest of each in seconds, from start to stop."""

    def __init__(self):
        self.on, self.worst = True, {"handshake": 0, "api": 0, "read": 0}
        self.threads = [threading.Thread(target=self.run, args=(name, fn)) for name, fn in
                        (("handshake", self.handshake), ("api", lambda: ask("/healthz")), ("read", self.read))]
        self.client = nbdraw.client("vm000001", path="nbd.sock")
        for t in self.threads:
            t.start()

    def run(self, name, fn):
        while self.on:
            began = time.monotonic()
            fn()
            self.worst[name] = max(self.worst[name], time.monotonic() - began)
            time.sleep(0.005)

    def handshake(self):
        nbdraw.client("vm000000", path="nbd.sock").close()

    def read(self):
        read(self.client)

    def stop(self):
        self.on = False
        for t in self.threads:
            t.join()
        self.client.close()
        return self.worst


def slowness():
    """Return how much longer a loop takes here than on an idle core."""
    wall, cpu = time.monotonic(), time.process_time()
    while time.process_time() - cpu < 0.1:
        pass
    return (time.monotonic() - wall) / 0.1


def memory(pid, key):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith(key):
            return int(line.split()[1]) << 10


def busy(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def running(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def check(good, *words):
    print("ok  " if good else "NOT ", *words, flush=True)
    check.failed |= not good


check.failed = False


def within(what, probes, usual):
    pause = PAUSE * slowness()
    for name, took in probes.items():
        check(took <= pause + 2 * usual[name], f"{what}: {name} took {took * 1e3:.0f} ms at most; "
              f"before {usual[name] * 1e3:.0f} ms")


def wait_for_history():
    """Wait for the first points of the tenants' history, whose memory, some 50 MB, is not that of looking."""
    end = time.monotonic() + 20
    while subprocess.run(["curl", "-sf", "--unix-socket", "api.sock", "http://weir/v1/history?tenant=t000001"],
                         stdout=subprocess.PIPE, text=True).stdout.count("[") < 3:  # the lists of columns, points, and one point
        if time.monotonic() > end:
            sys.exit("failed: no history")
        time.sleep(0.05)


def look(pid, usual):
    bound, begun = slowness(), busy(pid)
    open(f"/proc/{pid}/clear_refs", "w").write("5")  # reset the peak
    before = memory(pid, "VmRSS")
    probes, sizes = Probes(), {}
    for what, path in (("status", "/v1/status?histograms=1"), ("metrics", "/metrics"),
                       ("policy show", "/v1/policy?show=table")):
        # up to three times each: another process may use the core for long
        took = []
        while not took or (min(took) > bound and len(took) < 3):
            seconds, data = fetch(path)
            took.append(seconds)
        check(min(took) <= bound, f"{what}: {min(took):.2f} s for {len(data) >> 20} MiB; 1 s here is {bound:.2f}")
        sizes[what] = data
    within("looking", probes.stop(), usual)
    grew = memory(pid, "VmHWM") - before
    check(grew <= BUFFERS, f"looking: memory grew by {grew / (1 << 20):.1f} MiB")
    check(sizes["metrics"].count(b"weir_tenant_latency_seconds_count{") == ACTIVE, "metrics: histograms of the active")
    check(sizes["metrics"].count(b"\nweir_tenant_share{") == ALL, "metrics: every tenant")
    check(sizes["status"].count(b'"path": ') == ALL, "status: every tenant")
    check(sizes["policy show"].count(b"\nt") == ALL, "policy show: every tenant")


def verb(words, clock, bound):
    """Return the shortest of up to three times: another process may use the core for long."""
    took = []
    while not took or (min(took) > bound and len(took) < 3):
        began = clock()
        subprocess.run(["weir", *words], stdout=open("verb.out", "w"), check=True)
        took.append(clock() - began)
    check(min(took) <= bound, f"weir {' '.join(words)}: {min(took):.2f} s of {bound:.2f}")


def verbs():
    bound, live = slowness() + 0.1, ["--socket", "api.sock"]
    for words in ["status"], ["policy", "show"], ["top", "--once", "--interval", "100ms"]:
        verb(words + live, time.monotonic, bound)

    def cpu():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime
    # CPU time alone: half a second each, more beside processes that use the caches.
    for words in ["status", "--all", *live], ["policy", "show", "p.yaml"], ["policy", "check", "p.yaml"]:
        verb(words, cpu, 1.3)


def leave(pid):
    """Clients that request everything and leave cost no more than what they read."""
    begun = busy(pid)
    for _ in range(20):
        c = Api()
        c.request("GET", "/metrics")
        c.sock.recv(100)
        c.close()
    ask("/healthz")
    time.sleep(0.1)
    spent = busy(pid) - begun
    whole = busy(pid)
    ask("/metrics")
    whole = busy(pid) - whole
    check(spent < 5 * whole, f"20 clients that went cost {spent:.2f} s, one that stays {whole:.2f} s")


def stuck():
    """Clients that request everything and read nothing do not block others."""
    held = [Api() for _ in range(6)]
    for c in held:
        c.request("GET", "/metrics")
    time.sleep(0.2)
    bound = 5 * slowness()
    seconds, _ = ask("/v1/status?limit=1")
    check(seconds <= bound, f"behind 6 clients that take nothing: {seconds:.2f} s; 5 s here are {bound:.2f}")
    for c in held:
        c.close()


def change(usual):
    open("next.yaml", "w").write(policy(2 * ALL))
    probes = Probes()
    seconds, data = fetch("/v1/policy", "-X", "PUT", "--data-binary", "@next.yaml")
    within(f"a change that took {seconds:.1f} s", probes.stop(), usual)
    check(b'"version": 2' in data, "a change: version 2")
    probes = Probes()
    seconds, data = ask("/v1/set/t000000.weight", "PUT", b"9")
    time.sleep(0.3)  # until removed clients are gone
    within(f"a set that took {seconds:.1f} s", probes.stop(), usual)


def end(pid):
    """Send SIGTERM while answers are being sent, and one is being gathered."""
    held = []
    for _ in range(3):
        c = Api()
        c.request("GET", "/v1/status")
        held.append(c)
    held[0].sock.recv(100)
    bound = PAUSE + 0.2 * slowness()
    began = time.monotonic()
    os.kill(pid, signal.SIGTERM)
    while running(pid):
        time.sleep(0.002)
    took = time.monotonic() - began
    check(took <= bound, f"SIGTERM while looking: ended after {took * 1e3:.0f} ms")


def drive(pid):
    clients = []
    for i in range(ACTIVE):
        c = nbdraw.client(f"vm{i:06}", path="nbd.sock")
        read(c)
        clients.append(c)
    # Time of the probes beside busy processes, which curl and the gateway's own threads will be,
    # too.
    spin = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    usual = Probes()
    time.sleep(2)
    usual = usual.stop()
    for p in spin:
        p.kill()
        p.wait()
    wait_for_history()
    look(pid, usual)
    verbs()
    leave(pid)
    stuck()
    change(usual)
    end(pid)
    sys.exit(check.failed)


if sys.argv[1] == "policy":
    sys.stdout.write(policy(int(sys.argv[2])))
else:
    drive(int(sys.argv[2]))
