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
# It begins without knowing and looks around, and comes to be near the knee, far below the 100 ms that it may be: both at the
# same place, but for a step in which one has told and the other has not heard yet. How near, experiments say (parda-auto):
# where the machine does something else, that is latency too.
one_for_both="p[0]['threshold_s'] == p[1]['threshold_s'] and 0.002 < p[0]['threshold_s'] < 0.03"
watch 40 "$one_for_both and near(w[0] / w[1], 1, 0.15) and p[0]['peers'] == 1" one two || fail "the threshold"
kill "$(cat one.load)" "$(cat two.load)"
for name in one two array; do
	serve_stop "$name"
done
