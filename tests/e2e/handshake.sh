# SPDX-License-Identifier: BSD-3-Clause
# A handshake is limited to 10 s, for any way to draw it out: one byte per second, options without
# end, or silence. Such a client is disconnected, with one line each in the log; other clients
# connect meanwhile.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

here=$PWD
serve gate --listen "unix:$here/s.sock" memory:1M
cat >slow.py <<'END'
import socket, struct, sys, threading, time

LIMIT, SLACK = 10, 4  # seconds; a busy machine may be late, but never early
OPTION = b"IHAVEOPT"
faults = []

def connect():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(LIMIT + SLACK)
    s.connect("s.sock")
    began = time.monotonic()
    hello = b""
    while len(hello) < 18:
        hello += s.recv(18 - len(hello))
    return s, began

def drip(s):
    """Send a byte a second of a known option, which is never complete."""
    for byte in struct.pack(">I", 3) + OPTION + struct.pack(">II", 7, 64) + bytes(64):
        s.send(bytes([byte]))
        s.settimeout(1)
        try:
            if not s.recv(65536):
                return
        except socket.timeout:
            pass

def talk(s):
    """Send complete options, one after the other, and read each answer."""
    s.send(struct.pack(">I", 3))
    while True:
        s.send(OPTION + struct.pack(">II", 3, 0))
        if not s.recv(65536):
            return
        time.sleep(0.5)

def silent(s):
    s.recv(1)

def run(kind):
    s, began = connect()
    try:
        kind(s)
    except (BrokenPipeError, ConnectionError):
        pass
    except socket.timeout:
        faults.append("%s: never cut off" % kind.__name__)
        return
    took = time.monotonic() - began
    print("%s: cut off after %.1f s" % (kind.__name__, took))
    if not LIMIT - 0.1 < took < LIMIT + SLACK:
        faults.append("%s: cut off after %.1f s" % (kind.__name__, took))

threads = [threading.Thread(target=run, args=(k,)) for k in (drip, talk, silent)]
for t in threads:
    t.start()
open("at-work", "w").close()
for t in threads:
    t.join()
sys.exit("\n".join(faults) or 0)
END
python3 slow.py >slow.out 2>&1 &
slow=$!
serve_all="$serve_all $slow"
while kill -0 "$slow" 2>/dev/null; do
	run 0 timeout 10 nbdinfo --size "nbd+unix:///?socket=$here/s.sock"
	sleep 0.5
done
wait "$slow" || fail "$(cat slow.out)"
cat slow.out
[ "$(grep -c 'client-broken .*the handshake took more than 10 s' gate.log)" -eq 3 ] || fail "$(cat gate.log)"
serve_stop gate
