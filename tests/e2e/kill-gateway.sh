# SPDX-License-Identifier: BSD-3-Clause
# A gateway is killed again and again under verified load, with clients that reconnect and clients
# that do not.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-kill.sh"

need nbdcopy qemu-io qemu-img qemu-nbd
exec "$python" "$WEIR_SOURCE/tests/e2e/kill-gateway.py"
