# SPDX-License-Identifier: BSD-3-Clause
# Every key of a policy file, changed on a running gateway, does what the table in docs/operations.md says.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

export WEIR_SOCKET="$PWD/api.sock" PYTHONPATH="$WEIR_SOURCE/tests/e2e"
truncate -s 16M a.raw
python3 -B "$WEIR_SOURCE/tests/e2e/live-keys.py" write weir.yaml
serve gate --api "unix:$PWD/api.sock" weir.yaml
python3 -B "$WEIR_SOURCE/tests/e2e/live-keys.py" check weir.yaml || fail "some keys"
serve_stop gate
