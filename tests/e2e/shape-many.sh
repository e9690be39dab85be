# SPDX-License-Identifier: BSD-3-Clause
# weir shape with 1,000 services: a start, another policy and a clean take at most a second of a processor's time each, in the kernel,
# too, and the shaper 64 MB.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-net.sh"
case $(nm "$WEIR") in
*__asan_init*) skip "a sanitizer takes time and memory of its own" ;;
esac
net_up python3

# policy FIRST: 1,000 services, with weights that begin with this one
policy()
{
	python3 - "$1" >weir.yaml <<'END'
import sys
print("network: {devices: [{name: v0, rate: 10 Gbit/s}]}\ntenants:")
for i in range(1000):
    print("  - {name: s%d, net: {min: 1 Mbit/s, weight: %d}, match: [{port: %d}, {address: 10.%d.%d.0/24}]}"
          % (i, 1 + (i + int(sys.argv[1])) % 9, 1000 + i, 20 + i // 256, i % 256))
END
}
used() # the processor's time of the shaper, in 10 ms
{
	awk '{ print $14 + $15 }' "/proc/$(cat pid)/stat"
}
within() # WHAT TIME
{
	[ "$2" -le 100 ] || fail "$1 took ${2}0 ms of a processor's time"
	echo "$1: ${2}0 ms"
}

policy 0
shape_up weir.yaml
within "a start" "$(used)"
before=$(used)
policy 5
kill -s HUP "$shaper"
i=0
until grep -q 'policy state="in force"' shape.log; do
	i=$((i + 1))
	[ $i -lt 500 ] || fail "no reload: $(cat shape.log)"
	sleep 0.02
done
within "another policy" $(($(used) - before))
memory=$(awk '/^VmHWM/ { print $2 }' "/proc/$(cat pid)/status")
maps=$(cat /proc/"$(cat pid)"/fdinfo/* 2>/dev/null | awk '/^memlock/ { sum += $2 } END { print int(sum / 1024) }')
[ $((memory + maps)) -le 65536 ] || fail "the shaper has $memory kB, and its maps $maps kB"
echo "memory: $memory kB, maps $maps kB"
[ "$(in_a tc class show dev v0 | grep -c 'class htb 5ee0:')" -eq 3003 ] || fail "classes: $(in_a tc class show dev v0 | wc -l)"
shape_down
python3 - "$PWD/state" "/run/netns/$a" <<'END' >clean || fail "no clean"
import resource, subprocess, sys
subprocess.run(["nsenter", "--net=" + sys.argv[2], "weir", "shape", "clean", "--state", sys.argv[1]], check=True, stdout=subprocess.DEVNULL)
u = resource.getrusage(resource.RUSAGE_CHILDREN)
print(round((u.ru_utime + u.ru_stime) * 100))
END
within "clean" "$(cat clean)"
exit 0
