# SPDX-License-Identifier: BSD-3-Clause
# weir plan: bounds, priorities and buckets from traces; why an slo is missed and what would help; --admit; the plan's file; errors.
. "$WEIR_SOURCE/tests/lib.sh"

python3 - <<'END'
import random
def make(name, seed, n, gap, burst, size, op):
    r, t, i = random.Random(seed), 0, 0
    with open(name, "w") as f:
        f.write("# weir-trace 1\n")
        while i < n:
            for _ in range(min(r.randint(1, burst), n - i)):
                f.write(f"{int(t * 1e9)} {op} {r.randrange(1 << 18) * 4096} {size} 0\n")
                i += 1
            t += r.expovariate(1 / gap)
make("db.trace", 1, 1200, 0.02, 4, 8192, "R")
make("web.trace", 2, 1200, 0.03, 12, 65536, "R")
END
policy() { # depth, slo of db, slo of web
	cat <<END
resources: [{name: ssd1, back: "memory:64M", depth: $1, profile: ssd1.profile}]
links: [{name: srv-out, rate: 1 Gbit/s, levels: 7}]
tenants:
  - {name: vms, children: [{name: db, slo: "$2", trace: db.trace, path: [ssd1, srv-out], match: {export: "db-*"}}]}
  - {name: web, slo: "$3", trace: web.trace, match: {export: "web-*"}}
  - {name: batch, match: {export: "*"}}
END
}
cat >ssd1.profile <<END
profile: 1
depth: 8
sizes: [4 KiB, 1 MiB]
read: {inside: {max: 500us}, work: [{work: [110us, 2.2ms]}]}
write: {inside: {max: 400us}, work: [{work: [110us, 2.2ms]}]}
END

policy 8 "p99 < 10ms over 5m" "p99 < 50ms" >slo.yaml
run 0 weir plan --out plan.json slo.yaml
has stdout "vms/db"
has stdout "ssd1 0 srv-out 0"
has stdout "greedy"
has stdout "requests of batch, which has no trace"
run 0 weir plan --json slo.yaml
python3 - <<'END' || fail "the plan's numbers"
import hashlib, json
report, plan = json.load(open("stdout")), json.load(open("plan.json"))
digest = lambda name: hashlib.sha256(open(name, "rb").read()).hexdigest()
assert plan["version"] == 1 and plan["policy"] == digest("slo.yaml") and plan["profiles"] == {"ssd1": digest("ssd1.profile")}
db, web = plan["tenants"]
assert db["name"] == "vms/db" and db["slo"] == {"percentile": 99, "latency": 0.01}, db
assert [s["unit"] for s in db["stages"]] == ["time", "bytes"]
assert [s["priority"] for s in db["stages"]] == [0, 0] and web["stages"][0]["priority"] == 1
# every trace fits its buckets
for tenant, name in ((db, "db.trace"), (web, "web.trace")):
    for stage in tenant["stages"]:
        for rate, size in stage["buckets"]:
            level, last = size, 0
            for line in open(name).read().splitlines()[1:]:
                at, op, offset, length, stream = line.split()
                at, length = int(at) / 1e9, int(length)
                work = length + 128 if stage["unit"] == "bytes" else 110e-6 + (length - 4096) * (2.2e-3 - 110e-6) / (1048576 - 4096)
                level = min(size, level + rate * (at - last)) - work
                last = at
                assert level > -size * 1e-3, (name, stage["name"], rate, size, level)
for tenant in report["tenants"]:
    waits = tenant["waits"]
    total = waits["own"] + waits["blocking"] + waits["inside"] + sum(waits["others"].values())
    assert abs(total - tenant["bound"]) < 1e-9, tenant
    assert tenant["met"] and abs(tenant["margin"] - (tenant["slo"]["latency"] - tenant["bound"])) < 1e-12
assert report["feasible"] and report["stages"][0]["largest_of"] == "batch"
END
cp plan.json before.json

# missed: why, and what would help; no file unless --best
policy 8 "p99 < 10ms" "p99 < 9ms" >tight.yaml
rm plan.json
run 1 weir plan --out plan.json tight.yaml
has stdout "web misses its slo by"
has stdout "for vms/db"
has stdout "for 8 requests of batch"
has stdout "Any one of these would do: web p99 < "
has stdout "on ssd1"
has stdout "without vms/db"
[ ! -e plan.json ] || fail "a plan that misses was written"
run 1 weir plan --best --out plan.json tight.yaml
[ -e plan.json ] || fail "--best did not write"
# the slo that it names does
slo=$(sed -n 's/.*would do: web \(p99 < [^;]*\);.*/\1/p' stdout)
policy 8 "p99 < 10ms" "$slo" >relaxed.yaml
run 0 weir plan relaxed.yaml

# replayed: within the bound, repeatable, and the way to admit; together is never better than shifted apart
run 0 weir plan --json slo.yaml
cp stdout first.json
run 0 weir plan --json --seed 1 slo.yaml
cmp -s stdout first.json || fail "the same seed gives other numbers"
run 0 weir plan --json --seed 2 --alignments 3 slo.yaml
python3 - <<'END' || fail "the replay's numbers"
import json
first, second = json.load(open("first.json")), json.load(open("stdout"))
for t, u in zip(first["tenants"], second["tenants"]):
    r = t["replayed"]
    assert 0 < r["low"] <= r["latency"] <= r["high"] and r["latency"] <= r["max"] <= t["bound"], t
    assert r["requests"] >= 4 * 1100 and u["replayed"]["requests"] < r["requests"], (r, u)
    assert r != u["replayed"]
END
run 1 weir plan --alignments 0 tight.yaml
run 0 weir plan --admit-by replay --margin 0 tight.yaml
run 1 weir plan --admit-by replay --margin 99 tight.yaml
has stdout "when replayed, and may be"
run 2 weir plan --admit-by guess tight.yaml
run 2 weir plan --admit-by replay --alignments 0 tight.yaml
cp db.trace twin.trace
policy 8 "p99 < 10ms" "p99 < 50ms" | sed 's/web.trace/twin.trace/' >apart.yaml
{ cat apart.yaml; echo "together: [vms/db, web]"; } >together.yaml
run 0 weir plan --json apart.yaml
cp stdout apart.json
run 0 weir plan --json together.yaml
python3 -c '
import json
apart, together = (json.load(open(f))["tenants"][1]["replayed"]["latency"] for f in ("apart.json", "stdout"))
assert together > apart, (apart, together)' || fail "bursts that come together"

# new tenants: all or none
echo 'tenants: [{name: app, slo: "p99 < 100ms", trace: web.trace, match: {export: "app-*"}}]' >one.yaml
run 0 weir plan slo.yaml --admit one.yaml
has stdout "yes: 1 new tenant would fit"
cat >two.yaml <<END
- {name: app, slo: "p99 < 100ms", trace: web.trace, match: {export: "app-*"}}
- {name: fast, slo: "p99 < 1ms", trace: db.trace, match: {export: "fast-*"}}
END
run 1 weir plan slo.yaml --admit two.yaml
has stdout "no: 2 new tenants would not fit"
run 2 weir plan slo.yaml --admit missing.yaml
has stderr "missing.yaml"
run 2 weir plan slo.yaml --admit one.yaml --out x

# a trace that is too short, an slo without a trace, a stage that is asked for too much
policy 8 "p99.9 < 10ms" "p99 < 50ms" >short.yaml
echo '  - {name: other, slo: "p99 < 1s", match: {export: "other"}}' >>short.yaml
run 0 weir plan short.yaml
has stdout "vms/db: the trace is too short for p99.9: of 1200 requests fewer than 10"
has stdout "other: the slo is not planned"
sed 's/, profile: ssd1.profile//' slo.yaml >bare.yaml
run 1 weir plan --work 50ms bare.yaml
grep -q "^ssd1 is asked for [0-9]* % of its rate in the long run: vms/db [0-9.]* %, web" stdout || fail "$(cat stdout)"
has stdout "web has no bound"
run 2 weir plan bare.yaml
grep -q "^bare.yaml:1:[0-9]*: resource 'ssd1' has no profile" stderr || fail "$(cat stderr)"

# errors have their place
policy 6 "p99 < 10ms" "p99 < 50ms" >depth.yaml
run 2 weir plan depth.yaml
grep -q "^depth.yaml:1:[0-9]*: profile: it was measured at depth 8, but up to 6 requests are inside" stderr || fail "$(cat stderr)"
policy auto "p99 < 10ms" "p99 < 50ms" >auto.yaml
run 2 weir plan auto.yaml
grep -q "^auto.yaml:1:[0-9]*: resource 'ssd1': a plan needs a stated depth; the profile was measured at 8" stderr || fail "$(cat stderr)"
sed 's/, depth: 8//; s/, profile: ssd1.profile//' slo.yaml >none.yaml
run 2 weir plan --work 100us none.yaml
has stderr "resource 'ssd1': a plan needs a stated depth"
sed 's/depth: 8/controller: parda, threshold: 25ms, parda: {wmax: 8}/' slo.yaml >wmax.yaml
run 0 weir plan wmax.yaml
sed 's/db.trace/none.trace/' slo.yaml >gone.yaml
run 2 weir plan gone.yaml
grep -q "^gone.yaml:4:[0-9]*: trace: none.trace: " stderr || fail "$(cat stderr)"
printf '# weir-trace 1\n0 R 0 4096 0\n1 X 0 4096 0\n' >bad.trace
sed 's/db.trace/bad.trace/' slo.yaml >bad.yaml
run 2 weir plan bad.yaml
has stderr "bad.trace:3:"
sed 's/\[ssd1, srv-out\]/[ssd1, nowhere]/' slo.yaml >path.yaml
run 2 weir plan path.yaml
grep -q "^path.yaml:4:[0-9]*: .*no resource or link 'nowhere'" stderr || fail "$(cat stderr)"
echo "profile: 2" >ssd1.profile
run 2 weir plan slo.yaml
grep -q "^slo.yaml:1:[0-9]*: profile: ssd1.profile:1:" stderr || fail "$(cat stderr)"
run 2 weir plan
run 2 weir plan --pairs 0 slo.yaml
run 2 weir plan --inside p3 slo.yaml
run 2 weir plan --work x slo.yaml
run 2 weir plan --best slo.yaml

# ordinary though odd: one request, all at once, the largest
printf '0,0x1000,DiskRead\n' >db.trace
printf '0,0xffffffff,DiskRead\n0,0x1000,DiskWrite\n0,0x1000,DiskRead\n' >web.trace
run 1 weir plan --work 100us+500MB/s bare.yaml
has stdout "too short"
# two requests whose mean is steeper than a gate's bucket can be
printf '# weir-trace 1\n0 R 0 4096 0\n300 R 0 4096 0\n' >db.trace
cat >steep.yaml <<EOF
resources: [{name: ssd1, back: "memory:64M", depth: 8}]
tenants: [{name: db, slo: "p50 < 10s", trace: db.trace, match: {export: db}}]
EOF
run 1 weir plan --work 200us steep.yaml
has stdout "ssd1 is asked for 25600 % of its rate in the long run"
has stdout "db has no bound"

# a max that holds requests of a trace: its own, or that of its group
python3 -c '
print("# weir-trace 1")
for i in range(1200): print(i * 10**7, "R", i * 4096, 4096, 0)' >db.trace
held() # max of the group, max of db
{
	cat >held.yaml <<EOF
resources: [{name: ssd1, back: "memory:64M", depth: 8}]
tenants: [{name: g, $1 children: [{name: db, slo: "p99 < 100ms", $2 trace: db.trace, match: {export: db}}]}]
EOF
}
held "max: 110 iops," "max: [1 MiB/s, 110 iops],"
run 0 weir plan --work 200us held.yaml
held "" "max: 50 iops,"
run 1 weir plan --work 200us held.yaml
has stdout "g/db: its max of 50 iops holds back requests of its trace: the bound does not count that."
hasnt stdout "would do"
held "max: 100 KiB/s," ""
run 1 weir plan --json --work 200us held.yaml
python3 -c 'import json; p = json.load(open("stdout")); t = p["tenants"][0]; assert t["held_by"] == "g" and not t["met"] and not p["feasible"], p' || fail "$(cat stdout)"
run 1 weir plan --work 200us held.yaml
grep -q "^g/db: the max of g, of 100 KiB/s holds back" stdout || fail "$(cat stdout)"

# too short for the kind of the slo
held "" ""
sed -i 's/p99 </p99 writes </' held.yaml
sed -i '5s/R/W/; 9s/R/W/' db.trace
run 0 weir plan --work 200us held.yaml
has stdout "g/db: the trace is too short for p99: of 2 writes fewer than 10 lie beyond it."

# the file that `tenants` names is part of the policy's digest
echo '- {name: db, slo: "p99 < 100ms", trace: db.trace, match: {export: db}}' >tenants.yaml
cat >outer.yaml <<EOF
resources: [{name: ssd1, back: "memory:64M", depth: 8}]
tenants: tenants.yaml
EOF
run 0 weir plan --work 200us --out plan.json outer.yaml
python3 -c '
import hashlib, json
both = open("outer.yaml", "rb").read() + bytes(1) + open("tenants.yaml", "rb").read()
assert json.load(open("plan.json"))["policy"] == hashlib.sha256(both).hexdigest()' || fail "the digest of two files"

# a large request is in pieces of 256 KiB at the gate
python3 -c '
print("# weir-trace 1")
for i in range(1200): print(i * 10**8, "R", 0, 1048576, 0)' >db.trace
run 0 weir plan --work 1ms --json outer.yaml
python3 - <<'END' || fail "$(cat stdout)"
import json
p = json.load(open("stdout"))
db, = p["tenants"]
assert abs(p["stages"][0]["largest"] - 0.001) < 1e-9 and abs(db["stages"][0]["load"] - 0.04) < 1e-4, p
assert abs(db["waits"]["own"] - 0.004) < 1e-6 and abs(db["waits"]["blocking"] - 0.008) < 1e-9, db
assert 0.003 < db["replayed"]["latency"] <= db["bound"], db
END

# requests of a tenant without a trace have up to 256 KiB at a resource, whatever counts as one request
python3 -c '
print("# weir-trace 1")
for i in range(1200): print(i * 10**6, "R", 0, 4096, 0)' >db.trace
cat >unit.yaml <<EOF
resources: [{name: ssd1, back: "memory:64M", depth: 8, io_unit: 4 KiB}]
tenants:
  - {name: db, slo: "p99 < 100ms", trace: db.trace, match: {export: db}}
  - {name: batch, match: {export: "*"}}
EOF
run 0 weir plan --work 100us+500MB/s --json unit.yaml
python3 -c '
import json
s = json.load(open("stdout"))["stages"][0]
assert abs(s["largest"] - (1e-4 + 262144 / 5e8)) < 1e-9 and s["largest_of"] == "batch", s' || fail "$(cat stdout)"

# a min that the buckets of the plan leave no room for: named, and the plan is not used
mins() # min of batch, min of db, more of the resource
{
	cat >mins.yaml <<EOF
resources: [{name: ssd1, back: "memory:64M", depth: 8$3}]
tenants:
  - {name: db, slo: "p99 < 100ms", trace: db.trace$2, match: {export: db}}
  - {name: batch, children: [{name: copy$1, match: {export: "*"}}]}
EOF
}
mins ", min: 100 MiB/s" ""
rm -f plan.json
run 1 weir plan --work 800us --out plan.json mins.yaml # 80 %, and 400 pieces of 800 us: 32 %
has stdout "ssd1: the buckets of the plan take 80 % of its time in the long run, and with the mins it is asked for 112 % or more"
has stdout "batch/copy's min, of 32 % or more, is not kept"
hasnt stdout "would do"
[ ! -e plan.json ] || fail "a plan that takes a min away was written"
run 1 weir plan --work 800us --json mins.yaml
python3 -c '
import json
p = json.load(open("stdout"))
assert not p["feasible"] and p["tenants"][0]["met"] and not p["stages"][0]["mins_fit"] and 1.11 < p["stages"][0]["taken"] < 1.13, p' || fail "$(cat stdout)"
mins ", min: 60 MiB/s" ""
run 0 weir plan --work 800us mins.yaml
mins ", min: 400 iops" ""
run 1 weir plan --work 800us mins.yaml
mins ", min: 400 iops" "" ", capacity: 10k iops"
run 0 weir plan --work 800us mins.yaml
mins "" ", min: 1000 iops" # its buckets are as much
run 0 weir plan --work 800us mins.yaml

# one recording of several tenants: each takes its own requests
python3 - <<'END'
with open("all.trace", "w") as f:
    f.write("# weir-trace 1\n# stream 0: db on ssd1\n# stream 1: prod/web on ssd1\n# stream 2: db on ssd2\n")
    for i in range(3000):
        f.write(f"{i * 10**6} R 0 {(4096, 65536, 512)[i % 3]} {i % 3}\n")
END
recorded() # trace of db
{
	cat >all.yaml <<EOF
resources: [{name: ssd1, back: "memory:64M", depth: 8}]
tenants:
  - {name: db, slo: "p99 < 100ms", trace: $1, match: {export: db}}
  - {name: prod, children: [{name: web, slo: "p99 < 200ms", trace: all.trace, match: {export: web}}]}
EOF
}
loads() # of db and of web, by the bytes of a request, one in 3 ms, on a device of 100 MB/s
{
	run 0 weir plan --work 100MB/s --json all.yaml
	python3 - "$@" <<'END' || fail "$(cat stdout)"
import json, sys
for t, size in zip(json.load(open("stdout"))["tenants"], sys.argv[1:]):
    assert t["requests"] == 1000 and abs(t["stages"][0]["load"] / (int(size) / 1e8 / 3e-3) - 1) < 0.01, t
END
}
recorded all.trace
loads 4096 65536
recorded "{file: all.trace, tenant: prod/web}"
loads 65536 65536
recorded "{file: all.trace, tenant: nobody}"
run 2 weir plan --work 100us all.yaml
grep -q "^all.yaml:3:[0-9]*: trace: all.trace: has no requests of nobody, but of db, prod/web, db" stderr || fail "$(cat stderr)"
recorded "{tenant: db}"
run 2 weir plan --work 100us all.yaml
has stderr "trace: needs a file"
sed -i 's/^3000000 R/3000000 Q/' all.trace # a line of db keeps its number
recorded all.trace
run 2 weir plan --work 100us all.yaml
has stderr "all.trace:8:"

# requests that take longer than estimated: as the profile says, or --error
cat >ssd1.profile <<EOF
profile: 1
depth: 8
error: 0.25
sizes: [4 KiB]
read: {work: [{work: [800us]}]}
write: {work: [{work: [800us]}]}
EOF
cat >error.yaml <<EOF
resources: [{name: ssd1, back: "memory:64M", depth: 8, profile: ssd1.profile}]
tenants: [{name: db, slo: "p99 < 100ms", trace: db.trace, match: {export: db}}]
EOF
run 1 weir plan error.yaml # 80 % of the time, which is 100.0x % with it
has stdout "ssd1: requests may take 25 % longer than estimated, as its profile says."
has stdout "ssd1 is asked for 100 % of its rate"
run 0 weir plan --error 0 --json error.yaml
cp stdout without
run 0 weir plan --error 10 --json error.yaml
python3 - <<'END' || fail "--error"
import json
a, b = (json.load(open(f))["tenants"][0] for f in ("without", "stdout"))
assert abs(b["bound"] / a["bound"] - 1.1) < 1e-6 and b["replayed"]["latency"] > 1.09 * a["replayed"]["latency"], (a, b)
END
sed -i 's/0.25/-1/' ssd1.profile
run 2 weir plan error.yaml
has stderr "error"
