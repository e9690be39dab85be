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
serve gate weir.yaml
uri()
{
	echo "nbd+unix:///$1?socket=$here/s.sock"
}

# Two exports of x, of which the second begins after a second and ends after another one; then y too.
weir load -t 5s -d 16 --series s.csv "one=$(uri one)" "two=$(uri two),start=1s,duration=1500ms" \
	"three=$(uri three),start=3500ms,duration=1500ms" >load.out 2>&1 || fail "$(cat load.out)"
python3 - <<'END' || fail "$(cat s.csv)"
import csv
rows = [(float(r["time_s"]), r["job"], float(r["iops"])) for r in csv.DictReader(open("s.csv"))]
def mean(jobs, a, b):
    return sum(sum(v for t, j, v in rows if j == job and a < t <= b + 0.01) /
        max(1, len([1 for t, j, v in rows if j == job and a < t <= b + 0.01])) for job in jobs)
def near(what, got, want, below, above):
    assert want * (1 - below) <= got <= want * (1 + above), (what, got, want)
near("x alone in one", mean(["one"], 0.2, 0.9), 4000, 0.03, 0.01)
near("x in both", mean(["one", "two"], 1.3, 2.3), 4000, 0.03, 0.01)
near("its parts", mean(["two"], 1.3, 2.3), 2000, 0.05, 0.05)
near("x in one again", mean(["one"], 2.8, 3.4), 4000, 0.03, 0.01)
near("the group", mean(["one", "three"], 3.9, 4.9), 6000, 0.04, 0.01)
END
serve_stop gate
