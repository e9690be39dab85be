# SPDX-License-Identifier: BSD-3-Clause
# docs/papers.md names functions, tests and experiments for each equation, and docs/errata-*.md those that show a difference: all of
# them must exist.
. "$WEIR_SOURCE/tests/lib.sh"
cd "$WEIR_SOURCE" || fail "no source at $WEIR_SOURCE"

for paper in parda parley adaptbf prioritymeister pshift; do
	[ -s "docs/errata-$paper.md" ] || fail "no errata of $paper"
done
errata=$(cat docs/errata-*.md | grep -o '`[a-z0-9/-]*[-/][a-z0-9/.-]*`' | tr -d '`' | grep -v '^--' | sort -u)
[ "$(echo "$errata" | wc -l)" -ge 50 ] || fail "docs/errata-*.md name next to nothing"
for name in $errata; do
	[ -e "$name" ] || [ -d "experiments/$name" ] || fail "docs/errata-*.md name $name, which is not there"
done
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
