# SPDX-License-Identifier: BSD-3-Clause
# The array is a gateway with limits of its own: one host's requests are held there for half a second. That is not the
# array's latency: the other hosts' windows stay as they were, and share what the held one leaves.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-hosts.sh"

(umask 077 && head -c 32 /dev/urandom >key)
cat >array.yaml <<END
listen: "unix:$PWD/array.sock"
resources: [{name: lun, back: "model:server,rate=2000+memory:64M", depth: 4096}]
exports: [{name: one, size: 16 MiB}, {name: two, offset: 16 MiB, size: 16 MiB}, {name: three, offset: 32 MiB, size: 16 MiB}]
tenants:
  - {name: capped, max: 120 iops, match: {export: one}}
  - {name: rest, match: {export: "*"}}
END
serve array array.yaml
ports=$(free_ports 3)
peers=$(peers_of $ports)
set -- $ports
host one 8 one "to: [$peers], listen: \"udp:127.0.0.1:$1\"" # with most of the shares, and little use for them
host two 1 two "to: [$peers], listen: \"udp:127.0.0.1:$2\""
host three 2 three "to: [$peers], listen: \"udp:127.0.0.1:$3\""

# By Little's law 25 ms are 50 slots at the array's 2,000 requests a second: 3 are the held host's, whose requests pass
# 120 times a second, and 47 the others', in the ratio of 1:2. If what is held were latency, they would have 50 by shares, of
# which 36 the held host's.
# as_it_should IOPS-ONE WINDOW-TWO WINDOW-THREE LATENCY
as_it_should()
{
	near 0.05 120 "$1" && near 0.15 15.7 "$2" && near 0.15 31.3 "$3" && near 0.15 0.025 "$4"
}

# Busy machines may need a second look.
for round in 1 2 3; do
	for name in one two three; do
		load_start "$name" 5
	done
	sleep 4.5
	held=$(status_of one 'p["held_s"]')
	seen="$(status_of two 'r["window"]') $(status_of three 'r["window"]') $(status_of two 'p["latency_s"]')"
	load_wait one two three
	got="$(load_iops one) $seen"
	as_it_should $got && python3 -c "import sys; sys.exit(not 0.1 < $held < 1)" && break
	[ "$round" -lt 3 ] || fail "120 a second, windows of 15.7 and 31.3 and 25 ms came out as $got; held $held s"
done
for name in one two three array; do
	serve_stop "$name"
done
