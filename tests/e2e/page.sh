# SPDX-License-Identifier: BSD-3-Clause
# The page in a real browser, on a gateway under load: every view, a change and its undo, an error, a name full of markup, the
# token, and a restart of the gateway.
. "$WEIR_SOURCE/tests/lib.sh"

for tool in chromium chromedriver /usr/bin/python3; do
	command -v $tool >/dev/null || skip "no $tool"
done
/usr/bin/python3 -c 'import selenium' 2>/dev/null || skip "no python3-selenium"
/usr/bin/python3 "$WEIR_SOURCE/tests/e2e/page.py" || fail "the page"
