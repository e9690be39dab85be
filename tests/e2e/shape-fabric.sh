# SPDX-License-Identifier: BSD-3-Clause
# The fabric's broker, weir control, with a rack of two machines and one of one: a service's max in the fabric holds over both racks, and
# does not without the broker; the broker is killed: static after five periods; and back. With WEIR_FAULTS=all the leader of a rack is
# killed, too, and the other machine leads; a broker with another key is refused; and another max is read.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-net.sh"
. "$WEIR_SOURCE/tests/lib-rack.sh"
rack_up 3

policy() # RACK MACHINES
{
	cat <<END
network:
  devices: [{name: v0, rate: 100 Mbit/s}]
  machine: MACHINE
  rack: {name: $1, up: 100 Mbit/s, down: 100 Mbit/s, machines: [$2], key: key}
  fabric: {address: "tcp:10.9.0.100:7101", period: 500ms}
tenants:
  - {name: a, net: {max: 30 Mbit/s, fabric: {max: 12 Mbit/s}}, match: {port: 5001}}
END
}
policy r1 '"udp:10.9.0.1:7100", "udp:10.9.0.2:7100"' >r1.yaml
policy r2 '"udp:10.9.0.3:7100"' >r2.yaml
cat >broker.yaml <<'END'
network: {fabric: {address: "tcp:10.9.0.100:7101", key: key, period: 500ms}}
tenants:
  - {name: a, net: {max: 30 Mbit/s, fabric: {max: 12 Mbit/s}}, match: {port: 5001}}
END
broker_up() # FILE
{
	rm -f broker.pid
	nsenter --net="/run/netns/$rack-100" weir control --api "unix:$PWD/broker.sock" --pidfile broker.pid "$1" >>broker.log 2>&1 &
	broker=$!
	until [ -s broker.pid ]; do
		kill -0 $broker 2>/dev/null || fail "no broker: $(cat broker.log)"
		sleep 0.05
	done
}
broker_down() # [SIGNAL]
{
	kill -s "${1:-TERM}" $broker
	wait $broker 2>/dev/null || :
}
broker_status()
{
	weir status --socket "$PWD/broker.sock" --json | tr -d ' \n'
}
load()
{
	for i in 1 2 3; do
		send_from $i 20 5001
	done
}
# until_true TEXT COMMAND...: within 10 s
until_true()
{
	text=$1 tries=0
	shift
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] || fail "$text: $(broker_status)"
		sleep 0.05
	done
}
leads() # I
{
	rack_status "$1" | grep -q '"leads": true'
}

for i in 1 2; do
	machine_up $i r1.yaml
done
machine_up 3 r2.yaml
load
received 0.5 5001
shares 5001=12 && fail "the max holds without a broker"
run 0 weir control --check broker.yaml
broker_up broker.yaml
until_log 1 "fabric-lead rack=r1"
until_log 3 "fabric-lead rack=r2"
settle 5001=12 || fail "the max does not hold: $(cat rates)"
grep -q fabric-lead shape-2.log && fail "two machines lead r1"
broker_status >status
has status '"rack":"r1","leader":"m1","silent":false'
has status '"rack":"r2","leader":"m3","silent":false'
rack_status 3 >status
has status '"bound": "fabric (rack r2: '
curl -s --unix-socket broker.sock http://weir/metrics >metrics
has metrics "weir_fabric_racks 2"

# ---- the broker killed: static after five periods

broker_down KILL
until_log 1 "fabric-stale rack=r1"
until_log 3 "fabric-stale rack=r2"
received 0.5 5001
awk '$2 > 30 { found = 1 } END { exit !found }' rates || fail "not static: $(cat rates)"

broker_up broker.yaml
until_log 3 "fabric-fresh rack=r2"
settle 5001=12 || fail "the max does not hold again: $(cat rates)"
end()
{
	send_end
	broker_down
	for i in 1 2 3; do
		machine_down $i
		run 0 in_m $i weir shape clean --state "$PWD/state-$i"
	done
	exit 0
}
[ "${WEIR_FAULTS-}" = all ] || end

# ---- the leader killed

machine_down 1 KILL
until_log 2 "fabric-lead rack=r1"
until_true "m2 is not heard" sh -c "weir status --socket '$PWD/broker.sock' --json | grep -q '\"leader\": \"m2\"'"
leads 2 || fail "m2 does not lead"
machine_up 1 r1.yaml
until_true "m1 does not lead again" leads 1
settle 5001=12 || fail "the max does not hold after another leader: $(cat rates)"

# ---- another key: refused

head -c 32 /dev/urandom >other
chmod 600 other
sed 's/key: key/key: other/' broker.yaml >forged.yaml
broker_down
broker_up forged.yaml
until_true "no leader is refused" grep -q "server-refused.*not sealed" broker.log
until_true "limits of a broker with another key are used" sh -c "[ \$(grep -c fabric-stale shape-3.log) = 2 ]"
broker_down
broker_up broker.yaml

# ---- another max, read on SIGHUP

sed -i 's/fabric: {max: 12/fabric: {max: 24/' broker.yaml
kill -s HUP "$broker"
settle 5001=24 || fail "another max does not hold: $(cat rates)"
end
