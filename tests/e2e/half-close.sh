# SPDX-License-Identifier: BSD-3-Clause
# A client that sends its requests and shuts down its sending side, without NBD_DISC, gets every
# answer, also if its last request is not complete. A client that disconnected is noticed, and its queued requests are
# dropped: all of them, or after an NBD_DISC those that only read.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

here=$PWD
port=$((20000 + $$ % 20000))
cat >policy.yaml <<END
listen: ["unix:$here/s.sock", "tcp:127.0.0.1:$port"]
api: "unix:$here/api.sock"
resources: [{name: disk, back: "model:server,latency=2ms,servers=4+memory:16M", depth: 4}]
tenants:
  - {name: slow, max: 200 iops, match: {export: "*"}}
END
serve gateway --api unix:$here/api.sock policy.yaml
PYTHONPATH=$WEIR_SOURCE/tests/e2e python3 - "$here/s.sock" "$port" "$here/api.sock" <<'END' || fail "see above"
import http.client, json, os, socket, sys, time
import nbdraw

path, port, api = sys.argv[1], int(sys.argv[2]), sys.argv[3]


class Api(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(api)


def status():
    c = Api("x")
    c.request("GET", "/v1/status")
    return json.loads(c.getresponse().read())["resources"][0]


PART = nbdraw.request(nbdraw.READ, 0, 512, 1000)[:13]  # of a request, which is ignored
PAYLOAD = nbdraw.request(nbdraw.WRITE, 0, 4096, 1000) + bytes(1000)
for where, end in ({"path": path}, b""), ({"port": port}, b""), ({"path": path}, PART), ({"port": port}, PAYLOAD):
    # writes and reads, more than the window, some held by the max
    s = nbdraw.client("disk", **where)
    n = 60
    for i in range(n):
        s.sendall(nbdraw.request(nbdraw.WRITE, i * 4096, 4096, i) + bytes([i]) * 4096)
    s.sendall(end)
    s.shutdown(socket.SHUT_WR)
    seen = set()
    for i in range(n):
        error, cookie = nbdraw.reply(s)
        assert not error, error
        seen.add(cookie)
    assert seen == set(range(n)), seen
    assert s.recv(1) == b"", "the end follows"
    s.close()
    # the same after a farewell, with a write behind the reads, which is done
    s = nbdraw.client("disk", **where)
    mark = os.urandom(4096)
    s.sendall(b"".join(nbdraw.request(nbdraw.READ, 0, 4096, i) for i in range(800)))
    s.sendall(nbdraw.request(nbdraw.WRITE, 1 << 20, 4096, 1000) + mark + nbdraw.request(nbdraw.DISC, 0, 0))
    s.close()
    until = time.monotonic() + 2
    while status()["clients"] or status()["queued"]:
        assert time.monotonic() < until, "a client that is gone is still served: %s" % status()
        time.sleep(0.05)
    s = nbdraw.client("disk", **where)
    s.sendall(nbdraw.request(nbdraw.READ, 1 << 20, 4096, 1))
    assert nbdraw.reply(s)[0] == 0 and nbdraw.receive(s, 4096) == mark, "the write was lost"
    s.close()
    # disconnected: its requests that a max holds do not stay for long
    s = nbdraw.client("disk", **where)
    s.sendall(b"".join(nbdraw.request(nbdraw.READ, 0, 4096, i) for i in range(2000)))
    s.close()
    until = time.monotonic() + 5
    while status()["clients"] or status()["queued"]:
        assert time.monotonic() < until, "a client that is gone is still served: %s" % status()
        time.sleep(0.05)
END
serve_stop gateway
