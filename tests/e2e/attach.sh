# SPDX-License-Identifier: BSD-3-Clause
# weir attach and detach refuse wrong command lines before they touch the kernel, exports under TLS, and a kernel without
# the driver; their unit is valid. tests/e2e/attach-guest.sh attaches devices.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

here=$PWD
case $(weir attach 2>&1) in
*libmnl*)
	run 2 weir detach x
	has stderr "this program was built without 'detach', which needs libmnl"
	skip "weir was built without libmnl"
	;;
esac

refused() # TEXT ARGUMENT...
{
	text=$1
	shift
	run 2 weir attach "$@"
	has stderr "$text"
}
uri=nbd://127.0.0.1:1/x
refused "needs a VOLUME, and may have a device: /dev/nbd0"
refused "needs a VOLUME, and may have a device: /dev/nbd0" $uri /dev/nbd0 /dev/nbd1
for device in /dev/sda nbd0 /dev/nbd /dev/nbd0p1 /dev/nbd99999999 /dev/nbd-1; do
	refused "'$device' is not a device of nbd, such as /dev/nbd0" $uri $device
done
refused "the kernel's sockets are plain, so an export under TLS cannot be attached" nbds://127.0.0.1/x
refused "tunnel" nbds+unix:///x?socket=/tmp/s
refused "ftp://x/y" ftp://x/y
for time in 0s 1500ms 2d x; do
	refused "--timeout: " --timeout $time $uri
	refused "--dead-conn-timeout: " --dead-conn-timeout $time $uri
done
for size in 511 -512 3k 8k 8192; do
	refused "--block-size: must be 512, 1024, 2048 or 4096" --block-size $size $uri
done
refused "--block-size: " --block-size x $uri
for size in 512 4096 4KiB; do
	refused "'/dev/sda' is not a device" --block-size $size $uri /dev/sda # checked before the device
	run 1 weir attach --block-size $size $uri
	hasnt stderr "block-size"
done
for n in 0 65 x; do
	refused "--connections: " --connections $n $uri
done
refused "--identifier: must be one line" --identifier "" $uri
refused "--identifier: must be one line" --identifier "$(printf 'a\nb')" $uri
run 1 weir attach --socket "$PWD/none.sock" vm-17
has stderr "none.sock"
run 2 weir detach
has stderr "needs a VOLUME or a device, such as /dev/nbd0"

# ---- a name: the gateway's API gives the URI; without an address for clients, or under TLS, there is none that fits

named() # ARGUMENT...: a gateway with the volumes vm-17 and "vm 18"
{
	serve gate --api "unix:$here/api.sock" "$@" weir.yaml
}
cat >weir.yaml <<END
resources:
  - {name: nvme0, volumes: [{name: vm-17, back: "memory:1M"}, {name: "vm 18", back: "memory:1M"}]}
END
export WEIR_SOCKET="$here/api.sock"
named --listen "unix:$here/s.sock"
refused "there is no volume 'none'" none
if ! [ -e /sys/module/nbd ] && ! [ -e /dev/nbd0 ]; then
	for volume in vm-17 "vm 18"; do
		run 1 weir attach "$volume"
		has stderr "$volume: the kernel's nbd driver is not loaded: modprobe nbd"
	done
fi
serve_stop gate
echo "bob:$(printf '%064d' 7)" >keys.psk
chmod 600 keys.psk
echo "tls: {psk: keys.psk, required: true}" >>weir.yaml
named --listen "unix:$here/s.sock"
refused "nbds+unix:///vm%2018?socket=$here/s.sock: the kernel's sockets are plain" "vm 18"
serve_stop gate
unset WEIR_SOCKET

if ! [ -e /sys/module/nbd ] && ! [ -e /dev/nbd0 ]; then
	run 1 weir attach $uri
	has stderr "the kernel's nbd driver is not loaded: modprobe nbd"
	run 1 weir detach /dev/nbd0
	has stderr "the kernel's nbd driver is not loaded: modprobe nbd"
fi

if command -v systemd-analyze >/dev/null; then
	sed "s|^ExecStart=[^ ]*|ExecStart=$WEIR|; s|^ExecStop=-[^ ]*|ExecStop=-$WEIR|" "$WEIR_BUILD/packaging/weir-attach@.service" >weir-attach@.service
	systemd-analyze verify "$PWD/weir-attach@.service" >verify 2>&1 || :
	hasnt verify "weir-attach@.service:"
fi
