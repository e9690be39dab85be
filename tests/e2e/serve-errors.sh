# SPDX-License-Identifier: BSD-3-Clause
# A full disk, a file that was truncated, one that was deleted and one that must not be written: the
# right error for the right client, while a client of another resource verifies its writes and is
# not affected.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

for tool in qemu-io fio; do
	command -v "$tool" >/dev/null || skip "no $tool"
done
here=$PWD
for file in cut gone fixed threads; do
	truncate -s 64M $file.img
done
cat >policy.yaml <<END
listen: unix:$here/s.sock
resources:
  - {name: full, back: "memory:64M?most=1M"}
  - {name: cut, back: "file:cut.img"}
  - {name: threads, back: "file:threads.img", threads: true}
  - {name: gone, back: "file:gone.img"}
  - {name: fixed, back: "file:fixed.img", read_only: true}
  - {name: good, back: "model:server,latency=50us,servers=8+memory:64M"}
exports:
  - {name: full, resource: full}
  - {name: cut, resource: cut}
  - {name: threads, resource: threads}
  - {name: gone, resource: gone}
  - {name: fixed, resource: fixed}
  - {name: good, resource: good}
tenants:
  - {name: all, match: {export: "*"}}
END
serve gateway policy.yaml

of() # EXPORT: its URI
{
	echo "nbd+unix:///$1?socket=$here/s.sock"
}

fio --name=good --ioengine=nbd --uri="$(of good)" --rw=randrw --bs=4k --iodepth=16 --size=8m --loops=4 \
	--verify=crc32c --verify_fatal=1 >good.out 2>&1 &
good=$!

# Full: a write that needs another page fails; existing pages can be written and read; a TRIM frees
# room.
run 1 qemu-io -f raw "$(of full)" -c "write -P 1 0 1M" -c "write -P 2 8M 4k"
has stdout "write failed: No space left on device"
run 0 qemu-io -f raw "$(of full)" -c "write -P 3 0 64k" -c "read -P 3 0 64k" -c "read -P 0 8M 4k" -c flush \
	-c "discard 512k 64k" -c "write -P 2 8M 4k" -c "read -P 2 8M 4k"

# Truncated: the missing part gives EIO, by io_uring and by threads; the rest can be read.
for file in cut threads; do
	run 0 qemu-io -f raw "$(of $file)" -c "write -P 4 0 1M" -c flush
	truncate -s 1M $file.img
	run 1 qemu-io -f raw "$(of $file)" -c "read 32M 64k"
	has stdout "read failed: Input/output error"
	run 0 qemu-io -f raw "$(of $file)" -c "read -P 4 0 1M"
done

# Deleted: the file has no name, and works until the gateway ends.
rm gone.img
run 0 qemu-io -f raw "$(of gone)" -c "write -P 5 1M 64k" -c flush -c "read -P 5 1M 64k"

# Read-only: writes are refused, and the file does not change.
run 0 qemu-io -r -f raw "$(of fixed)" -c "read -P 0 0 1M"
run 1 qemu-io -f raw "$(of fixed)" -c "write -P 6 0 4k"
cmp -n 1048576 fixed.img /dev/zero || fail "a read-only file was written"

wait $good || fail "the good client: $(cat good.out)"
has good.out "err= 0"
serve_stop gateway

# A file that cannot be opened is named in the error, and nothing is served.
run 1 weir serve --listen "unix:$here/n.sock" file:nothing-here.img
has stderr "file:nothing-here.img: No such file or directory"
run 2 weir serve --listen "unix:$here/n.sock" "model:sdd+memory:1G"
has stderr "did you mean ssd?"
