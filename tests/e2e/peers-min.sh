# SPDX-License-Identifier: BSD-3-Clause
# Six hosts of equal shares before one array, all busy: one reaches a min above its share, one has a
# max below its share; the four others share the rest.
. "$WEIR_SOURCE/tests/lib-hosts.sh"

array
ports=$(free_ports 6)
peers=$(peers_of $ports)
i=0
for port in $ports; do
	i=$((i + 1))
	case $i in
	1) extra="min: 600 iops" ;;
	6) extra="max: 100 iops" ;;
	*) extra= ;;
	esac
	host "h$i" 1 lun "to: [$peers], listen: \"udp:127.0.0.1:$port\"" "$extra"
done

# as_it_should H1 ... H6: throughput in requests a second: 600, 100, and a quarter of the other
# 1,300.
as_it_should()
{
	python3 -c '
import sys
got = list(map(float, sys.argv[1:]))
others = sum(got[1:5]) / 4
ok = got[0] >= 0.99 * 600 and 99 <= got[5] <= 101 and all(abs(g / others - 1) < 0.1 for g in got[1:5])
sys.exit(not ok or sum(got) < 0.95 * 2000)' "$@"
}

# Repeat on a busy machine.
for round in 1 2 3; do
	for i in 1 2 3 4 5 6; do
		load_start "h$i" 6
	done
	load_wait h1 h2 h3 h4 h5 h6
	got=$(load_iops h1 h2 h3 h4 h5 h6)
	as_it_should $got && break
	[ "$round" -lt 3 ] || fail "600 at least, 100 at most and equal parts between came out as $got"
done
