# SPDX-License-Identifier: BSD-3-Clause
# Overlapping writes of one client are done in their order of arrival: while a max holds writes and
# reads pass them, through changes of the policy, and through the loss of an upstream.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kill.sh"

here=$PWD
truncate -s 4M disk plain
cat >up.yaml <<END
listen: "unix:$here/up.sock"
resources: [{name: disk, back: "model:ssd+file:$here/disk"}]
exports: [{name: disk, resource: disk}]
tenants: [{name: all, match: {export: "*"}}]
END
cat >weir.yaml <<END
listen: "unix:$here/s.sock"
resources:
  - {name: up, back: "nbd+unix:///disk?socket=$here/up.sock"}
  - {name: memory, back: "memory:4M"}
  - {name: file, back: "file:$here/plain"}
exports: [{name: up, resource: up}, {name: memory, resource: memory}, {name: file, resource: file}]
tenants: [{name: t, max: {writes: 400 iops}, match: {export: "*"}}]
END
serve up up.yaml
serve gate --api "unix:$here/api.sock" weir.yaml

"$python" - "$(cat up.pid)" <<'END' || fail "writes that overlap changed their order"
import nbd, os, random, signal, subprocess, sys, time
up, SPAN = int(sys.argv[1]), 1 << 20
rng = random.Random(int(os.environ.get("WEIR_SEED", 1)))

class Client:
    def __init__(self, export):
        self.export, self.sent, self.reads = export, [], 0
        self.must = bytearray(SPAN)
        self.h = nbd.NBD()
        self.h.set_export_name(export)
        self.h.connect_unix("s.sock")

    def write(self, i):
        size = rng.choice([512, 4096, 20000, 300000])
        at = rng.randrange(SPAN - size)
        flags = nbd.CMD_FLAG_FUA if rng.random() < 0.1 else 0
        if rng.random() < 0.1:
            self.must[at:at + size] = bytes(size)
            self.sent.append(self.h.aio_zero(size, at, flags=flags))
        else:
            data = bytes([1 + i % 255]) * size
            self.must[at:at + size] = data
            self.sent.append(self.h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(data)), at, flags=flags))
        if rng.random() < 0.2:
            self.sent.append(self.h.aio_pread(nbd.Buffer(size), at))
        if rng.random() < 0.02:
            self.sent.append(self.h.aio_flush())

    def done(self): # raises if one failed
        self.sent = [c for c in self.sent if not self.h.aio_command_completed(c)]
        return not self.sent

def pump(until, seconds=60):
    end = time.monotonic() + seconds
    while not until():
        if time.monotonic() > end:
            sys.exit("not done in %d s" % seconds)
        for c in clients:
            c.h.poll(10)

def policy(value):
    subprocess.run(["weir", "set", "t.max", value, "--socket", "api.sock"], check=True, stdout=subprocess.DEVNULL)

clients = [Client("up"), Client("memory"), Client("file")]
for i in range(160):
    for c in clients:
        c.write(i)
total = {c: len(c.sent) for c in clients}
pump(lambda: all(c.done() or len(c.sent) < 0.9 * total[c] for c in clients))
policy("4k iops") # one queue for all kinds; and many requests are inside the upstream at once
os.kill(up, signal.SIGKILL)
pump(clients[1].done)
again = subprocess.Popen(["weir", "serve", "--api", "none", "up.yaml"], stderr=subprocess.DEVNULL)
try:
    pump(lambda: all([c.done() for c in clients]))
    policy("{reads: 2k iops, writes: 600 iops}")
    for c in clients:
        c.write(0)
    pump(lambda: all([c.done() for c in clients]))
    for c in clients:
        got = c.h.pread(SPAN, 0)
        wrong = [i for i in range(SPAN) if got[i] != c.must[i]]
        print("%s: %d requests, %d wrong bytes" % (c.export, total[c], len(wrong)))
        if wrong:
            sys.exit("%s: byte %d is %d, not %d" % (c.export, wrong[0], got[wrong[0]], c.must[wrong[0]]))
finally:
    again.terminate()
    again.wait()
END
serve_stop gate
