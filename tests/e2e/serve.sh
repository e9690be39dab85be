# SPDX-License-Identifier: BSD-3-Clause
# weir serve with third-party clients: nbdinfo, nbdcopy, qemu-img, qemu-io, fio.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

for tool in nbdinfo nbdcopy qemu-img qemu-io fio; do
	command -v "$tool" >/dev/null || skip "no $tool"
done
here=$PWD
port=$((20000 + $$ % 20000))
head -c 16M /dev/urandom >random.img

# ---- one back end, no file: any export name, unix and TCP

serve memory --listen "unix:$here/m.sock,tcp:127.0.0.1:$port" memory:64M
unix="nbd+unix:///?socket=$here/m.sock"
tcp="nbd://127.0.0.1:$port/"
has memory.log "ready"
has memory.log "unix:$here/m.sock tcp:127.0.0.1:$port"

[ "$(nbdinfo --size "$unix")" = 67108864 ] || fail "size over the unix socket"
[ "$(nbdinfo --size "${tcp}any-name")" = 67108864 ] || fail "size of any name over TCP"
run 0 nbdinfo "$unix"
for line in "protocol: newstyle-fixed without TLS, using structured packets" "export-size: 67108864" \
	"base:allocation" "can_flush: true" "can_fua: true" "can_trim: true" "can_zero: true" \
	"can_multi_conn: true" "is_read_only: false"; do
	has stdout "$line"
done
run 0 nbdinfo --list "$unix"
has stdout 'export="":'
nbdinfo --map "$unix" >map
[ "$(awk '{ print $1, $2, $4 }' map)" = "0 67108864 hole,zero" ] || fail "new memory is not one hole: $(cat map)"

# nbdcopy and qemu-img write to one address and read back from the other.
run 0 nbdcopy random.img "$unix"
run 0 nbdcopy "$tcp" back.img
cmp -n 16777216 random.img back.img || fail "nbdcopy reads back other data"
truncate -s 64M random64.img
cat random.img >random64.img
truncate -s 64M random64.img
run 0 qemu-img compare -f raw -F raw random64.img "$tcp"
nbdinfo --map --totals "$unix" >map
awk '$NF == "data" { data = $1 } END { exit data != 16777216 }' map || fail "not 16 MiB of data: $(cat map)"
run 0 qemu-img convert -n -f raw -O raw random64.img "$tcp"
run 0 qemu-img compare -f raw -F raw random64.img "$unix"

# Every command, by qemu-io: write, read, FUA, zeroes, trim, flush; unaligned too.
run 0 qemu-io -f raw "$unix" -c "write -P 17 5 1000" -c "read -P 17 5 1000" -c "write -f -P 34 1M 64k" \
	-c "read -P 34 1M 64k" -c "write -z 1028k 8k" -c "read -P 0 1028k 8k" -c "read -P 34 1036k 28k" \
	-c "write -z -u 2M 1M" -c "read -P 0 2M 1M" -c "discard 4M 1M" -c "read -P 0 4M 1M" -c flush
hasnt stdout "failed"
# Large requests pass in pieces of 256 KiB.
run 0 qemu-io -f raw "$unix" -c "write -P 51 3M 24M" -c "read -P 51 3M 24M" -c "read -P 0 28M 4M"
hasnt stdout "failed"
# Beyond the end: an error for that request, and the connection stays open.
run 1 qemu-io -f raw "$unix" -c "read 64M 4k"
run 0 qemu-io -f raw "$unix" -c "read 64508k 4k"

# fio's own engine, four jobs, verified.
run 0 fio --name=v --ioengine=nbd --uri="nbd+unix:///?socket=$here/m.sock" --rw=randwrite --bs=4k --size=8m \
	--offset_increment=8m --numjobs=4 --iodepth=32 --verify=crc32c --do_verify=1 --group_reporting
has stdout "err= 0"
serve_stop memory
has memory.log "stopped"
[ ! -e m.sock ] || fail "the socket's file is left"
[ ! -e memory.pid ] || fail "the pid file is left"

# ---- read-only

serve ro --listen "unix:$here/r.sock" --read-only "file:$here/random.img"
ro="nbd+unix:///?socket=$here/r.sock"
run 0 nbdinfo "$ro"
has stdout "is_read_only: true"
run 0 qemu-img compare -f raw -F raw random.img "$ro"
run 1 qemu-io -f raw "$ro" -c "write 0 4k"
run 0 qemu-io -r -f raw "$ro" -c "read 0 4k"
serve_stop ro

# ---- a policy: two exports that are parts of one file, and an offset each

truncate -s 8M disk.img
cat >weir.yaml <<END
listen: "unix:$here/p.sock"
resources:
  - {name: disk, back: "file:$here/disk.img"}
  - {name: fast, back: "memory:1M"}
exports:
  - {name: first, resource: disk, offset: 1 MiB, size: 2 MiB}
  - {name: rest, resource: disk, offset: 3 MiB}
  - {name: fixed, resource: fast, read_only: true, description: "read only data"}
tenants:
  - {name: a, match: {export: first}}
  - {name: b, match: [{export: "rest*"}, {export: fixed}]}
END
run 0 weir serve --check weir.yaml
has stdout "weir.yaml: ok"
serve policy --threads 2 weir.yaml
p="nbd+unix://"
q="?socket=$here/p.sock"
[ "$(nbdinfo --size "$p/first$q")" = 2097152 ] || fail "size of first"
[ "$(nbdinfo --size "$p/rest$q")" = 5242880 ] || fail "size of rest"
run 0 nbdinfo --list "$p/$q"
for line in 'export="first":' 'export="rest":' 'export="fixed":'; do
	has stdout "$line"
done
run 0 nbdinfo "$p/fixed$q"
has stdout "description: read only data"
run 1 nbdinfo "$p/other$q"
run 0 qemu-io -f raw "$p/first$q" -c "write -P 65 0 2M" -c flush
run 0 qemu-io -f raw "$p/rest$q" -c "write -P 66 0 4k" -c "write -P 67 5116k 4k" -c flush
run 1 qemu-io -f raw "$p/first$q" -c "read 2M 4k"
run 1 qemu-io -f raw "$p/fixed$q" -c "write 0 4k"
serve_stop policy
{
	head -c 1M /dev/zero
	head -c 2M /dev/zero | tr '\0' A
	head -c 4k /dev/zero | tr '\0' B
	head -c 5112k /dev/zero
	head -c 4k /dev/zero | tr '\0' C
} >want.img
cmp want.img disk.img || fail "bytes lie in the wrong place"

# ---- errors are one line

one_line() # STATUS TEXT: check the last command
{
	[ "$(wc -l <stderr)" -eq 1 ] || {
		cat stderr >&2
		fail "not one line"
	}
	has stderr "$1"
}
run 2 weir serve
run 2 weir serve no-such.yaml
one_line "no-such.yaml: No such file"
run 1 weir serve --listen "unix:$here/x.sock" file:no-such.img
one_line "no-such.img"
[ ! -e x.sock ] || fail "listens although the back end is missing"
run 2 weir serve --listen "unix:$here/x.sock" memory:1Q
one_line "memory:1Q"
run 2 weir serve --listen bogus memory:1M
one_line "bogus"
echo 'tenants: [{name: a, wieght: 1}]' >bad.yaml
run 2 weir serve bad.yaml
one_line "wieght"
sed 's/resource: fast/resource: fast, size: 2 MiB/' weir.yaml >long.yaml
run 2 weir serve long.yaml
one_line "long.yaml:8:5: export 'fixed' ends beyond its resource 'fast', which has 1 MiB"
sed '/listen/d' weir.yaml >deaf.yaml
run 2 weir serve deaf.yaml
one_line "listen"
echo 'resources: [{name: disk, back: "memory:1M"}]' >equal.yaml
run 0 weir serve --check equal.yaml
serve equal --listen "unix:$here/x.sock" equal.yaml
[ "$(nbdinfo --size "nbd+unix:///disk?socket=$here/x.sock")" = 1048576 ] || fail "no client can connect without tenants"
serve_stop equal
{
	cat equal.yaml
	echo 'tenants: [{name: a}, {name: b}]'
} >nobody.yaml
run 2 weir serve --listen "unix:$here/x.sock" nobody.yaml
one_line "nobody.yaml:2:11: every client would be refused"
run 2 weir serve --check nobody.yaml
# A free port, which the log names.
serve free --listen tcp:127.0.0.1:0 memory:1M
free=$(sed -n 's/.* ready listen=tcp:\([0-9.]*:[0-9]*\) .*/\1/p' free.log)
[ "$(nbdinfo --size "nbd://$free/")" = 1048576 ] || fail "no server at '$free'"
serve_stop free
run 2 weir serve --api-mode rw memory:1M
one_line "--api-mode"
run 1 weir serve --token-file no-such --listen "unix:$here/x.sock" memory:1M
one_line "no-such"
serve mode --api "unix:$here/m.sock" --api-mode 0600 --listen "unix:$here/x.sock" memory:1M
[ "$(stat -c %a m.sock)" = 600 ] || fail "the mode of the API's socket is $(stat -c %a m.sock)"
serve_stop mode
serve one --listen "unix:$here/b.sock,tcp:127.0.0.1:$port" memory:1M
run 1 weir serve --listen "unix:$here/b.sock" memory:1M
one_line "b.sock"
run 1 weir serve --listen "tcp:127.0.0.1:$port" memory:1M
one_line "127.0.0.1:$port"
[ "$(nbdinfo --size "nbd+unix:///?socket=$here/b.sock")" = 1048576 ] || fail "the first gateway was affected"
# A socket file that now belongs to another process is left alone.
rm b.sock
touch b.sock
serve_stop one
[ -e b.sock ] || fail "removed another process's socket"
