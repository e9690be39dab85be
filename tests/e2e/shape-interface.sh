# SPDX-License-Identifier: BSD-3-Clause
# weir shape: matches by interface. A routed namespace stands for a pod, and a program at a tap for a virtual machine: each is
# counted in both directions and limited in what it sends, also one that comes later; clean gives all of their devices back.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-net.sh"
net_up ping
pod=weir-pod-$$
namespace "$pod"
in_a sysctl -qw net.ipv4.ip_forward=1
in_b ip route add 10.10.0.0/16 via 10.9.0.1

# add_pod DEVICE NUMBER: another pod behind this end of a veth
add_pod()
{
	ip link add "$1" netns "$a" type veth peer name "e$2" netns "$pod"
	in_a ip addr add "10.10.$2.1/24" dev "$1"
	in_a ip link set "$1" up
	ip -n "$pod" addr add "10.10.$2.2/24" dev "e$2"
	ip -n "$pod" link set "e$2" up
	ip -n "$pod" route add default via "10.10.$2.1" table "$2"
	ip -n "$pod" route replace default via "10.10.$2.1"
	ip -n "$pod" rule add from "10.10.$2.2" table "$2"
}
add_pod pod1 1
in_a tc qdisc add dev pod1 clsact
cat >weir.yaml <<'END'
network:
  devices: [{name: v0, rate: 40 Mbit/s}]
tenants:
  - {name: pods, net: {max: 8 Mbit/s}, match: {interface: "pod*"}}
  - {name: vm, net: {min: 1 Mbit/s}, match: {interface: "tap*"}}
  - {name: far, net: {min: 1 Mbit/s}, match: {address: "10.9.0.0/24"}}
END
all_state()
{
	net_state
	in_a tc filter show dev pod1 ingress
	in_a tc filter show dev pod1 egress
}
bytes() # SERVICE DIR
{
	weir status --socket "$PWD/shape.sock" --json | tr -d ' \n' | tr '{' '\n' | sed -n "s/.*\"service\":\"$1\",\"dir\":\"$2\".*\"bytes\":\([0-9]*\).*/\1/p"
}
later() # SERVICE DIR BYTES
{
	i=0
	until [ "$(bytes "$1" "$2")" -ge "$3" ]; do
		i=$((i + 1))
		[ $i -lt 60 ] || fail "$1 $2: $(bytes "$1" "$2") bytes, not $3"
		sleep 0.05
	done
}
from_pod() # NUMBER COMMAND...
{
	nsenter --net="/run/netns/$pod" ping -q -I "10.10.$1.2" -c 3 -i 0.01 -s 958 10.9.0.2 >/dev/null || fail "pod $1: no packet passes"
}
all_state >before
run 0 in_a weir shape check weir.yaml
has stdout "pods: interface pod*: out: shaped, what comes from there"
has stdout "vm: interface tap*: note: there is no such interface yet"
shape_up weir.yaml
from_pod 1
later pods out 3000
later pods in 3000
[ "$(bytes far in)" -eq 0 ] || fail "what goes to a pod is counted twice: $(bytes far in)"

# One that comes later, and one that goes and comes again.
add_pod pod2 2
in_a ip link delete pod1
add_pod pod1 1
i=0
until [ "$(for p in pod1 pod2; do in_a tc filter show dev $p ingress; done | grep -c weir_out_interf)" -eq 2 ]; do
	i=$((i + 1))
	[ $i -lt 100 ] || fail "new pods are not seen"
	sleep 0.05
done
from_pod 1
from_pod 2
later pods out 9000
later pods in 9000

# The limit holds for a pod, together with another one.
nsenter --net="/run/netns/$b" python3 "$WEIR_SOURCE/tests/e2e/netload.py" receive 1 5001 5002 >rates 2>receiver &
receiver=$!
until grep -q ready receiver; do sleep 0.02; done
for port in 5001 5002; do
	nsenter --net="/run/netns/$pod" python3 "$WEIR_SOURCE/tests/e2e/netload.py" send 10.9.0.2 20 $port 2>/dev/null &
	senders="${senders-} $!"
done
wait $receiver || fail "no load: $(cat receiver)"
kill -s KILL $senders
awk '{ sum += $2 } END { exit !(sum > 7.4 && sum < 8.2) }' rates || fail "the pods' limit does not hold: $(cat rates)"

# A virtual machine: a program writes its frames into a tap.
if in_a ip tuntap add tap0 mode tap 2>/dev/null; then
	in_a ip addr add 10.11.0.1/24 dev tap0
	in_a ip link set tap0 up
	nsenter --net="/run/netns/$a" python3 - "$PWD/mac" <<'END' &
import fcntl, os, struct, sys, time
fd = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(fd, 0x400454CA, struct.pack("16sH", b"tap0", 0x1002))  # IFF_TAP | IFF_NO_PI
to = bytes.fromhex(open("/sys/class/net/tap0/address").read().strip().replace(":", "")) if os.path.exists("/sys/class/net/tap0") else None
if to is None:
    s = __import__("socket").socket()
    to = fcntl.ioctl(s, 0x8927, struct.pack("256s", b"tap0"))[18:24]
def checksum(b):
    n = sum(struct.unpack("!%dH" % (len(b) // 2), b))
    while n >> 16:
        n = (n & 0xffff) + (n >> 16)
    return n ^ 0xffff
payload = bytes(958)
ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + 8 + len(payload), 1, 0, 64, 17, 0, bytes([10, 11, 0, 2]), bytes([10, 9, 0, 2]))
ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
frame = to + b"\x02\0\0\0\0\1" + b"\x08\0" + ip + struct.pack("!HHHH", 7, 7, 8 + len(payload), 0) + payload
while True:
    os.write(fd, frame)
    time.sleep(0.02)
END
	vm=$!
	later vm out 3000
	kill -s KILL $vm
else
	echo "no tap can be made"
fi

# Another policy without interfaces: their devices are given back at once.
sed -i '/interface/d' weir.yaml
kill -s HUP "$shaper"
i=0
until [ -z "$(in_a tc filter show dev pod2 ingress)$(in_a tc filter show dev pod1 egress)" ]; do
	i=$((i + 1))
	[ $i -lt 100 ] || fail "pods that are not named any more keep programs"
	sleep 0.05
done
grep ' error ' shape.log && fail "see above"
shape_down
shape_clean
in_a tc qdisc show | grep -q clsact && fail "a clsact stays: $(in_a tc qdisc show)"
exit 0
