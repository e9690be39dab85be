# SPDX-License-Identifier: BSD-3-Clause
# weir alloc pshift: the paper's examples; phi equals the result of a linear program; errors have
# their path.
. "$WEIR_SOURCE/tests/lib.sh"

cat >check.py <<'END'
"""Check what alloc-json promises of every answer."""
import json, subprocess, sys

def allocate(doc):
    out = subprocess.run([sys.argv[1], "alloc", "pshift"], input=json.dumps(doc), capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout)

def check(doc, out):
    load = {server["name"]: 0 for server in doc["servers"]}
    for bucket in doc["buckets"]:
        demand, r = bucket.get("demand", {}), out["rtokens"][bucket["name"]]
        assert set(r) == set(demand) and all(0 <= r[s] <= demand[s] for s in r), (bucket, r)
        assert sum(r.values()) == min(bucket.get("reservation", 0), sum(demand.values()))
        limit, l = bucket.get("limit"), out["ltokens"].get(bucket["name"])
        assert (limit is None) == (l is None), bucket
        if l is not None:
            assert all(0 <= l[s] <= demand[s] - r[s] for s in l)
            assert sum(r.values()) + sum(l.values()) == min(limit, sum(demand.values()))
        for server, tokens in r.items():
            load[server] += tokens
    assert out["phi"] == sum(min(s["capacity"], load[s["name"]]) for s in doc["servers"])
    assert out["excess"] == {s["name"]: max(0, load[s["name"]] - s["capacity"]) for s in doc["servers"]}
    assert out["asked"] - out["phi"] == sum(out["excess"].values())
    if "short" in out:
        assert out["asked"] - out["phi"] == sum(g["needed"] - g["capacity"] for g in out["short"])
END

# ---- the paper's examples

cat >examples.py <<'END'
from check import *
servers = lambda n: [{"name": f"s{i + 1}", "capacity": 100} for i in range(n)]
two = {"servers": servers(2), "buckets": [
    {"name": "red", "reservation": 100, "limit": 150, "demand": {"s1": 150, "s2": 50}},
    {"name": "blue", "reservation": 100, "demand": {"s1": 50, "s2": 50}}]}
out = allocate(two)
check(two, out)
assert out["phi"] == 200 and out["rtokens"] == {"red": {"s1": 50, "s2": 50}, "blue": {"s1": 50, "s2": 50}}, out
assert out["ltokens"] == {"red": {"s1": 50, "s2": 0}} and out["short"] == [], out
three = {"servers": servers(3), "buckets": [
    {"name": "red", "reservation": 100, "demand": {"s1": 150, "s2": 50}},
    {"name": "blue", "reservation": 100, "demand": {"s2": 150, "s3": 50}},
    {"name": "green", "reservation": 100, "demand": {"s1": 50, "s3": 50}}]}
out = allocate(three)
check(three, out)
assert out["phi"] == 300 and list(out["excess"].values()) == [0, 0, 0], out
# Intrinsic error (§IV-B): two buckets of 100 with demand on one server of 100 only.
one = {"servers": servers(2), "buckets": [
    {"name": "a", "reservation": 100, "demand": {"s1": 500}}, {"name": "b", "reservation": 100, "demand": {"s1": 500}}]}
out = allocate(one)
check(one, out)
assert [g["words"] for g in out["short"]] == ["a and b need 200 at s1, which can do 100: 100 short"], out
# The largest numbers allowed, a floor, empty input.
big = 2**53
doc = {"servers": [{"name": "s", "capacity": big}, {"name": "t", "capacity": big}],
       "buckets": [{"name": str(i), "reservation": big, "demand": {"s": big, "t": big - i}} for i in range(9)]}
check(doc, allocate(doc))
out = allocate({"servers": servers(2), "floor": 5, "buckets": [{"name": "a", "limit": 20, "demand": {"s1": 9, "s2": 0}}]})
assert out["ltokens"] == {"a": {"s1": 9, "s2": 5}}, out
assert allocate({"servers": [], "buckets": []})["phi"] == 0
END
PYTHONPATH=. python3 examples.py "$WEIR" || fail "examples"

# ---- a linear program agrees

command -v glpsol >/dev/null || fail "glpsol is missing (tools/deps)"
cat >program.py <<'END'
from check import *
import random

def glpk(doc):
    """Return the largest consumption of any allocation."""
    names, rows, bounds = [], {}, []
    for b, bucket in enumerate(doc["buckets"]):
        for server, demand in bucket["demand"].items():
            name = f"x{b}_{server}"
            names.append(name)
            bounds.append(f" 0 <= {name} <= {demand}")
            rows.setdefault(f"b{b}", (bucket["reservation"], []))[1].append(name)
    for server in doc["servers"]:
        used = [name for name in names if name.endswith("_" + server["name"])]
        if used:
            rows["c_" + server["name"]] = (server["capacity"], used)
    if not names:
        return 0
    with open("program.lp", "w") as f:
        f.write("Maximize\n phi: " + "\n + ".join(names) + "\nSubject To\n")
        for name, (most, terms) in rows.items():
            f.write(f" {name}: " + "\n + ".join(terms) + f" <= {most}\n")
        f.write("Bounds\n" + "\n".join(bounds) + "\nEnd\n")
    subprocess.run(["glpsol", "--lp", "program.lp", "-o", "program.out"], check=True, stdout=subprocess.DEVNULL)
    with open("program.out") as f:
        for line in f:
            if line.startswith("Objective:"):
                return round(float(line.split("=")[1].split()[0]))

random.seed(1)
met = 0
for number in range(60):
    scale = random.choice([3, 100, 10**6])
    servers = [{"name": f"s{j}", "capacity": random.randint(0, scale)} for j in range(random.randint(1, 12))]
    buckets = []
    for i in range(random.randint(0, 30)):
        at = random.sample(servers, random.randint(0, min(4, len(servers))))
        buckets.append({"name": f"b{i}", "reservation": random.randint(0, scale),
                        "demand": {s["name"]: random.choice([0, random.randint(0, scale)]) for s in at}})
        if random.random() < 0.4:
            buckets[-1]["limit"] = buckets[-1]["reservation"] + random.randint(0, scale)
    doc = {"servers": servers, "buckets": buckets}
    out, most = allocate(doc), glpk(doc)
    check(doc, out)
    assert out["phi"] == most, (number, out["phi"], most)
    met += out["phi"] == out["asked"]
    check(doc, allocate({**doc, "threads": 2}))
    rough = allocate({**doc, "top": 1})
    check(doc, rough)
    assert rough["phi"] <= most and "short" not in rough
assert 5 < met < 55, met
END
PYTHONPATH=. python3 program.py "$WEIR" || fail "a linear program"

# ---- errors

wrong() # JSON MESSAGE
{
	printf '%s' "$1" >in.json
	run 2 weir alloc pshift in.json
	has stderr "$2"
	[ "$(wc -l <stderr)" -eq 1 ] || fail "$1: more than one line"
	[ ! -s stdout ] || fail "$1: something on standard output"
}
s='"servers": [{"name": "s", "capacity": 1}]'
wrong '{"buckets": []}' 'servers: is missing'
wrong "{$s}" 'buckets: is missing'
wrong '{"servers": [{"name": "s"}], "buckets": []}' 'servers[0].capacity: is missing'
wrong '{"servers": [{"name": "s", "capacity": -1}], "buckets": []}' 'servers[0].capacity: must be at least 0'
wrong '{"servers": [{"name": "s", "capacity": 0.5}], "buckets": []}' 'servers[0].capacity: must be a whole number'
wrong '{"servers": [{"name": "s", "capacity": 9007199254740993}], "buckets": []}' 'servers[0].capacity: must be at most'
wrong '{"servers": [{"name": "s", "capacity": 1}, {"name": "s", "capacity": 1}], "buckets": []}' \
	"servers[1].name: 's' is used twice"
wrong "{$s, \"buckets\": [{\"name\": \"a\"}, {\"name\": \"a\"}]}" "buckets[1].name: 'a' is used twice"
wrong "{$s, \"buckets\": [{\"name\": \"a\", \"demand\": {\"t\": 1}}]}" 'buckets[0].demand.t: there is no such server'
wrong "{$s, \"buckets\": [{\"name\": \"a\", \"demand\": {\"s\": -1}}]}" 'buckets[0].demand.s: must be at least 0'
wrong "{$s, \"buckets\": [{\"name\": \"a\", \"demand\": {\"s\": 1, \"s\": 2}}]}" 'duplicate'
wrong "{$s, \"buckets\": [{\"name\": \"a\", \"demand\": 7}]}" 'buckets[0].demand: must be an object'
wrong "{$s, \"buckets\": [{\"name\": \"a\", \"limit\": \"x\"}]}" 'buckets[0].limit: must be a number'
wrong "{$s, \"buckets\": [{\"name\": \"a\", \"reserve\": 1}]}" 'buckets[0].reserve: unknown'
wrong "{$s, \"buckets\": [], \"top\": 0}" 'top: must be at least 1'
wrong "{$s, \"buckets\": [], \"threads\": 0}" 'threads: must be at least 1'
python3 - >in.json <<'END'
import json
most = 2**53
print(json.dumps({"servers": [{"name": "s", "capacity": 1}],
    "buckets": [{"name": str(i), "reservation": most, "demand": {"s": most}} for i in range(300)]}))
END
run 2 weir alloc pshift in.json
has stderr 'buckets: the total demand is more than 2^61'
