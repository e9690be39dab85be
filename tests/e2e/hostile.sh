# SPDX-License-Identifier: BSD-3-Clause
# Clients that mean harm, all at once, on the thread that serves a good one: two thousand connections,
# one that never reads its replies, one that sends a byte now and then, ones that ask for 4 GiB, one that
# closes with 1,000 requests in flight, over and over. Memory stays bounded, the good one sees no error
# and its p99 moves by less than 20 %.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

[ "$(ulimit -Hn)" -ge 5000 ] || skip "fewer than 5,000 descriptors"
ulimit -n 5000
here=$PWD
truncate -s 64M bad.img
cat >weir.yaml <<END
listen: "unix:$here/s.sock"
threads: 1
memory: 64 MiB
resources:
  - {name: good, back: "model:server,latency=20ms,servers=64+memory:16M", depth: 64}
  - {name: bad, back: "file:$here/bad.img"}
tenants:
  - {name: good, match: {export: good}}
  - {name: bad, match: {export: bad}}
END
cat >hostile.py <<'END'
import os, socket, struct, sys, threading, time

os.nice(19)  # what is tried is the gateway, not who gets the processor
MAGIC, READ, WRITE = 0x25609513, 0, 1

def connect(name=b"bad"):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect("s.sock")
    greeting(s, 18)
    s.sendall(struct.pack(">I", 3) + b"IHAVEOPT" + struct.pack(">II", 1, len(name)) + name)
    greeting(s, 10)
    return s

def greeting(s, n):
    while n:
        got = s.recv(n)
        assert got, "cut off in the handshake"
        n -= len(got)

def request(command, offset, length, cookie=7):
    return struct.pack(">IHHQQI", MAGIC, 0, command, cookie, offset, length)

def gone(s):
    """Waits until the gateway has closed it; what it sends is thrown away."""
    try:
        while s.recv(65536):
            pass
    except OSError:
        pass

def deaf(until):
    s = connect()
    s.settimeout(0.1)
    while time.monotonic() < until:
        try:
            s.send(request(READ, 0, 1 << 20) * 64)
        except OSError:
            time.sleep(0.05)

def slow(until):
    s = connect()
    text = request(WRITE, 0, 4096) + b"x" * 4096
    for i in range(len(text)):
        if time.monotonic() > until:
            return
        s.send(text[i:i + 1])
        time.sleep(0.3)

def greedy(until):
    while time.monotonic() < until:
        s = connect()
        s.sendall(request(READ, 0, 0xffffffff))
        reply = s.recv(16)
        assert struct.unpack(">I", reply[4:8])[0] != 0, "4 GiB were read"
        s.close()
        s = connect()
        try:
            s.sendall(request(WRITE, 0, 0xffffffff) + b"x" * 65536)
            s.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        gone(s)
        s.close()
        time.sleep(0.02)

def leaver(until):
    count = 0
    while time.monotonic() < until:
        s = connect()
        try:
            s.sendall(b"".join(request(READ, 4096 * i, 4096, i) for i in range(1000)))
        except OSError:
            pass
        s.close()
        count += 1
        time.sleep(0.01)
    print("left", count, "times")

until = time.monotonic() + float(sys.argv[1])
crowd = [connect() for i in range(2000)]
failed = []

def guarded(what):
    try:
        what(until)
    except Exception as e:
        failed.append("%s: %r" % (what.__name__, e))

threads = [threading.Thread(target=guarded, args=(w,)) for w in (deaf, slow, greedy, leaver)]
for t in threads:
    t.start()
open("at-work", "w").close()
for t in threads:
    t.join()
# Those who did nothing are still there.
for s in crowd[::100]:
    s.sendall(request(READ, 0, 512))
    greeting(s, 16 + 512)
sys.exit("\n".join(failed) or 0)
END
good() # FILE: what a good client sees, for 2 s
{
	timeout 30 weir load --rate "500 iops" --arrivals even -t 2s --json "nbd+unix:///good?socket=$here/s.sock" >"$1" ||
		fail "the good client: $(cat "$1")"
}
p99() # FILE: in ns
{
	sed -n 's/.*"p99_ns": \([0-9.]*\).*/\1/p' "$1"
}

# What a busy machine does to one measurement it does not do to all three; what hostile clients do, they
# do each time.
serve gw weir.yaml
for round in 1 2 3; do
	good alone
	rm -f at-work
	python3 hostile.py 4 >hostile.out 2>&1 &
	hostile=$!
	tries=0
	until [ -e at-work ]; do
		tries=$((tries + 1))
		[ "$tries" -lt 1000 ] || fail "the hostile ones do not get to work: $(cat hostile.out)"
		sleep 0.02
	done
	good beside
	wait "$hostile" || fail "a hostile one found something: $(cat hostile.out)"
	cat hostile.out
	peak=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$(cat gw.pid)/status")
	echo "p99 alone $(p99 alone) ns, beside them $(p99 beside) ns; peak memory $peak kB"
	# The budget of payloads, 64 MiB, and as much again for everything else.
	[ "$peak" -lt 131072 ] || fail "it took $peak kB"
	kept=$(awk "BEGIN { print ($(p99 beside) < 1.2 * $(p99 alone)) }")
	[ "$kept" -eq 0 ] || break
done
[ "$kept" -eq 1 ] || fail "the good client's p99 moved by more than 20 %"
serve_stop gw
