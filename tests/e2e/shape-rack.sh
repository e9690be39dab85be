# SPDX-License-Identifier: BSD-3-Clause
# The rack's broker of weir shape, with three machines on a bridge: the shares of services in the rack hold, as in Figure 14 of Parley, and
# do not without it; half of the messages lost; a machine killed, which is static after 5 s and counts with its mins; one with
# another key; and back.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-net.sh"
. "$WEIR_SOURCE/tests/lib-rack.sh"
rack_up 3

cat >rack.yaml <<END
network:
  devices: [{name: v0, rate: 100 Mbit/s}]
  machine: MACHINE
  rack: {name: r4, up: 24 Mbit/s, down: 100 Mbit/s, machines: [$(rack_list)], key: key}
tenants:
  - {name: a, net: {rack: {max: 12 Mbit/s, weight: 1000}}, match: {port: 5001}}
  - {name: b, net: {rack: {min: 12 Mbit/s}}, match: {port: 5002}}
END
load() # PORT...: from each machine
{
	for i in 1 2 3; do
		send_from $i 10 "$@"
	done
}
value() # I NAME: a number of machine I's status
{
	rack_status "$1" | sed -n "s/^ *\"$2\": \([0-9]*\),*$/\1/p" | tail -n 1
}

load 5001
received 0.5 5001
shares 5001=12 && fail "the shares hold without a shaper"
for i in 1 2 3; do
	machine_up $i rack.yaml
done
for i in 1 2 3; do
	until_log $i "rack-machine.*why=heard"
done

# ---- Figure 14: a alone, both, b alone

settle 5001=12 || fail "the max of a does not hold: $(cat rates)"
rack_status 1 >status
has status '"bound": "its max in rack r4 up (here 4.0 of 12 Mbit/s, 3 machines)"'
load 5002
settle 5001=12 5002=12 || fail "the shares do not hold: $(cat rates)"
rack_status 2 >status
has status '"bound": "rack r4 up (its share 12.0 of 24 Mbit/s, 3 machines)"'
send_end
load 5002
settle 5002=24 || fail "b does not get what a leaves: $(cat rates)"
send_end

# ---- messages lost

if command -v clang >/dev/null && clang -O2 -target bpf -I"/usr/include/$(cc -print-multiarch)" -c "$WEIR_SOURCE/tests/e2e/drop.bpf.c" -o drop.o &&
	ip netns exec "$rack" tc qdisc add dev p1 clsact; then
	for i in 1 2 3; do
		[ $i = 1 ] || ip netns exec "$rack" tc qdisc add dev p$i clsact
		ip netns exec "$rack" tc filter add dev p$i egress bpf direct-action object-file drop.o section classifier ||
			fail "no program drops messages"
	done
	load 5001 5002
	sleep 4
	received 2 5001 5002
	awk '{ sum += $2 } $1 == 5001 && $2 > 13.2 { bad = 1 } END { exit bad || sum > 26.4 || sum < 21.6 }' rates ||
		fail "the shares do not hold while half of the messages are lost: $(cat rates)"
	for i in 1 2 3; do
		ip netns exec "$rack" tc qdisc delete dev p$i clsact
	done
else
	load 5001 5002
	echo "messages are not lost here: no clang"
fi

# ---- a machine killed: static after 5 s, and the others count it with its mins, which are 0

machine_down 3 KILL
until_log 1 "rack-silent rack=r4 machine=m3"
sleep 1
in_m 3 tc -s class show dev v0 | awk '/^class htb 5ee0:3001/ {at = 1} at && /Sent/ {exit !($2 > 1e5)}' ||
	fail "machine 3 is not static: $(in_m 3 tc -s class show dev v0)"
rack_status 1 >status
has status "2 machines)"

# ---- another key: counted, and not used

head -c 32 /dev/urandom >other
chmod 600 other
sed 's/key: key/key: other/' rack.yaml >forged.yaml
machine_up 3 forged.yaml
until_log 1 "peer-refused why=forged"
until_log 3 "rack-stale"
i=0
while rack_status 3 | grep -q '"bound": "\(rack\|its max in rack\)'; do # alone: it divides nothing
	i=$((i + 1))
	[ $i -lt 40 ] || fail "a machine alone is not static: $(rack_status 3)"
	sleep 0.05
done
[ "$(value 1 forged)" -gt 0 ] || fail "no forged message is counted: $(rack_status 1)"
grep -c "machine=m3 why=heard" shape-1.log >heard
[ "$(cat heard)" -eq 1 ] || fail "a machine with another key was heard"
machine_down 3
machine_up 3 rack.yaml
until_log 3 "rack-fresh\|rack-machine.*machine=m1"
settle 5001=12 5002=12 || fail "the shares do not return: $(cat rates)"
send_end
for i in 1 2 3; do
	machine_down $i
	run 0 in_m $i weir shape clean --state "$PWD/state-$i"
	in_m $i tc qdisc show dev v0 | grep -q htb && fail "the qdisc of machine $i stays"
done
exit 0
