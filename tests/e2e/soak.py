# SPDX-License-Identifier: BSD-3-Clause
"""soak.py SECONDS EVERY SEED: a cluster under faults. Three etcd, three controllers, eight gateways and 200 tenants run on this
machine with a period of 1 s; clients verify every block; policy versions are applied all the time. Every EVERY seconds a random process
is killed or paused, and is back after 3 s. At the end:

  - no wrong byte, no client error
  - every min is met again two periods after the process is back and a leader is in force
  - no max is passed by more than a lease's worth
  - every gateway and controller has the latest version

The distribution of recovery times is printed."""
import collections
import csv
import http.client
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import threading
import time

SECONDS, EVERY = float(sys.argv[1]), float(sys.argv[2])
draw = random.Random(int(sys.argv[3]))
HERE = pathlib.Path.cwd()
ETCDS, CONTROLS, SERVERS, TENANTS, LOADED = 3, 3, 8, 200, 8
BACK = 3  # s, until a process is back
MIN, MAX = 50, 80  # requests a second of a loaded tenant: so much that a token is kept ready at each server
LEADER, TWO = 20, 2  # s: until a leader is in force, at most (etcd may elect, too); two periods
EXPORT = 1 << 20
LATE = 0.3  # s: a machine whose threads wake so late is too busy to judge times


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Process:
    """A process that is killed or paused, and started again with the same arguments."""

    def __init__(self, name, argv):
        self.name, self.argv, self.log = name, argv, open(f"{name}.log", "ab")
        self.start()

    def start(self):
        self.child = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def kill(self):
        self.child.kill()
        self.child.wait()

    def pause(self):
        self.child.send_signal(signal.SIGSTOP)

    def resume(self):
        self.child.send_signal(signal.SIGCONT)

    def stop(self, how=signal.SIGTERM):
        self.child.send_signal(how)
        try:
            return self.child.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()
            return -9


def ask(path):
    c = http.client.HTTPConnection("localhost", timeout=1)
    c.sock = socket.socket(socket.AF_UNIX)
    c.sock.settimeout(0.5)
    try:
        c.sock.connect(path)
        c.request("GET", "/v1/status")
        return json.loads(c.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        c.close()


def weir(*argv, timeout=30):
    done = subprocess.run(["weir", *argv], capture_output=True, text=True, timeout=timeout)
    return done.returncode, done.stdout + done.stderr


# ---- files

def tenants_text(round_):
    rows = []
    for i in range(TENANTS):
        own = f", min: {MIN} iops, max: {MAX} iops" if i < LOADED else f", weight: {1 + (i + round_) % 7}"
        rows.append(f'- {{name: t{i}{own}, match: {{export: "t{i}"}}}}\n')
    return "".join(rows)


def servers_of(i):
    return i % SERVERS, (i + 3) % SERVERS


def write_files():
    (HERE / "key").write_bytes(random.randbytes(32))
    os.chmod("key", 0o600)
    controls = ", ".join(f'"unix:{HERE}/c{c}.sock"' for c in range(CONTROLS))
    servers = ", ".join(f"s{s}" for s in range(SERVERS))
    head = f"cluster: {{name: soak, key: {HERE}/key, controller: [{controls}], servers: [{servers}], period: 1s"
    for c in range(CONTROLS):
        (HERE / f"c{c}.yaml").write_text(
            f'{head}, listen: "unix:{HERE}/c{c}.sock"}}\napi: "unix:{HERE}/c{c}.api"\nstate: {HERE}/state-c{c}\n')
    for s in range(SERVERS):
        exports, at = [], 0
        for i in range(TENANTS):
            if s in servers_of(i):
                exports.append(f"  - {{name: t{i}, resource: s{s}, offset: {at} B, size: {EXPORT} B}}\n")
                at += EXPORT
        with open(f"disk{s}", "wb") as f:
            f.truncate(at)
        (HERE / f"s{s}.yaml").write_text(
            f'{head}}}\nlisten: "unix:{HERE}/s{s}.sock"\napi: "unix:{HERE}/s{s}.api"\nstate: {HERE}/state-s{s}\n'
            f'resources: [{{name: s{s}, back: "file:disk{s}", capacity: 500 iops, depth: 16, controller: pshift}}]\n'
            f'exports:\n{"".join(exports)}')


# ---- the cluster

def start_etcds():
    ports = free_ports(2 * ETCDS)
    clients = [f"http://127.0.0.1:{p}" for p in ports[:ETCDS]]
    peers = [f"http://127.0.0.1:{p}" for p in ports[ETCDS:]]
    all_peers = ",".join(f"m{i}={p}" for i, p in enumerate(peers))
    return ",".join(clients), [Process(f"etcd{i}", [
        "etcd", "--name", f"m{i}", "--data-dir", f"etcd-{i}", "--listen-client-urls", clients[i], "--advertise-client-urls", clients[i],
        "--listen-peer-urls", peers[i], "--initial-advertise-peer-urls", peers[i], "--initial-cluster", all_peers,
        "--log-level", "error", "--unsafe-no-fsync"]) for i in range(ETCDS)]


def until(what, check, limit):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if check():
            return
        time.sleep(0.2)
    sys.exit(f"{what}: not within {limit} s")


def leader():
    for c in range(CONTROLS):
        d = ask(f"c{c}.api")
        if d and d["state"] == "granting":
            return c
    return None


class Watch(threading.Thread):
    """Record who leads, and what the servers counted in each period."""

    def __init__(self):
        super().__init__(daemon=True)
        self.led, self.seen, self.ends = [], collections.defaultdict(dict), False

    def run(self):
        while not self.ends:
            self.led.append((time.monotonic(), leader() is not None))
            for s in range(SERVERS):
                d = ask(f"s{s}.api")
                p = d and d["resources"][0].get("pshift")
                for lease in p["leases"] if p and p["last_period"] else []:
                    self.seen[p["last_period"], lease["tenant"]][s] = lease["last_used"]
            time.sleep(0.1)

    def next_leader(self, after):
        return next((t for t, there in self.led if t >= after and there), None)


class Probe(threading.Thread):
    """Measure how late a thread of this machine wakes: where that is much, no time can be judged."""

    def __init__(self):
        super().__init__(daemon=True)
        self.late, self.ends = [], False

    def run(self):
        while not self.ends:
            before = time.monotonic()
            time.sleep(0.02)
            now = time.monotonic()
            if now - before - 0.02 > LATE:
                self.late.append((before, now))

    def quiet(self, begin, end):
        return not any(a < end and b > begin for a, b in self.late)


class Operator(threading.Thread):
    """Apply versions all the time. Some fail while etcd elects: those are not stored, and say why."""

    def __init__(self):
        super().__init__(daemon=True)
        self.made = self.failed = 0
        self.ends, self.strange = False, []

    def run(self):
        n = 0
        while not self.ends:
            n += 1
            pathlib.Path("next.yaml").write_text(tenants_text(n))
            status, text = weir("policy", "apply", "--store", "soak.token", "-m", f"round {n}", "next.yaml")
            if status == 0:
                self.made += 1
            else:
                self.failed += 1
                if "store" not in text and "meanwhile" not in text:
                    self.strange.append(text)
            time.sleep(0.5)


def start_all():
    write_files()
    urls, etcds = start_etcds()
    until("etcd", lambda: weir("cluster", "init", "--name", "soak", "--store", f"etcd:{urls}")[0] == 0, 30)
    pathlib.Path("next.yaml").write_text(tenants_text(0))
    until("the first version", lambda: weir("policy", "apply", "--store", "soak.token", "next.yaml")[0] == 0, 30)
    controls = [Process(f"c{c}", ["weir", "control", "--join", "soak.token", "--local", f"c{c}.yaml", "--name", f"c{c}"])
                for c in range(CONTROLS)]
    servers = [Process(f"s{s}", ["weir", "serve", "--join", "soak.token", "--local", f"s{s}.yaml", "--name", f"s{s}"])
               for s in range(SERVERS)]
    until("a leader", lambda: leader() is not None, 30)
    until("gateways", lambda: all(ask(f"s{s}.api") for s in range(SERVERS)), 30)
    return etcds, controls, servers


def start_load():
    jobs = [f"t{i}@{s}=nbd+unix:///t{i}?socket={HERE}/s{s}.sock" for i in range(LOADED) for s in servers_of(i)]
    return subprocess.Popen(["weir", "load", "--verify", "--reads", "50%", "--size", "4k", "--depth", "4", "--reconnect", "60s", "--duration",
                             f"{SECONDS + 5}s", "--series", "series.csv", "--json", *jobs], stdout=open("load.json", "wb"), stderr=open("load.err", "wb"))


# ---- faults

def faults(etcds, controls, servers, end):
    """Yield each: when the process is back, its name, and how it failed. In a short run each kind comes before any comes twice."""
    kinds = [(group, how) for group in (controls, servers, etcds) for how in ("killed", "paused")]
    draw.shuffle(kinds)
    while time.monotonic() + EVERY <= end:
        group, how = kinds[0]
        kinds.append(kinds.pop(0))
        if SECONDS >= 300:
            group, how = draw.choice(etcds + controls + servers), draw.choice(("killed", "paused"))
            group = [group]
        one = draw.choice(group)
        lead = leader()
        if group is controls and lead is not None:
            one = controls[lead]  # a standby that ends tells little
        (one.kill if how == "killed" else one.pause)()
        time.sleep(BACK)
        (one.start if how == "killed" else one.resume)()
        yield time.monotonic(), one.name, how
        time.sleep(max(0, EVERY - BACK))


# ---- judging

def per_second(began):
    """Return by tenant a list of (second, requests)."""
    by = collections.defaultdict(lambda: collections.defaultdict(float))
    with open("series.csv", newline="", encoding="utf-8") as f:
        for row in csv.DictReader(f):
            at = float(row["time_s"])
            by[row["job"].split("@")[0]][int(at * 10)] += float(row["iops"]) / 10
    return {t: (began, parts) for t, parts in by.items()}


def last_missed(series, begin, end):
    """Return the last time at which a loaded tenant had less than 0.9 of its min over the two periods before; None: none had."""
    at, last = begin, None
    while at <= end:
        for began, parts in (series[f"t{i}"] for i in range(LOADED)):
            k = int((at - began) * 10)
            if sum(parts.get(k - n, 0) for n in range(1, 10 * TWO + 1)) < TWO * MIN * 0.9:
                last = at
        at += 0.1
    return last


def judge_mins(series, log, watch, probe, end):
    times, late = [], []
    for k, (back, name, how) in enumerate(log):
        following = log[k + 1][0] - BACK if k + 1 < len(log) else end
        if not probe.quiet(back - BACK, following):
            print(f"  {name} {how}: the machine was too busy to judge")
            continue
        lead = watch.next_leader(back - BACK + 0.5)
        if lead is None:
            late.append(f"{name} {how}: no leader any more")
            continue
        begin = back - BACK
        last = last_missed(series, begin, following - 1) or begin  # a client's clock is a little behind
        times.append(last - begin)
        print(f"  {name} {how}: back after {BACK} s, a leader after {max(0, lead - begin):.1f} s, every min from {times[-1]:.1f} s on")
        if lead - back > LEADER:
            late.append(f"{name} {how}: a leader only after {lead - begin:.1f} s")
        if last > max(back, lead) + 2 * TWO:  # two periods, and those over which it is counted
            late.append(f"{name} {how}: a min was missed {last - max(back, lead):.1f} s after it was back and a leader in force")
    times.sort()
    print(f"{len(times)} of {len(log)} faults were judged")
    if times:
        print("time from a fault until every min is met: " + ", ".join(f"{p} % {times[min(len(times) - 1, len(times) * p // 100)]:.1f} s" for p in (0, 50, 90, 100)))
    return late


def judge_limits(watch):
    """A server that was paused counts what it serves at once to the period in which it fell asleep: a lease's worth."""
    sums = {key: sum(by.values()) for key, by in watch.seen.items() if int(key[1][1:]) < LOADED}
    over = {key: n for key, n in sums.items() if n > MAX}
    print(f"{len({k for k, _ in sums})} periods, at most {max(sums.values(), default=0)} of {MAX} requests; {len(over)} over")
    return [f"{t} had {n} in period {k}" for (k, t), n in over.items() if n > 2 * MAX]


def all_latest():
    status, text = weir("cluster", "status", "--json", "--join", "soak.token")
    if status:
        return False
    d = json.loads(text)
    rows = list(d["members"].values()) + list(d["controllers"].values())
    return len(rows) == SERVERS + CONTROLS and all(r["version"] == d["newest"]["number"] and not r["fault"] for r in rows)


def main():
    etcds, controls, servers = start_all()
    processes = etcds + controls + servers
    try:
        watch, operator, probe = Watch(), Operator(), Probe()
        probe.start()
        watch.start()
        operator.start()
        began = time.monotonic()
        load = start_load()
        time.sleep(3)
        log = list(faults(etcds, controls, servers, began + SECONDS - EVERY / 2))
        end = began + SECONDS
        time.sleep(max(0, end - time.monotonic()))
        operator.ends = True
        operator.join(60)
        wrong = [] if load.wait(90) == 0 else ["a client: " + open("load.err", encoding="utf-8").read()[-2000:]]
        watch.ends = True
        watch.join(30)
        until("the latest version everywhere", all_latest, 20)
        print(f"{len(log)} faults, {operator.made} versions applied, {operator.failed} refused without a store")
        series = per_second(began)
        wrong += judge_mins(series, log, watch, probe, end) + judge_limits(watch) + operator.strange
        if operator.made < SECONDS / 10 and probe.quiet(began, end):
            wrong.append(f"only {operator.made} versions were applied")
        return "\n".join(wrong) or None
    finally:
        for p in processes:
            p.child.send_signal(signal.SIGCONT)
            p.child.kill()


if __name__ == "__main__":
    sys.exit(main())
