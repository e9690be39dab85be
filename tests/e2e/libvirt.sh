# SPDX-License-Identifier: BSD-3-Clause
# The disk of docs/virtual-machines.md: virsh attaches it to a running virtual machine, QEMU is a client of the volume, and reads
# what is in the file. libvirt's QEMU driver runs inside virsh, with all its files in one folder, and needs no daemon.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"

for tool in virsh qemu-system-x86_64 qemu-io setpriv; do
	command -v "$tool" >/dev/null || skip "no $tool"
done
ls /usr/lib/*/libvirt/connection-driver/libvirt_driver_qemu.so >/dev/null 2>&1 || skip "no libvirt-daemon-driver-qemu"

mkdir vm root
qemu-img create -q -f raw vm/web.raw 64M
qemu-io -f raw -c "write -P 7 1M 64k" vm/web.raw >wrote 2>&1 || fail "no image: $(cat wrote)"
cat >weir.yaml <<END
listen: {unix: "$here/s.sock", mode: 0666}
resources: [{name: nvme0, depth: 32, volumes: [{dir: "$here/vm", match: "*.raw", name: "vm-{stem}"}]}]
tenants: [{name: vms, each: {match: {export: "vm-*"}}}]
END
serve gate --api "unix:$here/api.sock" weir.yaml

sed -n '/^```xml$/,/^```$/{/^```/d;s|/run/weir/nbd.sock|'"$here"'/s.sock|;p}' "$WEIR_SOURCE/docs/virtual-machines.md" >disk.xml
has disk.xml "$here/s.sock"
cat >web.xml <<END
<domain type="qemu">
  <name>web</name>
  <memory unit="MiB">64</memory>
  <os><type arch="x86_64" machine="pc">hvm</type></os>
  <features><acpi/></features>
  <devices><emulator>$(command -v qemu-system-x86_64)</emulator></devices>
</domain>
END

# as root the driver wants a user that another package makes
user=
if [ "$(id -u)" -eq 0 ]; then
	chmod 755 .
	chown nobody root
	setpriv --reuid nobody --clear-groups test -r web.xml -a -x root || skip "nobody cannot enter $here"
	user="setpriv --reuid nobody --clear-groups"
fi
run 0 env HOME="$here/root" XDG_RUNTIME_DIR="$here/root" timeout 60 $user virsh -q -c "qemu:///embed?root=$here/root" "
	define web.xml; start web --paused; attach-device web disk.xml --live --config; domblkinfo web vdb
	qemu-monitor-command web --hmp qemu-io -d /machine/peripheral/virtio-disk1/virtio-backend \\\"read -P 7 1M 64k\\\"
	destroy web; undefine web"
has stdout "67108864"
cp root/log/qemu/web.log qemu.log
has qemu.log "read 65536/65536 bytes at offset 1048576"
hasnt qemu.log "verification failed"
has gate.log "export=vm-web tenant=vms/vm-web"
