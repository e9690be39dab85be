# SPDX-License-Identifier: BSD-3-Clause
# 10,000 clients come at once, and a template makes a tenant for each of them; status and metrics stay quick; all are removed
# when they have left, with their counters added to the group's.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

N=${TENANTS:-10000}
here=$PWD
# shellcheck disable=SC3045 # dash has it
ulimit -n $((N + 500)) 2>/dev/null || skip "not enough file descriptors for $N clients"
export WEIR_SOCKET="$here/api.sock" PYTHONPATH="$WEIR_SOURCE/tests/e2e"

python3 - "$N" >weir.yaml <<'END'
import sys
print("listen: unix:s.sock\nresources:\n  - {name: disk, back: 'memory:1G', depth: 32}\nexports:")
for i in range(int(sys.argv[1])):
    print(f"  - {{name: vm-{i}, resource: disk, size: 64 KiB, offset: {64 * i} KiB}}")
print("tenants:\n  - {name: vms, each: {match: {export: 'vm-*'}, max: {rate: 10 iops/GiB, at_least: 1k iops}, "
      "expire_after: 2s}}")
END
serve gate --api "unix:$here/api.sock" weir.yaml

cat >drive.py <<'END'
import http.client, json, os, socket, sys, time
from concurrent.futures import ThreadPoolExecutor
import nbdraw

N = int(sys.argv[1])


class Api(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect("api.sock")


def ask(path):
    begin = time.monotonic()
    c = Api("weir")
    c.request("GET", path)
    text = c.getresponse().read().decode()
    c.close()
    return text, time.monotonic() - begin


def tenants():
    return {t["path"]: t for t in json.loads(ask("/v1/status")[0])["tenants"]}


def one(i):
    s = nbdraw.client(f"vm-{i}", path="s.sock")
    s.sendall(nbdraw.request(nbdraw.READ, 0, 512))
    assert nbdraw.reply(s, 512)[0] == 0
    return s


def cpu():
    """Return the processor time of the gateway so far, in seconds."""
    fields = open(f"/proc/{open('gate.pid').read().strip()}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def worst(path):
    """Return the text, and the shortest of three times: the machine may be busy. The gateway itself works for at most 1 s."""
    before = cpu()
    all = [ask(path) for _ in range(3)]
    work = (cpu() - before) / 3
    print(f"{path}: {work:.2f} s of the gateway's processor time")
    assert work < 1, work
    return all[0][0], min(t for _, t in all)


begin = time.monotonic()
with ThreadPoolExecutor(500) as pool:
    clients = list(pool.map(one, range(N)))
print(f"{N} clients with a tenant each in {time.monotonic() - begin:.1f} s")
text, seconds = worst("/v1/status")
print(f"status: {seconds:.2f} s, {len(text)} bytes")
all = {t["path"]: t for t in json.loads(text)["tenants"]}
assert len(all) == N + 2, len(all)
assert all["vms"]["served"] == N and all["vms"]["clients"] == N, all["vms"]
assert all["vms/others"]["clients"] == 0
assert all["vms/vm-7"]["max"]["iops"] == 1000
assert seconds < 3, seconds
text, seconds = worst("/metrics")
print(f"metrics: {seconds:.2f} s, {len(text)} bytes")
assert seconds < 3, seconds
begin = time.monotonic()
extra = one(0)  # no change is needed for it
print(f"one more client of a tenant that exists: {time.monotonic() - begin:.3f} s")
assert text.count("weir_tenant_served_total{") == N + 1

for s in clients + [extra]:
    s.close()
end = time.monotonic() + 60
while len(all := tenants()) > 2:
    assert time.monotonic() < end, len(all)
    time.sleep(0.2)
assert all["vms"]["served"] == N + 1, all["vms"]
assert f'weir_tenant_served_total{{tenant="vms"}} {N + 1}' in ask("/metrics")[0]
END
python3 -B drive.py "$N" || fail "10,000 tenants of a template are not as they should be"
grep -c 'how=refresh' gate.log
serve_stop gate
