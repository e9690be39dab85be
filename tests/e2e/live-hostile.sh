# SPDX-License-Identifier: BSD-3-Clause
# Resources are removed at bad moments: with an upstream that is stopped, while it is bypassed, while requests are recorded, when
# they have the only clients of a tenant, and while the gateway ends.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

here=$PWD
export WEIR_SOCKET="$here/api.sock"
command -v nbdkit >/dev/null || skip "nbdkit is not installed"

uri()
{
	echo "nbd+unix:///$1?socket=$here/s.sock"
}

# policy NAME=BACK...
policy()
{
	printf 'listen: "unix:%s/s.sock"\nstate: state\nrecordings: recordings\nresources:\n' "$here"
	for it; do
		echo "  - {name: ${it%%=*}, timeout: 5s, back: \"${it#*=}\"}"
	done
	echo 'tenants:'
	for it; do
		echo "  - {name: t${it%%=*}, match: {export: ${it%%=*}}}"
	done
}

until_log()
{
	tries=0
	until grep -qF -e "$1" gate.log; do
		tries=$((tries + 1))
		[ "$tries" -lt 1000 ] || fail "the log has no '$1'"
		sleep 0.02
	done
}

# until_busy: until the client of the upstream has replies
until_busy()
{
	tries=0
	until weir status | grep -q "^tu .*[1-9]"; do
		tries=$((tries + 1))
		[ "$tries" -lt 200 ] || fail "no client of the upstream: $(cat u.out; weir status; tail -5 gate.log)"
		sleep 0.05
	done
}

nbdkit -U "$here/up.sock" --pidfile up.pid memory 16M
serve_cleanup()
{
	kill -KILL "$(cat up.pid)" 2>/dev/null
}
up="nbd+unix:///?socket=$here/up.sock"
mkdir recordings
truncate -s 16M a.raw
policy a=file:a.raw >weir.yaml
policy a=file:a.raw "u=$up" >up.yaml
serve gate --api "unix:$here/api.sock" weir.yaml
weir load -t 600s -d 8 --reads 50% --verify "a=$(uri a)" >a.out 2>&1 &
other=$!

# ---- an upstream that is stopped does not hold up a change, and its resource leaves when its requests return

run 0 weir policy apply up.yaml
weir load -t 60s -d 8 "u=$(uri u)" >u.out 2>&1 &
load=$!
until_busy
kill -STOP "$(cat up.pid)"
sleep 0.2
run 0 weir policy apply weir.yaml
hasnt gate.log "resource-removed resource=u"
# the same name, with the same storage, while the old one leaves: its clients wait until then
run 0 weir policy apply up.yaml
qemu-io -f raw -c "write -P 5 0 4k" "$(uri u)" >u2.out 2>&1 &
waiting=$!
kill -CONT "$(cat up.pid)"
until_log "resource-removed resource=u"
wait "$waiting" || fail "a client of the new resource: $(cat u2.out)"
run 0 qemu-io -f raw -c "read -P 5 0 4k" "$(uri u)"
wait "$load"

# ---- stopped for good: the requests return after the timeout, and the removal is logged

weir load -t 60s -d 8 "u=$(uri u)" >u.out 2>&1 &
load=$!
until_busy
kill -STOP "$(cat up.pid)"
sleep 0.2
run 0 weir policy apply weir.yaml
tries=0
until [ "$(grep -c "resource-removed resource=u" gate.log)" -ge 2 ]; do
	tries=$((tries + 1))
	[ "$tries" -lt 1500 ] || fail "the resource of a stopped upstream was not freed within 30 s"
	sleep 0.02
done
kill -CONT "$(cat up.pid)"
wait "$load"

# ---- while it is bypassed, and while requests are recorded

policy a=file:a.raw b=memory:16M >two.yaml
run 0 weir policy apply two.yaml
weir trace record t.weir >record.out 2>&1 &
record=$!
until_log "recording file="
for i in 1 2 3; do
	weir load -t 30s -d 8 "b=$(uri b)" >b.out 2>&1 &
	load=$!
	sleep 0.3
	run 0 weir bypass b
	sleep 0.1
	run 0 weir policy apply weir.yaml
	run 2 weir bypass b --off
	has stderr "no resource 'b'"
	wait "$load"
	run 0 weir policy apply two.yaml
	run 0 weir status
	hasnt stdout "bypass"
	run 0 qemu-io -f raw -c "write 0 4k" -c "read -P 0xcd 0 4k" "$(uri b)"
done
kill -INT "$record"
wait "$record" || fail "weir trace record: $(cat record.out)"
run 0 weir trace info recordings/t.weir
has recordings/t.weir "ta on a"
has recordings/t.weir "tb on b"

# ---- the end of the gateway while a resource leaves

kill -INT "$other"
wait "$other" || fail "the client of another resource failed: $(cat a.out)"
has a.out " 0 wrong"
kill -0 "$(cat up.pid)" 2>/dev/null || { # nbdkit may abort when a client leaves with requests inside
	rm -f up.sock
	nbdkit -U "$here/up.sock" --pidfile up.pid memory 16M
}
run 0 weir policy apply up.yaml
weir load -t 60s -d 8 "u=$(uri u)" >u.out 2>&1 &
load=$!
until_busy
removed=$(grep -c "resource-removed resource=u" gate.log)
kill -STOP "$(cat up.pid)"
run 0 weir policy apply weir.yaml
(sleep 0.5 && kill -CONT "$(cat up.pid)") &
serve_stop gate
[ "$(grep -c "resource-removed resource=u" gate.log)" -eq $((removed + 1)) ] || fail "it was not freed at the end"
wait "$load"
exit 0
