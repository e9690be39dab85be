# SPDX-License-Identifier: BSD-3-Clause
# A client that sends its requests and shuts down its sending side, without NBD_DISC, gets every
# answer. A client that disconnected is noticed, and its queued requests are dropped.
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
import http.client, json, socket, sys, time
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


for where in {"path": path}, {"port": port}:
    # writes and reads, more than the window, some held by the max
    s = nbdraw.client("disk", **where)
    n = 60
    for i in range(n):
        s.sendall(nbdraw.request(nbdraw.WRITE, i * 4096, 4096, i) + bytes([i]) * 4096)
    s.shutdown(socket.SHUT_WR)
    seen = set()
    for i in range(n):
        error, cookie = nbdraw.reply(s)
        assert not error, error
        seen.add(cookie)
    assert seen == set(range(n)), seen
    assert s.recv(1) == b"", "the end follows"
    s.close()
    # half a request is ignored: the others are answered or not, and the connection ends
    s = nbdraw.client("disk", **where)
    s.sendall(nbdraw.request(nbdraw.READ, 0, 512, 1)[:13])
    s.shutdown(socket.SHUT_WR)
    assert s.recv(1) == b""
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
