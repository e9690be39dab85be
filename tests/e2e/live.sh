# SPDX-License-Identifier: BSD-3-Clause
# weir experiment run --live: a scenario on gateways with real clients has the simulator's metrics
# and is judged by the same claims; scenarios that cannot run live are refused; no process or file
# is left behind, however the run ends.
. "$WEIR_SOURCE/tests/lib.sh"
command -v fio >/dev/null || skip "fio is not installed"

# experiment NAME DURATION: one gateway before a model of a server; two of its tenants are clients
# of fio, two of weir replay. The window is always full, so shares follow from the weights, however
# busy the machine is. Of the other tenants one has a max, which changes, and one pauses.
experiment()
{
	mkdir -p "mine/$1"
	cat >"mine/$1/scenario.yaml" <<END
duration: $2
warmup: 2s
sample: 1s
devices: [{name: disk, kind: server, rate: 2k iops, servers: 4, service: fixed}]
hosts:
  - name: h
    policy:
      depth: 4
      tenants: [{name: a, weight: 2}, {name: b, weight: 1}, {name: c, max: 50 iops}, {name: d, weight: 0.01, lab: {priority: 0}}]
    clients:
      a: [{outstanding: 32, size: 4 KiB, reads: 0.5, region: 64 MiB}]
      b: [{outstanding: 32, size: 4 KiB, region: 64 MiB}]
      c: [{rate: 400 iops, size: 4 KiB, region: 64 MiB, start: 500ms}]
      d: [{arrivals: hyper, ca2: 1.2, rate: 50 iops, size: 4 KiB, region: 64 MiB}]
at:
  - {time: 1s, set: {tenant: h/c, max: 100 iops}}
  - {time: 2s, set: {workload: h/d/w1, run: false}}
  - {time: 4s, set: {workload: h/d/w1, run: true}}
END
	cat >"mine/$1/experiment.yaml" <<END
id: $1
title: Shares inside a host
source: ours
live: {set: {"hosts[0].clients.b[0].outstanding": 48}}
runs: [{name: r, scenario: scenario.yaml}]
claims:
  - {what: a over b, value: r.tenant.h.a.iops / r.tenant.h.b.iops, within: 10 % of 2}
  - {what: c has its max, value: r.tenant.h.c.iops, within: 10 % of 100, unit: iops}
  - {what: d while it pauses, value: "max(r.tenant.h.d.throughput, 3500ms, 4s)", band: [0, 0], unit: iops}
  - {what: d again, value: last(r.tenant.h.d.throughput), band: [10, 90], unit: iops}
  - {what: d has the first priority, value: r.tenant.h.d.p50 / r.tenant.h.b.p50, band: [none, 0.3]}
  - {what: the window, value: "mean(r.host.h.window, 2s, 6s)", band: [4, 4]}
END
}
experiment tiny 6s
# On a busy machine clients may start late: then repeat.
weir experiment run tiny --dir mine --live --out live >first 2>&1 || run 0 weir experiment run tiny --dir mine --live --out live
run 0 weir experiment run tiny --dir mine --out sim
# The simulator's metrics have the same names, except for a few that only it has.
names()
{
	find "$1/data/tiny/r" -name '*.csv' ! -name values.csv -exec basename {} \; | sort
	cut -d, -f1,2 "$1/data/tiny/r/values.csv" | grep -v '^run\.' | sort
}
names sim >sim.names
names live >live.names
cmp -s sim.names live.names || fail "other names: $(diff sim.names live.names)"

# ---- refused
cp -r mine/tiny mine/other
sed -i 's/^id: tiny/id: other/; /^live:/d' mine/other/experiment.yaml
run 2 weir experiment run other --dir mine --live
has stderr "other cannot run live"
refused() # SCRIPT TEXT...: tiny's scenario, changed by the sed script, must be refused with all of these texts
{
	cp mine/tiny/scenario.yaml kept
	sed -i "$1" mine/tiny/scenario.yaml
	shift
	run 2 weir experiment run tiny --dir mine --live
	for text; do
		has stderr "$text"
	done
	cp kept mine/tiny/scenario.yaml
}
refused 's/^hosts:/links: [{name: wire}]\nhosts:/' "link 'wire' cannot run live"
refused 's/reads: 0.5/think: 1ms/' "scenario.yaml:" "h/a/w1 cannot run live: think"
refused 's/size: 4 KiB, reads/size: 1 MiB, reads/' "h/a/w1 cannot run live" "256 KiB"
refused 's/^      depth: 4/&\n      lab: {aligned: true}/' "lab: 'aligned' cannot run live"
refused 's/depth: 4/depth: 0.5/' "depth: cannot run live"
refused 's/{tenant: h.c, max: 100 iops}/{device: disk, rate: 10 iops}/' "this change cannot run live: the rate of a model cannot change"
mkdir bin
ln -s "$(command -v weir)" bin/weir
got=0
PATH=$PWD/bin weir experiment run tiny --dir mine --live >stdout 2>stderr || got=$?
[ "$got" -eq 2 ] || fail "without fio: exit status $got"
has stderr "fio is not installed"

# ---- interrupted and failed runs
experiment long 60s
# begin: run `long` in the background; set $pid, $folder (its files) and $children (its processes)
begin()
{
	weir experiment run long --dir mine --live >stdout 2>stderr </dev/null &
	pid=$!
	tries=0
	until children=$(pgrep -P "$pid") && [ "$(echo "$children" | wc -l)" -eq 6 ]; do
		tries=$((tries + 1))
		[ "$tries" -lt 500 ] || fail "its six processes do not run after 10 s: $(cat stderr)"
		sleep 0.02
	done
	server=$(echo "$children" | head -n 1)
	folder=$(dirname "$(tr '\0' '\n' <"/proc/$server/cmdline" | tail -n 1)")
	[ -s "$folder/0.yaml" ] || fail "$folder: no policy"
}
gone() # wait until all its processes have ended
{
	for child in $children; do
		tries=0
		while kill -0 "$child" 2>/dev/null; do
			tries=$((tries + 1))
			[ "$tries" -lt 500 ] || fail "process $child still runs"
			sleep 0.02
		done
	done
}
ends() # STATUS
{
	got=0
	wait "$pid" || got=$?
	[ "$got" -eq "$1" ] || fail "exit status $got, not $1: $(cat stderr)"
}
begin
kill -TERM "$pid"
ends 130
gone
[ ! -e "$folder" ] || fail "$folder still exists"
begin
kill -KILL "$server"
ends 1
has stderr "the gateway of 'disk' ended by signal 9"
gone
[ ! -e "$folder" ] || fail "$folder still exists"
begin
kill -KILL "$pid"
ends 137
gone
rm -r "$folder"
