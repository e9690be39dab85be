# SPDX-License-Identifier: BSD-3-Clause
# lib.sh: for tests written in sh. `. "$WEIR_SOURCE/tests/lib.sh"`

fail() # MESSAGE...: the test fails
{
	echo "failed: $*" >&2
	exit 1
}

skip() # REASON...: the test cannot run here
{
	echo "skipped: $*"
	exit 77
}

# run STATUS COMMAND...: run it, with its output in ./stdout and ./stderr, and check the exit status
run()
{
	want=$1
	shift
	got=0
	"$@" >stdout 2>stderr </dev/null || got=$?
	[ "$got" -eq "$want" ] && return
	cat stdout stderr >&2
	fail "$*: exit status $got, not $want"
}

# has FILE TEXT: check that FILE contains the fixed text TEXT
has()
{
	grep -qF -e "$2" "$1" && return
	cat "$1" >&2
	fail "$1 does not contain: $2"
}

# hasnt FILE TEXT
hasnt()
{
	grep -qF -e "$2" "$1" || return 0
	cat "$1" >&2
	fail "$1 contains: $2"
}
