# SPDX-License-Identifier: BSD-3-Clause
# A tenant's max holds in total over its exports, back ends and threads, and moves to where there is
# demand.
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

# Two exports of x, of which the second is busy from the second second to the third; then y too.
# Exit status 0; 1: a max was exceeded; 3: one was not reached.
try()
{
	weir load -t 5s -d 64 --series s.csv "one=$(uri one)" "two=$(uri two),start=1s,duration=1500ms" \
		"three=$(uri three),start=3500ms,duration=1500ms" >load.out 2>&1 || fail "$(cat load.out)"
	python3 - <<'END'
import csv, statistics, sys
rows = [(float(r["time_s"]), r["job"], float(r["iops"])) for r in csv.DictReader(open("s.csv"))]
def rates(job, a, b): # of 100 ms each
    return [v for t, j, v in rows if j == job and a < t <= b + 0.01]
# The mean must never exceed what a max allows in that time: 45 ms more of it (docs/policy.md). It
# must be reached in the best of the rows: other load on the machine stops all processes for some ms
# now and then.
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

# A max must never be exceeded. It may not be reached on a busy machine: then try again, up to three
# times.
got=0
in_rounds try || got=$?
[ "$got" -eq 0 ] || fail "$(cat s.csv)"

# A small max has one bucket for all threads: three exports together have no more at once than one, and all of it is used. Over a span
# of t seconds: 20·(t + 45 ms) + 1.
sed 's/max: 4k iops/max: 20 iops/; s/{export: two}/{export: two}, {export: three}/; /name: y/d' weir.yaml >small.yaml
weir policy apply --socket "$here/api.sock" small.yaml >apply.out 2>&1 || fail "$(cat apply.out)"
weir load -t 2s -d 8 --json "one=$(uri one)" "two=$(uri two)" "three=$(uri three)" >small.json 2>load.out || fail "$(cat load.out)"
python3 - <<'END' || fail "$(cat small.json)"
import json, sys
got = sum(j["iops"] * j["elapsed_s"] for j in json.load(open("small.json")))
print(got, "in 2 s")
sys.exit(not 36 <= got <= 20 * 2.045 + 1)
END
weir policy apply --socket "$here/api.sock" weir.yaml >apply.out 2>&1 || fail "$(cat apply.out)"

# A gate without clients keeps 1/2048 of a max: below the smallest rate of a gate, which must not
# refuse it.
weir load -t 1s -d 1 "one=$(uri one)" >load.out 2>&1 &
load=$!
sleep 0.5
run 0 weir set group/x.max 1 iops --socket "$here/api.sock"
run 0 weir set group/x.max 4k iops --socket "$here/api.sock"
wait "$load" || fail "$(cat load.out)"
hasnt gate.log "divide"
serve_stop gate
