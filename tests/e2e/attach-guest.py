# SPDX-License-Identifier: BSD-3-Clause
"""The test of attach-guest.sh."""
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

from guest import Guest

RESTARTS = int(os.environ.get("WEIR_RESTARTS", "2"))
KINDS = {"ext4": ("mkfs.ext4 -q", "e2fsck -f -n", "resize2fs"), "xfs": ("mkfs.xfs -q", "xfs_repair -n", "xfs_growfs")}
if RESTARTS <= 2:
    del KINDS["xfs"]
SIZE = 320 << 20  # xfs needs 300 MiB
PROGRAMS = ["weir", "mkfs.ext4", "e2fsck", "resize2fs", "mkfs.xfs", "xfs_repair", "xfs_growfs", "xfs_db"]

# Write files, one after the other; read each back later, from the device. /tmp/NAME.n counts the files.
WRITER = """
i=0
while [ ! -e /tmp/stop ]; do
    f=/mnt/$1/$((i % 12))
    dd if=/dev/urandom of=$f bs=64k count=$((i % 7 + 1)) conv=fsync 2>/tmp/$1.err && sha256sum $f >$f.sum && sync &&
        echo 1 >/proc/sys/vm/drop_caches && sha256sum -s -c /mnt/$1/$((i * 5 % 12 % (i + 1))).sum || {
        echo "$1: file $i" >>/tmp/bad
        exit 1
    }
    i=$((i + 1))
    echo $i >/tmp/$1.n.new && mv /tmp/$1.n.new /tmp/$1.n
done
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Gateway:
    def __init__(self):
        self.port = free_port()
        volumes = "\n".join(f"      - {{name: {k}, back: \"file:{k}.raw\"}}" for k in KINDS)
        pathlib.Path("weir.yaml").write_text(
            f"listen: tcp:127.0.0.1:{self.port}\nresources:\n  - name: disk\n    volumes:\n{volumes}\n")

    def start(self):
        pathlib.Path("gw.pid").unlink(missing_ok=True)
        self.child = subprocess.Popen(["weir", "serve", "--api", "none", "--pidfile", "gw.pid", "weir.yaml"],
                                      stderr=open("gw.log", "a"))
        until = time.monotonic() + 30
        while not pathlib.Path("gw.pid").exists():
            assert self.child.poll() is None and time.monotonic() < until, "weir serve did not start"
            time.sleep(0.02)

    def stop(self, how=signal.SIGTERM):
        self.child.send_signal(how)
        self.child.wait(60)

    def uri(self, kind):
        return f"nbd://10.0.2.2:{self.port}/{kind}"


def wait_for(guest, command, what, limit=120):
    until = time.monotonic() + limit
    while guest.ask(command)[0] != 0:
        assert time.monotonic() < until, f"not after {limit} s: {what}\n" + guest.ask("cat /tmp/*.log; dmesg | tail -20")[1]
        time.sleep(0.2)


def attach(guest, gateway, kind, device):
    guest.run(f"weir attach --watch --timeout 5s {gateway.uri(kind)} {device} >/tmp/{kind}.out 2>/tmp/{kind}.log &")
    wait_for(guest, f"grep -q {device} /tmp/{kind}.out", f"{kind} is attached")


def restart(guest, gateway, i):
    """Restart the gateway, every fourth time by a kill, and wait until each writer has written through the new one."""
    gateway.stop(signal.SIGKILL if i % 4 == 1 else signal.SIGTERM)
    time.sleep(random.Random(i).uniform(0, 3))
    gateway.start()
    for kind in KINDS:
        n = int(guest.run(f"cat /tmp/{kind}.n"))
        wait_for(guest, f"test $(cat /tmp/{kind}.n) -gt {n + 2} -o -e /tmp/bad", f"{kind} goes on after restart {i}")
    assert guest.ask("test -e /tmp/bad")[0] != 0, guest.ask("cat /tmp/bad /tmp/*.err /tmp/*.log; dmesg | tail -20")[1]


def check_survival(guest, gateway):
    for n, (kind, (mkfs, fsck, _)) in enumerate(KINDS.items()):
        attach(guest, gateway, kind, f"/dev/nbd{n}")
        guest.run(f"{mkfs} /dev/nbd{n} && mkdir -p /mnt/{kind} && mount -t {kind} /dev/nbd{n} /mnt/{kind}")
        guest.run(f"echo 0 >/tmp/{kind}.n; sh /writer {kind} >/tmp/{kind}.writer 2>&1 &")
        wait_for(guest, f"test $(cat /tmp/{kind}.n) -gt 2", f"{kind} is written")
    guest.run("test $(cat /sys/block/nbd0/backend) = " + gateway.uri("ext4"))
    for i in range(RESTARTS):
        restart(guest, gateway, i)
    counts = [int(guest.run(f"touch /tmp/stop; cat /tmp/{kind}.n")) for kind in KINDS]
    wait_for(guest, "! pgrep -f /writer", "the writers end")
    assert guest.ask("test -e /tmp/bad")[0] != 0, guest.ask("cat /tmp/bad")[1]
    print(f"{RESTARTS} restarts; files written and compared: {counts}", flush=True)
    for n, (kind, (mkfs, fsck, _)) in enumerate(KINDS.items()):
        wait_for(guest, f"umount /mnt/{kind}", f"{kind} is not busy")  # the last file of a program is closed late
        guest.run(f"{fsck} /dev/nbd{n}", 300)
        guest.run(f"mount -t {kind} /dev/nbd{n} /mnt/{kind} && cd /mnt/{kind} && sha256sum -s -c *.sum && cd /")


def check_growth(guest, gateway):
    gateway.stop()
    for kind in KINDS:
        os.truncate(f"{kind}.raw", 2 * SIZE)
    gateway.start()
    for n, (kind, (_, _, grow)) in enumerate(KINDS.items()):
        wait_for(guest, f"test $(cat /sys/block/nbd{n}/size) -eq {2 * SIZE // 512}", f"{kind} grows")
        guest.run(f"{grow} {'/mnt/xfs' if kind == 'xfs' else '/dev/nbd%d' % n}")
        assert int(guest.run(f"df -k /mnt/{kind} | awk 'END {{print $2}}'")) > 1.5 * SIZE / 1024
        guest.run(f"cd /mnt/{kind} && sha256sum -s -c *.sum && cd /")


def check_names(guest, gateway):
    """A mounted device is not detached; a volume is found again; a device in use is not taken."""
    text = guest.run("weir detach /dev/nbd0", status=1)
    assert "/dev/nbd0 is in use (unmount it first, or --force)" in text, text
    text = guest.run(f"weir attach {gateway.uri('ext4')}")
    assert text == "/dev/nbd0 again", text
    text = guest.run(f"weir attach {gateway.uri('ext4')} /dev/nbd5", status=1)
    assert "is attached to /dev/nbd0" in text, text
    text = guest.run(f"weir attach --identifier other {gateway.uri('ext4')} /dev/nbd0", status=1)
    assert "/dev/nbd0 is in use" in text, text
    text = guest.run("weir detach nothing", status=2)
    assert "no device has this volume" in text, text
    for n, kind in enumerate(KINDS):
        guest.run(f"umount /mnt/{kind} && weir detach {kind}")
        wait_for(guest, f"grep -q device-detached /tmp/{kind}.log && ! grep -q . /sys/block/nbd{n}/pid", f"{kind} is detached")
    text = guest.run("weir detach /dev/nbd0", status=2)
    assert "not attached" in text, text
    text = guest.run(f"weir attach --read-only --connections 1 {gateway.uri('ext4')} /dev/nbd7")
    assert text == "/dev/nbd7", text
    guest.run("mount -t ext4 -o ro,noload /dev/nbd7 /mnt/ext4 && cd /mnt/ext4 && sha256sum -s -c *.sum && cd / && umount /mnt/ext4")
    guest.run("dd if=/dev/zero of=/dev/nbd7 count=1", status=1)
    guest.run("weir detach ext4")


def check_size(guest):
    """Another server, whose export grows and shrinks while it is connected."""
    port = free_port()
    pathlib.Path("size").write_text("1M")
    server = subprocess.Popen(["nbdkit", "-f", "-i", "127.0.0.1", "-p", str(port), "eval", f"get_size=cat {os.getcwd()}/size",
                               "pread=head -c $3 /dev/zero"])
    uri = f"nbd://10.0.2.2:{port}/"
    wait_for(guest, f"weir attach {uri} /dev/nbd3 >/dev/null 2>&1", "the other server")
    guest.run(f"weir attach --watch {uri} >/tmp/size.out 2>/tmp/size.log & echo $! >/tmp/watch")
    wait_for(guest, "grep -q device-attached /tmp/size.log", "the watch")
    for size, event, sectors in (("3M", "device-grown", 6144), ("2M", "cannot shrink", 6144), ("4M", "grown.*4", 8192)):
        pathlib.Path("size").write_text(size)
        guest.run("kill -HUP $(cat /tmp/watch)")
        wait_for(guest, f"grep -q '{event}' /tmp/size.log", f"{event} at {size}")
        assert int(guest.run("cat /sys/block/nbd3/size")) == sectors
    guest.run("kill $(cat /tmp/watch)")  # and the device stays
    wait_for(guest, "! kill -0 $(cat /tmp/watch) 2>/dev/null", "the end of the watch")
    guest.run("test -e /sys/block/nbd3/pid && weir detach /dev/nbd3")
    server.kill()
    server.wait()


def main():
    guest = Guest(sys.argv[1], PROGRAMS, {"writer": WRITER})
    gateway = Gateway()
    try:
        for kind in KINDS:
            pathlib.Path(f"{kind}.raw").touch()
            os.truncate(f"{kind}.raw", SIZE)
        gateway.start()
        check_survival(guest, gateway)
        check_growth(guest, gateway)
        check_names(guest, gateway)
        check_size(guest)
    finally:
        guest.end()
        gateway.stop(signal.SIGKILL)


main()
