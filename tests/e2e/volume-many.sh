# SPDX-License-Identifier: BSD-3-Clause
# Many volumes: an idle one costs at most 8 KiB; volumes that are created, written, verified and removed under load, by the API and by
# files that are dropped into a folder, disturb no other client, and leave neither descriptors nor memory behind.
# WEIR_VOLUMES: how many come and go, 20 a second; 100 without it. WEIR_IDLE: how many are idle; 2,000 without it.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

ulimit -n "$(ulimit -H -n)"
idle=${WEIR_IDLE:-2000}
test "$(ulimit -n)" = unlimited || test "$(ulimit -n)" -ge $((idle + 500)) || skip "at most $(ulimit -n) descriptors"

mkdir vm idle
truncate -s 64M db.raw
cat >weir.yaml <<END
listen: "unix:$here/s.sock"
resources:
  - name: nvme0
    depth: 32
    volumes:
      - {name: db, back: "file:$here/db.raw"}
      - {dir: $here/vm, match: "*.raw", name: "vm-{stem}"}
END
sed '/dir:/i\      - {dir: '"$here"'/idle, match: "*.raw", name: "idle-{stem}"}' weir.yaml >idle.yaml
export WEIR_VOLUMES="${WEIR_VOLUMES:-100}"
echo "WEIR_VOLUMES=$WEIR_VOLUMES"

# ---- the memory of idle volumes

resident()
{
	awk '/^VmRSS/ { print $2 }' "/proc/$(cat gate.pid)/status"
}

for i in $(seq "$idle"); do echo "idle/$i.raw"; done | xargs truncate -s 1G
serve gate --api "unix:$here/api.sock" --pidfile gate.pid weir.yaml
before=$(resident)
serve_stop gate
serve gate --api "unix:$here/api.sock" --pidfile gate.pid idle.yaml
run 0 nbdinfo --size "$(uri "idle-$idle")"
each=$((($(resident) - before) * 1024 / idle))
echo "an idle volume of $idle has $each bytes"
test "$each" -le 8192 || fail "an idle volume has $each bytes"
serve_stop gate

# ---- volumes that come and go under load

serve gate --api "unix:$here/api.sock" --state "$here/state" --pidfile gate.pid weir.yaml
weir load -t 600s -d 8 --reads 50% --verify "db=$(uri db)" >load.out 2>&1 &
load=$!
python3 -B - <<'END' || fail "volumes that come and go"
import json, os, socket, time, http.client, threading
from concurrent.futures import ThreadPoolExecutor
import nbdraw

here = os.getcwd()
many = int(os.environ["WEIR_VOLUMES"])
pid = int(open("gate.pid").read())
SIZE = 1 << 20

class Http(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(here + "/api.sock")

own = threading.local()
slow = []

def ask(method, path, body=None):
    if not hasattr(own, "api"):
        own.api = Http("x")
    began = time.monotonic()
    own.api.request(method, path, json.dumps(body) if body else None)
    r = own.api.getresponse()
    text = r.read()
    if method != "GET":
        slow.append(time.monotonic() - began)
    return r.status, json.loads(text)

def look():
    fds = len(os.listdir(f"/proc/{pid}/fd"))
    kib = next(int(l.split()[1]) for l in open(f"/proc/{pid}/status") if l.startswith("VmRSS"))
    return fds, kib

def uri(name):
    return f"nbd+unix:///{name}?socket={here}/s.sock"

def use(name, i):
    data = bytes([i % 251 + 1]) * 65536
    c = nbdraw.client(name, path=here + "/s.sock")
    c.sendall(nbdraw.request(nbdraw.WRITE, 0, len(data)) + data)
    assert nbdraw.reply(c)[0] == 0, name
    for command, length in ((nbdraw.FLUSH, 0), (nbdraw.READ, len(data))):
        c.sendall(nbdraw.request(command, 0, length))
        assert nbdraw.reply(c)[0] == 0, name
    assert nbdraw.receive(c, len(data)) == data, name
    c.sendall(nbdraw.request(nbdraw.DISC, 0, 0))
    c.close()

def until(what, name, there):
    for _ in range(400):
        if (ask("GET", "/v1/volumes/" + name)[0] == 200) == there:
            return
        time.sleep(0.02)
    raise AssertionError(what + " " + name)

def by_api(i):
    name = f"vm-a{i}"
    status, v = ask("PUT", "/v1/volumes/" + name, {"resource": "nvme0", "size": SIZE})
    assert status == 200 and v["uri"] == uri(name), v
    use(name, i)
    status, v = ask("DELETE", "/v1/volumes/" + name + "?force=1")
    assert status == 200 and not os.path.exists(f"vm/a{i}.raw"), v

def by_folder(i):
    name, path = f"vm-f{i}", f"vm/f{i}.raw"
    with open(path + ".part", "wb") as f:
        f.truncate(SIZE)
    os.rename(path + ".part", path)
    until("never came:", name, True)
    use(name, i)
    os.unlink(path)
    until("never went:", name, False)

RATE = 20 # volumes a second, half of them by the API

def come_and_go(first, n):
    """Return the time from the first begin to the last end."""
    began = time.monotonic()
    with ThreadPoolExecutor(16) as pool:
        jobs = []
        for i in range(n):
            time.sleep(max(0, began + i / RATE - time.monotonic()))
            jobs.append(pool.submit(by_folder if i % 2 else by_api, first + i))
        for j in jobs:
            j.result()
    return time.monotonic() - began

come_and_go(0, 20)
base = look()
slow.clear()
took = come_and_go(20, many)
slow.sort()
for _ in range(100):
    now = look()
    if now[0] <= base[0]:
        break
    time.sleep(0.1)
print(f"{many} volumes in {took:.1f} s, {many / took:.1f} a second; changes by the API: "
    f"median {slow[len(slow) // 2] * 1e3:.1f} ms, p99 {slow[len(slow) * 99 // 100] * 1e3:.1f} ms;",
    f"descriptors {base[0]} -> {now[0]}, KiB {base[1]} -> {now[1]}")
assert now[0] <= base[0], (base, now)
assert now[1] <= base[1] + 1024 + 4 * many, (base, now) # the allocator's reserve
assert took <= many / RATE + 2, f"{many} volumes took {took:.1f} s, and came in {many / RATE:.1f} s"
assert slow[len(slow) // 2] < 0.1, "the API is slow"
END
kill "$load"
wait "$load"
has load.out " checked, 0 wrong"
serve_stop gate
