# SPDX-License-Identifier: BSD-3-Clause
# Public names start with weir_: in the shared library, the archive, and the installed headers.
. "$WEIR_SOURCE/tests/lib.sh"

so=$WEIR_BUILD/include/libweir.so
a=$WEIR_BUILD/include/libweir.a
case $(nm -D "$so") in
*__asan_*) skip "a sanitized build exports the sanitizers' names" ;;
esac

nm -D --defined-only "$so" | awk '{print $NF}' | sort >so.names
nm -g --defined-only "$a" | awk 'NF == 3 {print $NF}' | sort >a.names
for list in so.names a.names; do
	[ -s $list ] || fail "$list: no public names at all"
	if grep -v '^weir_' $list; then
		fail "$list: these do not start with weir_"
	fi
done

# Every declared function exists, and no other function is exported.
for header in "$WEIR_SOURCE"/include/weir/*.h; do
	gcc -E -P -I"$WEIR_SOURCE/include" "$header"
done | tr '\n' ' ' >headers
grep -o '__attribute__((visibility("default")))[^;({]*(' headers |
	grep -o 'weir_[a-z0-9_]*($' | tr -d '(' | sort -u >declared
[ -s declared ] || fail "no declarations found"
diff declared so.names || fail "declared (<) and exported by libweir.so (>) differ"
diff declared a.names || fail "declared (<) and exported by libweir.a (>) differ"

# A function and a type of the same name cannot both be used in C++, and are confusing in C.
grep -oE '(struct|union|enum) weir_[a-z0-9_]+' headers | awk '{print $2}' | sort -u >types
if comm -12 declared types | grep .; then
	fail "these are functions and types at once"
fi

readelf -d "$so" | grep -q 'SONAME.*\[libweir\.so\.0\]' || fail "soname is not libweir.so.0"

# ---- Code outside of a controller's folder does not name it, except for weir alloc.
python3 - "$WEIR_SOURCE" <<'END' || fail "code names controllers"
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
bad = 0
for path in sorted(p for top in ("src", "include") for p in (source / top).rglob("*.[ch]")):
    name = path.relative_to(source).as_posix()
    code = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), path.read_text(), flags=re.S)
    if name.startswith("src/control/") or name.startswith("src/cli/alloc"):
        continue
    for number, line in enumerate(code.splitlines(), 1):
        if re.search("parda|adaptbf|pshift", line, re.I):
            print(f"{name}:{number}: {line.strip()}")
            bad = 1
sys.exit(bad)
END

# ---- A name that says nothing without its file is no function's name in two files.
python3 - "$WEIR_SOURCE" <<'END' || fail "names of functions that say nothing"
import collections
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
files = collections.defaultdict(set)
for path in sorted(p for top in ("src", "bench") for p in (source / top).rglob("*.[ch]")):
    for name in re.findall(r"^static\s[^;={}()]*?\b(run|take|look|put|go)\(", path.read_text(), re.M):
        files[name].add(path.relative_to(source).as_posix())
twice = {name: sorted(where) for name, where in files.items() if len(where) > 1}
for name, where in twice.items():
    print(f"{name}(): {', '.join(where)}")
sys.exit(bool(twice))
END
