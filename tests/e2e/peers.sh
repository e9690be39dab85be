# SPDX-License-Identifier: BSD-3-Clause
# Three hosts before one array, each a gateway with one busy client: windows and throughput are in
# the ratio of the hosts' shares, by datagrams and by a shared file.
. "$WEIR_SOURCE/tests/lib-hosts.sh"

# Load all three for a while; write each one's throughput, in requests a second, to ./got.
load_all()
{
	for i in 1 2 3; do
		load_start "h$i" 5
	done
	load_wait h1 h2 h3
	load_iops h1 h2 h3 >got
}

stop_all()
{
	for i in 1 2 3; do
		serve_stop "h$i"
	done
}

# in_ratio TOLERANCE: check that ./got is in the ratio of 1:2:3
in_ratio()
{
	python3 -c '
import sys
tolerance, *got = map(float, sys.argv[1:])
assert len(got) == 3
unit = sum(got) / 6
sys.exit(any(abs(g / (unit * (i + 1)) - 1) > tolerance for i, g in enumerate(got)))' "$1" $(cat got)
}

# Check that the ratio is reached. On a busy machine a host's process may be delayed for a while,
# and the windows must settle again: then try again, twice at most.
settles()
{
	for round in 1 2 3; do
		load_all
		in_ratio 0.15 && return
	done
	fail "$1: 1:2:3 came out as $(cat got)"
}

array

ports=$(free_ports 3)
list=$(peers_of $ports)
set -- $ports
host h1 1 lun "to: [$list], listen: \"udp:127.0.0.1:$1\""
host h2 2 lun "to: [$list], listen: \"udp:127.0.0.1:$2\""
host h3 3 lun "to: [$list], listen: \"udp:127.0.0.1:$3\""
settles "by datagrams"
grep -q 'parda-peers resource=lun' h1.log || fail "peers are missing in the output"
stop_all

for i in 1 2 3; do
	host "h$i" "$i" lun "to: \"file:$PWD/peers\""
done
settles "by a file"
stop_all
serve_stop array
