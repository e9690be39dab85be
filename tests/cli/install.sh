# SPDX-License-Identifier: BSD-3-Clause
# The files that make install installs are enough to embed libweir: examples/embed.c builds against
# them with pkg-config, with the archive and with the shared library, and the headers compile as
# C++.
. "$WEIR_SOURCE/tests/lib.sh"

case $(nm "$WEIR") in
*__asan_init*) skip "a sanitized library needs a sanitized program" ;;
esac
root=$PWD/root
run 0 meson install -C "$WEIR_BUILD" --no-rebuild --destdir "$root"
pc=$(find "$root" -name weir.pc)
[ -n "$pc" ] || fail "no weir.pc"
prefix=$root$(sed -n 's/^prefix=//p' "$pc")
export PKG_CONFIG_PATH="${pc%/*}" PKG_CONFIG_SYSROOT_DIR="$root"

for file in bin/weir include/weir/weir.h include/weir/gate.h lib/libweir.a lib/libweir.so \
	lib/libweir.so.0 share/man/man1/weir.1 share/bash-completion/completions/weir \
	share/man/man1/weir-serve.1 share/man/man3/weir_gate.3 \
	lib/systemd/system/weir.service lib/systemd/system/weir.socket; do
	[ -s "$prefix/$file" ] || fail "not installed: $file"
done
# Every function has a manual page under its name, which may refer to another page.
nm -D --defined-only "$prefix/lib/libweir.so" | awk '{print $NF}' >functions
while read -r name; do
	page=$prefix/share/man/man3/$name.3
	[ -s "$page" ] || fail "not installed: $name(3)"
	to=$(sed -n '1s/^\.so //p' "$page")
	[ -z "$to" ] || [ -s "$prefix/share/man/$to" ] || fail "$name(3) leads to $to, which is not there"
done <functions
"$prefix/bin/weir" --version >version || fail "the installed program does not run"
[ "$(cat version)" = "weir $(pkg-config --modversion weir)" ] || fail "versions differ"

cp "$WEIR_SOURCE/examples/embed.c" .
[ "$(wc -l <embed.c)" -lt 60 ] || fail "embed.c has 60 lines or more"
cflags="-std=c17 -Wall -Wextra -Werror $(pkg-config --cflags weir)"
case $cflags in
*"$WEIR_SOURCE"*) fail "the flags point into the source: $cflags" ;;
esac
run 0 gcc $cflags embed.c -o shared $(pkg-config --libs weir)
run 0 env LD_LIBRARY_PATH="$prefix/lib" ./shared
mv stdout shared.out
libs=$(pkg-config --static --libs weir | sed 's/-lweir/-l:libweir.a/')
run 0 gcc $cflags embed.c -o static $libs
run 0 env -u LD_LIBRARY_PATH ./static
readelf -d shared | grep -q 'libweir\.so\.0' || fail "the shared example does not use libweir.so.0"
readelf -d static | grep -q libweir && fail "the static example uses the shared library"
cmp stdout shared.out || fail "static and shared differ"
# 4000 requests served, 3 to 1; the gate may be off by one request.
awk '$1 == "gold" { gold = $2 } $1 == "bronze" { bronze = $2 }
	END { exit !(gold + bronze == 4000 && bronze >= 999 && bronze <= 1001) }' stdout || {
	cat stdout >&2
	fail "the example's shares are not 3 to 1"
}

# Every header compiles alone, in C11, which programs may use, and in C++17.
cxx=$(command -v g++ || command -v clang++) || echo "no C++ compiler: the headers are tried as C only"
cxxflags="-std=c++17 -Wall -Wextra -Werror $(pkg-config --cflags weir)"
(cd "$prefix/include" && find weir -name '*.h') >headers
while read -r header; do
	echo "#include <$header>" >alone.c
	run 0 gcc $cflags -std=c11 -pedantic -fsyntax-only alone.c
	cp alone.c alone.cc
	[ -z "$cxx" ] || run 0 "$cxx" $cxxflags -fsyntax-only alone.cc
done <headers
if [ -n "$cxx" ]; then
	cat >link.cc <<-'END'
		#include <weir/weir.h>
		int main() { return weir_units_time("10ms", nullptr, nullptr) == 0; }
	END
	run 0 "$cxx" $cxxflags link.cc -o link $libs
fi
