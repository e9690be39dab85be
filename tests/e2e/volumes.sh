# SPDX-License-Identifier: BSD-3-Clause
# Several image files behind one gate: weights hold between them; volumes come and go with a policy, under verified load
# of the others; a volume that cannot be opened is refused with its place and changes nothing.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

# policy VOLUMES: files on a device of 1,000 requests a second, of which a volume has all.
policy()
{
	for name; do
		shift
		set -- "$@" "$name=file:$name.raw"
	done
	volumes_policy "model:server,rate=1k,service=fixed,servers=8" "$@"
	cat <<-END
	tenants:
	  - {name: a, weight: 20, match: {export: a}}
	  - {name: b, weight: 1, match: {export: b}}
	  - {name: rest, match: {export: "*"}}
	END
}

truncate -s 16M a.raw b.raw c.raw d.raw
policy a b >weir.yaml
serve gate --api "unix:$here/api.sock" weir.yaml

# ---- weights 20:1 between two files

weir load -t 60s -d 256 "a=$(uri a)" "b=$(uri b)" >load.out 2>&1 &
load=$!
python3 -B - <<'END' || fail "weights do not hold between volumes"
import time
from kept import *

await_queue("ab", 100)
time.sleep(0.5)
a = Look()
time.sleep(4)
x = Between(a, Look())
check(x.backlogged("a", "b"), "both wait")
near("a by b, weights 20:1", x.ratio("a", "b"), 20, 0.05)
finish()
END
kill "$load"
wait "$load"

# ---- volumes that come and go disturb no other client, and keep their data

weir load -t 4s -d 16 --reads 50% --verify "a=$(uri a)" "b=$(uri b)" >load.out 2>&1 &
load=$!
policy a b c d >more.yaml
for i in 1 2 3; do
	run 0 weir policy apply more.yaml
	has stdout "export c: new"
	run 0 qemu-io -f raw -c "write -P $i 4k 8k" "$(uri c)"
	run 0 weir policy apply weir.yaml
	has stdout "export c: removed; its clients are disconnected"
	run 1 qemu-io -f raw -c "read 0 4k" "$(uri c)"
	run 0 qemu-io -f raw -c "read -P $i 4k 8k" c.raw
done
wait "$load" || fail "weir load failed: $(cat load.out)"
has gate.log "volume-removed volume=c resource=disk flush=done"

# ---- a volume that does not answer: the clients of the others keep their rate from 2 s on, and its own lose nothing

if command -v nbdkit >/dev/null; then
	nbdkit -U "$here/up.sock" --pidfile up.pid memory 16M
	serve_cleanup()
	{
		kill -KILL "$(cat up.pid)"
	}
	policy a b >stall.yaml
	sed -i "s|^tenants:|      - {name: up, back: \"nbd+unix:///?socket=$here/up.sock\"}\n&|" stall.yaml
	run 0 weir policy apply stall.yaml
	weir load -t 8s -d 64 --reads 50% --verify "up=$(uri up)" >up.out 2>&1 &
	load=$!
	weir load -t 60s -d 64 "a=$(uri a)" "b=$(uri b)" >load.out 2>&1 &
	other=$!
	python3 -B - <<-'END' || fail "a volume that does not answer stops the others"
	import os, signal, time
	from kept import *

	def rate(t):
	    a = Look()
	    time.sleep(1.5)
	    b = Look()
	    return (b.t[t]["served"] - a.t[t]["served"]) / (b.after - a.after)

	await_queue("ab", 16)
	time.sleep(0.5)
	calm = rate("a")
	upstream = int(open("up.pid").read())
	os.kill(upstream, signal.SIGSTOP)
	time.sleep(2)
	stopped = rate("a")
	status = ask("GET", "/v1/status")
	os.kill(upstream, signal.SIGCONT)
	check(stopped >= 0.9 * calm, "a has", stopped, "a second while up is stopped, and had", calm)
	check(status["resources"][0]["stalled"] == 1, "the status counts the stalled volume")
	finish()
	END
	wait "$load" || fail "weir load of the stopped volume failed: $(cat up.out)"
	kill "$other"
	wait "$other"
	has gate.log "volume-stalled resource=disk volume=up"
	has gate.log "volume-resumed resource=disk volume=up"
	run 0 weir policy apply weir.yaml

	# ---- a volume of the API whose upstream does not answer: DELETE is answered at once

	run 0 weir volume add disk hangs "nbd+unix:///?socket=$here/up.sock"
	run 0 there hangs
	kill -STOP "$(cat up.pid)"
	before=$(date +%s%N)
	run 0 curl -s --unix-socket "$here/api.sock" -X DELETE "http://x/v1/volumes/hangs?force=1"
	took=$((($(date +%s%N) - before) / 1000000))
	run 0 gone hangs
	run 0 there a
	hasnt gate.log "volume-removed volume=hangs"
	kill -CONT "$(cat up.pid)"
	until_ok grep "volume-removed volume=hangs" gate.log
	[ "$took" -lt 400 ] || fail "DELETE took $took ms while the upstream hangs" # a second is the wait for other changes
	echo "DELETE of a volume that hangs took $took ms"

	# ---- an upstream that is added and does not answer delays no other change and no client; it is served once it answers

	kill -STOP "$(cat up.pid)"
	hangs="nbd+unix:///?socket=$here/up.sock"
	sed "s|^tenants:|  - {name: more, volumes: [{name: m, back: \"$hangs\"}, {name: n, back: \"nbd://no.such.host:1/n\"}]}\n&|" weir.yaml >hang.yaml
	weir policy apply hang.yaml >apply.out 2>&1 &
	apply=$!
	before=$(date +%s%N)
	run 0 weir volume add disk late "$hangs"
	run 0 weir set a.weight 2
	run 0 there a
	took=$((($(date +%s%N) - before) / 1000000))
	wait "$apply" || fail "apply: $(cat apply.out)"
	[ "$took" -lt 1500 ] || fail "two changes and a client took $took ms beside an upstream that hangs" # 2 s was the wait for each
	echo "two changes and a client took $took ms beside an upstream that hangs"
	run 0 weir policy apply weir.yaml
	kill -CONT "$(cat up.pid)"
	run 0 there late
	run 0 weir volume rm late
fi

# ---- a bad volume changes nothing

sed 's/file:d.raw/file:absent.raw/' more.yaml >bad.yaml
run 2 weir policy apply bad.yaml
has stderr "bad.yaml:9:9: volume 'd': "
has stderr "absent.raw: "
sed 's/file:d.raw/file:a.raw/' more.yaml >bad.yaml
run 2 weir policy apply bad.yaml
has stderr "bad.yaml:9:9: volume 'd': "
has stderr "a.raw is the file of volume 'a', too"
# two volumes on one file, by whatever path, and there or not, are refused with both places before anything is opened
ln d.raw hard.raw
ln -s d.raw soft.raw
for pair in "a c" "hard d" "soft d" "absent absent"; do
	sed -e "s/file:c.raw/file:${pair% *}.raw/" -e "s/file:d.raw/file:${pair#* }.raw/" more.yaml >bad.yaml
	case $pair in
	"a c") at="8:9: volume 'c': " other="volume 'a', too (" line=6:9 ;;
	*) at="9:9: volume 'd': " other="volume 'c', too (" line=8:9 ;;
	esac
	run 2 weir policy check bad.yaml
	has stderr "bad.yaml:$at"
	has stderr "${other}bad.yaml:$line)"
	run 2 weir serve --api none bad.yaml
	has stderr "$other"
	run 2 weir policy apply --dry-run bad.yaml
	has stderr "$other"
done
sed -e 's/file:c.raw/file:d.raw?read_only=yes/' -e 's/file:d.raw"/file:d.raw?read_only=yes"/' more.yaml >both.yaml
run 0 weir policy check both.yaml
sed -e 's/file:c.raw/file:d.raw?lock=no/' more.yaml >both.yaml
run 0 weir policy check both.yaml
rm hard.raw soft.raw
# Through the API a volume may be a file only where the gateway's own file has volumes.
for file in /etc/passwd ../../etc/passwd link.raw; do
	ln -sf /etc/passwd link.raw
	sed "s|file:d.raw|file:$file|" more.yaml >bad.yaml
	run 2 weir policy apply bad.yaml
	has stderr "only the gateway's own policy file may name a link, or a file in a folder"
	hasnt stderr "root:"
done
run 1 nbdinfo --size "$(uri c)"
run 0 nbdinfo --size "$(uri a)"
has stdout "16777216"

serve_stop gate
