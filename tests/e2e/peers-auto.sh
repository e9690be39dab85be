# SPDX-License-Identifier: BSD-3-Clause
# Nobody said which latency to keep: two hosts find one, the same for both, at which the array does nearly all that it can.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-hosts.sh"

(umask 077 && head -c 32 /dev/urandom >key)
# Eight at once, 4 ms each: 2,000 a second from eight inside on; whatever is beyond only waits.
cat >array.yaml <<END
listen: "unix:$PWD/array.sock"
resources: [{name: lun, back: "model:server,servers=8,latency=4ms,service=fixed+memory:64M", depth: 4096}]
END
serve array array.yaml
threshold=auto
ports=$(free_ports 2)
peers=$(peers_of $ports)
set -- $ports
host one 1 lun "to: [$peers], listen: \"udp:127.0.0.1:$1\""
host two 1 lun "to: [$peers], listen: \"udp:127.0.0.1:$2\""
load_start one 60
load_start two 60
# It begins without knowing, looks around, and comes to stay below twice the knee; both at the same place, but for a step in
# which one has told and the other has not heard yet.
one_for_both="p[0]['threshold_s'] == p[1]['threshold_s'] and 0.004 < p[0]['threshold_s'] < 0.008"
kept="near(w[0] / w[1], 1, 0.15) and near(p[0]['latency_s'], p[0]['threshold_s'], 0.3) and p[0]['peers'] == 1"
watch 18 "$one_for_both and $kept" one two || fail "the threshold"
kill "$(cat one.load)" "$(cat two.load)"
for name in one two array; do
	serve_stop "$name"
done
