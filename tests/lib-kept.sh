# SPDX-License-Identifier: BSD-3-Clause
# lib-kept.sh: for tests that check with tests/e2e/kept.py that a gateway keeps its policy. After
# lib.sh and lib-serve.sh.

here=$PWD
export WEIR_SOCKET="$here/api.sock" NBD_SOCKET="$here/s.sock" PYTHONPATH="$WEIR_SOURCE/tests/e2e"
