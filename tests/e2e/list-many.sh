# SPDX-License-Identifier: BSD-3-Clause
# A list of 10,000 exports, with an NBD_OPT_INFO for each of them, as qemu-nbd and nbdinfo send.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

command -v qemu-nbd >/dev/null || skip "no qemu-nbd"
here=$PWD
python3 - >policy.yaml <<END
print("version: 1\nlisten: unix:$here/s.sock")
print('resources: [{name: disk, back: "memory:1G"}]\nexports:')
for i in range(10000):
    print("  - {name: export-%d, offset: %d KiB, size: 64 KiB}" % (i, i * 64))
print('tenants: [{name: all, match: {export: "*"}}]')
END
serve gateway policy.yaml
run 0 qemu-nbd --list --socket "$here/s.sock"
has stdout "exports available: 10000"
has stdout "'export-9999'"
hasnt gateway.log client-broken
serve_stop gateway
