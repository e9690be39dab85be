# SPDX-License-Identifier: BSD-3-Clause
# weir serve and the system around it: systemd's messages, watchdog and sockets, running out of
# descriptors, two thousand connections.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

command -v nbdinfo >/dev/null || skip "no nbdinfo"
here=$PWD
size() # SOCKET: size of its export
{
	timeout 10 nbdinfo --size "nbd+unix:///?socket=$1"
}

# ---- messages to systemd, and sockets from it: "nbd" and one without a name

cat >systemd.py <<'END'
import atexit, os, signal, socket, subprocess

def heard(until):
    """Return the lines that were sent, up to one that begins with `until`."""
    lines = []
    while not any(line.startswith(until) for line in lines):
        lines += notify.recv(4096).decode().splitlines()
    return lines

notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notify.bind("notify.sock")
notify.settimeout(10)
sockets = []
for name in ("one.sock", "two.sock"):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.bind(name)
    s.listen(8)
    sockets.append(s)

env = dict(os.environ, NOTIFY_SOCKET=os.getcwd() + "/notify.sock", LISTEN_FDS="2",
           LISTEN_FDNAMES="nbd:weir.socket", WATCHDOG_USEC="200000")
env.pop("WATCHDOG_PID", None)
# LISTEN_PID must be the program's, so a shell sets it and becomes the program.
open("weir.yaml", "w").write("""resources: [{name: disk, back: "memory:1M"}]
tenants: [{name: all, match: {export: "*"}}]
""")
os.dup2(sockets[0].fileno(), 8)
os.dup2(sockets[1].fileno(), 9)
weir = subprocess.Popen(["sh", "-c", "exec 3<&8 4<&9; LISTEN_PID=$$ exec weir serve --api none weir.yaml"],
                        env=env, pass_fds=(8, 9), stderr=open("systemd.log", "w"))
atexit.register(weir.kill)  # in case anything below fails
heard("READY=1")
for name in ("one.sock", "two.sock"):
    subprocess.run(["nbdinfo", "--size", "nbd+unix:///disk?socket=" + os.getcwd() + "/" + name],
                   check=True, timeout=10)
for i in range(3):
    heard("WATCHDOG=1")
weir.send_signal(signal.SIGHUP)
lines = heard("RELOADING=1")
assert any(line.startswith("MONOTONIC_USEC=") for line in lines + heard("READY=1")), lines
weir.send_signal(signal.SIGTERM)
heard("STOPPING=1")
assert weir.wait(10) == 0, weir.returncode
assert os.path.exists("one.sock"), "systemd's socket file was removed"
END
run 0 python3 systemd.py

# ---- out of descriptors: clients are refused, connected ones are served, others connect later

cat >crowd.py <<'END'
import socket, sys
want, path = int(sys.argv[1]), sys.argv[2]
crowd = []
greeted = 0
for i in range(want):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(10)
    s.connect(path)
    crowd.append(s)
    try:
        greeted += len(s.recv(18)) == 18
    except OSError:
        pass
print(greeted)
END
command -v prlimit >/dev/null || skip "no prlimit"
cat >hold.py <<'END'
"""Hold 200 handshakes, or as many clients as there may be; say how many there are, and wait for the end of the input."""
import sys
sys.path.insert(0, sys.argv[3])
import nbdraw
what, path = sys.argv[1], sys.argv[2]
held = []
for i in range(200):
    try:
        held.append(nbdraw.connect(path) if what == "handshakes" else nbdraw.client("", path=path))
    except (OSError, EOFError, AssertionError):
        break
print(len(held), flush=True)
sys.stdin.read()
END
serve few --api "unix:$here/few-api.sock" --listen "unix:$here/few.sock" memory:1M
prlimit --pid "$(cat few.pid)" --nofile=64:64
for what in handshakes clients; do
	mkfifo "end-$what"
	timeout 60 python3 -B hold.py "$what" few.sock "$WEIR_SOURCE/tests/e2e" <"end-$what" >"held-$what" &
	holder=$!
	exec 3>"end-$what"
	until [ -s "held-$what" ]; do
		kill -0 "$holder" || fail "no $what"
		sleep 0.02
	done
	run 0 timeout 5 weir bypass disk --socket few-api.sock
	run 0 timeout 5 weir bypass disk --off --socket few-api.sock
	if [ "$what" = handshakes ]; then
		[ "$(size "$here/few.sock")" = 1048576 ] || fail "no client can connect beside handshakes"
	else
		held=$(cat held-clients)
		[ "$held" -ge 20 ] && [ "$held" -lt 60 ] || fail "$held clients with 64 descriptors"
		has few.log "no file descriptor left"
	fi
	exec 3>&-
	wait "$holder"
done
[ "$(size "$here/few.sock")" = 1048576 ] || fail "no client can connect after the crowd"
hasnt few.log "accept-paused"
serve_stop few

# ---- two thousand at once, each in its handshake; and the next one is served

[ "$(ulimit -Hn)" -ge 5000 ] || skip "fewer than 5,000 descriptors"
ulimit -n 5000
serve many --listen "unix:$here/many.sock" memory:1M
greeted=$(timeout 60 python3 crowd.py 2200 many.sock)
[ "$greeted" -eq 2200 ] || fail "$greeted of 2200 were greeted"
[ "$(size "$here/many.sock")" = 1048576 ] || fail "no client can connect after the crowd"
serve_stop many
