# SPDX-License-Identifier: BSD-3-Clause
"""kept: for tests that measure whether a running gateway keeps its policy. Used by kept-*.sh and robust.sh.

The tests measure the gateway's own counters, which are exact. Only time is not: a snapshot is taken at some moment
between `before` and `after`, which are read around it. So the shortest and the longest time between two snapshots is
known, and an upper bound is checked against the longest, a lower one against the shortest: a gateway that keeps its
policy passes on any machine, however busy. The time in which the gateway was runnable but did not run is also
subtracted from the shortest time, since it cannot serve requests then.
"""
import glob, http.client, json, os, socket, subprocess, sys, time

API = os.environ.get("WEIR_SOCKET", "api.sock")
NBD = os.environ.get("NBD_SOCKET", "s.sock")


class _Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(API)


def ask(method, path, body=None):
    """Return the JSON of the reply."""
    c = _Unix("weir")
    c.request(method, path, body)
    r = c.getresponse()
    text = r.read().decode()
    c.close()
    assert r.status == 200, (method, path, r.status, text)
    return json.loads(text)


def delays(pid):
    """Return the seconds in which each thread of a process was runnable and did not run."""
    return {name: int(open(name).read().split()[1]) / 1e9 for name in glob.glob("/proc/%s/task/*/schedstat" % pid)}


def kept_waiting():
    """Return the same for the gateway, and for the whole machine."""
    return {"stolen": int(open("/proc/stat").readline().split()[8]) / os.sysconf("SC_CLK_TCK"),
            **delays(open("gate.pid").read().strip())}


class Look:
    """All counters at one moment. t["a"] is the tenant a, r["disk"] the resource."""

    def __init__(self):
        self.waited_before = kept_waiting()
        self.before = time.monotonic()
        self.all = ask("GET", "/v1/status")
        self.after = time.monotonic()
        self.waited_after = kept_waiting()
        self.t = {t["path"]: t for t in self.all["tenants"]}
        self.r = {r["name"]: r for r in self.all["resources"]}


class Between:
    """The time from one snapshot to a later one, with those between them. `ran`: the gateway could run for at
    least so long."""

    def __init__(self, *looks):
        self.looks = looks
        self.a, self.b = a, b = looks[0], looks[-1]
        self.shortest, self.longest = b.before - a.after, b.after - a.before
        waited = {x: b.waited_after[x] - a.waited_before.get(x, 0) for x in b.waited_after}
        self.waited = waited.pop("stolen") + max(waited.values(), default=0)
        self.ran = max(0, self.shortest - self.waited)

    def passed(self, *tenants, what="dispatched"):
        return sum(self.b.t[t][what] - self.a.t[t][what] for t in tenants)

    def ratio(self, over, under):
        return self.passed(over) / max(1, self.passed(under))

    def backlogged(self, *tenants, least=1):
        """Return true if each of them had so many waiting in every snapshot."""
        return all(x.t[t]["queued"] >= least for t in tenants for x in self.looks)


def bucket_s(b):
    """Return the seconds around which a bucket of a histogram counts."""
    return (b if b < 128 else (129 + 2 * ((b - 128) % 64)) << (b - 128) // 64) / 1e9


def percentile(before, after, tenants, percent):
    """Return that percentile, in seconds, of the latencies of the tenants together between two replies of
    /v1/status?histograms=1."""
    counts = {}
    for sign, look in ((-1, before), (1, after)):
        for t in look["tenants"]:
            of = t["latency"]["buckets"] if t["path"] in tenants and t["latency"] else []
            for b, n in zip(of[::2], of[1::2]):
                counts[b] = counts.get(b, 0) + sign * n
    left = sum(counts.values()) * percent / 100
    for b in sorted(counts):
        left -= counts[b]
        if left <= 0:
            return bucket_s(b)
    raise AssertionError("no latencies")


def looks(seconds, every=0.05):
    """Take snapshots for so long. A snapshot is calm if no thread of the gateway was delayed for more than 5 ms
    since the one before: a round of its loop has one time, so requests after a delay inside it seem to be
    late, and the next ones early."""
    all = [Look()]
    all[0].calm = False
    while all[-1].after < all[0].before + seconds:
        time.sleep(every)
        all.append(Look())
        all[-1].kept = Between(*all[-2:]).waited
        all[-1].calm = all[-1].kept < 0.005
    return all


def windows(all, seconds):
    """Yield the span from each snapshot to the first that is at least `seconds` later."""
    j = 0
    for i, a in enumerate(all):
        while j < len(all) and all[j].before - a.after < seconds:
            j += 1
        if j == len(all):
            return
        yield Between(*all[i:j + 1])


def at_least(tenant, all, rate, share, least, one=1, what="dispatched"):
    """Check that a backlogged tenant had so much of the rate over every second. `least`: requests that must wait
    in each snapshot so that the tenant was backlogged between them, too."""
    seconds = [x for x in windows(all, 1) if x.backlogged(tenant, least=least)]
    check(len(seconds) >= 5, "%s: backlogged in %d of %d seconds" % (tenant, len(seconds), len(list(windows(all, 1)))))
    if not seconds:
        return
    low = min(seconds, key=lambda x: x.passed(tenant, what=what) - share * rate * x.ran)
    got, must = low.passed(tenant, what=what), share * rate * low.ran - one
    check(got >= must, "%s: at least %d in %.3f s, which must have %.1f (%.3f s kept from running)" %
          (tenant, got, low.shortest, must, low.waited))


def at_most(tenant, all, rate, share, one=1, what="dispatched"):
    """Check that over every second that begins calmly the tenant had no more than that of the rate, and one
    request. If no second does: plus what came in while the gateway was delayed, before the second began."""
    calm = [x for x in windows(all, 1) if x.a.calm]
    some = calm or list(windows(all[1:], 1))
    check(len(some) >= 1, "%s: %d seconds begin calmly, of %d" % (tenant, len(calm), len(some)))
    if not some:
        return
    spans = [(x, x.longest if x.a.calm else x.longest + x.a.kept) for x in some]
    high, span = max(spans, key=lambda s: s[0].passed(tenant, what=what) - share * rate * s[1])
    got, may = high.passed(tenant, what=what), share * rate * span + one
    check(got <= may, "%s: at most %d in %.3f s, which may have %.1f" % (tenant, got, high.longest, may))


def await_queue(tenants, least=1, seconds=30):
    """Wait until each of them has so many waiting."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        look = Look()
        if all(look.t[t]["queued"] >= least for t in tenants):
            return look
        time.sleep(0.02)
    raise AssertionError("no request waits: " + str({t: look.t[t]["queued"] for t in tenants}))


_clients = 0


class Fio:
    """fio's NBD engine, one job per export: {"a": {"iodepth": 64}}. Ended after `seconds`."""

    def __init__(self, jobs, seconds, **common):
        global _clients
        _clients += 1
        self.name = "fio%d" % _clients
        keys = {"ioengine": "nbd", "rw": "randread", "bs": "4k", "time_based": "1", "runtime": seconds,
                "iodepth": 32, "log_avg_msec": 500, "thread": 1, **common}
        with open(self.name + ".job", "w") as f:
            f.write("[global]\n" + "".join("%s=%s\n" % kv for kv in keys.items()))
            for job, own in jobs.items():
                own = {"uri": "nbd+unix:///%s?socket=%s" % (own.get("export", job), NBD), **own}
                f.write("[%s]\nwrite_iops_log=%s.%s\n" % (job, self.name, job))
                f.write("".join("%s=%s\n" % kv for kv in own.items() if kv[0] != "export"))
        self.process = subprocess.Popen(
            ["fio", "--output-format=json", "--output=" + self.name + ".json", self.name + ".job"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def end(self):
        """Wait for the end. Return the jobs of its report by name."""
        out = self.process.communicate(timeout=120)[0].decode()
        text = open(self.name + ".json").read()
        assert self.process.returncode == 0, out + text
        report = {j["jobname"]: j for j in json.loads(text[text.index("{"):])["jobs"]}
        assert all(j["error"] == 0 for j in report.values()), text
        return report

    def rate(self, job, since, until):
        """Return its own mean rate in this part of its run (seconds)."""
        name = glob.glob(glob.escape(self.name + "." + job) + "_iops*.log")[0]
        rows = [[float(x) for x in line.split(",")[:2]] for line in open(name)]
        rates = [rate for ms, rate in rows if since < ms / 1000 <= until]
        return sum(rates) / len(rates)


def load(*args):
    """weir load --json in the background; `.end()` returns the list of its jobs."""
    class Load:
        process = subprocess.Popen(["weir", "load", "--json", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

        def end(self, status=0):
            out, err = self.process.communicate(timeout=120)
            assert self.process.returncode == status, err.decode() + out.decode()
            return {j["job"] if "job" in j else j["name"]: j for j in json.loads(out)}
    return Load()


def uri(export):
    return "nbd+unix:///%s?socket=%s" % (export, NBD)


_bad = []


def check(good, *what):
    """Print a check, and remember a failure: end the test with `finish()`."""
    print("ok:    " if good else "WRONG: ", *what, flush=True)
    if not good:
        _bad.append(what)


def near(what, got, want, by):
    check(abs(got / want - 1) <= by, "%s: %.4g, wanted %.4g within %g %%" % (what, got, want, 100 * by))


def finish():
    sys.exit(1 if _bad else 0)
