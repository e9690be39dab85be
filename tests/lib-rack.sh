# SPDX-License-Identifier: BSD-3-Clause
# lib-rack.sh: a rack for tests: machines 1 … N in network namespaces, 10.9.0.1 …, on one bridge, and one beyond it, 10.9.0.100,
# to which they send. Each has one device, v0. rack_up makes them, and they are gone when the test ends. Needs lib-net.sh.

rack_up() # N [COMMAND]...: skip if one of these, or a namespace, cannot be had
{
	machines=$1
	shift
	for tool in ip tc nsenter "$@"; do
		command -v "$tool" >/dev/null || skip "no $tool"
	done
	case $(weir shape 2>&1) in
	*"built without"*) skip "weir was built without shape" ;;
	esac
	rack=weir-rack-$$
	trap rack_down EXIT
	trap 'exit 1' HUP INT TERM
	ip netns add "$rack" 2>/dev/null || skip "no network namespace may be made"
	ip -n "$rack" link add br0 type bridge 2>/dev/null || skip "the kernel has no bridge"
	ip -n "$rack" link set br0 up
	for i in $(seq "$machines") 100; do
		ip netns add "$rack-$i"
		ip link add v0 netns "$rack-$i" type veth peer name "p$i" netns "$rack" 2>/dev/null || skip "the kernel has no veth"
		ip -n "$rack" link set "p$i" master br0 up
		ip -n "$rack-$i" addr add "10.9.0.$i/24" dev v0
		ip -n "$rack-$i" link set v0 up
		ip -n "$rack-$i" link set lo up
	done
	in_m 1 weir shape check >mechanisms 2>&1 || skip "weir shape cannot run here: $(grep missing mechanisms | head -n 1)"
	head -c 32 /dev/urandom >key
	chmod 600 key
}

rack_down()
{
	for i in $(seq "$machines") 100; do
		pids=$(ip netns pids "$rack-$i" 2>/dev/null)
		[ -z "$pids" ] || kill -s KILL $pids 2>/dev/null
		ip netns delete "$rack-$i" 2>/dev/null
	done
	ip netns delete "$rack" 2>/dev/null
	rm -rf state-*
}

in_m() # I COMMAND...: run it at machine I
{
	at=$1
	shift
	nsenter --net="/run/netns/$rack-$at" "$@"
}

# rack_list: print the addresses of the machines, for `machines`
rack_list()
{
	for i in $(seq "$machines"); do
		printf '%s"udp:10.9.0.%s:7100"' "$([ "$i" = 1 ] || echo ', ')" "$i"
	done
}

# machine_up I FILE: start a shaper at machine I by the policy FILE, in which MACHINE is its name
machine_up()
{
	rm -f "pid-$1"
	sed "s/MACHINE/m$1/" "$2" >"policy-$1.yaml"
	nsenter --net="/run/netns/$rack-$1" weir shape run --state "$PWD/state-$1" --api "unix:$PWD/shape-$1.sock" --pidfile "pid-$1" \
		"policy-$1.yaml" >>"shape-$1.log" 2>&1 &
	eval "shaper_$1=$!"
	i=0
	until [ -s "pid-$1" ]; do
		i=$((i + 1))
		if [ $i -gt 200 ] || ! kill -0 $! 2>/dev/null; then
			cat "shape-$1.log" >&2
			fail "the shaper of machine $1 does not start"
		fi
		sleep 0.05
	done
}

machine_down() # I [SIGNAL]
{
	eval "shaper=\$shaper_$1"
	kill -s "${2:-TERM}" "$shaper"
	wait "$shaper" 2>/dev/null || :
}

rack_status() # I: print the status of machine I's shaper, one word a line
{
	weir status --socket "$PWD/shape-$1.sock" --json
}

# until_log I TEXT: wait until the log of machine I has it, 10 s at most
until_log()
{
	tries=0
	until grep -q "$2" "shape-$1.log"; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] || fail "machine $1 does not log '$2': $(cat "shape-$1.log")"
		sleep 0.05
	done
}

# send_from I RATE PORT...: send up to RATE Mbit/s from each port of machine I to the one beyond the rack, until send_end
send_from()
{
	from=$1 rate=$2
	shift 2
	nsenter --net="/run/netns/$rack-$from" python3 "$WEIR_SOURCE/tests/e2e/netload.py" send 10.9.0.100 "$rate" "$@" 2>>senders &
	senders="$senders $!"
}

send_end()
{
	for one in $senders; do
		kill -s KILL "$one" 2>/dev/null
		wait "$one" 2>/dev/null || :
	done
	senders=
}
senders=

# received SECONDS PORT...: the rates that arrive beyond the rack, in Mbit/s, are in ./rates
received()
{
	nsenter --net="/run/netns/$rack-100" python3 "$WEIR_SOURCE/tests/e2e/netload.py" receive "$@" >rates 2>receiver ||
		fail "no load: $(cat receiver senders)"
}

# settle PORT=RATE...: true once each has its rate over a second, within 5 %, after at most 6 s
settle()
{
	ports=
	for share in "$@"; do
		ports="$ports ${share%=*}"
	done
	for try in 1 2 3 4 5; do
		received 1 $ports
		shares "$@" && return
	done
	return 1
}
