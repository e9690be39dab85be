# SPDX-License-Identifier: BSD-3-Clause
"""Upstreams that lose all unflushed data are killed at random times, also while they are just restarting. Clients
(libnbd, fio, weir load) see pauses and no error, read what they wrote, and find flushed data in the upstream's
file. An upstream that stays down gives errors after the time-out, and none after it returned."""
import threading, time
import nbd
import kills, kept
from kills import HERE, KILLS, Blocks, Load, Server, check, connect, fault, pause, rng, run, stop, uri, wait_for

# Differences between the resources, and their clients.
KINDS = {
    "many": {"policy": "connections: 4", "filters": ["--filter=cache"], "fio": True, "load": True},
    # A small keep: writes wait for the gateway's own flushes.
    "one": {"policy": "connections: 1, keep: 1 MiB", "filters": ["--filter=cache"], "fio": False, "load": True},
    # No FUA: such a write is sent as a write and a flush.
    "nofua": {"policy": "connections: 3", "filters": ["--filter=fua", "--filter=cache"], "fio": True, "load": False},
}


def upstream(name):
    return Server("up-" + name, ["nbdkit", "-f", "-U", "%s/%s.sock" % (HERE, name), *KINDS[name]["filters"], "file",
                                 name + ".img", "cache=writeback"], name + ".sock")


def status(resource):
    return {r["name"]: r for r in kept.ask("GET", "/v1/status")["resources"]}[resource]


def state(resource):
    """Return its state: up, lost or failed."""
    return status(resource)["state"].split(";")[0]


def fio(export):
    """Run fio again and again, on a part of its own; every block that it wrote is checked by crc32c."""
    argv = ["fio", "--name=" + export, "--ioengine=nbd", "--uri=" + uri(export), "--rw=randrw", "--bsrange=4k-64k",
            "--iodepth=16", "--offset=16m", "--size=8m", "--fsync=64", "--verify=crc32c", "--verify_fatal=1",
            "--verify_backlog=256", "--randseed=%d" % kills.SEED, "--output=fio-%s.out" % export]
    while not stop.is_set():
        child = kills.start(argv, "fio-%s.out" % export)
        if child.wait() != 0:
            fault("fio on %s: status %d" % (export, child.returncode))


def life(name, server):
    r = rng("kill " + name)
    while server.kills < KILLS:
        # While the gateway works, or just before, perhaps while it sends kept writes again.
        yield r.choice((r.uniform(0.1, 0.6), r.uniform(0, 0.1)))
        while server.kills % 2 == 0 and state(name) != "up":
            yield 0.02
        # nbdkit 1.32 fails an assertion if a client disconnects in the middle of a reply: as good
        # as a kill.
        server.kill(or_ended=True)
        yield r.choice((0, r.uniform(0, 0.3)))  # down for a while, or not
        server.start()
        server.await_ready()


def serve():
    gateway = Server("gateway", ["weir", "serve", "--api", "unix:%s/api.sock" % HERE, "--pidfile", "gateway.pid",
                                 "policy.yaml"], "gateway.pid")
    gateway.await_ready()
    return gateway


def policy(path):
    with open(path, "w") as f:
        f.write('listen: "unix:%s/w.sock"\nresources:\n' % HERE)
        for name, kind in KINDS.items():
            f.write('  - {name: %s, back: "%s", %s}\n' % (name, uri("", name + ".sock"), kind["policy"]))
        f.write('tenants:\n  - {name: all, match: {export: "*"}}\n')


def killed_often():
    for name in KINDS:
        with open(name + ".img", "w") as f:
            f.truncate(64 << 20)
    servers = {name: upstream(name) for name in KINDS}
    for s in servers.values():
        s.await_ready()
    gateway = serve()
    blocks = {name: Blocks(name, name + ".img") for name in KINDS}
    loads = {name: Load(name, "32M") for name, kind in KINDS.items() if kind["load"]}
    fios = [threading.Thread(target=fio, args=(name,)) for name, kind in KINDS.items() if kind["fio"]]
    for t in fios:
        t.start()
    kills.take_turns([life(name, s) for name, s in servers.items()], lambda: [load.look() for load in loads.values()])
    wait_for(lambda: all(state(name) == "up" for name in KINDS), "all upstreams are up")
    pause(0.5)
    for load in loads.values():
        load.end()
    stop.set()
    for t in fios:
        t.join()
    for name, b in blocks.items():
        b.end()
        # All data are flushed, so the server may forget the rest.
        servers[name].kill()
        with b.lock:
            b.in_file(range(len(b.holds)), "at the end")
        kills.no_faults()
        print("%s: %d kills, %d reconnects; %d flushes and %d reads checked, %d blocks in the file" %
              (name, servers[name].kills, status(name)["lost"], b.flushes, b.reads, b.checked))
        check(status(name)["lost"] >= KILLS // 2, "the gateway did not notice")
    for s in servers.values():
        s.start()
    gateway.end()  # its last flush needs the servers
    for s in servers.values():
        s.kill()
    for name, load in loads.items():
        load.check_file(name + ".img")


def stays_away():
    """Down for longer than the time-out: EIO for waiting and new requests, shown in the status; then all requests
    work again."""
    far = upstream("many")
    far.await_ready()
    with open("policy.yaml", "w") as f:
        f.write('listen: "unix:%s/w.sock"\nresources:\n' % HERE)
        f.write('  - {name: many, back: "%s", timeout: 1s}\n' % uri("", "many.sock"))
        f.write('  - {name: other, back: "memory:1M"}\ntenants:\n  - {name: all, match: {export: "*"}}\n')
    gateway = serve()
    h, other = connect("many"), connect("other")
    h.pwrite(b"a" * 4096, 0)
    far.kill()
    began = time.monotonic()
    wait_for(lambda: state("many") == "lost", "the upstream is seen to be lost")
    for again in (False, True):
        try:
            h.pread(4096, 4096)
            check(False, "a read without an upstream")
        except nbd.Error as e:
            check(e.errno == "EIO", "not EIO: %s" % e)
        if not again:
            check(time.monotonic() - began > 0.9, "an error before the time-out")
    check(state("many") == "failed", "the status does not say that it failed")
    check("failed" in run("weir", "status"), "nor does it to people")
    other.pwrite(b"b" * 4096, 0)  # other clients are not affected
    far.start()
    wait_for(lambda: state("many") == "up", "the upstream is back")
    # Acknowledged data are still there, although the upstream forgot them.
    check(h.pread(4096, 0) == b"a" * 4096, "a write was lost after the time-out")
    h.flush()
    check(open("many.img", "rb").read(4096) == b"a" * 4096, "a flush after the time-out is a lie")
    h.shutdown()
    other.shutdown()
    gateway.end()
    far.kill()


policy("policy.yaml")
killed_often()
stays_away()
