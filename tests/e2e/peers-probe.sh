# SPDX-License-Identifier: BSD-3-Clause
# probe: true: the host that decides sends reads of its own while no host has requests inside, past
# its gate and counted for no tenant; not while a client of another host is busy; and all hosts use
# the threshold that it finds.
. "$WEIR_SOURCE/tests/lib-hosts.sh"

# 64 at once, 1 ms each.
array server,servers=64,latency=1ms,service=fixed
threshold=auto
ports=$(free_ports 2)
peers=$(peers_of $ports)
set -- $ports
host one 1 lun "to: [$peers], listen: \"udp:127.0.0.1:$1\""
host two 1 lun "to: [$peers], listen: \"udp:127.0.0.1:$2\""
for name in one two; do
	sed -i 's/epsilon: 0.5/epsilon: 0.5, probe: true/; s/period: 200ms/period: 400ms/' $name.yaml
	serve_stop $name
	serve $name --api "unix:$PWD/$name.api" $name.yaml
done
both='p[0]["peers"] == 1 and p[1]["peers"] == 1'
one_reads='(p[0]["probe_reads"] > 0) != (p[1]["probe_reads"] > 0)'
watch 20 "$both and $one_reads and p[0]['probe_bursts'] + p[1]['probe_bursts'] >= 2" one two || fail "no host probes, or both do"
for name in one two; do
	curl -sS --unix-socket $name.api http://weir/metrics >$name.metrics
	grep -q '^weir_requests_total{.*} [1-9]' $name.metrics && fail "$name: reads of a probe are counted for a tenant"
done
grep -h '^weir_parda_probe_reads_total' one.metrics two.metrics | grep -q ' [1-9]' || fail "no metric"

# With a client at either host, a burst may begin only in the client's pauses, and ends when the
# client goes on. Otherwise it would be 2 % of 4 s.
probed() # ms, of both hosts
{
	for name in one two; do
		curl -sS --unix-socket $name.api http://weir/metrics
	done | awk '/^weir_parda_probe_seconds_total/ {sum += 1000 * $2} END {printf "%d", sum}'
}
load_start one 8
watch 10 'w[0] > 0 and p[0]["latency_s"] is not None' one || fail "no load"
before=$(probed)
watch 4 'False' one 2>/dev/null
after=$(probed)
[ $((after - before)) -le 40 ] || fail "probes beside a client: $before ms, then $after ms"
kill "$(cat one.load)"
for name in one two array; do
	serve_stop "$name"
done
sed -i 's/threshold: auto/threshold: 25ms/' one.yaml
run 2 weir policy check one.yaml
has stderr "is for 'threshold: auto'"
