# SPDX-License-Identifier: BSD-3-Clause
# A gateway that is told to stop while it takes changes: it ends by itself, and after the restart the weight and the volumes are
# those of the last change that was answered. A change that was refused is not in force; one without an answer may be. Two
# resources share a limit, so that messages about its parts are in flight.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

here=$PWD
rounds=${WEIR_ROUNDS-15}
mkdir vm state
cat >weir.yaml <<END
listen: "unix:$here/s.sock"
resources:
  - {name: one, depth: 8, volumes: [{dir: "$here/vm", match: "*.raw", name: "vm-{stem}"}]}
  - {name: two, back: "memory:16M", depth: 8}
exports: [{name: two, resource: two}]
tenants: [{name: all, max: 10k iops, match: {export: "*"}}]
END

# changes: set another weight and make a volume in turn, until one fails. Note the last weight and the volumes that were answered,
# and what may be in force without an answer.
changes()
{
	n=0
	while :; do
		n=$((n + 1))
		weir set all.weight "$n" >/dev/null 2>why </dev/null || {
			grep -q 'the gateway ends' why || echo "$n" >unanswered-weight
			return 0
		}
		echo "$n" >weight
		weir volume create one "vm-$n" --size 64KiB >/dev/null 2>why </dev/null || {
			grep -q 'the gateway ends' why || echo "vm-$n" >unanswered-volume
			return 0
		}
		echo "vm-$n" >>made
	done
}

export WEIR_SOCKET="$here/api.sock"
checked=0
for round in $(seq "$rounds"); do
	rm -rf vm/* state/* made weight unanswered-weight unanswered-volume
	: >made
	echo 1 >weight
	serve gate --api "unix:$here/api.sock" --state "$here/state" weir.yaml
	changes &
	client=$!
	sleep "0.$(printf %03d $((20 + round * 7 % 60)))"
	serve_stop gate
	wait "$client" || true
	serve gate --api "unix:$here/api.sock" --state "$here/state" weir.yaml
	weir volume list -o json >volumes
	while read -r name; do
		grep -q "\"name\": \"$name\"" volumes || fail "round $round: $name was made and is not there"
		checked=$((checked + 1))
	done <made
	got=$(grep -c '"name": "vm-' volumes) || true
	most=$(cat made unanswered-volume 2>/dev/null | wc -l)
	[ "$got" -ge "$(wc -l <made)" ] && [ "$got" -le "$most" ] ||
		fail "round $round: $got volumes, $(wc -l <made) were made and $most asked for"
	weir status --json >status
	got=$(python3 -c 'import json
print(*[int(t["weight"]) for t in json.load(open("status"))["tenants"] if t["path"] == "all"])')
	cat weight unanswered-weight 2>/dev/null | grep -qx "$got" ||
		fail "round $round: weight $got, not $(cat weight unanswered-weight 2>/dev/null)"
	serve_stop gate
done
echo "$checked volumes in $rounds rounds"
[ "$checked" -gt 0 ] || fail "no change was answered"
