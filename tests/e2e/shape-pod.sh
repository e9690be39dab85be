# SPDX-License-Identifier: BSD-3-Clause
# weir shape: interfaces in both directions. On one machine a routed namespace stands for a pod and a program at a tap for a virtual
# machine; another machine sends to each of them, and they send. What they receive keeps to their max by feedback to the other machine's
# shaper, and does not without it; so does what they send.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-net.sh"
rack_up 2 60
pod=weir-pod-$$
namespace "$pod"
on 2 sysctl -qw net.ipv4.ip_forward=1
on 1 ip route add 10.10.0.0/16 via 10.9.0.2
ip link add pod1 netns "weir-m2-$$" type veth peer name eth0 netns "$pod"
on 2 ip addr add 10.10.1.1/24 dev pod1
on 2 ip link set pod1 up
ip -n "$pod" addr add 10.10.1.2/24 dev eth0
ip -n "$pod" link set eth0 up
ip -n "$pod" route add default via 10.10.1.1
on 2 ip tuntap add tap1 mode tap || skip "no tap can be made"
on 2 ip addr add 10.10.2.1/24 dev tap1
on 2 ip link set tap1 up
on 2 ip neigh add 10.10.2.2 lladdr 02:00:00:00:00:01 dev tap1 nud permanent

printf 'the key of the rack of this test, %s' "$$$$$$$$" >key
chmod 600 key
cat >weir.yaml <<END
network:
  devices: [{name: v0, rate: 60 Mbit/s}]
  rack: {name: r, up: 1 Gbit/s, down: 1 Gbit/s, key: $PWD/key, machines: ["udp:10.9.0.1:7100", "udp:10.9.0.2:7100"]}
tenants:
  - {name: pods, net: {in: {max: 10 Mbit/s}, out: {max: 5 Mbit/s}}, match: {interface: "pod*"}}
  - {name: vms, net: {in: {max: 20 Mbit/s}, out: {max: 8 Mbit/s}}, match: {interface: "tap*"}}
END
sed '/rack/d' weir.yaml >alone.yaml # no key: no feedback

# to_both: both receive from m1; their rates are in ./rates as those of ports 5001 and 5002
to_both()
{
	nsenter --net="/run/netns/weir-m1-$$" python3 "$WEIR_SOURCE/tests/e2e/netload.py" send 10.10.1.2 25 5001 2>sender1 &
	one=$!
	nsenter --net="/run/netns/weir-m1-$$" python3 "$WEIR_SOURCE/tests/e2e/netload.py" send 10.10.2.2 25 5002 2>sender2 &
	two=$!
	nsenter --net="/run/netns/weir-m2-$$" python3 "$WEIR_SOURCE/tests/e2e/netvm.py" tap1 receive "$1" 5002 >vm.rates 2>vm.log &
	vm=$!
	nsenter --net="/run/netns/$pod" python3 "$WEIR_SOURCE/tests/e2e/netload.py" receive "$1" 5001 >rates 2>receiver || fail "no load: $(cat receiver)"
	wait $vm || fail "the virtual machine receives nothing: $(cat vm.log)"
	cat vm.rates >>rates
	kill -s KILL $one $two
}
# from_both: both send to m1
from_both()
{
	nsenter --net="/run/netns/$pod" python3 "$WEIR_SOURCE/tests/e2e/netload.py" send 10.9.0.1 25 5001 2>sender1 &
	one=$!
	nsenter --net="/run/netns/weir-m2-$$" python3 "$WEIR_SOURCE/tests/e2e/netvm.py" tap1 send 10.9.0.1 25 5002 2>vm.log &
	two=$!
	nsenter --net="/run/netns/weir-m1-$$" python3 "$WEIR_SOURCE/tests/e2e/netload.py" receive "$1" 5001 5002 >rates 2>receiver ||
		fail "no load: $(cat receiver vm.log)"
	kill -s KILL $one $two
}

for m in 1 2; do
	shape_on $m alone.yaml
done
to_both 0.5
shares 5001=10 5002=20 && fail "the receivers' max holds without feedback"
for m in 1 2; do
	kill "$(cat pid$m)"
done
wait
for m in 1 2; do
	shape_on $m weir.yaml
done
i=0
until to_both 1 && shares 5001=10 5002=20; do
	i=$((i + 1))
	[ $i -lt 4 ] || fail "what a pod and a virtual machine receive is not limited: $(cat rates; weir status --socket "$PWD/shape2.sock"; weir status --socket "$PWD/shape1.sock"; cat shape*.log)"
done
from_both 1
shares 5001=5 5002=8 || fail "what a pod and a virtual machine send is not limited: $(cat rates)"
run 0 on 2 weir shape check weir.yaml
has stdout "pods: interface pod*: out: shaped, what comes from there and leaves by a device; in: limited by feedback"
grep ' error ' shape1.log shape2.log && fail "see above"
exit 0
