# SPDX-License-Identifier: BSD-3-Clause
# Shapers are killed again and again under load, five at a time in machines of their own: each time the static policy holds within 5 s,
# TCP connections live, and `clean`, or a start and `clean`, leave the machine as it was: tc, ip link, bpftool.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-net.sh"
kills=${WEIR_KILLS:-5}
seed=${WEIR_SEED:-1}
echo "WEIR_SEED=$seed WEIR_KILLS=$kills"
many=5
rack_up $many 60
hub=weir-switch-$$
ip -n "$hub" addr add 10.9.0.100/24 dev br0

state() # I
{
	on "$1" tc qdisc show
	for dir in ingress egress; do
		on "$1" tc filter show dev v0 $dir 2>/dev/null
	done
	on "$1" ip -d link show v0
	! command -v bpftool >/dev/null || on "$1" bpftool net show
}
programs() # I: the ids of the shaper's
{
	for dir in ingress egress; do
		on "$1" tc filter show dev v0 $dir
	done | sed -n 's/.* id \([0-9]*\) .*/\1/p'
}
sent() # I CLASS: bytes
{
	on "$1" tc -s class show dev v0 | awk -v want="5ee0:$2" '$1 == "class" {at = $3 == want} at && /Sent/ {print $2}'
}
later() # TENTHS TEXT COMMAND...: until it is true, or fail
{
	tries=$1 text=$2
	shift 2
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || fail "$text"
		sleep 0.1
	done
}
talked() # I: how many messages came back
{
	n=$(cat "talk$1" 2>/dev/null) # it may be being written
	echo "${n:-0}"
}
talks() # I N
{
	[ "$(talked "$1")" -gt "$2" ]
}
is_static() # I BYTES
{
	[ "$(sent "$1" 3001)" -gt "$2" ]
}

for m in $(seq $many); do
	cat >"weir$m.yaml" <<END
network:
  devices: [{name: v0, rate: 40 Mbit/s}]
tenants:
  - {name: a, net: {max: 1 Mbit/s}, match: {port: 5001}}
  - {name: b, net: {min: 1 Mbit/s}, match: {port: 600$m}}
END
	state "$m" >"before$m"
	: >"echo$m"
	nsenter --net="/run/netns/$hub" python3 "$WEIR_SOURCE/tests/e2e/netload.py" echo 600$m 2>"echo$m" &
	later 100 "no echo: $(cat "echo$m")" grep -q ready "echo$m"
	nsenter --net="/run/netns/weir-m$m-$$" python3 "$WEIR_SOURCE/tests/e2e/netload.py" talk 10.9.0.100 600$m "talk$m" 2>"talker$m" &
	nsenter --net="/run/netns/weir-m$m-$$" python3 "$WEIR_SOURCE/tests/e2e/netload.py" send 10.9.0.100 2 5001 2>/dev/null &
done

done=0
while [ $done -lt "$kills" ]; do
	for m in $(seq $many); do
		shape_on "$m" "weir$m.yaml"
		later 100 "m$m: no runtime class is used" sh -c "[ \$(nsenter --net=/run/netns/weir-m$m-$$ tc -s class show dev v0 |
			awk '/^class htb 5ee0:2001/ {at = 1} at && /Sent/ {print \$2; exit}') -gt 0 ]"
	done
	sleep "0.$(((seed * 7 + done * 3) % 10))"
	for m in $(seq $many); do
		kill -s KILL "$(cat "pid$m")"
		eval "was$m=$(sent "$m" 3001)"
	done
	for m in $(seq $many); do
		eval "was=\$was$m"
		later 56 "m$m is not static within 5 s: $(on "$m" tc -s class show dev v0)" is_static "$m" $((was + 5000))
	done
	for m in $(seq $many); do
		later 50 "the connection of m$m ended: $(cat "talker$m")" talks "$m" "$(talked "$m")"
		[ $((done / many % 2)) = 0 ] || shape_on "$m" "weir$m.yaml" # another one takes over
		[ $((done / many % 2)) = 0 ] || kill -s KILL "$(cat "pid$m")"
		ids=$(programs "$m")
		[ -n "$ids" ] || fail "m$m has no programs: $(state "$m")"
		run 0 on "$m" weir shape clean --state "$PWD/state$m"
		state "$m" >now
		cmp -s "before$m" now || fail "m$m is not as it was: $(diff "before$m" now)"
		for id in $ids; do
			! bpftool prog show id "$id" >/dev/null 2>&1 || later 20 "program $id of m$m stays" sh -c "! bpftool prog show id $id >/dev/null 2>&1"
		done
		done=$((done + 1))
	done
done
for m in $(seq $many); do
	later 50 "the connection of m$m ended: $(cat "talker$m")" talks "$m" "$(talked "$m")"
done
echo "$done kills"
exit 0
