# SPDX-License-Identifier: BSD-3-Clause
# A folder of volumes that is away (never there, moved, or another folder at its path, as after an unmount) hinders no other volume,
# and its own volumes and their classes stay.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

mkdir vm near
truncate -s 1M near/add.img vm/own.raw
cat >weir.yaml <<END
listen: "unix:$here/s.sock"
classes: {gold: {weight: 4}, lead: {weight: 1}}
resources:
  - name: far
    volumes:
      - {name: own, back: "file:$here/vm/own.raw"}
      - {dir: $here/vm, match: "*.raw", name: "vm-{stem}"}
      - {dir: $here/never}
  - name: near
    volumes:
      - {dir: $here/near, match: "*.raw", name: "n-{stem}"}
END

# changes NUMBER: every change of volumes beside a folder that is away
changes()
{
	run 0 weir volume create near "n-$1" --size 1MiB
	run 0 weir volume set "n-$1" --class lead
	run 0 weir volume grow "n-$1" 2MiB
	run 0 weir volume add near "add-$1" "file:$here/near/add.img"
	run 0 weir policy apply --dry-run weir.yaml
	run 0 weir volume rm "add-$1"
	run 0 weir volume rm "n-$1"
}

serve gate --api "unix:$here/api.sock" --state "$here/state" weir.yaml
changes 1
run 0 weir volume create far vm-1 --size 1MiB --class gold
mv vm away
until_ok eval 'weir status | grep "^remark: dir $here/vm is away: "'
changes 2
run 0 weir policy apply weir.yaml
run 0 there vm-1
# a volume with a name is the same one, and no other stands for its file
run 0 there own
run 0 weir volume list
hasnt stdout vm-own
# its file cannot be deleted now, and would come back with the folder
run 1 weir volume rm vm-1
has stderr "dir $here/vm is away: "
run 0 there vm-1
serve_stop gate

# ---- a start without the folder

sed -i '/name: own/d' weir.yaml
rm away/own.raw
serve gate --api "unix:$here/api.sock" --state "$here/state" weir.yaml
changes 3
has state/volumes.json '"vm-1"'
mv away vm
until_ok there vm-1

# ---- another folder at its path, as an unmounted one leaves it: the volumes and their classes stay

run 0 weir volume create far vm-2 --size 1MiB
run 0 weir volume set vm-2 --class lead
cp state/volumes.json before.json
while test ! -e over; do
	echo "write -P 7 0 4k"
	sleep 0.05
done | qemu-io -f raw "$(uri vm-1)" >client.out 2>&1 &
client=$!
until_ok grep wrote client.out
mv vm away
mkdir vm
truncate -s 1M vm/other.raw
until_ok eval 'weir status | grep "^remark: dir $here/vm is away: "'
changes 5
run 1 weir volume create far vm-3 --size 1MiB
has stderr "dir $here/vm is away: "
run 0 there vm-1
run 0 there vm-2
run 1 there vm-other
cmp state/volumes.json before.json || fail "volumes are forgotten: $(cat state/volumes.json)"
rm -r vm
mv away vm
until_ok eval 'weir status | { ! grep remark.*vm; }'
run 0 there vm-1
: >over
wait "$client"
hasnt client.out rror
hasnt client.out failed
cmp state/volumes.json before.json || fail "volumes are forgotten: $(cat state/volumes.json)"

# ---- a start with another folder at its path, as one that is not mounted yet

run 0 weir volume create far vm-4 --size 1MiB
run 0 weir volume rm --keep vm-4
cp state/volumes.json before.json
serve_stop gate
mv vm away
mkdir vm
serve gate --api "unix:$here/api.sock" --state "$here/state" weir.yaml
run 0 weir status
has stdout "remark: dir $here/vm is away: another folder is at its path"
run 1 weir volume create far vm-3 --size 1MiB
has stderr "dir $here/vm is away: "
changes 6
until_ok cmp state/volumes.json before.json
rmdir vm
mv away vm
until_ok there vm-1
weir volume list >list
run 0 grep "^vm-1 .* gold " list
run 0 grep "^vm-2 .* lead " list
run 1 there vm-4
cmp state/volumes.json before.json || fail "volumes are forgotten: $(cat state/volumes.json)"

# ---- a copy of the folder, with the files of its volumes, is taken at a start

serve_stop gate
cp -r vm copy
mv vm away
mv copy vm
serve gate --api "unix:$here/api.sock" --state "$here/state" weir.yaml
run 0 there vm-1
weir volume list >list
run 0 grep "^vm-2 .* lead " list
serve_stop gate
rm -r vm
mv away vm
serve gate --api "unix:$here/api.sock" --state "$here/state" weir.yaml
run 0 there vm-1

# ---- a policy that is refused takes nothing

sed 's|^  - name: near|&\n    volumes: [{name: none, back: "file:/absent/none"}]\n  - name: next|' weir.yaml >late.yaml
mv vm away
mkdir vm
truncate -s 1M vm/other.raw
until_ok eval 'weir status | grep "^remark: dir $here/vm is away: "'
cp weir.yaml kept.yaml
cp late.yaml weir.yaml
kill -HUP "$(cat gate.pid)"
until_ok grep /absent/none gate.log
cp kept.yaml weir.yaml
changes 7
run 0 there vm-1
run 1 there vm-other
rm -r vm
mv away vm
until_ok eval 'weir status | { ! grep remark.*vm; }'

# ---- unless the operator says so

mv vm away
mkdir vm
truncate -s 1M vm/other.raw
until_ok eval 'weir status | grep "^remark: dir $here/vm is away: "'
kill -HUP "$(cat gate.pid)"
until_ok there vm-other
until_ok gone vm-1

# ---- a grow that is refused leaves the file as it is

run 0 weir volume create near n-4 --size 1MiB
rm -r state
: >state
run 0 curl -s --unix-socket "$here/api.sock" -X PATCH -d '{"size": "2MiB", "class": "lead"}' http://x/v1/volumes/n-4
has stdout error
test "$(stat -c %s near/4.raw)" = 1048576 || fail "a refused grow has changed the file"
serve_stop gate
