# SPDX-License-Identifier: BSD-3-Clause
# Files of a folder that come, are replaced and go, while requests that change nothing, that fail, and SIGHUP read the folder's events: no
# event is lost, the gateway stays, and a file that replaced a volume's keeps its size.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"
. "$WEIR_SOURCE/tests/lib-volume.sh"

vm_policy
serve gate --api "unix:$here/api.sock" --state "$here/state" weir.yaml
python3 -B - <<'END' || fail "folders, the API and SIGHUP at once: $(tail -3 gate.log)"
import http.client, json, os, signal, socket, threading, time

pid = int(open("gate.pid").read())

class Http(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect("api.sock")

def ask(method, path, body=None):
    c = Http("x")
    c.request(method, "/v1/volumes/" + path, json.dumps(body) if body else None)
    r = c.getresponse()
    text = json.loads(r.read())
    c.close()
    return r.status, text

def until(what, good):
    end = time.monotonic() + 20 # a scan after a minute finds everything
    while not good():
        assert time.monotonic() < end, what
        time.sleep(0.01)

done = False

def disturb(method, path, body=None):
    while not done:
        ask(method, path, body)

def reload():
    while not done:
        os.kill(pid, signal.SIGHUP)
        time.sleep(0.05)

others = [threading.Thread(target=disturb, args=a) for a in
    (("DELETE", "absent"), ("PATCH", "absent", {"size": 1}), ("PUT", "bad", {"resource": "none", "size": 1}))]
others.append(threading.Thread(target=reload))
for t in others:
    t.start()

def drop(size, name):
    with open("new", "wb") as f:
        f.truncate(size)
    os.rename("new", "vm/" + name + ".raw")

def size_of(name):
    return ask("GET", name)[1].get("size")

try:
    for i in range(25):
        drop(1 << 20, f"{i}")
        until(f"vm-{i} never came", lambda: size_of(f"vm-{i}") == 1 << 20)
        drop(2 << 20, f"{i}") # while the old one is a volume: it cannot grow, nor can the new one by its name
        status, text = ask("PATCH", f"vm-{i}", {"size": 4 << 20})
        assert status in (200, 409), (status, text)
        size = os.stat(f"vm/{i}.raw").st_size
        assert size == (4 if status == 200 else 2) << 20, (status, size)
        until(f"vm-{i} was never replaced", lambda: size_of(f"vm-{i}") == size)
        os.unlink(f"vm/{i}.raw")
        status, text = ask("PATCH", f"vm-{i}", {"class": "gold"})
        assert status in (200, 404), (status, text)
        until(f"vm-{i} never went", lambda: ask("GET", f"vm-{i}")[0] == 404)
finally:
    done = True
    for t in others:
        t.join()
END
serve_stop gate
