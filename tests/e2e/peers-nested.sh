# SPDX-License-Identifier: BSD-3-Clause
# The array is a gateway with limits of its own, which hold one host's requests for half a second.
# This is not the array's latency: the other hosts' windows stay, and share what the held host
# leaves.
. "$WEIR_SOURCE/tests/lib-hosts.sh"

array "" 'exports: [{name: one, size: 16 MiB}, {name: two, offset: 16 MiB, size: 16 MiB}, {name: three, offset: 32 MiB}]
tenants: [{name: capped, max: 120 iops, match: {export: one}}, {name: rest, match: {export: "*"}}]'
ports=$(free_ports 3)
peers=$(peers_of $ports)
set -- $ports
host one 8 one "to: [$peers], listen: \"udp:127.0.0.1:$1\"" # with most of the shares, and little use for them
host two 1 two "to: [$peers], listen: \"udp:127.0.0.1:$2\""
host three 2 three "to: [$peers], listen: \"udp:127.0.0.1:$3\""

# By Little's law 25 ms are 50 slots at the array's 2,000 requests a second: 3 of the held host,
# whose requests pass 120 times a second, and 47 of the others, in the ratio of 1:2. If holding
# counted as latency, all three would share the 50, and 36 would be the held host's.
for name in one two three; do
	load_start "$name" 60
done
watch 40 "near(w[1], 15.7, 0.15) and near(w[2], 31.3, 0.15) and near(p[1]['latency_s'], 0.025, 0.15)" one two three ||
	fail "the others' windows"
watch 2 "all near(w[1], 15.7, 0.2) and near(w[2], 31.3, 0.2)" one two three || fail "the others' windows, for longer"
# 60 requests or so, 120 a second
watch 20 "0.2 < p[0]['held_s'] < 0.8 and p[1]['held_s'] == 0" one two || fail "the time that it is held"
for name in one two three; do
	kill "$(cat "$name.load")"
	serve_stop "$name"
done
serve_stop array
