# SPDX-License-Identifier: BSD-3-Clause
# weir volume and the API behind it: create, add, list, set, grow, rm; the same request twice is one change, conflicts name both
# sides, volumes outlive a restart, bad requests change nothing.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

# api METHOD PATH [BODY]: the reply in stdout, its status behind it.
api()
{
	run 0 curl -s --unix-socket "$here/api.sock" -X "$1" ${3:+-d "$3"} -w '%{http_code}\n' "http://x$2"
}

mkdir vm other
truncate -s 4M db.raw linked.raw other/old.raw
ln -s linked.raw own-link.raw
cat >weir.yaml <<END
listen: "unix:$here/s.sock"
classes:
  gold: {weight: 4}
  silver: {max: 100k iops}
resources:
  - name: nvme0
    depth: 32
    volumes:
      - {name: db, back: "file:$here/db.raw"}
      - {name: linked, back: "file:$here/own-link.raw"}
      - {dir: $here/vm, match: "*.raw", name: "vm-{stem}"}
  - {name: plain, back: "memory:1M"}
tenants:
  - {name: vms, match: {export: "vm-*"}}
  - {name: rest, match: {export: "*"}}
END
serve gate --api "unix:$here/api.sock" --state "$here/state" weir.yaml

# ---- create: twice is once; other parameters are a conflict

for i in 1 2; do
	run 0 weir volume create nvme0 vm-17 --size 8MiB --class silver
	has stdout "$(uri vm-17)"
	test "$(stat -c %s vm/17.raw)" = 8388608 || fail "vm/17.raw is not 8 MiB"
done
# a policy that takes the name of a volume says so before it is applied
sed "s|^    volumes:|&\n      - {name: vm-17, back: \"memory:1M\"}|" weir.yaml >takes.yaml
run 0 weir policy apply --dry-run takes.yaml
has stdout "export vm-17: changed, it was the volume file:$here/vm/17.raw; its clients are disconnected"
run 1 weir volume create nvme0 vm-17 --size 9MiB
has stderr "volume 'vm-17' exists: resource nvme0, file:$here/vm/17.raw, 8 MiB, class silver"
has stderr "asked for: resource nvme0, a new file, 9 MiB"
test -z "$(find vm -name '.*')" || fail "a temporary file is left"
run 0 qemu-io -f raw -c "write -P 3 0 8M" "$(uri vm-17)"
run 0 weir volume list -o json
has stdout '"name": "vm-17"'
python3 - <<'END' || fail "the list is wrong: $(cat stdout)"
import json
v = {x["name"]: x for x in json.load(open("stdout"))["volumes"]}
assert set(v) == {"db", "linked", "vm-17"}, set(v)
x = v["vm-17"]
assert (x["resource"], x["size"], x["class"], x["tenant"], x["clients"], x["from"]) == \
    ("nvme0", 8 << 20, "silver", "vms", 0, "api"), x
assert x["requests"] > 0 and "rate" in x and x["uri"].startswith("nbd+unix:///vm-17?socket=")
END
run 0 weir volume list
has stdout "vm-17"
test "$(head -c 6 stdout)" = VOLUME || fail "the list does not begin with its heading: $(head -1 stdout | od -c)"

# ---- a name without a folder, bad names, bad resources

run 2 weir volume create nvme0 db2 --size 1M
has stderr "no dir of resource 'nvme0' has a file for a volume called 'db2'"
run 2 weir volume create plain vm-1 --size 1M
has stderr "there is no resource 'plain' with volumes"
run 2 weir volume create nvme0 vm-1
has stderr "create needs --size"
run 2 weir volume create nvme0 vm-1 --size none
has stderr "size: "
run 2 weir volume create nvme0 'vm-a/b' --size 1M
has stderr "contains a slash"
run 2 weir volume create nvme0 "vm-$(printf 'a\nb')" --size 1M
has stderr "contains a control character"
run 2 weir volume create nvme0 "vm-$(head -c 300 /dev/zero | tr '\0' a)" --size 1M
has stderr "has more than 255 bytes"
long=$(head -c 4096 /dev/zero | tr '\0' a)
for name in "" "$long"; do
	case $name in "") why="is empty" ;; *) why="has more than 255 bytes" ;; esac
	run 2 weir volume create nvme0 "$name" --size 1M
	has stderr "the name $why"
	run 2 weir volume grow "$name" 1M
	has stderr "the name $why"
	run 2 weir volume rm "$name"
	has stderr "the name $why"
	api GET "/v1/volumes/$name"
	has stdout "the name $why"
	has stdout 400
done
run 1 weir volume create nvme0 db --size 1M
has stderr "volume 'db' exists"
truncate -s 1M vm/18.raw.tmp
ln vm/18.raw.tmp vm/18.img
echo x >vm/19.raw.part
api PUT /v1/volumes/vm-20 '{"resource": "nvme0", "size": 1, "colour": "red"}'
has stdout "unknown member 'colour'"
has stdout 400
api PUT /v1/volumes/vm-20 'nonsense'
has stdout 400
api GET /v1/volumes/none
has stdout 404
api POST /v1/volumes/vm-20
has stdout 405

# ---- a volume that is created is empty: a file that was there before is a conflict, whatever its size and class

truncate -s 1M vm/50.part
printf data | dd of=vm/50.part conv=notrunc status=none
mv vm/50.part vm/50.raw
until_ok there vm-50
for name in vm-50 db; do
	run 1 weir volume create nvme0 $name --size "$(nbdinfo --size "$(uri $name)")B"
	has stderr "volume '$name' exists: resource nvme0, file:$here/"
	has stderr "(with data from before)"
	has stderr "asked for: resource nvme0, a new file, "
done
run 0 weir volume add nvme0 vm-50 "file:$here/vm/50.raw" # the same volume
api PUT /v1/volumes/vm-50 '{"resource": "nvme0", "size": 1048576}'
has stdout "with data from before"
has stdout 409
test "$(head -c 4 vm/50.raw)" = data || fail "a file that was there before has other data"
run 0 weir volume rm --keep vm-50
run 1 weir volume create nvme0 vm-50 --size 1MiB
has stderr "volume 'vm-50': $here/vm/50.raw exists, with 1 MiB; asked for: a new file of 1 MiB"
rm vm/50.raw

# ---- a class that the policy does not have

for verb in "create nvme0 vm-40 --size 1M" "add nvme0 n40 file:$here/old.raw" "set vm-17"; do
	run 2 weir volume $verb --class bronze
	has stderr "there is no class 'bronze'; the policy has: gold, silver"
done
test ! -e vm/40.raw || fail "a file was made for a volume that was refused"
api PUT /v1/volumes/vm-40 '{"resource": "nvme0", "size": 1048576, "class": "bronze"}'
has stdout "there is no class 'bronze'"
has stdout 400
api PATCH /v1/volumes/vm-17 '{"class": "bronze"}'
has stdout 400
api GET /v1/volumes/vm-17
has stdout '"class": "silver"'

# ---- add: only where volumes are, no links; twice is once

run 2 weir volume add nvme0 old "file:$here/other/old.raw"
has stderr "only the gateway's own policy file may name"
mv other/old.raw old.raw
run 0 weir volume add nvme0 old "file:$here/old.raw" --class gold
run 0 weir volume add nvme0 old "file:$here/old.raw" --class gold
run 1 weir volume add nvme0 old "file:$here/db.raw"
has stderr "volume 'old' exists"
ln -s /etc/passwd link.raw
run 2 weir volume add nvme0 link "file:$here/link.raw"
has stderr "only the gateway's own policy file may name"
run 2 weir volume add nvme0 lost "file:$here/absent.raw"
has stderr "volume 'lost': "
mkfifo pipe.raw
run 2 weir volume add nvme0 pipe "file:$here/pipe.raw"
has stderr "neither a file nor a block device"
run 0 weir volume list
hasnt stdout lost

# ---- set and grow

run 0 weir volume set vm-17 --class gold
run 0 weir volume set vm-17 --class gold
api GET /v1/volumes/vm-17
has stdout '"class": "gold"'
run 1 weir volume set db --class gold
has stderr "volume 'db' is in the policy file"
run 2 weir volume set absent --class gold
has stderr "there is no volume 'absent'"

# ---- a policy without a class that volumes have: they go on without it, until it is back

sed '/gold:/d' weir.yaml >less.yaml
run 0 weir policy apply less.yaml
has stdout "class 'gold' is not in the policy: 2 volumes are without it, the first is 'old'"
run 0 nbdinfo --size "$(uri vm-17)"
run 0 weir status
has stdout "remark: class 'gold' is not in the policy"
run 0 weir volume list
has stdout "remark: class 'gold' is not in the policy"
run 2 weir volume set vm-17 --class gold
has stderr "there is no class 'gold'; the policy has: silver"
run 0 weir policy apply weir.yaml
hasnt stdout "is not in the policy"
run 0 weir status
hasnt stdout "remark"
api GET /v1/volumes/vm-17
has stdout '"class": "gold"'

weir load -t 3s -d 4 --reads 50% --verify "vm-17=$(uri vm-17)" >load.out 2>&1 &
load=$!
tries=0
until weir volume list -o json | grep -q '"clients": [1-9]'; do # the load keeps to the size that it found
	tries=$((tries + 1))
	[ "$tries" -lt 200 ] || fail "the load does not connect: $(cat load.out)"
	sleep 0.05
done
run 0 weir volume grow vm-17 16MiB
run 0 weir volume grow vm-17 16MiB
run 0 nbdinfo --size "$(uri vm-17)"
has stdout 16777216
run 0 qemu-io -f raw -c "write -P 9 12M 1M" -c "read -P 9 12M 1M" "$(uri vm-17)"
run 2 weir volume grow vm-17 4MiB
has stderr "a volume cannot be made smaller"
run 0 weir volume grow linked 8MiB # a volume of the policy's file, by its link
test "$(stat -c %s linked.raw)" = 8388608 || fail "linked.raw is not 8 MiB"

# ---- rm: not while it is connected; it may be repeated

run 1 weir volume rm vm-17
has stderr "volume 'vm-17' has clients"
wait "$load" || fail "weir load failed: $(cat load.out)"
run 1 weir volume rm db
has stderr "volume 'db' is in the policy file"
run 0 weir volume rm old
run 0 weir volume rm old
test -s old.raw || fail "rm deleted a file that was added"

# ---- all of it outlives a restart and an apply; a file that create made is deleted with its volume

run 0 weir volume add nvme0 old "file:$here/old.raw"
run 0 weir volume create nvme0 vm-30 --size 1MiB
serve_stop gate
serve gate --api "unix:$here/api.sock" --state "$here/state" weir.yaml
run 0 weir policy apply weir.yaml
hasnt stdout "removed"
api GET /v1/volumes/vm-17
has stdout '"class": "gold"'
run 0 nbdinfo --size "$(uri old)"
run 0 weir volume rm vm-30
test ! -e vm/30.raw || fail "rm left the file that create made"
run 0 weir volume rm --keep vm-17
test -s vm/17.raw || fail "rm --keep deleted the file"
run 1 nbdinfo --size "$(uri vm-17)"
serve_stop gate
serve gate --api "unix:$here/api.sock" --state "$here/state" weir.yaml
run 1 nbdinfo --size "$(uri vm-17)"
run 0 nbdinfo --size "$(uri old)"

# ---- a volume whose storage is gone at the start stops no other

serve_stop gate
rm old.raw
serve gate --api "unix:$here/api.sock" --state "$here/state" weir.yaml
has gate.log "volume-refused"
run 0 weir volume list
has stdout "not served: "
run 0 nbdinfo --size "$(uri db)"
run 0 weir volume rm old
run 0 weir volume create nvme0 vm-31 --size 1MiB

# ---- names that would become something else on their way

ls -A vm >before
api PUT '/v1/volumes/vm-a%3Flock%3Dno' '{"resource": "nvme0", "size": "1MiB"}'
has stdout "a path with '?' cannot be served"
api PUT '/v1/volumes/vm-%ff' '{"resource": "nvme0", "size": "1MiB"}'
has stdout "the name is not UTF-8"
api PUT '/v1/volumes/vm-%00x' '{"resource": "nvme0", "size": "1MiB"}'
has stdout "control character"
api DELETE '/v1/volumes/vm-31%00other'
run 0 weir volume rm 'other/../vm-31'
run 0 nbdinfo --size "$(uri vm-31)"
run 2 weir volume create nvme0 'x/../vm-32' --size 1MiB
has stderr "the name contains a slash"
ls -A vm >after
cmp -s before after || fail "files came or went: $(diff before after)"

# ---- a volume that cannot be kept leaves no file behind

if [ "$(id -u)" -eq 0 ]; then # an immutable folder would need more; a folder in its place refuses root as well
	mv state/volumes.json kept.json
	mkdir -p state/volumes.json/x
	run 1 weir volume create nvme0 vm-33 --size 1MiB
	test ! -e vm/33.raw || fail "a failed create left its file"
	rm -r state/volumes.json
	mv kept.json state/volumes.json
	run 0 weir volume create nvme0 vm-33 --size 1MiB
	run 0 weir volume rm vm-33
	test ! -e vm/33.raw || fail "rm left the file that create made"
fi
serve_stop gate

# ---- the tenant that a template makes for the first client; "-" if the client's address decides

cat >each.yaml <<END
listen: "unix:$here/s.sock"
resources:
  - {name: r, volumes: [{name: vm-1, back: "memory:1M"}, {name: by-uid, back: "memory:1M"},
    {name: loose, back: "memory:1M"}]}
tenants:
  - {name: vms, each: {match: {export: "vm-*"}}}
  - {name: users, each: {match: {export: "by-*", uid: "*"}}}
END
serve gate --api "unix:$here/api.sock" each.yaml
run 0 weir volume list -o json
has stdout '"tenant": "vms/vm-1"'
hasnt stdout others
# no tenant matches the third: it is named
run 0 weir volume list
has stdout "loose: no tenant matches it: its clients are refused"
hasnt stdout "by-uid: no tenant"
run 0 weir policy check each.yaml
has stderr "each.yaml:4:5: no tenant matches export 'loose': clients are refused (warning)"
serve_stop gate
