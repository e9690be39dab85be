# SPDX-License-Identifier: BSD-3-Clause
# weir bypass opens the gate within a second for waiting and new requests, and closes it again;
# shown in status, top, metrics and log; when it is toggled under verified load nothing is lost,
# doubled or reordered.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

command -v curl >/dev/null || skip "no curl"
for python in python3 /usr/bin/python3 none; do
	"$python" -c 'import nbd' 2>/dev/null && break
done
[ "$python" != none ] || skip "no python3-libnbd"
here=$PWD
export WEIR_SOCKET="$here/api.sock"
uri() # EXPORT
{
	echo "nbd+unix:///$1?socket=$here/s.sock"
}
get() # PATH
{
	curl -fsS --unix-socket "$here/api.sock" "http://weir$1"
}
cat >weir.yaml <<END
listen: "unix:$here/s.sock"
client_timeout: 2s
resources:
  - {name: disk, back: "model:server,rate=20k,servers=8+memory:64M", depth: 8}
  - {name: file, back: "file:$here/image", depth: 8}
  - {name: mem, back: "memory:8M", depth: 8}
exports:
  - {name: slow, resource: disk, size: 8 MiB}
  - {name: a, resource: disk, offset: 8 MiB, size: 8 MiB}
  - {name: b, resource: disk, offset: 16 MiB, size: 8 MiB}
  - {name: f, resource: file, size: 8 MiB}
  - {name: m, resource: mem, size: 8 MiB}
tenants:
  - {name: slow, max: 4 iops, match: {export: slow}}
  - {name: rest, max: 2k iops, match: {export: "*"}}
END
truncate -s 64M image
serve gate --api "unix:$here/api.sock" weir.yaml

# ---- waiting requests pass at once: 64 requests at 4 a second would take 16 s
weir load -n 64 -d 64 "slow=$(uri slow)" >slow.out 2>&1 &
load=$!
tries=0
until grep -q 'client-timeout-near tenant=slow resource=disk' gate.log; do # at half of client_timeout
	tries=$((tries + 1))
	[ $tries -lt 100 ] || fail "no warning about long waits"
	sleep 0.05
done
# wait=1s: at half of client_timeout, and not at the next full second.
sed -n 's/.*client-timeout-near.* wait=\([0-9.]*\)\(m\{0,1\}s\) .*/\1 \2/p' gate.log |
	awk '{ wait = $2 == "ms" ? $1 / 1000 : $1 } END { exit !(wait >= 1 && wait < 1.3) }' ||
	fail "$(grep client-timeout-near gate.log)"
get /metrics >metrics
awk '/^weir_tenant_oldest_wait_seconds\{tenant="slow"\}/ { seen = $2 >= 1 } END { exit !seen }' metrics ||
	fail "$(grep oldest metrics)"
has metrics 'weir_tenant_oldest_wait_seconds{tenant="rest"} 0'
has metrics 'weir_resource_bypassed{resource="disk"} 0'
has gate.log 'client_timeout=2s waits_for=max'
hasnt gate.log 'tenant=rest'
python3 - "$load" <<'END' || fail "$(cat slow.out)"
import os, subprocess, sys, time
began = time.monotonic()
out = subprocess.run(["weir", "bypass", "disk"], check=True, capture_output=True, text=True).stdout
assert "disk: open; " in out and int(out.split()[2]) > 30, out
while os.path.exists("/proc/%s" % sys.argv[1]) and "Z" not in open("/proc/%s/stat" % sys.argv[1]).read().split()[2]:
    assert time.monotonic() - began < 1, "requests wait a second after the bypass"
    time.sleep(0.01)
END
wait "$load" || fail "weir load failed: $(cat slow.out)"
has gate.log 'warning bypass resource=disk released='
[ "$(grep -c 'client-timeout-near' gate.log)" -eq 1 ] || fail "more than one line: $(cat gate.log)"

# ---- new requests pass, too; and the bypass is shown
run 0 weir load -n 400 -d 16 "slow=$(uri slow)" # at 4 a second it would take 100 s
run 0 weir bypass
[ "$(cat stdout)" = disk ] || fail "weir bypass lists $(cat stdout)"
run 0 weir status
has stdout 'BYPASSED for'
run 0 weir top --once --interval 100ms
has stdout 'BYPASSED for'
run 0 weir status --json
has stdout '"bypassed": true'
get /metrics >metrics
has metrics 'weir_resource_bypassed{resource="disk"} 1'
has metrics 'weir_resource_bypassed{resource="file"} 0'
awk '/^weir_tenant_served_total\{tenant="slow"\}/ { seen = $2 == 464 } END { exit !seen }' metrics ||
	fail "$(grep served_total metrics)"
awk '/^weir_tenant_latency_seconds_count\{tenant="slow"\}/ { seen = $2 == 464 } END { exit !seen }' metrics ||
	fail "$(grep latency_seconds_count metrics)"

# ---- off: limits hold again
run 0 weir bypass --off disk
has stdout 'disk: closed'
has gate.log 'info bypass-off resource=disk'
run 0 weir bypass
[ ! -s stdout ] || fail "still open: $(cat stdout)"
weir load -t 700ms -d 8 --json "a=$(uri a)" >held.json
python3 -c 'import json; held = json.load(open("held.json"))[0]["iops"]; assert held < 2100, held' ||
	fail "limits do not hold: $(cat held.json)"

# ---- toggled under load: every byte is checked
toggle() # RESOURCE...
{
	for i in 1 2 3 4 5 6; do
		run 0 weir bypass "$@"
		sleep 0.0$((i % 7))
		run 0 weir bypass --off "$@"
		sleep 0.0$((i % 5))
	done
}
weir load -t 1200ms -d 32 --reads 50% --verify "a=$(uri a)" "b=$(uri b)" "f=$(uri f)" >load.out 2>&1 &
load=$!
toggle disk file
wait "$load" || fail "weir load failed: $(cat load.out)"

# ---- overlapping writes in flight: a read returns the last one sent
cat >overlap.py <<'END'
import nbd, sys, time
h = nbd.NBD()
h.connect_uri(sys.argv[1])
serial, end = 0, time.monotonic() + 1
while time.monotonic() < end or serial < 200:
    buffers, cookies = [], []
    for _ in range(40):
        serial += 1
        buffers.append(nbd.Buffer.from_bytearray(bytearray(serial.to_bytes(8, "big") * 512)))
        cookies.append(h.aio_pwrite(buffers[-1], 0))
    while cookies:
        cookies = [c for c in cookies if not h.aio_command_completed(c)]
        if cookies:
            h.poll(1000)
    got = h.pread(4096, 0)
    assert got == serial.to_bytes(8, "big") * 512, (serial, int.from_bytes(got[:8], "big"))
print(serial)
END
"$python" overlap.py "$(uri m)" >overlap.out 2>&1 &
load=$!
toggle mem
wait "$load" || fail "overlapping writes: $(cat overlap.out)"

# ---- a policy that replaces the resource keeps the gate open; one that removes it says so
weir bypass mem >/dev/null
sed 's/memory:8M/memory:9M/' weir.yaml >replaced.yaml
run 0 weir policy apply replaced.yaml
get /v1/bypass >bypassed
has bypassed mem
get /metrics >metrics
has metrics 'weir_resource_bypassed{resource="mem"} 1'
sed '/name: mem,/d; /name: m,/d' weir.yaml >removed.yaml
run 0 weir policy apply removed.yaml
get /v1/bypass >bypassed
hasnt bypassed mem
has gate.log 'bypass-off resource=mem why="the resource was removed"'

# ---- mistakes
run 2 weir bypass dsik
has stderr "no resource 'dsik' (did you mean 'disk'?)"
run 2 weir bypass --off
run 2 weir bypass --of disk
[ "$(curl -s -o /dev/null -w '%{http_code}' --unix-socket api.sock -X POST http://weir/v1/bypass/disk)" = 405 ] ||
	fail "POST is accepted"
run 1 weir bypass --socket nobody.sock disk
serve_stop gate
