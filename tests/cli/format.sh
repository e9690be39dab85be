# SPDX-License-Identifier: BSD-3-Clause
# Every C file is formatted by .clang-format and names its licence in its first line. No large file,
# such as a core dump, is tracked.
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

# ---- tracked files; a tree without git has none
git ls-files -z >"$OLDPWD/tracked" 2>/dev/null || : >"$OLDPWD/tracked"
xargs -0 sh -c 'for file; do
	[ ! -f "$file" ] || [ "$(wc -c <"$file")" -lt 1048576 ] || echo "$file"
done' sh <"$OLDPWD/tracked" >"$OLDPWD/large"
[ ! -s "$OLDPWD/large" ] || {
	echo "tracked, of 1 MiB or more: $(cat "$OLDPWD/large")" >&2
	status=1
}
exit $status
