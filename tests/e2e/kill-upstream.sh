# SPDX-License-Identifier: BSD-3-Clause
# Upstreams that are killed again and again under verified load.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-kill.sh"

need nbdkit fio
nbdkit --filter=cache null --dump-plugin >/dev/null 2>&1 || skip "nbdkit has no cache filter"
exec "$python" "$WEIR_SOURCE/tests/e2e/kill-upstream.py"
