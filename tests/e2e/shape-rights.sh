# SPDX-License-Identifier: BSD-3-Clause
# weir shape runs, and gives devices back, as a user with no more capabilities than those of its unit.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-net.sh"
net_up setpriv
caps=$(sed -n 's/^CapabilityBoundingSet=//p' "$WEIR_BUILD/packaging/weir-shape.service" | tr 'A-Z ' 'a-z,' | sed 's/cap_/+/g')
[ -n "$caps" ] || fail "the unit states no capabilities"
cat >weir.yaml <<'END'
network: {devices: [{name: v0, rate: 40 Mbit/s}]}
tenants:
  - {name: a, net: {min: 1 Mbit/s}, match: [{cgroup: "*.slice"}, {port: 5001, dscp: 10}]}
  - {name: b, net: {}, match: {interface: "pod*"}}
  - {name: c, net: {}, match: {address: 10.9.0.0/24}}
END
ip link add pod1 netns "$a" type veth peer name e1 netns "$b"
mkdir -m 777 own
chmod a+rx .
cp "$WEIR" own/weir
net_state >before
limited() # COMMAND...
{
	nsenter --net="/run/netns/$a" setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps="-all,$caps" \
		--ambient-caps="-all,$caps" --bounding-set="-all,$caps" own/weir shape "$@" --state "$PWD/own/state"
}
limited run --api "unix:$PWD/own/api.sock" --pidfile own/pid weir.yaml >log 2>&1 &
i=0
until [ -s own/pid ]; do
	i=$((i + 1))
	[ $i -lt 200 ] || fail "it does not start: $(cat log)"
	sleep 0.05
done
in_a tc filter show dev pod1 ingress | grep -q weir_out_interf || fail "no program at an interface: $(cat log)"
grep ' error ' log && fail "see above"
kill "$(cat own/pid)"
wait $! || fail "no orderly end: $(cat log)"
run 0 limited clean
net_state >now
cmp before now || fail "clean did not restore: $(diff before now)"
exit 0
