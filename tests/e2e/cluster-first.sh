# SPDX-License-Identifier: BSD-3-Clause
# A tenant whose tokens are all at one server sends to a server where it was idle: its first request
# there waits less than 10 ms for tokens, with the controller and without it. A server without
# requests sleeps.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-cluster.sh"

cluster_start 3

# woken: wakeups of s3 in all its threads
woken()
{
	cat "/proc/$(cat s3.pid)"/task/*/status | awk '/^voluntary/ { n += $2 } END { print n }'
}
sleep 1
before=$(woken)
sleep 1
# The server sends one message per interval (at least a tenth of a period); polling every 5 ms would
# be 200.
[ "$(($(woken) - before))" -lt 60 ] || fail "an idle server was woken $(($(woken) - before)) times in a second"

# tokens_s3: total time that b3's requests waited for tokens at s3, in ms; and their number
tokens_s3()
{
	cluster_state s3 '*[(round(t["wait_s"]["tokens"] * 1000, 3), t["arrivals"]) for t in d["tenants"] if t["path"] == "b3"][0]'
}

# first N: one request at s3 every 300 ms while b3 uses its max at s1; each waits less than 10 ms in
# the mean
first()
{
	weir load --depth 64 --duration "$((2 + $1 * 4 / 10))s" "nbd+unix:///b3?socket=$PWD/s1.sock" >/dev/null &
	busy=$!
	sleep 1.5 # by then all of its tokens are at s1
	before=$(tokens_s3)
	for i in $(seq "$1"); do
		weir load --requests 1 "nbd+unix:///b3?socket=$PWD/s3.sock" >/dev/null || fail "weir load"
		sleep 0.3
	done
	after=$(tokens_s3)
	wait "$busy" || fail "weir load at s1"
	python3 -c '
import sys
t0, n0, t1, n1 = map(float, sys.argv[1:])
print("%g ms for %g requests" % (t1 - t0, n1 - n0))
sys.exit(not (n1 - n0 >= 1 and t1 - t0 < 10 * (n1 - n0)))' $before $after
}

# Repeat on a busy machine.
for state in leased held; do
	[ "$state" = leased ] || kill -KILL "$(cat c.pid)"
	[ "$state" = leased ] || await s3 'd["resources"][0]["pshift"]["state"]' held
	for round in 1 2 3; do
		first 3 && break
		[ "$round" -lt 3 ] || fail "a first request waits for tokens ($state)"
	done
done
for s in 1 2 3; do
	serve_stop "s$s"
done
