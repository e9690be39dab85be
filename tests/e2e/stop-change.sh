# SPDX-License-Identifier: BSD-3-Clause
# A gateway that is told to stop while it takes changes: it ends by itself, and after the restart the weight and the volumes are
# those of the last change that was answered; a change that was refused is not in force. Two resources share a limit, so that
# messages about its parts are in flight.
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

# change N: set the weight to N and make volume N, as often as the gateway answers; note what it answered.
change()
{
	n=0
	while :; do
		n=$((n + 1))
		weir set all.weight $((1 + n % 1000)) >/dev/null 2>&1 </dev/null || return 0
		echo "$n" >weight
		weir volume create one "vm-$n" --size 64KiB >/dev/null 2>&1 </dev/null || return 0
		echo "vm-$n" >>made
	done
}

export WEIR_SOCKET="$here/api.sock"
checked=0
for round in $(seq "$rounds"); do
	rm -rf vm/* state/* made weight
	: >made
	serve gate --api "unix:$here/api.sock" --state "$here/state" weir.yaml
	change &
	changes=$!
	sleep "0.$(printf %03d $((20 + round * 7 % 60)))"
	serve_stop gate
	wait "$changes" || true
	serve gate --api "unix:$here/api.sock" --state "$here/state" weir.yaml
	weir volume list -o json >volumes
	while read -r name; do
		grep -q "\"name\": \"$name\"" volumes || fail "round $round: $name was made and is not there"
		checked=$((checked + 1))
	done <made
	got=$(grep -c '"name": "vm-' volumes) || true
	[ "$got" -eq "$(wc -l <made)" ] || fail "round $round: $got volumes, $(wc -l <made) were made"
	if [ -s weight ]; then
		weir status --json >status
		python3 - status "$(cat weight)" <<'END' || fail "round $round: another weight"
import json, sys
weight = [t["weight"] for t in json.load(open(sys.argv[1]))["tenants"] if t["path"] == "all"][0]
assert weight == 1 + int(sys.argv[2]) % 1000, (weight, sys.argv[2])
END
	fi
	serve_stop gate
done
echo "$checked volumes in $rounds rounds"
[ "$checked" -gt 0 ] || fail "no change was answered"
