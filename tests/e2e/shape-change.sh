# SPDX-License-Identifier: BSD-3-Clause
# weir shape: no packet in a queue is lost when the policy changes: services come and go, get other numbers, move into others and out
# of them, in force and across a restart; classes that are not used any more go away once they are empty. A device that is taken
# away and comes back, or whose packets get another size, is shaped again.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-net.sh"
net_up python3

# policy SERVICE...: write it
policy()
{
	{
		echo 'network: {devices: [{name: v0, rate: 4 Mbit/s}]}'
		echo 'tenants:'
		for line in "$@"; do
			echo "  $line"
		done
	} >weir.yaml
}
one='- {name: a, net: {}, match: {port: 5001}}'
two='- {name: b, net: {}, match: {port: 5002}}'
three='- {name: c, net: {}, match: {port: 5003}}'
reload() # the shaper reads the policy again
{
	before=$(grep -c 'policy state="in force"' shape.log || :)
	kill -s HUP "$shaper"
	i=0
	until [ "$(grep -c 'policy state="in force"' shape.log)" -gt "$before" ]; do
		i=$((i + 1))
		[ $i -lt 200 ] || fail "no reload: $(cat shape.log)"
		sleep 0.02
	done
}
# keeps CHANGE COMMAND...: with packets in the queues of three services, do it; all of them arrive
keeps()
{
	what=$1
	shift
	: >receiver
	nsenter --net="/run/netns/$b" python3 "$WEIR_SOURCE/tests/e2e/netload.py" count 45 5001 5002 5003 >counts 2>receiver &
	receiver=$!
	until grep -q ready receiver; do
		kill -0 $receiver || fail "no receiver: $(cat receiver)"
		sleep 0.02
	done
	in_a python3 "$WEIR_SOURCE/tests/e2e/netload.py" burst 10.9.0.2 45 5001 5002 5003 # 62 kB each: 0.4 s
	"$@"
	wait $receiver || fail "$what: packets were lost: $(cat counts)"
}
restart()
{
	shape_down KILL
	shape_up weir.yaml
}

policy "$one" "$two" "$three"
shape_up weir.yaml
keeps "nothing changes" reload
policy "$three" "$one" "$two"
keeps "other numbers" reload
policy "$two" "- {name: x, net: {}, match: {port: 7}}" "$three" "- {name: y, net: {}, match: {port: 8}}"
keeps "a goes, others come" reload
policy "- {name: top, net: {}, children: [${two#- }, ${three#- }]}" "$one"
keeps "two move into another one" reload
policy "- {name: b, net: {}, children: [{name: in, net: {}, match: {port: 5002}}]}" "$three" "$one"
keeps "a service becomes the parent of one" reload
policy "$two" "$one" "$three"
keeps "it holds no other any more" reload
policy "- {name: x, net: {}, match: {port: 7}}" "- {name: top, net: {}, children: [${one#- }, ${three#- }]}" "$two"
keeps "another policy across a restart" restart

# What is left is what is used: the link, and classes of four services, of a parent and of no service.
i=0
until [ "$(in_a tc class show dev v0 | grep -c 'class htb')" -eq 17 ]; do
	i=$((i + 1))
	[ $i -lt 100 ] || fail "classes stay: $(in_a tc class show dev v0)"
	sleep 0.05
done

# The limit of a queue follows the service's.
policy "- {name: a, net: {max: 1 Mbit/s}, match: {port: 5001}}"
reload
sed -i 's/4 Mbit/4000 Mbit/; s/1 Mbit/2000 Mbit/' weir.yaml
reload
in_a tc qdisc show dev v0 | grep -q 'limit 25000000b' || fail "the queue's limit stays: $(in_a tc qdisc show dev v0)"

# ---- the device

again() # N: it is said to be shaped again so often
{
	i=0
	until [ "$(grep -c device-again shape.log)" -ge "$1" ]; do
		i=$((i + 1))
		[ $i -lt 100 ] || fail "not shaped again: $(cat shape.log)"
		sleep 0.05
	done
}
policy "- {name: a, net: {max: 100 Mbit/s}, match: {port: 5001}}"
sed -i 's/4 Mbit/2000 Mbit/' weir.yaml
reload
in_a ip link set v0 mtu 500
again 1
in_a ip -d link show v0 | grep -q 'gso_max_segs 2 ' || fail "segments of the old size: $(in_a ip -d link show v0)"
in_a ip link set v0 mtu 1500
again 2
in_a ip link delete v0
i=0
until grep -q device-lost shape.log; do
	i=$((i + 1))
	[ $i -lt 100 ] || fail "a device that is gone is not missed"
	sleep 0.05
done
sleep 1.2
[ "$(grep -c ' error ' shape.log)" -eq 1 ] || fail "more than one error: $(cat shape.log)"
ip link add v0 netns "$a" type veth peer name v0 netns "$b"
net_link
again 3
in_a ping -q -c 1 -W 2 10.9.0.2 >/dev/null || fail "no packet passes"
in_a tc qdisc show dev v0 | grep -q 'htb 5ee0:' || fail "not shaped: $(in_a tc qdisc show dev v0)"
shape_down
shape_clean
has stdout "1 device given back"
exit 0
