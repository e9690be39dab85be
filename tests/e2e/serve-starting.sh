# SPDX-License-Identifier: BSD-3-Clause
# A gateway starts without its upstreams: other exports are served at once; clients of the missing
# ones wait in the handshake, and are served when the upstream appears. The status is "starting",
# and later, after a loss, "lost".
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

for tool in nbdkit qemu-io qemu-nbd nbdinfo; do
	command -v "$tool" >/dev/null || skip "no $tool"
done
here=$PWD
cat >policy.yaml <<END
listen: unix:$here/s.sock
api: unix:$here/api.sock
resources:
  - {name: here, back: "memory:16M"}
  - {name: late, back: "nbd+unix:///?socket=$here/late.sock"}
  - {name: slow, back: "model:server,latency=100us,servers=4+nbd+unix:///?socket=$here/late.sock"}
  - {name: short, back: "nbd+unix:///?socket=$here/late.sock", timeout: 1s}
  - {name: never, back: "nbd+unix:///?socket=$here/never.sock", timeout: 1s}
exports:
  - {name: here, resource: here}
  - {name: late, resource: late}
  - {name: slow, resource: slow}
  - {name: beyond, resource: short, size: 1 GiB}
  - {name: never, resource: never}
tenants:
  - {name: all, match: {export: "*"}}
END
serve gateway --api unix:$here/api.sock policy.yaml
serve_cleanup()
{
	[ ! -s nbdkit.pid ] || kill "$(cat nbdkit.pid)" 2>/dev/null || :
}

of() # EXPORT: its URI
{
	echo "nbd+unix:///$1?socket=$here/s.sock"
}
state() # RESOURCE TEXT: wait until its state begins with it
{
	tries=0
	until curl -s --unix-socket api.sock http://x/v1/status |
		python3 -c "import json,sys
for r in json.load(sys.stdin)['resources']:
    if r['name'] == '$1': print(r['state'], r['up'], r['size'])" >state && grep -q "^$2" state; do
		tries=$((tries + 1))
		[ "$tries" -lt 200 ] || {
			cat state gateway.log >&2
			fail "$1 is not $2"
		}
		sleep 0.05
	done
}

# The other resources do not wait.
run 0 qemu-io -f raw "$(of here)" -c "write -P 1 0 64k" -c flush -c "read -P 1 0 64k"
state late starting
has state "False 0"
state never starting
# A list has the exports that are ready.
run 0 timeout 20 qemu-nbd --list --socket "$here/s.sock"
has stdout "'here'"
hasnt stdout "'late'"
has gateway.log "upstream-not-reached"

# Clients wait, also at the model before the upstream.
qemu-io -f raw "$(of late)" -c "write -P 2 0 64k" -c flush -c "read -P 2 0 64k" >late.out 2>&1 &
late=$!
nbdinfo --size "$(of slow)" >slow.out 2>&1 &
slow=$!
# A client whose upstream never appears gets an error after the resource's time-out.
run 1 qemu-io -r -f raw "$(of never)" -c "read 0 1"
has stderr "not reachable"
kill -0 $late 2>/dev/null || fail "the client did not wait"
kill -0 $slow 2>/dev/null || fail "the client of the model did not wait"

nbdkit -P nbdkit.pid -U late.sock memory 32M
wait $late || fail "the waiting client: $(cat late.out)"
wait $slow || fail "the waiting client of the model: $(cat slow.out)"
has slow.out 33554432
state late up
has state "True 33554432"
state slow up
has gateway.log "upstream-reached"
# The policy is checked against the size once it is known, by the main thread.
for i in $(seq 50); do
	grep -q export-beyond gateway.log && break
	sleep 0.1
done
has gateway.log "export-beyond"
run 1 nbdinfo --size "$(of beyond)"
# A reload is accepted, and is now checked against the size.
sed -i 's/size: 1 GiB/size: 1 MiB/' policy.yaml
kill -HUP "$(cat gateway.pid)"
tries=0
until grep -q "^.* policy how=apply" gateway.log; do
	tries=$((tries + 1))
	[ "$tries" -lt 200 ] || fail "no reload"
	sleep 0.05
done
run 0 nbdinfo --size "$(of beyond)"
has stdout 1048576

# The upstream was reached before: it is now lost, not starting.
kill -KILL "$(cat nbdkit.pid)"
state late lost
# An upstream that failed and returns with another size: log and state explain it.
state short failed
rm -f late.sock nbdkit.pid
nbdkit -P nbdkit.pid -U late.sock memory 16M
state short "failed; .*the upstream came back smaller"
has gateway.log 'error upstream-failed back="nbd+unix:///?socket='"$here"'/late.sock" why="the upstream was away for longer than the time-out"'
grep -q 'upstream-failed .*why="the upstream came back smaller"' gateway.log || fail "not in the log: $(cat gateway.log)"
serve_stop gateway
