# SPDX-License-Identifier: BSD-3-Clause
# weir shape: a receiver's max holds by its feedback, its senders share it, by their weights if they state some; leaves die with
# the feedback; and feedback that is forged, old or nonsense is counted and not used.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-net.sh"
rack_up 3 40

printf 'the key of the rack of this test, %s' "$$$$$$$$" >key
chmod 600 key
policy() # WEIGHT: of what a machine sends
{
	cat <<END
network:
  devices: [{name: v0, rate: 40 Mbit/s}]
  rack: {name: r, up: 1 Gbit/s, down: 1 Gbit/s, key: $PWD/key, machines: ["udp:10.9.0.1:7100", "udp:10.9.0.2:7100", "udp:10.9.0.3:7100"]}
tenants:
  - {name: t, net: {in: {max: 20 Mbit/s}, out: {weight: $1}}, match: {port: "5001-5002"}}
END
}
policy 1 >one.yaml
policy 3 >three.yaml
sed '/rack/d' one.yaml >alone.yaml # no key: no feedback

# both SECONDS: m1 sends to port 5001 of m3, m2 to 5002, each up to 40 Mbit/s; rates is as of `load`
both()
{
	load_to "weir-m3-$$" "$1" 5001 5002
	senders=
	for m in 1 2; do
		nsenter --net="/run/netns/weir-m$m-$$" python3 "$WEIR_SOURCE/tests/e2e/netload.py" send 10.9.0.3 40 500$m 2>sender$m &
		senders="$senders $!"
	done
	during
	wait $receiver || fail "no load: $(cat receiver sender1 sender2)"
	kill -s KILL $senders
	wait $senders 2>/dev/null || :
}
during() { :; }
ask() # I: the status of mI, in one line
{
	weir status --socket "$PWD/shape$1.sock" --json | tr -d ' \n'
}
stop() # I [SIGNAL]
{
	process=$(cat "pid$1")
	kill -s "${2:-TERM}" "$process"
	wait "$process" 2>/dev/null || :
	rm -f "pid$1"
}
started() # ALL FILE: shapers on m1 … m3
{
	for m in 1 2 3; do
		shape_on $m "$1"
	done
}

# Without feedback a receiver's max is not kept.
started alone.yaml
both 0.5
shares 5001=10 5002=10 && fail "the receiver's max holds without feedback"
for m in 1 2 3; do
	stop $m
done

started one.yaml
during()
{
	i=0
	until [ $i -gt 100 ] || grep -q "^t  *out .* more  *receiver's feedback" sender.status 2>/dev/null; do
		i=$((i + 1))
		sleep 0.05
		weir status --socket "$PWD/shape1.sock" >sender.status
	done
	sleep 0.4 # two looks at the counters
	run 0 weir status --socket "$PWD/shape3.sock"
	cp stdout receiver.status
	on 1 tc class show dev v0 >classes
}
both 2
during() { :; }
shares 5001=10 5002=10 || fail "two senders do not share the max of their receiver: $(cat rates)"
grep -q "^t  *out .* more  *receiver's feedback" sender.status || fail "no bound of the sender: $(cat sender.status)"
grep -q "^t  *in .*20.0 .* more  *its max" receiver.status || fail "no bound of the receiver: $(cat receiver.status)"
grep -q 'class htb 5ee0:4000 parent 5ee0:1001 .* ceil \(9[0-9]\{3\}K\|10\(\|[0-9]\{3\}K\|Mb\)\)' classes || fail "no leaf: $(cat classes)"

# The leaf dies with the feedback, and leaves nothing behind.
i=0
until on 1 tc class show dev v0 | awk '/5ee0:4000/ {found = 1} END {exit found}'; do
	i=$((i + 1))
	[ $i -lt 60 ] || fail "the leaf of a silent receiver stays"
	sleep 0.05
done
ask 1 | grep -q '"leaves":0' || fail "a dead leaf counts as live: $(ask 1)"

# Weights of the senders: 3 to 1. Applied to a shaper that runs, without losing its place.
cp one.yaml live.yaml
stop 1
shape_on 1 live.yaml
policy 3 >live.yaml
kill -s HUP "$(cat pid1)"
until grep -q 'policy state="in force"' shape1.log; do sleep 0.05; done
both 1
shares 5001=15 5002=5 || fail "senders of weights 3 and 1: $(cat rates)"

# Forged, and of another protocol: counted by reason, and not used.
on 2 python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(5): s.sendto(b"noise" * 40, ("10.9.0.1", 7100))
'
sleep 0.1
ask 1 | grep -q '"noise":5' || fail "noise is not counted: $(ask 1)"

# A killed receiver: its senders are free again within 2 s; its own packets get the static classes after 5 (shape-shares.sh).
stop 3 KILL
sleep 1.2
both 0.5
shares 5001=15 5002=5 && fail "feedback of a dead shaper holds"
ask 1 | grep -q '"leaves":0' || fail "leaves of a dead shaper live: $(ask 1)"
for m in 1 2; do
	stop $m
	run 0 on $m weir shape clean --state "$PWD/state$m"
	on $m tc qdisc show dev v0 | grep -q htb && fail "the qdisc of m$m stays"
done
exit 0
