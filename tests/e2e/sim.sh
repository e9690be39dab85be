# SPDX-License-Identifier: BSD-3-Clause
# weir sim: the same bytes for the same seed, values and series as files, overrides, and errors.
. "$WEIR_SOURCE/tests/lib.sh"
examples=$WEIR_SOURCE/examples/scenarios

# ---- tables, and the same ones again
run 0 weir sim -d 20s "$examples/noisy.yaml"
has stdout "noisy: a database beside a backup"
has stdout "h1.db"
has stdout "total.iops"
[ -s stderr ] && fail "unexpected output on standard error"
cp stdout first
run 0 weir sim --duration 20s "$examples/noisy.yaml"
cmp -s stdout first || fail "the same seed gave another result"
run 0 weir sim --duration 20s --seed 2 "$examples/noisy.yaml"
cmp -s stdout first && fail "another seed gave the same result"
run 0 weir sim --quiet "$examples/burst.yaml"
[ -s stdout ] && fail "--quiet prints something"

# ---- files
run 0 weir sim -q -o one/two -d 20s "$examples/noisy.yaml"
for file in summary tenant.h1.db.latency tenant.h1.backup.throughput host.h1.window total.throughput; do
	[ -s "one/two/$file.csv" ] || fail "there is no $file.csv"
done
has one/two/summary.csv "tenant.h1.db.p99_9,ms,"
[ "$(wc -l <one/two/total.throughput.csv)" -eq 21 ] || fail "a heading and 20 samples were expected"
[ -s one/two/tenant-latency.gp ] || fail "there is no gnuplot script"
if command -v gnuplot >/dev/null; then
	[ -s one/two/tenant-latency.svg ] || fail "there is no picture"
fi
run 0 weir sim -q -o three -d 20s "$examples/noisy.yaml"
for file in one/two/*.csv; do
	cmp -s "$file" "three/${file##*/}" || fail "${file##*/} differs between two runs"
done

# ---- an output that cannot be written is reported before the run, not after it
touch file
run 1 timeout 20 weir sim -q -d 100h -o file/below "$examples/noisy.yaml"
has stderr "file"
run 1 timeout 20 weir sim -q -d 100h -o file "$examples/noisy.yaml"
has stderr "file: Not a directory"
run 1 timeout 20 weir sim -q -d 100h -o '' "$examples/noisy.yaml"
has stderr "the folder needs a name"

# ---- a file that cannot be written completely does not exist, or has its old content
limited() # COMMAND...: run it with files limited to 1 KiB
(
	trap '' XFSZ
	ulimit -f 1
	exec "$@"
)
run 1 limited weir sim -q -o full -d 20s "$examples/noisy.yaml"
has stderr "weir: sim: full/summary.csv: File too large"
[ -z "$(ls -A full)" ] || fail "left behind: $(ls -A full)"
run 1 limited weir sim -q -o three --seed 9 -d 20s "$examples/noisy.yaml"
cmp -s one/two/summary.csv three/summary.csv || fail "summary.csv was damaged"
[ -z "$(find three -name '.*.part')" ] || fail "left behind: $(ls -A three)"

# ---- a link is followed, not replaced
mkdir linked && ln -s ../elsewhere linked/summary.csv
run 0 weir sim -q -o linked -d 20s "$examples/noisy.yaml"
[ -L linked/summary.csv ] || fail "the link was replaced"
cmp -s one/two/summary.csv elsewhere || fail "nothing was written through the link"

# ---- the tables fit a terminal
run 0 weir sim "$examples/noisy.yaml"
[ "$(wc -L <stdout)" -le 90 ] || fail "$(wc -L <stdout) columns"

# ---- overrides, more than one, and JSON
run 0 weir sim --json --set hosts[0].policy.depth=1 --set=duration=30s "--set" "at[0].set[0].max=400 iops" \
	"$examples/noisy.yaml"
python3 - <<'END' || fail "JSON"
import json
got = json.load(open("stdout"))
values = got["values"]
assert got["scenario"] == "noisy", got["scenario"]
assert values["host.h1.window_end"] == 1, values["host.h1.window_end"]
assert 0.97 < values["host.h1.in_flight"] <= 1.001, values["host.h1.in_flight"]
assert values["run.submitted"] == values["run.served"] + values["run.queued"] + values["run.in_flight"]
END

# ---- nothing completed: there is no latency, and an slo is neither met nor missed
cat >idle.yaml <<END
duration: 10s
devices: [{name: s, kind: server, rate: 0.001 iops}]
hosts: [{name: h, policy: {tenants: [{name: t, slo: p99 < 10ms}]}, workloads: [{outstanding: 1}]}]
END
run 0 weir sim idle.yaml
for row in 'h.t  *0  *0  *0  *–  *–  *–  *–  *–  *–  *–$' 'h.t  *–$' 'h  *0  *0  *1  *–' 'total.mean  *–  ms$'; do
	grep -q "^ *$row" stdout || fail "no row '$row'"
done
run 0 weir sim --json --out idle idle.yaml
has stdout '"tenant.h.t.p99": null'
has stdout '"wait.h.t.mean": null'
has stdout '"slo.h.t.ratio": null'
has stdout '"tenant.h.t.iops": 0.0'
grep -qx 'inside.h.t.max,ms,' idle/summary.csv || fail "summary.csv has a latency without requests"

# ---- every example: nothing is lost, and N = λ·T for each tenant beyond its gate
for file in "$examples"/*.yaml; do
	run 0 weir sim --json "$file"
	python3 - <<'END' || fail "$file"
import json
values = json.load(open("stdout"))["values"]
assert values["run.submitted"] == values["run.served"] + values["run.queued"] + values["run.in_flight"]
tenants = [name[7:-5] for name in values if name.startswith("tenant.") and name.endswith(".iops")]
assert tenants
for tenant in tenants:
    n, rate, time = (values[f"tenant.{tenant}.in_flight"], values[f"tenant.{tenant}.iops"],
                     values[f"inside.{tenant}.mean"] / 1000)
    assert rate > 0 and abs(n - rate * time) <= 0.01 * n, (tenant, n, rate * time)
END
done

# ---- errors are one line, with their place
refused() # TEXT COMMAND...
{
	text=$1
	shift
	run 2 "$@"
	has stderr "$text"
	[ "$(wc -l <stderr)" -eq 1 ] || fail "more than one line: $*"
	[ -s stdout ] && fail "an error goes to standard error: $*"
	return 0
}
printf 'duration: 1s\ndevices: [{name: s, kind: server}]\nhosts: [{name: h, polciy: {}}]\n' >bad.yaml
refused "weir: sim: bad.yaml:3:19: hosts[0]: unknown key 'polciy' (did you mean 'policy'?)" weir sim bad.yaml
printf 'duration: 1s\ndevices: [{name: s, kind: server}]\nhosts: [{name: h, window: 3}]\n' >old.yaml
refused "weir: sim: old.yaml:3:9: hosts[0]: 'window' is now 'depth' of a policy" weir sim old.yaml
refused "no-such.yaml" weir sim no-such.yaml
refused "needs one scenario file" weir sim
refused "needs one scenario file" weir sim bad.yaml bad.yaml
refused "PATH=VALUE" weir sim --set depth bad.yaml
refused "is not in the file" weir sim --set hosts[4].name=x bad.yaml
for value in '[' '{' '[1] x' '"a' '{a: 1}}' '[1], b: 2'; do # an error of the value, not of the file
	refused "--set name: '$value' is not one YAML value" weir sim --set "name=$value" "$examples/noisy.yaml"
done
refused "not a whole number" weir sim --seed many bad.yaml
refused "needs a unit" weir sim --duration 3 bad.yaml
run 1 timeout 20 weir sim -q --duration 1000000h "$examples/noisy.yaml"
has stderr "more than 1000000 samples"

# ---- a gate without a window
run 0 weir sim --set hosts[0].policy.depth=none --duration 6s "$examples/noisy.yaml"
grep -A1 "window at the end" stdout | grep -q "none" || fail "depth: none is not shown as none"
hasnt stdout 1000000

# ---- a policy file as it is, with models and loads from the command line
machine=$WEIR_SOURCE/examples/machine.yaml
db="--load prod/db:outstanding=16,size=8KiB"
run 0 weir sim --json --policy "$machine" --device array1=model:array -d 20s $db \
	--load "batch:outstanding=32,size=64 KiB" --load "prod/web:rate=2k iops" --load prod/web:outstanding=1
python3 - <<'END' || fail "the policy's run"
import json
values = json.load(open("stdout"))["values"]
assert values["tenant.array1.prod.web.iops"] > 900, values["tenant.array1.prod.web.iops"]
assert values["tenant.array1.prod.db.iops"] > values["tenant.array1.batch.iops"]
END
cp stdout first
run 0 weir sim --json --device array1=model:array -d 20s $db --load "batch:outstanding=32,size=64 KiB" \
	--load "prod/web:rate=2k iops" --load prod/web:outstanding=1 -p "$machine"
cmp -s stdout first || fail "the same policy and loads gave another result"
# The same by a short scenario that names the file.
cp "$machine" machine.yaml
cat >short.yaml <<END
name: $machine
duration: 20s
devices: [{name: array1, kind: array}]
policy: machine.yaml
hosts:
  - name: array1
    clients:
      prod/db: [{outstanding: 16, size: 8KiB}]
      batch: [{outstanding: 32, size: 64 KiB}]
      prod/web: [{rate: 2k iops}, {outstanding: 1}]
END
run 0 weir sim --json short.yaml
cmp -s stdout first || fail "a scenario with the same policy and loads gave another result"
run 0 weir sim -p "$machine" --device model:server,latency=1ms,servers=4 $db
run 0 weir sim -p "$machine" --device model:array-small,preset=cx3 $db
refused "array1' has no model behind it: give --device array1=model:ssd" weir sim --policy "$machine" $db
refused "no tenant 'prod/bd' (did you mean 'prod/db'?)" weir sim -p "$machine" --device model:ssd --load prod/bd:
refused "'prod' has children" weir sim -p "$machine" --device model:ssd --load prod:outstanding=1
refused "unknown key 'zise' (did you mean" weir sim -p "$machine" --device model:ssd --load prod/db:zise=1
refused "needs a --load" weir sim -p "$machine" --device model:ssd
refused "not both" weir sim -p "$machine" $db short.yaml
refused "go with --policy" weir sim $db short.yaml
refused "no resource 'disk'" weir sim -p "$machine" --device model:ssd --load prod/db@disk:
cat >two.yaml <<END
resources: [{name: a, back: "model:server,rate=500 iops+memory:1M"}, {name: b, back: "file:x", controller: adaptbf}]
exports: [{name: x, resource: a}, {name: y, resource: b}]
tenants: [{name: t, max: 200 iops, match: {export: x}}, {name: u, match: {export: y}}, {name: v}]
END
run 0 weir sim --json -p two.yaml --device b=model:server,servers=4 -d 20s --load t:outstanding=9 --load u:outstanding=9
python3 - <<'END' || fail "two resources"
import json
values = json.load(open("stdout"))["values"]
assert 195 < values["tenant.a.t.iops"] < 205, values["tenant.a.t.iops"]
assert values["tenant.b.u.iops"] > 900 and values["adaptbf.b.steps"] > 100 and "adaptbf.b.u.lent" in values
END
refused "which resource does 'v' use? give v@RESOURCE" weir sim -p two.yaml --device model:ssd --load v:
refused "'t' has limits, which hold over its resources together" weir sim -p two.yaml --device model:ssd \
	--load t@a: --load t@b:

# ---- the tenants of templates, with their limits; as if they were spelled out
cat >each.yaml <<END
classes: {silver: {max: {rate: 10 iops/GiB, at_least: 100 iops}}, gold: {weight: 3}}
resources: [{name: disk, back: "memory:200G", depth: 8}]
exports:
  - {name: vm-1, resource: disk, size: 1GiB}
  - {name: vm-2, resource: disk, offset: 1GiB, size: 30GiB}
  - {name: vm-3, resource: disk, offset: 40GiB, size: 30GiB, class: gold}
  - {name: vm-4, resource: disk, offset: 80GiB, size: 30GiB}
tenants:
  - {name: vms, each: {match: {export: "vm-*"}, class: silver, name: "m-{export}"}}
  - {name: two, each: {match: {export: "x-*", uid: "*"}}}
END
run 0 weir sim --json -p each.yaml --device model:server,rate=2k -d 10s --load vms/m-vm-1:outstanding=8 \
	--load vms/m-vm-2:outstanding=8 --load vms/m-vm-3:outstanding=8
python3 - stdout <<'END' || fail "tenants of templates are simulated otherwise"
import json, sys
v = json.load(open(sys.argv[1]))["values"]
assert 95 < v["tenant.disk.vms.m-vm-1.iops"] < 105, v
assert 290 < v["tenant.disk.vms.m-vm-2.iops"] < 310, v
assert 1550 < v["tenant.disk.vms.m-vm-3.iops"] < 1650, v
END
refused "--load: the template of 'vms' makes no tenant 'vms/vm-1'" weir sim -p each.yaml --device model:ssd --load vms/vm-1:
refused "--load: the template of 'two' makes no tenant 'two/x-1', or its tenants differ in more than one field" \
	weir sim -p each.yaml --device model:ssd --load two/x-1:
cat >each-host.yaml <<END
duration: 10s
devices: [{name: disk, kind: server, rate: 2k}]
hosts: [{name: h, policy: each.yaml, clients: {vms/m-vm-4: [{outstanding: 8}]}}]
END
run 0 weir sim --json each-host.yaml
has stdout '"tenant.h.vms.m-vm-4.iops": 30'
sed -i 's/m-vm-4/n-4/' each-host.yaml
refused "each-host.yaml:3:47: hosts[0].clients: the template of 'vms' makes no tenant 'vms/n-4'" weir sim each-host.yaml

# ---- keys for experiments
printf 'resources: [{name: a, back: "memory:1M", depth: 4, lab: {order: fifo}}]\n' >lab.yaml
run 2 weir policy check lab.yaml
has stderr "lab.yaml:1:57: resources[0].lab: is for experiments only: give --lab to accept it"
run 0 weir policy check --lab lab.yaml
run 2 weir serve --check lab.yaml
has stderr "is for experiments only"
run 0 weir serve --check --lab --listen unix:x.sock lab.yaml
sed -i 's/order: fifo/estimate: {io: 1ms}/' lab.yaml
run 2 weir serve --check --lab lab.yaml
has stderr "cannot use 'estimate'"

# ---- a trace is found next to its scenario, and a missing one is reported with its place
mkdir folder
printf '# weir-trace 1\n0 R 0 4096 0\n1000000 W 4096 8192 0\n' >folder/t.trace
printf 'duration: 1s\ndevices: [{name: s, kind: server}]\nhosts: [{name: h, workloads: [{trace: t.trace}]}]\n' \
	>folder/s.yaml
run 0 weir sim --json folder/s.yaml
has stdout '"run.submitted": 2.0'
echo 'not a line' >>folder/t.trace
refused "folder/s.yaml:3:39: t.trace:4: " weir sim folder/s.yaml
rm folder/t.trace
refused "folder/s.yaml:3:39: " weir sim folder/s.yaml

# ---- weights act while the requests of the tenant with the greater weight wait: what docs/policy.md says of depths

for depth in 16 32 48 64; do
	echo "{resources: [{name: disk, depth: $depth}], tenants: [{name: db, weight: 20, match: {export: a}}, {name: backup, match: {export: b}}]}" >depth.yaml
	run 0 weir sim --json -p depth.yaml --device disk=model:ssd --load db:outstanding=32 --load backup:outstanding=32 -d 1s
	cp stdout "depth$depth"
done
python3 - <<'END' || fail "weights at several depths"
import json
for depth, want in (16, 20), (32, 20), (48, 2), (64, 1):
    values = json.load(open(f"depth{depth}"))["values"]
    ratio = values["tenant.disk.db.iops"] / values["tenant.disk.backup.iops"]
    assert abs(ratio / want - 1) < 0.02, (depth, ratio)
END
