# SPDX-License-Identifier: BSD-3-Clause
# Without a configured threshold, two hosts find one, the same for both, at which the array has
# nearly its full throughput.
. "$WEIR_SOURCE/tests/lib-hosts.sh"

# Eight at once, 4 ms each: 2,000 a second from eight inside on; more requests only wait.
array server,servers=8,latency=4ms,service=fixed
threshold=auto
ports=$(free_ports 2)
peers=$(peers_of $ports)
set -- $ports
host one 1 lun "to: [$peers], listen: \"udp:127.0.0.1:$1\""
host two 1 lun "to: [$peers], listen: \"udp:127.0.0.1:$2\""
load_start one 60
load_start two 60
# Hosts start with an unknown knee, go down from 100 ms, and find it: both within 20 %, and stay
# there. A request needs three wakeups: of the array, when it arrives and when it is done, and of
# the host. On a busy machine the hosts see these delays as latency. (4.1 to 4.7 ms were seen.) The
# threshold is the knee, or a probe near it.
found="near(q['knee_s'], 0.004 + 3 * late, 0.2) and q['knee_s'] < 0.008 and 0.7 < q['threshold_s'] / q['knee_s'] < 1.4"
watch 40 "held 5 all([$found for q in p])" one two || fail "the knee"
# Both have the same threshold, but for a step in which one has sent it and the other has not
# received it; and the latency follows it.
kept="near(w[0] / w[1], 1, 0.15) and near(p[0]['latency_s'], p[0]['threshold_s'], 0.1) and p[0]['peers'] == 1"
watch 10 "p[0]['threshold_s'] == p[1]['threshold_s'] and 0.004 < p[0]['threshold_s'] < 0.008 and $kept" one two ||
	fail "the threshold"
kill "$(cat one.load)" "$(cat two.load)"
for name in one two array; do
	serve_stop "$name"
done
