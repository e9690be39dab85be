# SPDX-License-Identifier: BSD-3-Clause
"""Upstreams that forget everything unflushed are killed at random times, also while they are just coming back. Clients
(libnbd, fio, weir load) see pauses and no error, read what they wrote, and find in the upstream's file what was flushed.
One that stays away is an error after the time-out, and none any more when it is back."""
import threading, time
import nbd
import kills, kept
from kills import HERE, KILLS, Blocks, Load, Server, check, connect, fault, pause, rng, run, stop, uri, wait_for

# What is different in them, and their clients.
KINDS = {
    "many": {"policy": "connections: 4", "filters": ["--filter=cache"], "fio": True, "load": True},
    # Little is kept, so writes wait for flushes of the gateway's own.
    "one": {"policy": "connections: 1, keep: 1 MiB", "filters": ["--filter=cache"], "fio": False, "load": True},
    # No FUA: such a write is a write and a flush.
    "nofua": {"policy": "connections: 3", "filters": ["--filter=fua", "--filter=cache"], "fio": True, "load": False},
}


def upstream(name):
    return Server("up-" + name, ["nbdkit", "-f", "-U", "%s/%s.sock" % (HERE, name), *KINDS[name]["filters"], "file",
                                 name + ".img", "cache=writeback"], name + ".sock")


def status(resource):
    return {r["name"]: r for r in kept.ask("GET", "/v1/status")["resources"]}[resource]


def state(resource):
    """up, lost or failed."""
    return status(resource)["state"].split(";")[0]


def fio(export):
    """Again and again, on a part of its own; every block that it wrote is checked by crc32c."""
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
        # At work, or just about to be, perhaps with the gateway sending again what was kept.
        yield r.choice((r.uniform(0.1, 0.6), r.uniform(0, 0.1)))
        while server.kills % 2 == 0 and state(name) != "up":
            yield 0.02
        # nbdkit 1.32 ends with a failed assertion if a client is gone in the middle of a reply: as good as a kill.
        server.kill(or_ended=True)
        yield r.choice((0, r.uniform(0, 0.3)))  # away for a while, or not
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
        # Flushed: so the server may forget the rest.
        servers[name].kill()
        with b.lock:
            b.in_file(range(len(b.holds)), "at the end")
        kills.no_faults()
        print("%s: %d kills, %d reconnects; %d flushes and %d reads checked, %d blocks in the file" %
              (name, servers[name].kills, status(name)["lost"], b.flushes, b.reads, b.checked))
        check(status(name)["lost"] >= KILLS // 2, "the gateway did not notice")
    for s in servers.values():
        s.start()
    gateway.end()  # with a last flush, for which it needs them
    for s in servers.values():
        s.kill()
    for name, load in loads.items():
        load.check_file(name + ".img")


def stays_away():
    """Away for longer than the time-out: EIO for who waits and who comes, and seen in the status; then all is well."""
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
    other.pwrite(b"b" * 4096, 0)  # nobody else is hurt
    far.start()
    wait_for(lambda: state("many") == "up", "the upstream is back")
    # What was answered before is there, although the upstream forgot it.
    check(h.pread(4096, 0) == b"a" * 4096, "a write is gone after the time-out")
    h.flush()
    check(open("many.img", "rb").read(4096) == b"a" * 4096, "a flush after the time-out is a lie")
    h.shutdown()
    other.shutdown()
    gateway.end()
    far.kill()


policy("policy.yaml")
killed_often()
stays_away()
