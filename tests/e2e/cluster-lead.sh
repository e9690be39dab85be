# SPDX-License-Identifier: BSD-3-Clause
# Controllers come and go: a standby takes over from one that is killed; one starts while a server
# is down; and one restarts again and again. No tenant exceeds its max in any period, and a tenant
# whose demand does not move has its min.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-cluster.sh"

cluster_start 3 "\"unix:$PWD/c.sock\", \"unix:$PWD/d.sock\""

# No client uses s3, which is killed.
jobs="b1-s1=nbd+unix:///b1?socket=$PWD/s1.sock"
for s in 1 2; do
	jobs="$jobs b2-s$s=nbd+unix:///b2?socket=$PWD/s$s.sock b3-s$s=nbd+unix:///b3?socket=$PWD/s$s.sock"
done

round_of()
{
	cluster_watch 2 13
	weir load --depth 16 --duration 13s --series series.csv --json $jobs >load.json &
	load=$!
	sleep 2.5
	# A second controller is a standby, and takes over within two periods.
	control d --name second --listen "unix:$PWD/d.sock" --api "unix:$PWD/d.api" control.yaml
	await d 'd["state"]' standby
	kill -KILL "$(cat c.pid)"
	sleep 2
	[ "$(cluster_state d 'd["state"]')" = granting ] || fail "the standby has not taken over: $(cat d.log)"
	# A server dies, and the controller starts while it is down.
	kill -KILL "$(cat s3.pid)"
	kill -KILL "$(cat d.pid)"
	for start in 1 2 3 4 5 6; do
		control c control.yaml
		sleep 0.4
		kill -KILL "$(cat c.pid)"
	done
	control c control.yaml
	wait "$load" || fail "weir load"
	wait "$watch" || fail "a max was exceeded: $(cat ledgers)"
	await c 'd["state"]' granting
	for s in 1 2; do
		[ "$(cluster_state "s$s" 'd["resources"][0]["pshift"]["state"]')" = leased ] || fail "s$s is not leased"
	done
	cluster_kept 0.9
}
# Repeat on a busy machine.
for round in 1 2 3; do
	round_of && break
	[ "$round" -lt 3 ] || fail "mins or limits are not kept"
	rm -f s3.pid
	serve s3 --api "unix:$PWD/s3.api" s3.yaml
	await s3 'd["resources"][0]["pshift"]["state"]' leased
done
for s in 1 2; do
	serve_stop "s$s"
done
serve_stop c
