# SPDX-License-Identifier: BSD-3-Clause
# weir demo works anywhere, without other files, in under a minute; it shows that the policy helps;
# and the commands that it suggests work.
. "$WEIR_SOURCE/tests/lib.sh"

# helps FILE: the backup is held to its max, and the database's slowest requests are faster than
# before.
helps()
{
	python3 - "$1" <<'END'
import re, sys
text = open(sys.argv[1]).read()
rows = {m[1]: [float(x) for x in re.findall(r"([\d.e+]+) → ([\d.e+]+)", m[0]) for x in x]
        for m in re.finditer(r"^  (db|web|backup) .*$", text, re.M)}
assert rows["backup"][0] > 1500 and rows["backup"][1] < 1020, rows
assert rows["db"][5] < rows["db"][4] / 2, rows
END
}

# The slowest 1 % of six seconds are few requests: repeat on a machine that is busy with other
# tests.
for look in 1 2 3; do
	run 0 timeout 60 weir demo --time 6s
	cp stdout first
	helps first && break
	[ "$look" -lt 3 ] || fail "the policy did not help: $(cat first)"
done
for tenant in db web backup; do
	has first "  $tenant "
done
has first 'Before → after'
[ "$(LC_ALL=C.UTF-8 wc -L <first)" -le 110 ] || fail "wider than a terminal"
grep -q "$(printf '\033')" first && fail "colours, although standard output is not a terminal"

# Points of a line are half a second apart; the last interval, which may be short, has no point of
# its own.
python3 - weir-demo/latency.csv <<'END' || fail "points of the picture are too close"
import csv, sys
rows = list(csv.reader(open(sys.argv[1])))[1:]
for column in 1, 2, 3:
    at = [float(row[0]) for row in rows if row[column]]
    assert len(at) > 5 and all(b - a >= 0.24 for a, b in zip(at, at[1:])), (column, at)
END
if command -v gnuplot >/dev/null; then
	grep -q '<svg' weir-demo/latency.svg || fail "no picture"
fi
run 0 weir policy check weir-demo/before.yaml weir-demo/after.yaml

# The page that it names; with --stay the load goes on until SIGINT, and nothing is left behind.
if command -v curl >/dev/null; then
	TMPDIR=$PWD weir demo --time 4s --stay --out stay >staying 2>stay.log &
	demo=$!
	waited=0
	until grep -q 'load goes on until' staying; do
		sleep 0.1
		waited=$((waited + 1))
		[ "$waited" -lt 300 ] || fail "the demo does not stay: $(cat staying stay.log)"
	done
	page=$(sed -n 's/.* page, in a browser: \([^,]*\), token .*/\1/p' staying) token=$(sed -n 's/.* page, in .* token //p' staying)
	curl -fsS "$page" | grep -q '<title>Weir</title>' || fail "no page at $page"
	served() { curl -fsS -H "Authorization: Bearer $token" "${page}v1/status" | python3 -c 'import json,sys; print(sum(t["served"] for t in json.load(sys.stdin)["tenants"]))'; }
	before=$(served)
	sleep 1
	[ "$(served)" -gt "$before" ] || fail "the load does not go on"
	kill -s INT $demo
	wait $demo || fail "--stay ends with status $?: $(cat stay.log)"
	curl -s "$page" >/dev/null && fail "the gateway is left behind"
fi

# The suggested commands, with shorter times: serve, load and top.
grep '^  .*weir ' first | sed 's/^  [^ ]*weir /weir /; s/60s/2s/' | sed "s|/tmp/|$PWD/|g" >next
[ "$(wc -l <next)" -eq 3 ] || fail "not three suggested commands"
sh -c "exec $(sed -n 1p next)" >serve.log 2>&1 &
gateway=$!
waited=0
until [ -S nbd.sock ] && [ -S api.sock ]; do
	sleep 0.05
	waited=$((waited + 1))
	[ "$waited" -lt 200 ] || fail "the gateway does not listen: $(cat serve.log)"
done
run 0 sh -c "$(sed -n 2p next)"
run 0 sh -c "$(sed -n 3p next) --once"
has stdout backup
kill "$gateway"
wait "$gateway" || fail "the gateway ended with $?"

# If the folder cannot be made, the demo says so and fails.
touch file
got=0
weir demo --out file/below >stdout 2>stderr || got=$?
[ "$got" -ne 0 ] || fail "a picture that could not be written is not an error"
has stderr 'file/below'
run 2 weir demo --time 1s
has stderr '4s to 60s'
