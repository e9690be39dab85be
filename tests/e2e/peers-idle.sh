# SPDX-License-Identifier: BSD-3-Clause
# Two hosts of equal shares before one array: one floods it, one sends a request now and then. The
# second keeps its shares and a window of at least its part for its next burst; with equation 4 to
# the letter it has neither.
. "$WEIR_SOURCE/tests/lib-hosts.sh"

threshold=10ms
array
ports=$(free_ports 2)
peers=$(peers_of $ports)
i=0
for port in $ports; do
	i=$((i + 1))
	host "h$i" 1 lun "to: [$peers], listen: \"udp:127.0.0.1:$port\""
done
weir load --json -r 5iops -t 30s "vm=nbd+unix:///lun?socket=$PWD/h1.sock" >/dev/null &
light=$!
weir load --json -d 64 -t 30s "vm=nbd+unix:///lun?socket=$PWD/h2.sock" >/dev/null &
flood=$!
watch 20 'held 2 p[0]["shares"] > 0.99 and p[1]["peers"] == 1 and w[1] < 40 and w[0] > 1.5 * w[1]' h1 h2 ||
	fail "an idle host lost its window"
sed -i 's/epsilon: 0.5/epsilon: 0.5, idle: literal, burst: 0s/' h1.yaml
run 0 weir policy apply h1.yaml --socket h1.api
watch 20 'held 1 p[0]["shares"] < 0.3 and w[0] < 0.6 * w[1]' h1 h2 || fail "equation 4 has no effect"
kill $light $flood
