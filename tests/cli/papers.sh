# SPDX-License-Identifier: BSD-3-Clause
# docs/papers.md names functions, tests and experiments for each equation: all of them must exist.
. "$WEIR_SOURCE/tests/lib.sh"
cd "$WEIR_SOURCE" || fail "no source at $WEIR_SOURCE"

names=$(sed -n '/^|/p' docs/papers.md | grep -o '`[^`]*`' | tr -d '`' | sort -u)
[ "$(echo "$names" | wc -l)" -ge 20 ] || fail "docs/papers.md names next to nothing"
for name in $names; do
	case $name in
	*/*) [ -e "$name" ] ;;
	*.c) [ -n "$(find tests src bench -name "$name")" ] ;;
	*_*) grep -rqw "$name" src bench include ;;
	*) [ -d "experiments/$name" ] || grep -rqw "$name" src bench include ;;
	esac || fail "docs/papers.md names $name, which is not there"
done
