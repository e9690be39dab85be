# SPDX-License-Identifier: BSD-3-Clause
# weir experiment run --live of a cluster: servers, a controller that is killed and restarted,
# clients; the service in each period is judged as in the simulator, and no limit is exceeded.
. "$WEIR_SOURCE/tests/lib.sh"

mkdir -p mine/two
cat >mine/two/scenario.yaml <<'END'
duration: 5s
cluster:
  servers: 2
  buckets: 2
  capacity: 500 iops
  reservation: 100 iops
  limit: 2
  nested: true
  active: 1
  outstanding: 8
  period: 500ms
  kill: [2s, 3s]
END
cat >mine/two/experiment.yaml <<'END'
id: two
title: Two buckets on two servers
source: ours
live: true
runs: [{name: r, scenario: scenario.yaml}]
claims:
  - {what: no limit is passed, value: r.pshift.over, band: [0, 0]}
  - {what: "bucket $x", value: r.bucket.$x.iops, band: [50, 200], unit: iops, for: [1, 2]}
  - {what: periods, value: r.pshift.periods, band: [5, 10]}
  - {what: reports, value: r.pshift.reports, band: [1, none]}
END
run 0 weir experiment run two --dir mine --live --out live
run 0 weir experiment run two --dir mine --out sim
cut -d, -f1,2 live/data/two/r/values.csv >live.names
cut -d, -f1,2 sim/data/two/r/values.csv >sim.names
cmp -s sim.names live.names || fail "other names: $(diff sim.names live.names)"

# Without a controller no limit is enforced: the judge finds that they are exceeded, so it would
# find that above.
sed -i 's/  kill:.*/  control: false/' mine/two/scenario.yaml
run 1 weir experiment run two --dir mine --live
grep -q 'MISS *no limit is passed' stdout || fail "no limit was exceeded: $(cat stdout)"

sed -i 's/  control:.*/  loss: 0.5/' mine/two/scenario.yaml
run 2 weir experiment run two --dir mine --live
has stderr "cluster: cannot run live: loss"
