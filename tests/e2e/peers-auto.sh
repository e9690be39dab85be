# SPDX-License-Identifier: BSD-3-Clause
# Nobody said which latency to keep: two hosts find one, the same for both, at which the array does nearly all that it can.
. "$WEIR_SOURCE/tests/lib-hosts.sh"

# Eight at once, 4 ms each: 2,000 a second from eight inside on; whatever is beyond only waits.
array server,servers=8,latency=4ms,service=fixed
threshold=auto
ports=$(free_ports 2)
peers=$(peers_of $ports)
set -- $ports
host one 1 lun "to: [$peers], listen: \"udp:127.0.0.1:$1\""
host two 1 lun "to: [$peers], listen: \"udp:127.0.0.1:$2\""
load_start one 60
load_start two 60
# It begins without knowing, goes down from 100 ms, and finds the knee: both hosts do, within 20 %, and know it for as long as
# one looks. A request that is inside waits for three processes to be woken: the array's, when it comes and when it is done, and
# the host's. What that takes on a machine that is busy is latency as well, to the hosts. (4.1 to 4.7 ms were seen.)
# What they aim at is the knee, or a look beside it.
found="near(q['knee_s'], 0.004 + 3 * late, 0.2) and q['knee_s'] < 0.008 and 0.7 < q['threshold_s'] / q['knee_s'] < 1.4"
watch 40 "held 5 all([$found for q in p])" one two || fail "the knee"
# Both aim at one latency, but for a step in which one has told and the other has not heard yet; and it is kept.
kept="near(w[0] / w[1], 1, 0.15) and near(p[0]['latency_s'], p[0]['threshold_s'], 0.1) and p[0]['peers'] == 1"
watch 10 "p[0]['threshold_s'] == p[1]['threshold_s'] and 0.004 < p[0]['threshold_s'] < 0.008 and $kept" one two ||
	fail "the threshold"
kill "$(cat one.load)" "$(cat two.load)"
for name in one two array; do
	serve_stop "$name"
done
