# SPDX-License-Identifier: BSD-3-Clause
# A kernel file system on an export: made, written, unmounted, checked, mounted again and compared.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

PATH=$PATH:/sbin:/usr/sbin
[ "$(id -u)" -eq 0 ] || skip "mounting needs root"
for tool in nbdfuse losetup mkfs.ext4 e2fsck mkfs.xfs xfs_repair fusermount3; do
	command -v "$tool" >/dev/null || skip "no $tool"
done
[ -c /dev/fuse ] || skip "no /dev/fuse"
[ -c /dev/loop-control ] || skip "no loop devices"
here=$PWD
loop=
mkdir fuse mnt

serve_cleanup()
{
	mountpoint -q "$here/mnt" && umount "$here/mnt"
	[ -z "$loop" ] || losetup -d "$loop"
	mountpoint -q "$here/fuse" && fusermount3 -u "$here/fuse"
	:
}

# attach EXPORT: make the export a block device, and set $loop to its name
attach()
{
	nbdfuse "$here/fuse" "nbd+unix:///$1?socket=$here/f.sock" 2>fuse.err &
	tries=0
	until [ -e fuse/nbd ]; do
		tries=$((tries + 1))
		if [ "$tries" -ge 250 ]; then
			grep -q -i "fuse" fuse.err && skip "fuse is not allowed here: $(head -1 fuse.err)"
			fail "nbdfuse: $(cat fuse.err)"
		fi
		sleep 0.02
	done
	loop=$(losetup -f --show --direct-io=on fuse/nbd 2>loop.err) || {
		loop=
		skip "loop devices are not allowed here: $(cat loop.err)"
	}
}

detach()
{
	losetup -d "$loop"
	loop=
	fusermount3 -u "$here/fuse"
	wait_gone=0
	while [ -e fuse/nbd ] && [ "$wait_gone" -lt 250 ]; do
		wait_gone=$((wait_gone + 1))
		sleep 0.02
	done
}

truncate -s 512M disk.img
cat >weir.yaml <<END
listen: "unix:$here/f.sock"
resources: [{name: disk, back: "file:$here/disk.img"}]
exports:
  - {name: ext4, resource: disk, offset: 0, size: 128 MiB}
  - {name: xfs, resource: disk, offset: 128 MiB}
tenants:
  - {name: a, weight: 3, match: {export: ext4}}
  - {name: b, match: {export: xfs}}
END

# The files: many small ones, a large one, one with holes.
mkdir -p tree/small
for i in $(seq 1 300); do
	head -c $((i * 37)) /dev/urandom >"tree/small/$i"
done
head -c 24M /dev/urandom >tree/large
truncate -s 10M tree/holes
printf end >>tree/holes
(cd tree && find . -type f -exec sha256sum {} +) | sort >want

for type in ext4 xfs; do
	serve gw weir.yaml
	attach "$type"
	case $type in
	ext4) run 0 mkfs.ext4 -q "$loop" ;;
	xfs) run 0 mkfs.xfs -q -f "$loop" ;;
	esac
	mount "$loop" mnt 2>mount.err || skip "mounting is not allowed here: $(cat mount.err)"
	cp -a tree mnt/
	rm -r mnt/tree/small
	cp -a tree/small mnt/tree/
	sync -f mnt
	umount mnt
	detach
	# A new gateway: only data that reached the file are left.
	serve_stop gw
	serve gw weir.yaml
	attach "$type"
	case $type in
	ext4) run 0 e2fsck -f -n "$loop" ;;
	xfs) run 0 xfs_repair -n "$loop" ;;
	esac
	mount "$loop" mnt
	(cd mnt/tree && find . -type f -exec sha256sum {} +) | sort >got
	cmp want got || fail "$type returns other files"
	umount mnt
	detach
	serve_stop gw
done
