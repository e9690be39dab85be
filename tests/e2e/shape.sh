# SPDX-License-Identifier: BSD-3-Clause
# weir shape: what it refuses, that it leaves other qdiscs and programs alone, that kill -9 and a start after it lose no class,
# which packets belong to which service, and that clean leaves the machine as it was.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-net.sh"

run 2 weir shape
has stderr "needs run, check or clean"
run 2 weir shape run
has stderr "run needs one FILE"
run 2 weir shape clean x
has stderr "clean takes no operands"
run 2 weir shape check --ssh-port ssh
has stderr "--ssh-port: must be a port"
net_up ping

cat >weir.yaml <<'END'
network:
  devices: [{name: v0, rate: 40 Mbit/s}]
tenants:
  - {name: ping, net: {min: 1 Mbit/s}, match: {dscp: 10, address: 10.9.0.0/16}}
  - {name: near, net: {min: 1 Mbit/s}, match: {address: 10.9.0.0/24}}
  - {name: group, net: {min: 1 Mbit/s}, match: {cgroup: "weir-test-none/*"}}
END
shaped() # STATUS TEXT [OPTION]... FILE: a run that is refused
{
	status=$1 text=$2
	shift 2
	run "$status" in_a weir shape run --state "$PWD/state" --api "unix:$PWD/shape.sock" "$@"
	has stderr "$text"
}

# ---- refused

echo "tenants: [{name: x, match: {port: 5}}]" >none.yaml
shaped 2 "no 'network'" none.yaml
sed 's/v0/v9/' weir.yaml >device.yaml
shaped 1 "v9: there is no such device" device.yaml
sed 's/40 Mbit/40 Gbit/' weir.yaml >fast.yaml
shaped 2 "above the device's 1e+04" fast.yaml
run 2 in_a weir shape check fast.yaml
run 0 in_a weir shape check weir.yaml
has stdout "v0: 40 Mbit/s, segments of 1 packets"
has stdout "near: address 10.9.0.0/24: out: shaped; in: counted"
has stdout "group: cgroup weir-test-none/*: note: "

net_state >before
in_a tc qdisc add dev v0 root handle 7: pfifo limit 77
net_state >foreign
shaped 1 "v0: its qdisc 'pfifo' is neither the kernel's default nor the shaper's" weir.yaml
run 1 in_a weir shape check weir.yaml
has stdout "v0: missing: its qdisc 'pfifo'"
net_state >now
cmp foreign now || fail "a refused shaper changed something"
shape_up --replace weir.yaml
shape_down
shape_clean
has stdout "1 device given back"
net_state >now
cmp foreign now || fail "the replaced qdisc is not as it was: $(diff foreign now)"
in_a tc qdisc delete dev v0 root

in_a tc qdisc add dev v0 clsact
in_a tc filter add dev v0 egress protocol all prio 7 u32 match u32 0 0 2>/dev/null
net_state >foreign
shaped 1 "v0: another program is on it, 'u32'" weir.yaml
shape_up --beside weir.yaml
shape_down
shape_clean
net_state >now
cmp foreign now || fail "another's filter is not as it was: $(diff foreign now)"
in_a tc qdisc delete dev v0 clsact

# ---- packets

# bytes SERVICE: what it sent so far
bytes()
{
	weir status --socket "$PWD/shape.sock" --json | tr -d ' \n' | tr '{' '\n' | sed -n "s/.*\"service\":\"$1\",\"dir\":\"${2:-out}\".*\"bytes\":\([0-9]*\).*/\1/p"
}
later() # SERVICE BYTES: it comes to have sent so many
{
	i=0
	until [ "$(bytes "$1" "${3:-out}")" -ge "$2" ]; do
		i=$((i + 1))
		[ $i -lt 60 ] || fail "$1: $(bytes "$1" "${3:-out}") bytes, not $2"
		sleep 0.05
	done
}
shape_up weir.yaml
shaped 1 "a shaper runs in this network namespace" weir.yaml
run 1 in_a weir shape clean --state "$PWD/state"
in_a ping -q -c 3 -i 0.01 -s 958 -Q 40 10.9.0.2 >/dev/null # 3 packets of 1000 bytes, of DSCP 10
later ping 3000
later ping 3000 in # the replies have DSCP 10, too
[ "$(bytes near)" -eq 0 ] || fail "packets of the narrower match are counted for 'near'"
in_a ping -q -c 3 -i 0.01 -s 958 10.9.0.2 >/dev/null
later near 3000
group=$(sed -n 's/^[^ ]* \([^ ]*\) cgroup2 .*/\1/p' /proc/mounts | head -n 1)/weir-test-none
if mkdir -p "$group/$$" 2>/dev/null; then
	sed -i 's/near, net: {min: 1 Mbit.s}, match: {address.*/near, net: {}, match: {port: 9}}/' weir.yaml
	kill -s HUP "$shaper"
	until grep -q 'policy state="in force"' shape.log; do sleep 0.05; done
	sleep 2.2 # cgroups that are new are looked for every 2 s
	in_a sh -c "echo \$\$ >'$group/$$/cgroup.procs' && exec ping -q -c 3 -i 0.01 -s 958 10.9.0.2" >/dev/null
	later group 3000
	later group 3000 in
	rmdir "$group/$$" "$group" || fail "the cgroup stays in use"
fi

# ---- kill -9, a start after it, and clean

in_a tc class show dev v0 | sort >classes
for i in 1 2 3 4 5; do
	shape_down KILL
	shape_up weir.yaml
done
in_a tc class show dev v0 | sort >again
cmp classes again || fail "another start changed classes: $(diff classes again)"
shape_down KILL
shape_clean
net_state >now
cmp before now || fail "clean did not restore: $(diff before now)"
shape_clean
has stdout "0 devices given back"

# A lost file of state: nothing of the shaper stays.
shape_up weir.yaml
shape_down
rm -r state
shape_clean
in_a tc qdisc show dev v0 | grep -q htb && fail "its qdisc stays"
in_a tc filter show dev v0 egress | grep -q weir && fail "its program stays"
exit 0
