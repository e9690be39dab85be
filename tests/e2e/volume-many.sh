# SPDX-License-Identifier: BSD-3-Clause
# Many volumes: an idle one costs at most 8 KiB; volumes that are created, written, verified and removed under load, by the API and by
# files that are dropped into a folder, disturb no other client, and leave neither descriptors nor memory behind.
# WEIR_VOLUMES: how many come and go; 100 without it.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

ulimit -n "$(ulimit -H -n)"
test "$(ulimit -n)" = unlimited || test "$(ulimit -n)" -ge 2500 || skip "at most $(ulimit -n) descriptors"

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

# ---- the memory of 2,000 idle volumes

resident()
{
	awk '/^VmRSS/ { print $2 }' "/proc/$(cat gate.pid)/status"
}

for i in $(seq 2000); do echo "idle/$i.raw"; done | xargs truncate -s 1G
serve gate --api "unix:$here/api.sock" --pidfile gate.pid weir.yaml
before=$(resident)
serve_stop gate
serve gate --api "unix:$here/api.sock" --pidfile gate.pid idle.yaml
run 0 nbdinfo --size "$(uri idle-2000)"
each=$((($(resident) - before) * 1024 / 2000))
echo "an idle volume has $each bytes"
test "$each" -le 8192 || fail "an idle volume has $each bytes"
serve_stop gate

# ---- volumes that come and go under load

serve gate --api "unix:$here/api.sock" --state "$here/state" --pidfile gate.pid weir.yaml
weir load -t 600s -d 8 --reads 50% --verify "db=$(uri db)" >load.out 2>&1 &
load=$!
python3 -B - <<'END' || fail "volumes that come and go"
import json, os, socket, subprocess, time, http.client

here = os.getcwd()
many = int(os.environ["WEIR_VOLUMES"])
pid = int(open("gate.pid").read())
SIZE = 1 << 20

class Http(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(here + "/api.sock")

api = Http("x")
slow = []

def ask(method, path, body=None, expect=200):
    began = time.monotonic()
    api.request(method, path, json.dumps(body) if body else None)
    r = api.getresponse()
    text = r.read()
    slow.append(time.monotonic() - began)
    assert r.status == expect, (method, path, r.status, text)
    return json.loads(text)

def look():
    fds = len(os.listdir(f"/proc/{pid}/fd"))
    kib = next(int(l.split()[1]) for l in open(f"/proc/{pid}/status") if l.startswith("VmRSS"))
    return fds, kib

def uri(name):
    return f"nbd+unix:///{name}?socket={here}/s.sock"

def use(name, i):
    byte = i % 251 + 1
    done = subprocess.run(["qemu-io", "-f", "raw", "-c", f"write -P {byte} 0 64k", "-c", "flush",
        "-c", f"read -P {byte} 0 64k", uri(name)], capture_output=True, text=True)
    assert done.returncode == 0 and "failed" not in done.stdout, (name, done)

def until(what, name, there):
    for _ in range(400):
        api.request("GET", "/v1/volumes/" + name)
        r = api.getresponse()
        r.read()
        if (r.status == 200) == there:
            return
        time.sleep(0.02)
    raise AssertionError(what + " " + name)

def by_api(i):
    name = f"vm-a{i}"
    v = ask("PUT", "/v1/volumes/" + name, {"resource": "nvme0", "size": SIZE})
    assert v["uri"] == uri(name), v
    use(name, i)
    ask("DELETE", "/v1/volumes/" + name + "?force=1")
    assert not os.path.exists(f"vm/a{i}.raw")

def by_folder(i):
    name, path = f"vm-f{i}", f"vm/f{i}.raw"
    with open(path + ".part", "wb") as f:
        f.truncate(SIZE)
    os.rename(path + ".part", path)
    until("never came:", name, True)
    use(name, i)
    os.unlink(path)
    until("never went:", name, False)

for i in range(10):
    by_api(i)
    by_folder(i)
base = look()
slow.clear()
began = time.monotonic()
for i in range(10, 10 + many // 2):
    by_api(i)
    by_folder(i)
took = time.monotonic() - began
slow.sort()
for _ in range(100):
    now = look()
    if now[0] <= base[0]:
        break
    time.sleep(0.1)
print(f"{many / took:.1f} volumes a second; requests of the API: median {slow[len(slow) // 2] * 1e3:.1f} ms,",
    f"p90 {slow[len(slow) * 9 // 10] * 1e3:.1f} ms; descriptors {base[0]} -> {now[0]}, KiB {base[1]} -> {now[1]}")
assert now[0] <= base[0], (base, now)
assert now[1] <= base[1] + 1024 + 4 * many, (base, now) # the allocator's reserve
assert slow[len(slow) // 2] < 0.1, "the API is slow"
END
kill "$load"
wait "$load"
has load.out " checked, 0 wrong"
serve_stop gate
