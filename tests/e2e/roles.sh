# SPDX-License-Identifier: BSD-3-Clause
# Each request of the API needs its role: the table of the API is walked with a token of each role, and without one. Then TLS, wrong
# certificates and tokens, users of a unix socket, the record of changes, and many requests without a token.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

for tool in certtool curl; do
	command -v "$tool" >/dev/null || skip "no $tool"
done
exec python3 -B "$WEIR_SOURCE/tests/e2e/roles.py"
