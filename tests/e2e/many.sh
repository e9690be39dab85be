# SPDX-License-Identifier: BSD-3-Clause
# 100,000 tenants: reading their status and applying another such policy delays neither handshakes
# nor the API nor I/O, and takes a second and little memory; see tests/e2e/many.py.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

ulimit -n 4096 2>/dev/null || skip "needs 4096 descriptors"
many="python3 $WEIR_SOURCE/tests/e2e/many.py"
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$WEIR_SOURCE/tests/e2e"
$many policy 1000 >p.yaml
serve g --api unix:api.sock p.yaml
$many drive "$(cat g.pid)" || {
	tail -n 5 g.log >&2
	fail "see above"
}
