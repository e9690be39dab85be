# SPDX-License-Identifier: BSD-3-Clause
# Resources are added, replaced and removed while others are served: by `weir policy apply` and SIGHUP. A resource that cannot be
# opened is refused with its place and changes nothing; the clients of a removed one are disconnected, its data are on its
# back end, its exports and metrics are gone; no other client notices, and memory and descriptors return.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

: "${WEIR_CHANGES:=50}"
here=$PWD
export WEIR_SOCKET="$here/api.sock"

uri()
{
	echo "nbd+unix:///$1?socket=$here/s.sock"
}

# policy NAME=BACK...: a resource each, and a default tenant
policy()
{
	printf 'listen: "unix:%s/s.sock"\nresources:\n' "$here"
	for it; do
		echo "  - {name: ${it%%=*}, back: \"${it#*=}\"}"
	done
	echo 'tenants: [{name: all, match: {export: "*"}, max: 200k iops}]'
}

descriptors()
{
	ls "/proc/$(cat gate.pid)/fd" | wc -l
}

# until_closed NUMBER: until the gateway has as few descriptors
until_closed()
{
	tries=0
	until [ "$(descriptors)" -le "$1" ]; do
		tries=$((tries + 1))
		[ "$tries" -lt 1000 ] || fail "$(descriptors) descriptors, and $1 before"
		sleep 0.02
	done
}

truncate -s 16M a.raw b.raw c.raw
policy a=file:a.raw >weir.yaml
policy a=file:a.raw b=file:b.raw >two.yaml
serve gate --threads 2 --api "unix:$here/api.sock" weir.yaml
run 0 weir policy apply two.yaml
run 0 weir policy apply weir.yaml
base=$(descriptors) # with both threads, which stay

# ---- one comes and goes

run 1 qemu-io -f raw -c "read 0 4k" "$(uri b)"
run 0 weir policy apply --dry-run two.yaml
has stdout "resource b: new"
run 0 weir policy apply two.yaml
has stdout "resource b: new"
run 0 qemu-io -f raw -c "write -P 7 4k 8k" "$(uri b)"
run 0 weir status
has stdout "b "
run 0 weir policy apply weir.yaml
has stdout "resource b: removed; its clients are disconnected"
until_closed "$base"
has gate.log 'resource-removed resource=b back=file:b.raw'
run 1 qemu-io -f raw -c "read 0 4k" "$(uri b)"
run 0 qemu-io -f raw -c "read -P 7 4k 8k" b.raw
curl -s --unix-socket "$here/api.sock" http://weir/metrics >metrics
hasnt metrics 'resource="b"'

# ---- one that cannot be opened is refused, and nothing changes

policy a=file:a.raw b=file:b.raw x=file:missing.raw >bad.yaml
run 2 weir policy apply bad.yaml
has stderr "bad.yaml:5"
has stderr "resource 'x'"
run 1 qemu-io -f raw -c "read 0 4k" "$(uri b)"
echo 'tenants: [{name: all, match: {export: "*"}}]' >none.yaml
run 2 weir policy apply none.yaml
has stderr "no resources"
mkdir elsewhere
truncate -s 1M elsewhere/e.raw
policy a=file:a.raw e=file:elsewhere/e.raw >bad.yaml
run 2 weir policy apply bad.yaml
has stderr "only the gateway's own policy file may name"

# ---- clients of a removed one are disconnected; one with another back end is another one

policy a=file:a.raw b=memory:16M >memory.yaml
run 0 weir policy apply two.yaml
weir load -t 60s -d 16 "b=$(uri b)" >b.out 2>&1 &
load=$!
weir load -t 3s -d 16 --reads 50% --verify "a=$(uri a)" >a.out 2>&1 &
other=$!
sleep 0.5
run 0 weir policy apply memory.yaml
has stdout "resource b: closed and opened anew"
run 0 weir policy apply two.yaml
run 0 weir policy apply weir.yaml
kill "$load" 2>/dev/null
wait "$load"
wait "$other" || fail "the client of another resource failed: $(cat a.out)"

# ---- volumes in place of a back end, and another way to reach the same files

policy a=file:a.raw >volumes.yaml
sed -i 's|^tenants:|  - {name: v, timeout: 30s, volumes: [{name: b, back: "file:b.raw"}, {name: c, back: "file:c.raw"}]}\n&|' \
	volumes.yaml
sed 's/timeout: 30s/timeout: 20s/' volumes.yaml >later.yaml
run 0 weir policy apply two.yaml
run 0 weir policy apply volumes.yaml
run 0 qemu-io -f raw -c "write -P 3 0 4k" "$(uri b)"
for i in 1 2 3; do
	run 0 weir policy apply later.yaml
	has stdout "resource v: closed and opened anew"
	run 0 qemu-io -f raw -c "read -P 3 0 4k" -c "write -P $i 4k 4k" "$(uri b)"
	run 0 weir policy apply volumes.yaml
	run 0 qemu-io -f raw -c "read -P $i 4k 4k" "$(uri b)"
done
run 0 weir policy apply two.yaml
run 0 qemu-io -f raw -c "read -P 3 0 4k" "$(uri b)"
run 0 weir policy apply weir.yaml
until_closed "$base"

# ---- SIGHUP, with the same file and another property

policy a=file:a.raw b=file:b.raw >weir.yaml
kill -HUP "$(cat gate.pid)"
tries=0
until qemu-io -f raw -c "write -P 9 0 4k" "$(uri b)" >/dev/null 2>&1; do
	tries=$((tries + 1))
	[ "$tries" -lt 100 ] || fail "SIGHUP has not added b"
	sleep 0.05
done
sed -i 's|back: "file:b.raw"|back: "file:b.raw", read_only: true|' weir.yaml
kill -HUP "$(cat gate.pid)"
tries=0
while qemu-io -f raw -c "write -P 9 0 4k" "$(uri b)" >/dev/null 2>&1; do
	tries=$((tries + 1))
	[ "$tries" -lt 100 ] || fail "SIGHUP has not replaced b"
	sleep 0.05
done
run 0 qemu-io -r -f raw -c "read -P 9 0 4k" "$(uri b)"
policy a=file:a.raw >weir.yaml
kill -HUP "$(cat gate.pid)"

# ---- many changes under verified load of another, some without waiting for the one before

until_closed "$base"
weir load -t 600s -d 16 --reads 50% --verify "a=$(uri a)" >a.out 2>&1 &
other=$!
policy a=file:a.raw c=file:c.raw b=memory:1M >three.yaml
i=0
while [ "$i" -lt "$WEIR_CHANGES" ]; do
	run 0 weir policy apply three.yaml
	if [ $((i % 5)) -eq 0 ]; then # clients in their handshake, and clients that send
		weir load -t 10s -d 8 "c=$(uri c)" >/dev/null 2>&1 &
		qemu-io -f raw -c "read 0 4k" "$(uri b)" >/dev/null 2>&1 &
	fi
	weir status >/dev/null & # a look that may meet the removal
	curl -s --unix-socket "$here/api.sock" http://weir/metrics >/dev/null &
	run 0 weir policy apply weir.yaml
	i=$((i + 1))
done
for k in 1 2 3 4 5 6 7 8; do
	weir policy apply three.yaml >/dev/null 2>&1 &
	weir policy apply weir.yaml >/dev/null 2>&1 &
	weir policy apply two.yaml >/dev/null 2>&1 &
	changes="${changes-} $!"
done
wait $changes
run 0 weir policy apply weir.yaml
kill -INT "$other"
wait "$other" || fail "the client of another resource failed: $(cat a.out)"
has a.out " 0 wrong"
hasnt a.out "errors"
until_closed "$base"
serve_stop gate

# ---- the end at any moment of a change

policy a=file:a.raw >one.yaml
policy a=file:a.raw c=file:c.raw b=memory:1M | sed "s|^listen: .*|listen: [\"unix:$here/s.sock\", \"unix:$here/t.sock\"]|" >more.yaml
for i in 0 1 2 3 4 5 6 7 8 9; do
	cp one.yaml weir.yaml
	serve "end$i" weir.yaml
	cp more.yaml weir.yaml
	kill -HUP "$(cat "end$i.pid")"
	sleep "0.00$i"
	serve_stop "end$i"
	[ ! -e t.sock ] || fail "a socket's file was left behind"
done
