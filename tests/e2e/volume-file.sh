# SPDX-License-Identifier: BSD-3-Clause
# The file behind a volume of a folder: another file with its path is another volume, and the clients of the old one are
# disconnected; rm deletes only the file that create made; a file that becomes shorter is reported, and refuses new clients.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

for python in python3 /usr/bin/python3 none; do
	"$python" -c 'import nbd' 2>/dev/null && break
done
[ "$python" != none ] || skip "no python3-libnbd"

# filled FILE BYTE SIZE
filled()
{
	head -c "$3" /dev/zero | tr '\0' "\\$2" >"$1"
}

# holds VOLUME PATTERN: its first 64 KiB, as a client reads it
holds()
{
	qemu-io -r -f raw -c "read -P $2 0 64k" "$(uri "$1")" >held 2>&1 && ! grep -q "Pattern verification failed" held
}

# same VOLUME FILE: a flushed write through the gateway is in the file
same()
{
	run 0 qemu-io -f raw -c "write -P 99 64k 64k" -c flush "$(uri "$1")"
	run 0 qemu-io -U -r -f raw -c "read -P 99 64k 64k" "$2"
	hasnt stdout "verification failed"
}

mkdir vm
filled vm/img.raw 001 4M
filled vm/t.raw 001 4M
filled vm/x.raw 003 4M
filled vm/y.raw 004 4M
filled vm/z.raw 005 4M
cat >weir.yaml <<END
listen: "unix:$here/s.sock"
classes: {gold: {weight: 4}}
resources:
  - name: nvme0
    depth: 32
    volumes:
      - {dir: $here/vm, match: "*.raw", name: "vm-{stem}"}
END
serve gate --api "unix:$here/api.sock" --state "$here/state" weir.yaml
weir load -t 60s -d 2 --reads 50% --verify "vm-z=$(uri vm-z)" >load.out 2>&1 &
load=$!

# ---- another file is moved over it: a client is disconnected, new ones have the new file

run 0 holds vm-img 1
"$python" -c 'import nbd, sys, time
h = nbd.NBD()
h.connect_uri(sys.argv[1])
open("joined", "w").close()
for i in range(300):
    try:
        h.pread(512, 0)
    except nbd.Error:
        sys.exit(7)
    time.sleep(0.1)' "$(uri vm-img)" >client.out 2>&1 &
client=$!
until_ok test -e joined
filled new.raw 002 8M
mv new.raw vm/img.raw
until_ok holds vm-img 2
got=0
wait "$client" || got=$?
test "$got" = 7 || fail "the client of the file that was replaced stays connected: $got, $(cat client.out)"
run 0 nbdinfo --size "$(uri vm-img)"
has stdout 8388608
same vm-img vm/img.raw

# ---- deleted, and copied anew at once

filled new.raw 002 4M
rm vm/t.raw
cp new.raw vm/t.raw
until_ok holds vm-t 2
same vm-t vm/t.raw

# ---- deleted, and written anew for long: no volume before its writer has closed the file, though the gateway closes the old one

rm vm/t.raw
exec 3>vm/t.raw
head -c 1M new.raw >&3
until_ok eval 'test "$(grep -c "volume-removed volume=vm-t " gate.log)" = 2'
cp new.raw vm/barrier.raw
until_ok there vm-barrier
run 0 gone vm-t
tail -c 3M new.raw >&3
exec 3>&-
until_ok holds vm-t 2
run 0 there vm-t
has stdout 4194304
same vm-t vm/t.raw

# ---- two files change their names; one gets another name

mv vm/x.raw vm/.swap
mv vm/y.raw vm/x.raw
mv vm/.swap vm/y.raw
until_ok holds vm-x 4
until_ok holds vm-y 3
same vm-x vm/x.raw
same vm-y vm/y.raw
mv vm/x.raw vm/w.raw
until_ok holds vm-w 4
same vm-w vm/w.raw
run 0 weir volume list
hasnt stdout "not served"

# ---- a file that rm --keep hid is no volume; another one in its place is

run 0 weir volume rm --keep vm-w
cp new.raw vm/w2.raw
until_ok there vm-w2
run 0 gone vm-w
filled new.raw 006 4M
mv new.raw vm/w.raw
until_ok holds vm-w 6

# ---- rm deletes only the file that create made, also after a restart

for how in moved copied; do
	run 0 weir volume create nvme0 vm-c --size 1MiB --class gold
	filled precious 007 2M
	if [ "$how" = moved ]; then
		mv precious vm/c.raw
	else
		rm vm/c.raw
		cp precious vm/c.raw
	fi
	weir volume rm vm-c >rm.out 2>&1 # while the volume of the new file is not there yet, there is none to remove
	until_ok holds vm-c 7
	run 1 weir volume rm vm-c
	has stderr "volume 'vm-c' is the file $here/vm/c.raw of a dir: delete the file"
	test "$(stat -c %s vm/c.raw)" = 2097152 || fail "rm deleted or changed a file that create did not make"
	rm vm/c.raw
	until_ok eval '! nbdinfo --size "$(uri vm-c)"'
done
run 0 weir volume create nvme0 vm-c --size 1MiB --class gold
run 0 weir volume create nvme0 vm-d --size 1MiB
kill "$load"
wait "$load"
has load.out " checked, 0 wrong"
serve_stop gate
rm vm/c.raw
filled vm/c.raw 007 2M
serve gate --api "unix:$here/api.sock" --state "$here/state" weir.yaml
run 0 holds vm-c 7
run 1 weir volume rm vm-c
test -s vm/c.raw || fail "rm deleted a file that came while the gateway was stopped"
run 0 weir volume rm vm-d
test ! -e vm/d.raw || fail "rm left the file that create made"

# ---- a file that becomes shorter: reported once, with both sizes; new clients are refused until it is long enough again

run 0 nbdinfo --size "$(uri vm-z)"
truncate -s 1M vm/z.raw
until_ok grep -q "file-shrunk" gate.log
truncate -s 1M vm/z.raw
grep "file-shrunk" gate.log >said
has said "$here/vm/z.raw"
has said "4 MiB"
has said "1 MiB"
run 1 qemu-io -r -f raw -c "read 0 512" "$(uri vm-z)"
has stderr "the storage of that export is smaller than the export"
run 0 nbdinfo --size "$(uri vm-y)"
run 0 weir volume list
has stdout "vm-z: its file became smaller"
run 0 weir volume list -o json
has stdout '"trouble": "its file became smaller'
run 0 weir status
has stdout "its file became smaller"
test "$(stat -c %s vm/z.raw)" = 1048576 || fail "the gateway changed the size of a file"
test "$(grep -c file-shrunk gate.log)" = 1 || fail "a shorter file is reported more than once"
run 0 weir volume grow vm-z 4MiB
run 0 nbdinfo --size "$(uri vm-z)"
run 0 weir volume list
hasnt stdout "became smaller"

# ---- by truncate(2), which closes nothing: while the file is idle, and while it is written

shorten() { "$python" -c 'import os, sys; os.truncate(sys.argv[1], 1 << 20)' "$1"; }
filled vm/k.raw 003 4M
until_ok nbdinfo --size "$(uri vm-k)"
shorten vm/k.raw
until_ok grep -q "file-shrunk .*vm/k.raw" gate.log
run 1 nbdinfo --size "$(uri vm-k)"
weir load -t 60s -d 4 --reads 0% --length 512KiB "w=$(uri vm-w)" >load.out 2>&1 &
load=$!
until_ok eval 'weir volume list -o json | grep -A 12 "\"vm-w\"" | grep -q "\"requests\": [1-9][0-9][0-9]"'
shorten vm/w.raw
until_ok grep -q "file-shrunk .*vm/w.raw" gate.log
kill -0 "$load" || fail "the writer ended: $(cat load.out)"
kill "$load"
wait "$load"

# ---- written anew by another program: refused while it is shorter, and accepted again

filled new.raw 005 4M
cat new.raw >vm/k.raw
until_ok grep -q "file-whole .*vm/k.raw" gate.log
run 0 holds vm-k 5

# ---- noticed by a client that reads beyond the end, too

"$python" -c 'import nbd, sys, os, errno
h = nbd.NBD()
h.connect_uri(sys.argv[1])
os.truncate("vm/y.raw", 1 << 20)
try:
    h.pread(512, 2 << 20)
    raise SystemExit("read beyond the end")
except nbd.Error as e:
    assert e.errnum == errno.EIO, e' "$(uri vm-y)" >client.out 2>&1 || fail "$(cat client.out)"
until_ok eval 'test "$(grep -c file-shrunk gate.log)" = 4'
run 1 nbdinfo --size "$(uri vm-y)"
serve_stop gate
