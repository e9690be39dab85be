# SPDX-License-Identifier: BSD-3-Clause
# lib-volume.sh: a gateway whose volumes are the files of a folder. After lib-kept.sh.

# vm_policy: make the folder vm, and weir.yaml, in which vm/N.raw is the volume vm-N
vm_policy()
{
	mkdir vm
	cat >weir.yaml <<END
listen: "unix:$here/s.sock"
classes: {gold: {weight: 4}}
resources:
  - name: nvme0
    volumes: [{dir: $here/vm, match: "*.raw", name: "vm-{stem}"}]
END
}
