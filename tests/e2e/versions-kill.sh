# SPDX-License-Identifier: BSD-3-Clause
# Versions are linearizable while members of etcd are killed: four operators apply for WEIR_SECONDS (8), one member is killed and started again
# all the time, and the order of what they were told is checked against the history.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-etcd.sh"

etcd_start 3
python3 "$WEIR_SOURCE/tests/e2e/versions-kill.py" "etcd:$etcd_urls?prefix=kill" "${WEIR_SECONDS-8}" >told &
operators=$!
i=0
while kill -0 "$operators" 2>/dev/null; do
	i=$((i % 3 + 1))
	etcd_kill "$i"
	sleep 0.7
	etcd_run "$i"
	sleep 1.5
done
wait "$operators" || fail "the order of versions is wrong"
cat told
