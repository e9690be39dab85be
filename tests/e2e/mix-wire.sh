# SPDX-License-Identifier: BSD-3-Clause
# One policy for both planes: a backup and another tenant read over NBD from a gateway whose clients are services on the wire, too. Where
# the disk is the bottleneck they have its share, 3 to 1; where the link is, the link's, 1 to 1, and a min; at once if each is for
# one of them. Without the shaper, or without the gate's weights, the shares differ.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-net.sh"
net_up
# One that fills queues, whatever the machine's default: TCP that paces itself does not ask for its share.
in_a ip route replace 10.9.0.0/24 dev v0 src 10.9.0.1 congctl cubic 2>/dev/null || skip "the kernel has no cubic"

# policy LATENCY LINK_MBIT DISK NET_WEB: the disk's time of a request; weights of the backup on the disk; the link's shares of web
policy()
{
	cat <<END
listen: [tcp:10.9.0.1:10809, tcp:10.9.0.1:10810]
api: ["unix:$PWD/gateway.sock"]
network:
  devices: [{name: v0, rate: $2 Mbit/s}]
resources:
  - {name: disk, back: "model:server,latency=$1+memory:64M", depth: 1}
exports:
  - {name: backup, resource: disk, size: 32M}
  - {name: web, resource: disk, offset: 32M, size: 32M}
tenants:
  - {name: backup, weight: $3, net: {weight: 1}, match: [{export: backup}, {port: 10809}]}
  - {name: web, weight: 1, net: {$4}, match: [{export: web}, {port: 10810}]}
END
}
gateway_up() # FILE
{
	rm -f gateway.pid
	nsenter --net="/run/netns/$a" weir serve --pidfile gateway.pid "$1" >gateway.log 2>&1 &
	gateway=$!
	i=0
	until [ -s gateway.pid ]; do
		i=$((i + 1))
		[ $i -lt 200 ] && kill -0 $gateway || fail "no gateway: $(cat gateway.log)"
		sleep 0.05
	done
}
gateway_down()
{
	kill $gateway
	wait $gateway || :
}
rate() # JOB: in MiB/s
{
	python3 -c 'import json, sys; print([j["bytes_per_second"] / 1048576 for j in json.load(open("load.json")) if j["job"] == sys.argv[1]][0])' "$1"
}
# read_both SIZE: the MiB/s of both are in $backup and $web
read_both()
{
	in_b weir load --json -t 1500ms --warm-up 500ms --depth 32 --size "$1" backup=nbd://10.9.0.1:10809/backup web=nbd://10.9.0.1:10810/web >load.json 2>load.err ||
		fail "no load: $(cat load.err)"
	backup=$(rate backup) web=$(rate web)
	echo "backup $backup web $web MiB/s"
}
# ratio WANT: of backup to web, within 10 %
ratio()
{
	awk -v b="$backup" -v w="$web" -v want="$1" 'BEGIN { exit !(b > w * want * 0.9 && b < w * want * 1.1) }'
}

# ---- the disk is the bottleneck: 200 requests a second of 16 KiB, 26 Mbit/s; the link has room

policy "5ms" 100 3 "weight: 1" >disk.yaml
gateway_up disk.yaml
shape_up disk.yaml
read_both 16k
ratio 3 || fail "the disk's weights do not hold: $backup and $web"

# ---- the link is: 30 Mbit/s, of a disk that is faster; weights of the link, not of the disk

shape_down
gateway_down
read_fast() # FILE
{
	gateway_up "$1"
	shape_up "$1"
	read_both 16k
}
policy "100us" 30 3 "weight: 1" >link.yaml
read_fast link.yaml
ratio 1 || fail "the link's weights do not hold: $backup and $web"
awk -v b="$backup" -v w="$web" 'BEGIN { exit !((b + w) * 8.389 > 24 && (b + w) * 8.389 < 30) }' || fail "not the whole link: $backup and $web"
shape_down
policy "100us" 30 3 "min: 15 Mbit/s, weight: 1" >min.yaml # 22.5 and 7.5
shape_up min.yaml
read_both 16k
ratio 0.333 || fail "the link's min does not hold: $backup and $web"

# Without the shaper the link's shares do not hold.
shape_down
shape_clean
read_both 16k
ratio 0.333 && fail "the link's min holds without the shaper"
gateway_down

# ---- both at once: of the disk's 26 Mbit/s the backup may send 8 on the link, and the other has what is left of the disk

policy "5ms" 100 3 "weight: 1" | sed 's/net: {weight: 1}, match: \[{export: backup/net: {max: 8 Mbit\/s}, match: [{export: backup/' >both.yaml
grep -q "max: 8" both.yaml || fail "no max: $(cat both.yaml)"
read_fast both.yaml
awk -v b="$backup" -v w="$web" 'BEGIN { exit !(b * 8.389 > 7 && b * 8.389 < 8.1 && (b + w) * 8.389 > 23.5) }' ||
	fail "the backup's link share and the other's disk share do not hold at once: $backup and $web"
gateway_down
shape_down
shape_clean
exit 0
