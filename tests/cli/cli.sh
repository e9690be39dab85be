# SPDX-License-Identifier: BSD-3-Clause
# The command line's frame: help, version, mistakes, exit statuses.
. "$WEIR_SOURCE/tests/lib.sh"

run 0 weir --version
grep -qx 'weir [0-9]*\.[0-9]*\.[0-9]*' stdout || fail "version: $(cat stdout)"
run 0 weir --help
has stdout 'Usage: weir VERB'
run 0 weir help
has stdout 'Usage: weir VERB'
run 2 weir
has stderr 'Usage: weir VERB'
[ ! -s stdout ] || fail "a mistake must not write to standard output"
run 2 weir --frobnicate
has stderr 'no option --frobnicate'
run 2 weir frobnicate
has stderr "no verb 'frobnicate'; weir --help lists them"
run 2 weir --completion
run 2 weir --completion fish

weir --dump-options | cut -d' ' -f1 | sort -u | grep -vx weir >verbs
[ -s verbs ] || fail "no verbs"
while read -r verb; do
	run 0 weir "$verb" --help
	has stdout "Usage: weir $verb "
	mv stdout first
	run 0 weir "$verb" -h
	cmp -s stdout first || fail "$verb: -h is not --help"
	run 0 weir help "$verb"
	cmp -s stdout first || fail "help $verb is not $verb --help"
	run 2 weir "$verb" --hepl
	has stderr "weir: $verb: no option --hepl (did you mean --help?)"
	run 2 weir "$verb" --help=yes
	run 2 weir "${verb}x"
	has stderr "(did you mean '$verb'?)"
done <verbs

# Failing to write the output is an error.
if [ -w /dev/full ]; then
	got=0
	weir --help >/dev/full 2>stderr || got=$?
	[ "$got" -eq 1 ] || fail "a full device: exit status $got"
	has stderr 'standard output'
fi

# A file without an end is refused before it fills the memory (here: before 1 GiB).
if [ -r /dev/zero ]; then
	for verb in 'sim' 'policy check' 'trace info'; do
		got=0
		# shellcheck disable=SC2086 # two words
		(ulimit -v 2000000 && timeout 60 weir $verb /dev/zero) >stdout 2>&1 || got=$?
		[ "$got" -eq 2 ] || [ "$verb/$got" = 'trace info/1' ] || fail "$verb /dev/zero: exit status $got"
		grep -q '/dev/zero.*\(over [0-9]* MiB\|neither a file nor a pipe\)' stdout ||
			fail "$verb /dev/zero: $(cat stdout)"
	done
fi
