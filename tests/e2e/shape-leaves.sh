# SPDX-License-Identifier: BSD-3-Clause
# weir shape: two services of equal weight on a full link, of which one sends to three receivers that limit it, each by its feedback: the
# queues of these destinations have one share of the link together, and not one each.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-net.sh"
rack_up 5 60

printf 'the key of the rack of this test, %s' "$$$$$$$$" >key
chmod 600 key
policy() # RATE MAX
{
	cat <<END
network:
  devices: [{name: v0, rate: $1 Mbit/s}]
  rack: {name: r, up: 1 Gbit/s, down: 1 Gbit/s, key: $PWD/key, machines: [$(seq 5 | sed 's/.*/"udp:10.9.0.&:7100"/' | paste -sd ,)]}
tenants:
  - {name: many, net: {in: {max: $2 Mbit/s}}, match: {port: 5001}}
  - {name: one, net: {}, match: {port: 5002}}
END
}
policy 30 30 >sender.yaml
policy 60 6.5 >receiver.yaml
shape_on 1 sender.yaml
for m in 2 3 4 5; do
	shape_on $m receiver.yaml
done
for m in 2 3 4; do
	nsenter --net="/run/netns/weir-m1-$$" python3 "$WEIR_SOURCE/tests/e2e/netload.py" send 10.9.0.$m 20 5001 2>/dev/null &
done
nsenter --net="/run/netns/weir-m1-$$" python3 "$WEIR_SOURCE/tests/e2e/netload.py" send 10.9.0.5 40 5002 2>/dev/null &
i=0
until on 1 tc class show dev v0 | grep -q "5ee0:4002"; do
	i=$((i + 1))
	[ $i -lt 100 ] || fail "there are no three leaves: $(on 1 tc class show dev v0)"
	sleep 0.05
done
measure() # SECONDS: 5002's rate is in ./rates
{
	load_to "weir-m5-$$" "$1" 5002
	wait $receiver || fail "no load: $(cat receiver)"
}
i=0
until measure 2 && shares 5002=15; do
	i=$((i + 1))
	[ $i -lt 3 ] || fail "not half of the link, of 30: $(cat rates; on 1 tc class show dev v0)"
done
exit 0
