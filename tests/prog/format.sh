# SPDX-License-Identifier: BSD-3-Clause
# Every C file is as .clang-format says, and says its licence in its first line.
. "$WEIR_SOURCE/tests/lib.sh"

command -v clang-format >/dev/null || skip "no clang-format"
cd "$WEIR_SOURCE" || exit 1
"$WEIR_SOURCE/tools/sources" >"$OLDPWD/files"
[ -s "$OLDPWD/files" ] || fail "no sources found"
xargs clang-format --dry-run -Werror <"$OLDPWD/files" || fail "make format mends this"
status=0
while read -r file; do
	head -n 1 "$file" | grep -qxF '/* SPDX-License-Identifier: BSD-3-Clause */' || {
		echo "$file: the first line is not the licence" >&2
		status=1
	}
done <"$OLDPWD/files"
exit $status
