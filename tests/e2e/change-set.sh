# SPDX-License-Identifier: BSD-3-Clause
# Values changed by weir set: they survive a kill -9 and SIGHUP, are shown, and are undone only on
# request.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-change.sh"

policy 1 1 >weir.yaml
policy 3 1 >next.yaml
serve gate --api "unix:$here/api.sock" weir.yaml

# ---- set: at once, kept across a kill -9, shown, and undone by an apply that requests it

weir load -t 1200ms -d 8 --warm-up 200ms --json "c=$(uri c)" >free.json
run 0 weir set c.max 500 iops
has stdout "c.max: none -> 500 iops"
is_version 2
weir load -t 1200ms -d 8 --warm-up 200ms --json "c=$(uri c)" >held.json
python3 - <<'END' || fail "a max that was set does not hold: $(cat held.json)"
import json
free, held = (json.load(open(f))[0]["iops"] for f in ("free.json", "held.json"))
assert free > 2000, free
assert 400 <= held <= 506, held
END
run 2 weir set c.max 500
run 2 weir set c.mxa 500 iops
run 2 weir set nobody.max 500 iops
run 2 weir set all.min 5k iops
has stderr "below its min"
is_version 2

pid=$(cat gate.pid)
kill -KILL "$pid"
wait "$pid" 2>/dev/null || true
serve gate --api "unix:$here/api.sock" weir.yaml
run 0 weir set
[ "$(cat stdout)" = "c.max 500 iops" ] || fail "after a kill -9: $(cat stdout)"
run 0 weir policy show
has stdout "500 iops"
is_version 1

run 0 weir policy apply --dry-run next.yaml
has stdout "c.max 500 iops, which was set, is undone: none"
is_version 1
run 0 weir policy apply --keep next.yaml
hasnt stdout "undone"
run 0 weir set
has stdout "c.max 500 iops"
run 0 weir policy apply next.yaml
has stdout "c.max 500 iops, which was set, is undone: none"
run 0 weir set
[ ! -s stdout ] || fail "still set: $(cat stdout)"
is_version 3

# ---- SIGHUP reads the file again; a bad file is reported, and changes nothing

reload() # VERSION that is expected then
{
	kill -HUP "$(cat gate.pid)"
	for i in $(seq 100); do
		[ "$(version)" != "$1" ] || return 0
		sleep 0.05
	done
	fail "still version $(version) after SIGHUP, not $1"
}
policy 5 2 >weir.yaml
reload 4
run 0 weir policy show
tr -s ' ' <stdout >table
has table "all/a 5 71.4%"
echo 'tenants: [{name: x, max: fast}]' >weir.yaml
kill -HUP "$(cat gate.pid)"
for i in $(seq 100); do
	! grep -q 'weir.yaml:1:26' gate.log || break
	sleep 0.05
done
has gate.log "weir.yaml:1:26"
is_version 4

serve_stop gate

# The policy in force is shown wherever it is read from: the file with the tenants is not read
# again.
mkdir apart
policy 1 1 | sed '/^tenants:/,$d; s/^state: .*//' >apart/main.yaml
echo 'tenants: who.yaml' >>apart/main.yaml
echo '[{name: a, weight: 7, match: {export: a}}, {name: b, match: {export: b}}, {name: c, match: {export: c}}]' >apart/who.yaml
serve apart --api "unix:$here/api.sock" apart/main.yaml
echo '[{name: other}]' >apart/who.yaml
run 0 weir policy show
has stdout "a  "
hasnt stdout "other"
rm apart/who.yaml
run 0 weir policy show --json
python3 - stdout <<'END' || fail "not the policy in force"
import json, sys
p = json.load(open(sys.argv[1]))
assert [t["path"] for t in p["tenants"]] == ["a", "b", "c"], p["tenants"]
assert p["tenants"][0]["weight"] == 7
END
run 0 weir set b.weight 3
run 0 weir policy show
has stdout "b.weight 3"
serve_stop apart

# A state folder that cannot be written is reported at the start. A change is then refused, and this
# is not an error of the command line.
echo '[{name: a, match: {export: a}}]' >apart/who.yaml
serve nowhere --api "unix:$here/api.sock" --state "$here/no/such/folder" apart/main.yaml
has nowhere.log 'warning state-unwritable folder='
has nowhere.log 'why="No such file or directory"'
run 1 weir set a.weight 3
has stderr 'cannot write overrides to'
serve_stop nowhere
mkdir fresh
serve fresh --api "unix:$here/api.sock" --state "$here/fresh/state" apart/main.yaml
hasnt fresh.log state-unwritable
[ -d fresh/state ] || fail "the state folder is not made"
serve_stop fresh
