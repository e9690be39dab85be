# SPDX-License-Identifier: BSD-3-Clause
# A host that starts beside others does not flood the array: its window is the smallest before its
# first client connects, and grows to its share from below. Changed settings of a controller keep
# its window.
. "$WEIR_SOURCE/tests/lib-hosts.sh"

array
set -- $(free_ports 3)
host one 1 lun "to: [$(peers_of "$2" "$3")], listen: \"udp:127.0.0.1:$1\""
watch 5 'w[0] == 1 and p[0]["peers"] == 0' one || fail "the window of a host that starts"
host two 1 lun "to: [$(peers_of "$1" "$3")], listen: \"udp:127.0.0.1:$2\""
load_start one 40
load_start two 40
watch 20 'held 1 w[0] > 15 and near(w[1] / w[0], 1, 0.15) and near(p[0]["latency_s"], 0.025, 0.2)' one two ||
	fail "two hosts that start together"

# As many shares as both others together: half of the 50 slots of 25 ms. Unless the others made
# room, a median of 25 slots per share would make it 50.
host three 2 lun "to: [$(peers_of "$1" "$2")], listen: \"udp:127.0.0.1:$3\""
watch 5 'w[0] == 1' three || fail "the window of a host that starts beside others"
load_start three 30
watch 3 'w[0] > 35' three 2>/dev/null && fail "the host that started had more than its part"
watch 20 'held 1 near(w[2] / w[0], 2, 0.15) and near(w[1] / w[0], 1, 0.15) and w[2] > 15' one two three ||
	fail "the share of a host that started"

sed -i 's/epsilon: 0.5/epsilon: 0.5, tau: 150ms/' three.yaml
run 0 weir policy apply --socket three.api three.yaml
watch 1 'w[0] < 10' three 2>/dev/null && fail "changed settings made the window small"
sed -i 's/epsilon: 0.5, tau: 150ms/start: soon/' three.yaml
run 2 weir policy check three.yaml
has stderr "least"
