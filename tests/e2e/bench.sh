# SPDX-License-Identifier: BSD-3-Clause
# weir bench prints its rows, as a table and as JSON. Speed is not tested here, since machines
# differ, but every row must have been measured.
. "$WEIR_SOURCE/tests/lib.sh"

rows() # FILE: check that it is a list of complete rows
{
	python3 - "$1" <<'END' || fail "$1: rows are incomplete"
import json, sys
rows = json.load(open(sys.argv[1]))
assert rows, "no rows"
assert len({row["name"] for row in rows}) == len(rows), "two rows of one name"
for row in rows:
    missing = {"name", "value", "unit", "peer", "peer_value", "ratio"} - row.keys()
    assert not missing, (row, missing)
    assert row["name"] and isinstance(row["unit"], str), row
    assert row["value"] > 0, row
    if row["peer"] is None:
        assert row["peer_value"] is None and row["ratio"] is None, row
    else:
        assert row["peer_value"] > 0, row
        ratio = row["value"] / row["peer_value"]
        assert abs(row["ratio"] / ratio - 1) < 1e-3, row
END
}

for what in gate alloc pshift pshift-fig5 pshift-fig7 sim gateway hosts cluster net; do
	run 0 weir bench "$what" --quick --runs 1 --json
	[ ! -s stderr ] || fail "$what: $(cat stderr)"
	mv stdout "$what.json"
	rows "$what.json"
done

# The examples of pShift's paper, and the approximation: the same on every machine.
for what in pshift-ex123 pshift-fig6; do
	run 0 weir bench "$what" --quick --runs 1 --json
	mv stdout "$what.json"
done
python3 - <<'END' || fail "pshift: differs from the paper, or removed more tokens than possible"
import json
rows = {row["name"]: row["value"] for row in json.load(open("pshift-ex123.json"))}
assert rows["ex2: phi of the split"] == 175 and rows["ex3: phi"] == 300, rows
assert rows["ex3: movable from 1 to 2"] == 25 and rows["ex3: movable from 1 to 3"] == 0, rows
rows = [row for row in json.load(open("pshift-fig6.json")) if row["unit"] == "%"]
assert len(rows) == 24 and all(0 <= row["value"] <= 100 for row in rows), rows
END

# The simulation's counts are the same on every machine: 200,000 IOs/s for 300 s.
python3 - sim.json <<'END' || fail "sim: not the work that the rows promise"
import json, sys
rows = {row["name"].split(": ")[-1]: row for row in json.load(open(sys.argv[1]))}
assert 60 <= rows["IOs"]["value"] < 62, rows["IOs"]
assert 29 < rows["latency in it"]["value"] < 31, rows["latency in it"]
END

run 0 weir bench gateway --quick --runs 1 --only 'slow readers' --json
python3 - stdout <<'END' || fail "gateway --only: not its row"
import json, sys
names = [row["name"] for row in json.load(open(sys.argv[1]))]
assert names[0] == "4 KiB reads, QD32, beside 10 slow readers", names
assert all(name.startswith("  ") for name in names[1:]), names
END
run 1 weir bench pshift-ex123 --only nothing
has stderr "no row contains 'nothing'"

run 2 weir bench
has stderr 'gate, alloc, pshift, plan, sim, gateway, hosts, cluster or net'
run 2 weir bench sin
has stderr "no benchmark 'sin'"
for n in 0 26 2x ''; do
	run 2 weir bench sim --runs "$n"
	has stderr '--runs'
done
