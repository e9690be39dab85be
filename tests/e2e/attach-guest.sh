# SPDX-License-Identifier: BSD-3-Clause
# File systems on devices of the kernel's nbd driver, in an emulated guest, survive restarts and kills of the gateway
# with `weir attach --watch`; devices are found again by their volume, and grow. The guest's kernel is what
# `tools/guest "$WEIR_BUILD/guest"` has fetched. WEIR_RESTARTS: how many (2); with more than 2 xfs is tested beside ext4.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-kill.sh"

[ "$(uname -m)" = x86_64 ] || skip "the guest is an x86_64"
weir attach --help >/dev/null 2>&1 || skip "weir was built without libmnl"
need nbdkit
kernel=$WEIR_BUILD/guest
exec "$python" "$WEIR_SOURCE/tests/e2e/attach-guest.py" "$kernel"
