# SPDX-License-Identifier: BSD-3-Clause
# A full file system, behind the gateway and behind its upstream, and an upstream that fails: the
# right error for the right client, while others verify their writes and are not affected; and the
# recovery.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

for tool in qemu-io fio nbdkit unshare; do
	command -v "$tool" >/dev/null || skip "no $tool"
done
nbdkit --filter=error null --dump-plugin >/dev/null 2>&1 || skip "nbdkit has no error filter"
# A small file system, which disappears with the test.
if [ -z "${SERVE_FULL_INSIDE-}" ]; then
	unshare -rm true 2>/dev/null || skip "no namespaces for mounting"
	SERVE_FULL_INSIDE=1 exec unshare -rm sh "$0"
fi
here=$PWD
mkdir small
mount -t tmpfs -o size=4m none small || skip "no tmpfs"
truncate -s 64M small/near.img small/far.img good.img

upstreams=
serve_cleanup()
{
	[ -z "$upstreams" ] || kill $upstreams 2>/dev/null
	umount small 2>/dev/null
}

upstream() # NAME ARGUMENT...
{
	name=$1
	shift
	nbdkit -f -P "$name.pid" -U "$here/$name.sock" "$@" 2>"$name.log" &
	upstreams="$upstreams $!"
	tries=0
	until [ -s "$name.pid" ]; do
		tries=$((tries + 1))
		[ "$tries" -lt 500 ] || fail "nbdkit is not ready: $(cat "$name.log")"
		sleep 0.02
	done
}
upstream far file small/far.img
upstream ill --filter=error memory 16M error=EIO error-rate=100% error-file="$here/ill"
cat >policy.yaml <<END
listen: "unix:$here/s.sock"
threads: 1
resources:
  - {name: near, back: "file:small/near.img"}
  - {name: far, back: "nbd+unix:///?socket=$here/far.sock"}
  - {name: ill, back: "nbd+unix:///?socket=$here/ill.sock"}
  - {name: good, back: "file:good.img"}
tenants:
  - {name: all, match: {export: "*"}}
END
serve gateway policy.yaml

of() # EXPORT: its URI
{
	echo "nbd+unix:///$1?socket=$here/s.sock"
}

touch good.run
while [ -e good.run ]; do
	fio --name=good --ioengine=nbd --uri="$(of good)" --rw=randrw --bs=4k --iodepth=16 --size=8m --verify=crc32c \
		--verify_fatal=1 >good.out 2>&1 || touch good.failed
done &
good=$!

# Full: a write that needs room fails with the right error; existing blocks can be written, read and
# flushed. With room, writes work again.
for export in near far; do
	run 1 qemu-io -f raw "$(of $export)" -c "write -P 1 0 64k" -c "write -P 2 8M 8M"
	has stdout "write failed: No space left on device"
	run 0 qemu-io -f raw "$(of $export)" -c "write -P 3 0 64k" -c flush -c "read -P 3 0 64k"
	run 0 qemu-io -f raw "$(of $export)" -c "discard 8M 8M" -c "write -P 4 32M 64k" -c "write -f -P 5 33M 64k" -c flush \
		-c "read -P 4 32M 64k" -c "read -P 5 33M 64k" -c "discard 0 64M"
	[ "$(du -k small/$export.img | cut -f1)" -lt 1024 ] || fail "$export: no room was freed"
done

# An upstream that fails: each error is passed to its client, and the errors end with those of the
# upstream.
run 0 qemu-io -f raw "$(of ill)" -c "write -P 6 0 64k" -c flush
touch ill
run 1 qemu-io -f raw "$(of ill)" -c "read 0 64k"
has stdout "read failed: Input/output error"
run 1 qemu-io -f raw "$(of ill)" -c "write -P 7 64k 64k"
has stdout "write failed: Input/output error"
run 0 qemu-io -f raw "$(of near)" -c "write -P 8 0 64k" -c "read -P 8 0 64k"
rm ill
run 0 qemu-io -f raw "$(of ill)" -c "read -P 6 0 64k" -c "write -P 9 64k 64k" -c flush -c "read -P 9 64k 64k"
hasnt gateway.log "upstream-lost"

rm good.run
wait $good
[ ! -e good.failed ] || fail "the good client: $(cat good.out)"
has good.out "err= 0"
serve_stop gateway
