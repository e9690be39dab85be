# SPDX-License-Identifier: BSD-3-Clause
# Settings that prevent PARDA's goals are reported: once in the log, in words, and in the status.
. "$WEIR_SOURCE/tests/lib-hosts.sh"

array
set -- $(free_ports 2)
host one 1 lun "to: [$(peers_of "$2")], listen: \"udp:127.0.0.1:$1\""
host two 3 lun "to: [$(peers_of "$1")], listen: \"udp:127.0.0.1:$2\""
load_start one 60
load_start two 60
watch 20 'held 1 w[1] > 30 and near(w[1] / w[0], 3, 0.2)' one two || fail "the fixed point"
hasnt two.log parda-wmax
hasnt two.log parda-threshold

# Of 50 slots by 1:3, host two would have 38.
sed -i 's/epsilon: 0.5/epsilon: 0.5, wmax: 20/' two.yaml
run 0 weir policy apply --socket two.api two.yaml
watch 20 'p[1]["wmax_needed"] and near(p[1]["wmax_needed"], 38, 0.3) and p[0]["wmax_needed"] is None' one two || fail "wmax"
has two.log "wmax keeps this host below its share"
hasnt one.log parda-wmax
run 0 weir status --socket two.api
has stdout "wmax is below the share"

# One request alone takes half a millisecond.
for name in one two; do
	sed -i 's/threshold: 25ms/threshold: 100us/; s/, wmax: 20//' "$name.yaml"
	run 0 weir policy apply --socket "$name.api" "$name.yaml"
done
watch 20 'p[0]["unreachable_s"] and p[1]["unreachable_s"] and p[0]["unreachable_s"] > 0.0001' one two || fail "the threshold"
has one.log "takes longer than that"
run 0 weir status --socket one.api
has stdout "latency is over the threshold at any window"
sleep 1
[ "$(grep -c parda-threshold one.log)" -eq 1 ] || fail "reported more than once: $(grep parda-threshold one.log)"
[ "$(grep -c parda-wmax two.log)" -eq 1 ] || fail "reported more than once: $(grep parda-wmax two.log)"
