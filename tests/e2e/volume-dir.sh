# SPDX-License-Identifier: BSD-3-Clause
# A folder of volumes: files that come are volumes once they are closed, files that go take their volumes along, and no other client
# notices; names that cannot be volumes are named once; a folder that vanishes keeps its volumes.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

mkdir vm far none

# ---- an empty folder: no export, not even the resource

cat >weir.yaml <<END
listen: "unix:$here/s.sock"
resources:
  - {name: nvme0, volumes: [{dir: $here/none}]}
END
serve gate --api "unix:$here/api.sock" weir.yaml
run 1 nbdinfo --size "$(uri nvme0)"
truncate -s 1M none/a
until_ok there a

# ---- a file that was empty when it was closed is served once it has a size

: >none/empty.raw
until_ok eval 'weir volume list | grep "empty.raw: is empty"'
truncate -s 1M none/empty.raw
until_ok there empty

# ---- of two files that make one name the first keeps it, though the other's inode number is lower

truncate -s 1M low high
if [ "$(stat -c %i low)" -gt "$(stat -c %i high)" ]; then
	mv low other
	mv high low
	mv other high
fi
mv high none/web.raw
until_ok there web
run 0 qemu-io -f raw -c "write -P 7 0 64k" "$(uri web)"
mv low none/web.bak
until_ok eval 'weir volume list | grep "another volume has that name"'
run 0 qemu-io -f raw -c "read -P 7 0 64k" "$(uri web)"
serve_stop gate
rm -r none

# ---- a file that two entries have is one volume, of the first; a second name of a file is named

mkdir two
truncate -s 1M two/a.raw two/b.img
ln -s two again
cat >weir.yaml <<END
listen: "unix:$here/s.sock"
resources:
  - name: nvme0
    volumes:
      - {dir: $here/two, match: "*.raw", name: "raw-{stem}"}
      - {dir: $here/two, name: "any-{stem}"}
      - {dir: $here/again, name: "again-{stem}"}
END
serve gate --api "unix:$here/api.sock" --state "$here/state" weir.yaml
# names NAME...: the open volumes are these
names()
{
	weir volume list -o json >stdout
	python3 -c 'import json, sys
names = sorted(x["name"] for x in json.load(open("stdout"))["volumes"] if x["open"])
sys.exit(names != sorted(sys.argv[1:]) and f"volumes: {names}")' "$@"
}
run 0 names raw-a any-b
run 0 weir volume list
hasnt stdout "not served"
ln two/b.img two/0.img
until_ok eval 'weir volume list | grep "any-0.*: it is another name of the file of volume .any-b."'
run 0 names raw-a any-b
rm two/0.img
odd=$(printf 'two/odd.\377') # its name would be any-odd, its path cannot be kept
truncate -s 1M "$odd"
until_ok eval 'weir volume list | grep "any-odd.*is not UTF-8"'
run 0 names raw-a any-b
rm "$odd"
sed '/again/d' weir.yaml >one.yaml # one path of the folder less: the other is followed still
run 0 weir policy apply one.yaml
truncate -s 1M two/d.raw
until_ok names raw-a any-b raw-d
hasnt gate.log "is away"
hasnt gate.log folder-back
rm two/d.raw
run 0 weir policy apply weir.yaml
run 0 weir volume create nvme0 raw-c --size 1M
run 0 names raw-a any-b raw-c
run 0 weir volume rm --keep raw-c
run 0 names raw-a any-b
serve_stop gate
serve gate --api "unix:$here/api.sock" --state "$here/state" weir.yaml
run 0 names raw-a any-b
serve_stop gate
rm -r two again state

truncate -s 4M vm/1.raw db.raw vm/skipped.img vm/named.raw
cat >weir.yaml <<END
listen: "unix:$here/s.sock"
classes: {silver: {weight: 2}}
resources:
  - name: nvme0
    depth: 32
    volumes:
      - {name: db, back: "file:$here/db.raw"}
      - {name: vm-taken, back: "memory:1M"}
      - {name: mine, back: "file:$here/vm/named.raw"}
      - {dir: $here/vm, match: "*.raw", name: "vm-{stem}", class: silver}
END
serve gate --api "unix:$here/api.sock" weir.yaml
run 0 there vm-1
run 0 there mine
run 1 there vm-named
run 1 there vm-skipped
weir load -t 60s -d 8 --reads 50% --verify "db=$(uri db)" >load.out 2>&1 &
load=$!

# ---- files that come: moved in, linked in, closed after writing

truncate -s 2M 2.raw
mv 2.raw vm/
until_ok there vm-2
truncate -s 2M far/3.raw
ln far/3.raw vm/3.raw
until_ok there vm-3
exec 3>vm/4.raw
truncate -s 2M far/4
cat far/4 >&3
truncate -s 2M 5.raw
mv 5.raw vm/
until_ok there vm-5
run 1 there vm-4
exec 3>&-
until_ok there vm-4
run 0 weir volume list
has stdout "silver"

# ---- a file that has a volume already is one volume; not with another name of it

ln db.raw vm/again.raw
mkfifo vm/pipe.raw
ln -s /etc/passwd vm/link.raw
mkdir vm/folder.raw
echo x >vm/.hidden.raw
: >vm/empty.raw
truncate -s 1M taken.raw "$(printf 'a\n\033b').raw"
mv taken.raw a??b.raw vm/
truncate -s 2M 6.raw
mv 6.raw vm/
until_ok there vm-6
run 0 weir volume list -o json
python3 - <<'END' || fail "the list is wrong: $(cat stdout)"
import json
j = json.load(open("stdout"))
names = {x["name"] for x in j["volumes"] if x["open"]}
assert names == {"db", "mine", "vm-taken"} | {f"vm-{i}" for i in range(1, 7)}, names
text = "\n".join(j["unserved"])
for why in ("the policy has an export of that name", "contains a control character", "is empty"):
    assert why in text, (why, text)
END
run 0 weir volume list
has stdout "control character"
hasnt stdout "$(printf '\033')"
for why in "vm-taken" "control character" "is empty"; do
	grep -q "volume-refused .*$why" gate.log || fail "the log does not name '$why'"
done
rm vm/again.raw vm/pipe.raw vm/link.raw vm/.hidden.raw vm/empty.raw vm/taken.raw vm/a??b.raw
rmdir vm/folder.raw

# ---- files that go; data are flushed

run 0 qemu-io -f raw -c "write -P 7 0 1M" "$(uri vm-2)"
mv vm/2.raw far/2.raw
until_ok gone vm-2
run 0 qemu-io -f raw -c "read -P 7 0 1M" far/2.raw
rm vm/3.raw
until_ok gone vm-3
test "$(grep -c "volume-refused .*control character" gate.log)" = 1 || fail "a refused file is named more than once"

# ---- the same with the file of a volume that was created

run 0 weir volume create nvme0 vm-7 --size 1MiB
rm vm/7.raw
until_ok gone vm-7
run 0 weir volume create nvme0 vm-7 --size 2MiB

# ---- more happens in the folder than inotify holds: a file that went meanwhile is missed by a scan

truncate -s 1M vm/lost.raw.part
mv vm/lost.raw.part vm/lost.raw
until_ok there vm-lost
kill -STOP "$(cat gate.pid)"
python3 - <<'END' || fail "no events"
import os
n = int(open("/proc/sys/fs/inotify/max_queued_events").read())
for i in range(min(n, 100000) // 2 + 1): # equal events that follow each other are one
    name = f"vm/{i % 2}.part"
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
    os.rename(name, f"vm/{i % 2}.tmp")
os.unlink("vm/0.tmp")
os.unlink("vm/1.tmp")
END
rm vm/lost.raw
kill -CONT "$(cat gate.pid)"
until_ok gone vm-lost

# ---- a folder that vanishes, and returns with other files

mv vm away
truncate -s 1M away/8.raw
rm away/4.raw
for i in 1 2 3; do
	run 0 there vm-5
	run 0 there vm-7
done
away()
{
	weir status | grep "^remark: dir $here/vm is away: "
}
until_ok away
run 0 weir volume list
has stdout "remark: dir $here/vm is away: "
run 0 curl -s --unix-socket "$here/api.sock" http://x/v1/status
has stdout "dir $here/vm is away: "
test "$(grep -c "remark .*is away" gate.log)" = 1 || fail "the log does not name the folder once: $(cat gate.log)"
mv away vm
until_ok there vm-8
until_ok gone vm-4
has gate.log folder-back
run 0 weir status
hasnt stdout remark
run 0 there vm-5

# ---- a policy with a folder that is not there, or not the gateway's, is refused with its place

sed "s|$here/vm, |$here/none, |" weir.yaml >bad.yaml
run 2 weir policy apply bad.yaml
has stderr "bad.yaml:10:9: dir $here/none: "
sed "s|$here/vm, |/etc, |" weir.yaml >bad.yaml
run 2 weir policy apply bad.yaml
has stderr "only the gateway's own policy file may name a folder"
run 0 there vm-5

# ---- files that another process has locked are named, and delay no change

echo "resources: [{name: x, volumes: [" >other.yaml
for i in 1 2 3 4 5 6 7 8; do
	truncate -s 1M "locked-$i.raw"
	echo "{name: l$i, back: \"file:locked-$i.raw\"}," >>other.yaml
done
echo "]}]" >>other.yaml
serve other --listen "unix:$here/o.sock" other.yaml
mv locked-*.raw vm
listed()
{
	[ "$(weir volume list | grep -c 'in use by another process')" -eq 8 ]
}
until_ok listed
before=$(date +%s%N)
run 0 weir volume create nvme0 vm-beside --size 1MiB
took=$((($(date +%s%N) - before) / 1000000))
[ "$took" -lt 3000 ] || fail "a change took $took ms beside 8 locked files" # half a second for each was 4 s
run 0 weir volume rm vm-beside
serve_stop other
rm vm/locked-*.raw

# ---- without the folder its volumes go

sed "/dir:/d" weir.yaml >less.yaml
run 0 weir policy apply less.yaml
has stdout "export vm-5: removed"
run 0 weir policy apply weir.yaml
until_ok there vm-5

kill "$load"
wait "$load"
has load.out " checked, 0 wrong"
serve_stop gate
