# SPDX-License-Identifier: BSD-3-Clause
# lib-kill.sh: for tests that kill. After lib.sh: `. "$WEIR_SOURCE/tests/lib-kill.sh"`

need() # PROGRAM...
{
	for tool in "$@"; do
		command -v "$tool" >/dev/null || skip "no $tool"
	done
}

# libnbd's module is Debian's, so its Python must be, too, whatever is first on the path.
for python in python3 /usr/bin/python3 none; do
	"$python" -c 'import nbd' 2>/dev/null && break
done
[ "$python" != none ] || skip "no python3-libnbd"
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
