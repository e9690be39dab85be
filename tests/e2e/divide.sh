# SPDX-License-Identifier: BSD-3-Clause
# A tenant's max holds in total over its exports, back ends and threads, and goes to where it is wanted.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

here=$PWD
cat >weir.yaml <<END
listen: "unix:$here/s.sock"
threads: 3
resources:
  - {name: one, back: "memory:16M"}
  - {name: two, back: "memory:16M"}
  - {name: three, back: "memory:16M"}
tenants:
  - name: group
    max: 6k iops
    children:
      - {name: x, max: 4k iops, match: [{export: one}, {export: two}]}
      - {name: y, match: {export: three}}
END
serve gate --api "unix:$here/api.sock" weir.yaml
uri()
{
	echo "nbd+unix:///$1?socket=$here/s.sock"
}

# Two exports of x, of which the second begins after a second and ends after another one; then y too.
# 0; 1: a max was passed; 3: one was not reached.
try()
{
	weir load -t 5s -d 64 --series s.csv "one=$(uri one)" "two=$(uri two),start=1s,duration=1500ms" \
		"three=$(uri three),start=3500ms,duration=1500ms" >load.out 2>&1 || fail "$(cat load.out)"
	python3 - <<'END'
import csv, statistics, sys
rows = [(float(r["time_s"]), r["job"], float(r["iops"])) for r in csv.DictReader(open("s.csv"))]
def rates(job, a, b): # of 100 ms each
    return [v for t, j, v in rows if j == job and a < t <= b + 0.01]
# The mean must not be over what a max lets pass in that time, ever: 45 ms more of it (docs/policy.md). It must be
# reached in the best of the rows: a machine that is busy with something else stops all for some ms now and then.
def near(what, jobs, a, b, want):
    mean = sum(statistics.mean(rates(j, a, b)) for j in jobs)
    best = sum(sorted(rates(j, a, b))[-2] for j in jobs)
    if mean > want * (1 + 0.045 / (b - a)) + 1:
        print(what, "over its max:", mean, want)
        sys.exit(1)
    if best < want * 0.97:
        print(what, "never at its max:", best, want)
        sys.exit(3)
near("x alone in one", ["one"], 0.2, 0.9, 4000)
near("x in both", ["one", "two"], 1.3, 2.3, 4000)
for j in "one", "two":
    near("its parts", [j], 1.3, 2.3, 2000)
near("x in one again", ["one"], 2.8, 3.4, 4000)
near("the group", ["one", "three"], 3.9, 4.9, 6000)
END
}

# Nobody may ever pass a max. That it is reached may fail on a busy machine: then once more, and again.
got=0
in_rounds try || got=$?
[ "$got" -eq 0 ] || fail "$(cat s.csv)"

# Where nobody is connected 1/2048 of a max is left: less than any rate that a gate takes, but no reason to refuse it.
weir load -t 1s -d 1 "one=$(uri one)" >load.out 2>&1 &
load=$!
sleep 0.5
run 0 weir set group/x.max 1 iops --socket "$here/api.sock"
run 0 weir set group/x.max 4k iops --socket "$here/api.sock"
wait "$load" || fail "$(cat load.out)"
hasnt gate.log "divide"
serve_stop gate
