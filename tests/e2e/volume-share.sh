# SPDX-License-Identifier: BSD-3-Clause
# Fifty volumes behind one gate, on files and NBD upstreams mixed: 20:1, 1:2:4:8, min and max hold between them; volumes that do not
# answer (SIGSTOP of one upstream of ten, and of three, one of which shares its tenant with another) leave the others their rate and
# latency. WEIR_KINDS: file, nbd and mixed, each with fifty volumes; mixed without it.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

command -v nbdkit >/dev/null || skip "there is no nbdkit"

# policy KIND: 50 volumes; a volume is a file, or an export of an upstream, if its number is odd in a mixed one.
policy()
{
	kind=$1
	set --
	for i in $(seq 0 49); do
		case $kind$((i % 2)) in
		file* | mixed0) set -- "$@" "v$i=file:$here/$i.raw" ;;
		*) set -- "$@" "v$i=nbd+unix:///$i?socket=$here/up.sock" ;;
		esac
	done
	volumes_policy "model:server,rate=2k,service=fixed,servers=8" "$@"
	cat <<-END
	tenants:
	  - {name: big, weight: 20, match: {export: v0}}
	  - {name: small, weight: 1, match: {export: v1}}
	  - {name: w1, weight: 1, match: {export: v2}}
	  - {name: w2, weight: 2, match: {export: v3}}
	  - {name: w4, weight: 4, match: {export: v4}}
	  - {name: w8, weight: 8, match: {export: v5}}
	  - {name: least, weight: 0.01, min: 200 iops, match: {export: v6}}
	  - {name: most, weight: 20, max: 100 iops, match: {export: v7}}
	  - {name: rest, weight: 10, match: {export: "*"}}
	END
}

for i in $(seq 0 49); do echo "$i.raw"; done | xargs truncate -s 4M
nbdkit -U "$here/up.sock" --pidfile up.pid memory 4M
serve_cleanup()
{
	for file in "$here"/up*.pid; do
		kill -CONT "$(cat "$file")"
		kill -KILL "$(cat "$file")"
	done
}

for kind in ${WEIR_KINDS:-mixed}; do
	policy "$kind" >"$kind.yaml"
	serve gate --api "unix:$here/api.sock" "$kind.yaml"
	set --
	for i in $(seq 0 49); do
		set -- "$@" "v$i=$(uri "v$i")"
	done
	weir load -t 60s -d 32 "$@" >load.out 2>&1 &
	load=$!
	KIND=$kind python3 -B - <<-'END' || fail "shares of 50 volumes ($kind): $(tail -3 load.out)"
	import os, time
	from kept import *

	await_queue(["big", "small", "w1", "w8", "most", "rest"], 16)
	time.sleep(1)
	a = Look()
	time.sleep(5)
	b = Look()
	x = Between(a, b)
	kind = os.environ["KIND"]
	near(kind + ": 20:1", x.ratio("big", "small"), 20, 0.05)
	for w in (2, 4, 8):
	    near(f"{kind}: {w}:1", x.ratio(f"w{w}", "w1"), w, 0.05)
	span = b.after - a.after
	check(x.passed("least") / span >= 0.9 * 200, kind, "min 200:", x.passed("least") / span)
	check(x.passed("most") / span <= 1.05 * 100, kind, "max 100:", x.passed("most") / span)
	finish()
	END
	kill "$load"
	wait "$load"
	serve_stop gate
done

# ---- upstreams that stop: from 2 s on the others keep their rate and latency

for i in $(seq 0 9); do
	nbdkit -U "$here/up$i.sock" --pidfile "up$i.pid" --filter=delay memory 4M rdelay=2ms wdelay=2ms
done
{
	echo "listen: \"unix:$here/s.sock\""
	echo "resources:"
	echo "  - name: disk"
	echo "    depth: 20"
	echo "    volumes:"
	for i in $(seq 0 9); do
		echo "      - {name: u$i, back: \"nbd+unix:///?socket=$here/up$i.sock\"}"
	done
	echo "tenants:"
	echo "  - {name: pair, match: [{export: u0}, {export: u1}]}"
	for i in $(seq 2 9); do
		echo "  - {name: t$i, match: {export: u$i}}"
	done
} >stop.yaml
serve gate --api "unix:$here/api.sock" stop.yaml
python3 -B - <<'END' || fail "upstreams that stop take the rate of the others"
import os, signal, subprocess, time
from kept import *

def start(*volumes):
    args = [f"u{i}=nbd+unix:///u{i}?socket={os.environ['NBD_SOCKET']}" for i in volumes]
    return subprocess.Popen(["weir", "load", "-t", "100s", "-d", "8", *args], stdout=subprocess.DEVNULL)

loads = [start(i) for i in range(10)]

def counts():
    return {v["name"]: v["requests"] for v in ask("GET", "/v1/volumes")["volumes"]}

def measure(tenants, spans=5):
    """Return the rate of each volume, and the 99th percentile of the latencies of tenants: the median of those of half
    seconds, since another program may disturb one of them."""
    a, began, p99 = counts(), time.monotonic(), []
    looks = [ask("GET", "/v1/status?histograms=1")]
    for _ in range(spans):
        time.sleep(0.5)
        looks.append(ask("GET", "/v1/status?histograms=1"))
        p99.append(percentile(*looks[-2:], tenants, 99))
    b, span = counts(), time.monotonic() - began
    return {v: (b[v] - a[v]) / span for v in a}, sorted(p99)[spans // 2]

def await_resumed():
    for _ in range(100):
        if ask("GET", "/v1/status")["resources"][0]["stalled"] == 0:
            break
        time.sleep(0.1)
    time.sleep(0.5) # what waited meanwhile has gone through

def stop(which, what):
    pids = [int(open(f"up{i}.pid").read()) for i in which]
    others = [f"u{i}" for i in range(10) if i not in which]
    tenants = [f"t{i}" for i in range(2, 10) if i not in which]
    calm, calm_p99 = measure(tenants)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(2)
    stopped, p99 = measure(tenants)
    whole = ask("GET", "/v1/status")
    status, remarks = whole["resources"][0]["stalled"], [r for r in whole["remarks"] if "stalled" in r]
    listed = [v["name"] for v in ask("GET", "/v1/volumes")["volumes"] if "stalled" in (v["trouble"] or "")]
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    await_resumed()
    had, has = (sum(x[v] for v in others) for x in (calm, stopped))
    check(has >= 0.9 * had, f"{what}: the others have {has:.0f} a second, and had {had:.0f}")
    check(p99 <= 1.2 * calm_p99, f"{what}: the others' p99 is {p99 * 1e3:.1f} ms, and was {calm_p99 * 1e3:.1f} ms")
    check(status == len(which), what, "are counted as stalled:", status)
    names = sorted(f"u{i}" for i in which)
    check(sorted(listed) == names and len(remarks) == len(names), what, "are named as stalled:", listed, remarks)
    if 0 in which: # the other volume of the tenant
        check(stopped["u1"] >= 0.9 * calm["u1"], f"u1 has {stopped['u1']:.0f}, and had {calm['u1']:.0f}")

time.sleep(2)
stop([5], "one of ten")
stop([0, 2, 3], "three of ten, one of two volumes of a tenant")
for l in loads:
    l.kill()
    l.wait()
finish()
END
serve_stop gate
