# SPDX-License-Identifier: BSD-3-Clause
# The page that is part of the program, web/dist, is what its sources make; and it is small.
. "$WEIR_SOURCE/tests/lib.sh"

command -v node >/dev/null || skip "no node"
[ -d "$WEIR_SOURCE/web/node_modules" ] || skip "the packages that build the page are not installed (tools/deps, with npm)"
node "$WEIR_SOURCE/web/build.mjs" "$PWD/dist" >/dev/null || fail "the page cannot be built"
diff -r "$WEIR_SOURCE/web/dist" dist || fail "web/dist is not what web/src makes: cd web && npm run build"
! grep -q resolved "$WEIR_SOURCE/web/package-lock.json" || fail "web/package-lock.json names hosts"
