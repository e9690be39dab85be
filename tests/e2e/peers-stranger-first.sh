# SPDX-License-Identifier: BSD-3-Clause
# A client that goes to the array past the hosts, and was there before they started: they find it, say so, and keep their part.
. "$WEIR_SOURCE/tests/lib-hosts.sh"

array server,rate=6000
threshold=8ms
weir load --json -d 256 -t 60s "nbd+unix:///lun?socket=$PWD/array.sock" >stranger.out 2>&1 &
stranger=$!
set -- $(free_ports 3)
host one 1 lun "to: [$(peers_of "$2" "$3")], listen: \"udp:127.0.0.1:$1\""
host two 2 lun "to: [$(peers_of "$1" "$3")], listen: \"udp:127.0.0.1:$2\""
host three 1 lun "to: [$(peers_of "$1" "$2")], listen: \"udp:127.0.0.1:$3\""
for i in one two three; do load_start $i 128; done
# Three eighths of all are half of three hosts' fair part.
watch 30 'p[0]["stranger"] and p[1]["stranger"] and p[2]["stranger"] and sum(w) > 0.6 * 256 * 0.95' one two three ||
	fail "nothing is kept beside it: $(cat stranger.out)"
watch 10 '100 < p[0]["stranger"] < 512 and p[0]["floor"] > 20' one || fail "how large it is"
has one.log parda-stranger
kill "$stranger"
wait "$stranger"
watch 20 'held 1 not p[0]["stranger"] and not p[1]["stranger"] and near(p[0]["latency_s"], 0.008, 0.25)' one two ||
	fail "it is gone"
