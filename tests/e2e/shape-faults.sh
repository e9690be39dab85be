# SPDX-License-Identifier: BSD-3-Clause
# weir shape: a shaper that is killed at any message to the kernel, or whose message the kernel refuses, while it takes a device over or
# gives it back, cuts nothing off, and leaves a device that `clean` gives back as it was, and that another shaper can take over.
# WEIR_STEPS: one of so many messages is tried; 3, or 1 for all.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-net.sh"
net_up ping cc
every=${WEIR_STEPS:-3}
cc -O2 -shared -fPIC -o shim.so "$WEIR_SOURCE/tests/e2e/netlink-shim.c" || skip "no library can be made to preload"
case $(nm "$WEIR") in
*__asan_init*) skip "a sanitizer comes before any library" ;;
esac

cat >weir.yaml <<'END'
network:
  devices: [{name: v0, rate: 40 Mbit/s}]
tenants:
  - {name: a, net: {min: 1 Mbit/s}, match: {port: 9}}
END
# Something that must come back: a root with options, and a clsact that was there before.
in_a tc qdisc add dev v0 root handle 7: pfifo limit 77
in_a tc qdisc add dev v0 clsact
in_a ip link set v0 gso_max_segs 40
net_state >before

# shim WHAT COMMAND...: run it with the fault
shim()
{
	what=$1
	shift
	NETLINK_SHIM=$what NETLINK_SHIM_COUNT=$PWD/steps LD_PRELOAD=$PWD/shim.so in_a weir shape "$@" --state "$PWD/state" >out 2>&1
}
restored() # WHAT
{
	net_state >now
	cmp -s before now || fail "$1: not as before: $(diff before now)"
}
passes()
{
	in_a ping -q -c 1 -W 2 10.9.0.2 >/dev/null || fail "$1: no packet passes"
}

# start WHAT: a start with a fault; true if the shaper runs
start()
{
	rm -f pid
	shim "$1" run --replace --api "unix:$PWD/shape.sock" --pidfile pid weir.yaml &
	running=$!
	until [ -s pid ]; do
		kill -0 $running 2>/dev/null || return 1
		sleep 0.01
	done
}
stop()
{
	kill "$(cat pid)"
	wait $running || fail "no orderly end: $(cat out)"
}

# How many steps a start and a clean have.
start "" || fail "no start: $(cat out)"
starts=$(cat steps)
stop
shim "" clean || fail "no clean: $(cat out)"
cleans=$(cat steps)
restored "clean"
[ "$starts" -gt 20 ] || fail "a start has only $starts steps"

n=1 refused=0
while [ $n -le "$starts" ]; do
	if start "fail $n"; then # a step that may fail
		stop
		shape_clean
	else
		wait $running && fail "step $n: a start that failed ends with 0"
		refused=$((refused + 1))
		for file in state/*/*.json; do
			[ ! -e "$file" ] || fail "a refusal at step $n leaves $file"
		done
	fi
	restored "a refusal at step $n ($(tail -n 1 out))"
	n=$((n + every))
done
[ $refused -gt $((15 / every)) ] || fail "of $starts steps only $refused matter"

n=$((every > 1 ? 2 : 1))
while [ $n -le "$starts" ]; do
	shim "kill $n" run --replace --api "unix:$PWD/shape.sock" weir.yaml && fail "step $n: not killed"
	passes "a kill at step $n"
	if [ $((n % 2)) = 0 ]; then # another one takes over what is there
		shape_up --replace weir.yaml
		shape_down
	fi
	shape_clean
	restored "a kill at step $n"
	n=$((n + every))
done

for fault in kill fail; do
	n=$((cleans % every + 1)) # the last ones change something
	while [ $n -le "$cleans" ]; do
		shape_up --replace weir.yaml
		shape_down KILL
		shim "$fault $n" clean
		passes "$fault at step $n of clean"
		shape_clean
		restored "$fault at step $n of clean"
		n=$((n + every))
	done
done
echo "$starts steps of a start, $cleans of clean"

# A folder of state that is full: nothing is begun.
mkdir full
if mount -t tmpfs -o size=16k,nr_inodes=16 tmpfs full 2>/dev/null; then
	trap 'umount -l full; net_down' EXIT
	dd if=/dev/zero of=full/filler bs=4k 2>/dev/null || :
	run 1 in_a weir shape run --replace --api "unix:$PWD/shape.sock" --state "$PWD/full" weir.yaml
	has stderr "v0.json: cannot be written"
	restored "a full folder"
fi
exit 0
