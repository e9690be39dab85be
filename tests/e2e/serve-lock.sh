# SPDX-License-Identifier: BSD-3-Clause
# A served file is locked as QEMU locks its images: neither a second gateway nor QEMU opens it
# beside the first, and a gateway does not open a file that QEMU has locked. `lock: false` shares it
# on purpose. Readers may share. A file that is deleted under the gateway is reported. A pidfile is
# not written through a link.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

for tool in qemu-io qemu-nbd; do
	command -v "$tool" >/dev/null || skip "no $tool"
done
here=$PWD
truncate -s 16M disk.img
policy() # NAME OPTIONS
{
	cat >$1.yaml <<END
listen: unix:$here/$1.sock
resources: [{name: disk, back: "file:disk.img"$2}]
tenants: [{name: all, match: {export: "*"}}]
END
}
policy one ""
policy two ""
policy shared ", lock: false"
policy reader ", read_only: true"
policy reader2 ", read_only: true"

serve one one.yaml
run 1 timeout 20 weir serve --api none two.yaml
has stderr "disk.img"
has stderr "in use"
run 1 timeout 20 weir serve --api none reader.yaml
run 1 timeout 20 weir serve --api none --listen unix:$here/x.sock file:disk.img
run 1 qemu-io -f raw disk.img -c "write 0 4k"
has stderr "lock"
run 0 qemu-io -r -f raw disk.img -c "read 0 4k" # it shares with all others
serve shared shared.yaml
run 0 qemu-io -f raw "nbd+unix:///disk?socket=$here/shared.sock" -c "write -P 7 0 4k" -c flush
run 0 qemu-io -f raw "nbd+unix:///disk?socket=$here/one.sock" -c "read -P 7 0 4k"
serve_stop shared
serve_stop one

# The lock of a killed gateway is gone, and the next one starts.
serve one one.yaml
kill -KILL "$(cat one.pid)"
serve two two.yaml
serve_stop two

# QEMU has the lock.
qemu-nbd -f raw -k "$here/q.sock" -t disk.img &
qemu=$!
serve_all="$serve_all $qemu"
tries=0
until [ -S q.sock ]; do
	tries=$((tries + 1))
	[ "$tries" -lt 200 ] || fail "no qemu-nbd"
	sleep 0.05
done
run 1 timeout 20 weir serve --api none one.yaml
has stderr "in use"
kill $qemu
wait $qemu || :

# Readers share with each other, and exclude writers.
serve reader reader.yaml
serve reader2 reader2.yaml
run 0 qemu-io -r -f raw disk.img -c "read 0 4k"
run 1 qemu-io -f raw disk.img -c "write 0 4k"
run 1 timeout 20 weir serve --api none one.yaml
serve_stop reader
serve_stop reader2

# Deleted.
serve one --api unix:$here/api.sock one.yaml
rm disk.img
tries=0
until curl -s --unix-socket api.sock http://x/v1/status | grep -q '"state": *"unhealthy; its file was deleted'; do
	tries=$((tries + 1))
	[ "$tries" -lt 200 ] || fail "a deleted file is not reported"
	sleep 0.05
done
has one.log "file-deleted"
curl -s --unix-socket api.sock http://x/metrics >metrics
has metrics 'weir_resource_healthy{resource="disk"} 0'
has metrics 'weir_resource_up{resource="disk"} 1'
run 0 qemu-io -f raw "nbd+unix:///disk?socket=$here/one.sock" -c "read -P 7 0 4k"
serve_stop one

echo important >precious
ln -s precious link.pid
run 1 timeout 20 weir serve --api none --pidfile link.pid --listen unix:$here/l.sock memory:1M
has stderr "is a symbolic link"
has precious important
