# SPDX-License-Identifier: BSD-3-Clause
"""upgrade-systemd: the checks of upgrade-systemd.sh, run inside the namespace. WEIR_UPGRADES: how often, 3 without it."""
import os, pathlib, re, struct, subprocess, sys, time
import nbdraw
from nbdraw import *

UPGRADES = int(os.environ.get("WEIR_UPGRADES", "3"))
SOCK = os.getcwd() + "/s.sock"
LOG = pathlib.Path("weir.log")


def systemctl(*words):
    return subprocess.run(["systemctl", "--user", *words], capture_output=True, text=True).returncode


def wait_for(what, check, seconds=20):
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def block(i):
    return struct.pack(">Q", i) * 512


assert systemctl("start", "weir") == 0
wait_for("the bus is not there", lambda: os.path.exists(os.environ["XDG_RUNTIME_DIR"] + "/bus"))
load = subprocess.Popen(["weir", "load", "-d", "16", "--reads", "50%", "--verify", "--length", "32M", "-t",
                         f"{UPGRADES * 0.5 + 1}s", f"u=nbd+unix:///disk?socket={SOCK}"], stdout=open("u.out", "w"), stderr=subprocess.STDOUT)
half = client("disk", path=SOCK)
held = client("slow", path=SOCK)
for i in range(40):
    held.sendall(request(WRITE, i * 4096, 4096, cookie=i) + block(i))
for i in range(1, UPGRADES + 1):
    whole = request(WRITE, 40 << 20, 4096, cookie=i) + block(i)
    half.sendall(whole[:1500])
    if i == UPGRADES:  # the last start fails first
        open("broken", "w").close()
        assert systemctl("restart", "weir") != 0
        time.sleep(0.3)
        os.unlink("broken")
    else:
        assert systemctl("restart", "weir") == 0
    wait_for("no process took over", lambda: LOG.read_text().count("took-over") == i)
    half.sendall(whole[1500:])
    assert reply(half) == (0, i)
    half.sendall(request(READ, 40 << 20, 4096, cookie=i))
    magic, error, cookie = struct.unpack(">IIQ", receive(half, 16))
    assert (error, cookie, receive(half, 4096)) == (0, i, block(i))
for i in range(40):
    assert reply(held) == (0, i)
assert load.wait() == 0, open("u.out").read()
print("pauses [ms]: " + ", ".join(re.findall(r"pause_ms=(\S+)", LOG.read_text())))

# A stop is a stop: what was received is answered, and the client disconnected.
held.sendall(b"".join(request(READ, 0, 512, cookie=i) for i in range(8)))
time.sleep(0.05)
assert systemctl("stop", "weir") == 0
for i in range(8):
    assert reply(held, 512) == (0, i)
assert not held.recv(1) and "info stopped" in LOG.read_text()
assert not os.path.exists(SOCK)
