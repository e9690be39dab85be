# SPDX-License-Identifier: BSD-3-Clause
# The controller of a cluster is dead, and a tenant moves to a server where it had no tokens:
# another server stands in, and the tenant has half of its min within a period, and all of it within
# three. It never exceeds its max. A controller that returns takes over; with stand_in: false, no
# server stands in.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-cluster.sh"

# load SERVER SECONDS: run b3 and write ./SERVER.csv
load()
{
	weir load --depth 16 --duration "$2s" --series "$1.csv" --json "b3-$1=nbd+unix:///b3?socket=$PWD/$1.sock" >"$1.json" || fail "weir load"
}

# got SERVER FROM TO: requests between two times, in tenths of a second
got()
{
	python3 -c '
import csv
import sys
rows = csv.DictReader(open(sys.argv[1] + ".csv"))
print(round(sum(float(r["iops"]) / 10 for r in rows if int(sys.argv[2]) <= round(float(r["time_s"]) * 10) < int(sys.argv[3]))))' "$@"
}

# moves SECONDS: b3 moves from s1 to s3 when the controller has been dead for a period and a half
moves()
{
	cluster_watch 3 "$(($1 + 3))"
	load s1 3 &
	busy=$!
	sleep 1.5 # by then its tokens are at s1
	kill -KILL "$(cat c.pid)"
	wait "$busy"
	load s3 "$1"
	wait "$watch" || fail "a max was exceeded: $(cat ledgers)"
	echo "b3 at s3: $(got s3 0 11) at first, $(got s3 20 40) in two later seconds"
}

cluster_start 3
for round in 1 2 3; do
	moves 4
	[ "$(got s3 0 11)" -ge 75 ] && [ "$(got s3 20 40)" -ge 290 ] && break
	[ "$round" -lt 3 ] || fail "a tenant that moves does not reach its min"
	control c control.yaml
	await c 'd["state"]' granting
done
cat s1.log s2.log s3.log >logs
has logs standing-in
control c control.yaml
await c 'd["state"]' granting
for s in 1 2 3; do
	serve_stop "s$s"
done
serve_stop c

# No server stands in.
sed -i 's/period: 1s/period: 1s, stand_in: false/' control.yaml s1.yaml s2.yaml s3.yaml
control c control.yaml
cluster_up 3
await c 'd["state"]' granting
moves 2
[ "$(got s3 0 21)" -lt 225 ] || fail "b3 has its min without a stand-in, too: nothing was tested"
for s in 1 2 3; do
	hasnt "s$s.log" standing-in
	serve_stop "s$s"
done
