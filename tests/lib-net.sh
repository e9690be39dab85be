# SPDX-License-Identifier: BSD-3-Clause
# lib-net.sh: machines for tests of links, in network namespaces, that are gone when the test ends: two, a and b, with one link
# between their devices v0: 10.9.0.1 and 10.9.0.2 (net_up); or a rack of m1, m2, … with a switch between them (rack_up).

net_needs() # COMMAND...: skip if one of them, or a namespace, cannot be had
{
	for tool in ip tc nsenter "$@"; do
		command -v "$tool" >/dev/null || skip "no $tool"
	done
	case $(weir shape 2>&1) in
	*"built without"*) skip "weir was built without shape" ;;
	esac
	namespaces=
	trap net_down EXIT
	trap 'exit 1' HUP INT TERM
}

namespace() # NAME: make one
{
	ip netns add "$1" 2>/dev/null || skip "no network namespace may be made"
	namespaces="$namespaces $1"
	ip -n "$1" link set lo up
}

# Skip if the shaper cannot run in a namespace.
net_mechanisms() # NAMESPACE
{
	nsenter --net="/run/netns/$1" weir shape check >mechanisms 2>&1 ||
		skip "weir shape cannot run here: $(grep missing mechanisms | head -n 1)"
}

net_up() # COMMAND...
{
	net_needs "$@"
	a=weir-a-$$ b=weir-b-$$
	namespace "$a"
	namespace "$b"
	ip link add v0 netns "$a" type veth peer name v0 netns "$b" 2>/dev/null || skip "the kernel has no veth"
	net_link
	net_mechanisms "$a"
}

net_link() # give the devices their addresses
{
	in_a ip addr add 10.9.0.1/24 dev v0
	in_b ip addr add 10.9.0.2/24 dev v0
	for ns in "$a" "$b"; do
		ip -n "$ns" link set v0 up
	done
}

rack_up() # N MBIT: machines with a link of so many Mbit/s each
{
	net_needs
	namespace "weir-switch-$$"
	ip -n "weir-switch-$$" link add br0 up type bridge 2>/dev/null || skip "the kernel has no bridge"
	for i in $(seq "$1"); do
		ns=weir-m$i-$$
		namespace "$ns"
		ip link add v0 netns "$ns" type veth peer name "p$i" netns "weir-switch-$$" 2>/dev/null || skip "the kernel has no veth"
		ip -n "weir-switch-$$" link set "p$i" master br0 up
		ip -n "$ns" addr add "10.9.0.$i/24" dev v0
		ip -n "$ns" link set v0 up
		# The port's own rate, and 10 ms of it as its queue.
		tc -n "weir-switch-$$" qdisc add dev "p$i" root tbf rate "$2mbit" burst 4kb limit $(($2 * 1250 + 4096))
	done
	net_mechanisms "$ns"
}

net_down()
{
	for ns in $namespaces; do
		pids=$(ip netns pids "$ns" 2>/dev/null)
		[ -z "$pids" ] || kill -s KILL $pids 2>/dev/null
		ip netns delete "$ns" 2>/dev/null
	done
	rm -rf state state[1-9]*
}

# on I COMMAND...: run it on machine mI
on()
{
	where=weir-m$1-$$
	shift
	nsenter --net="/run/netns/$where" "$@"
}

# shape_on I [OPTION]... FILE: start a shaper on mI; its process is in pidI, its API at shapeI.sock
shape_on()
{
	m=$1
	shift
	rm -f "pid$m"
	nsenter --net="/run/netns/weir-m$m-$$" weir shape run --state "$PWD/state$m" --api "unix:$PWD/shape$m.sock" --pidfile "pid$m" \
		"$@" >"shape$m.log" 2>&1 &
	i=0
	until [ -s "pid$m" ]; do
		i=$((i + 1))
		[ $i -lt 200 ] || fail "the shaper on m$m does not start: $(cat "shape$m.log")"
		sleep 0.05
	done
}

# in_a COMMAND..., in_b COMMAND...: run it there. Not by `ip netns exec`, which hides the cgroups of the machine.
in_a()
{
	nsenter --net="/run/netns/$a" "$@"
}
in_b()
{
	nsenter --net="/run/netns/$b" "$@"
}

# shape_up [OPTION]... FILE: start a shaper in a; its process is $shaper
shape_up()
{
	rm -f pid
	nsenter --net="/run/netns/$a" weir shape run --state "$PWD/state" --api "unix:$PWD/shape.sock" --pidfile pid "$@" >shape.log 2>&1 &
	shaper=$!
	i=0
	until [ -s pid ]; do
		i=$((i + 1))
		if [ $i -gt 200 ] || ! kill -0 $shaper 2>/dev/null; then
			cat shape.log >&2
			fail "the shaper does not start"
		fi
		sleep 0.05
	done
}

# shape_down [SIGNAL]: end it
shape_down()
{
	kill -s "${1:-TERM}" "$shaper"
	wait "$shaper" 2>/dev/null || :
}

shape_clean()
{
	run 0 in_a weir shape clean --state "$PWD/state"
}

# net_state: print all that a shaper might change in a
net_state()
{
	in_a tc qdisc show
	for dir in ingress egress; do
		in_a tc filter show dev v0 $dir
	done
	in_a ip -d link show v0 | tr ' ' '\n' | grep -A1 gso_max
}

# load_to NAMESPACE SECONDS PORT...: receive there; the process is $receiver
load_to()
{
	: >receiver
	# Not by in_a and in_b, whose shells would be what `kill` ends.
	ns=$1
	shift
	nsenter --net="/run/netns/$ns" python3 "$WEIR_SOURCE/tests/e2e/netload.py" receive "$@" >rates 2>>receiver &
	receiver=$!
	until grep -q ready receiver; do
		kill -0 $receiver 2>/dev/null || fail "no receiver: $(cat receiver)"
		sleep 0.02
	done
}

# load SECONDS PORT...: send up to 60 Mbit/s from each port of a to b; the rates received, in Mbit/s, are in ./rates
load()
{
	seconds=$1
	shift
	load_to "$b" "$seconds" "$@"
	nsenter --net="/run/netns/$a" python3 "$WEIR_SOURCE/tests/e2e/netload.py" send 10.9.0.2 60 "$@" 2>sender &
	sender=$!
	wait $receiver || fail "no load: $(cat receiver sender)"
	kill -s KILL $sender
	wait $sender 2>/dev/null || :
}

# shares PORT=RATE...: true if each has its rate in ./rates, in Mbit/s, within 5 %
shares()
{
	for share in "$@"; do
		awk -v port="${share%=*}" -v want="${share#*=}" '$1 == port && $2 > want * 0.95 && $2 < want * 1.05 { found = 1 }
			END { exit !found }' rates || return 1
	done
}
