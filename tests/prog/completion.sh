# SPDX-License-Identifier: BSD-3-Clause
# The completion script offers what the tables have: verbs, options, subverbs, files.
. "$WEIR_SOURCE/tests/lib.sh"

command -v bash >/dev/null || skip "no bash"
weir --completion bash >weir.bash
bash -n weir.bash || fail "not a bash script"

offer() # WORD...: what is offered for the last word, one a line
{
	bash -c '. ./weir.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _weir
		printf "%s\n" "${COMPREPLY[@]}"' bash weir "$@" >offered
}

offer ''
weir --dump-options | cut -d' ' -f1 | sort -u | grep -vx weir >verbs
while read -r verb; do
	offer "${verb%?}"
	grep -qx "$verb" offered || fail "verb $verb is not offered"
done <verbs
offer --ver
grep -qx -e --version offered || fail "--version is not offered"
offer --completion ''
grep -qx bash offered || fail "--completion bash is not offered"

weir --dump-options | grep -v '^weir ' >options
while read -r verb option letter argument; do
	offer "$verb" "--${option%?}"
	grep -qx -e "--$option" offered || fail "$verb --$option is not offered"
	case $argument in
	-) continue ;;
	*FILE*|*DIR*) touch some-file; want=some-file ;;
	*) want= ;;
	esac
	offer "$verb" "--$option" some
	[ "$(cat offered)" = "$want" ] || fail "$verb --$option $argument: $(cat offered)"
done <options

touch scenario.yaml
while read -r verb; do
	offer "$verb" check scen
	grep -qx scenario.yaml offered || fail "$verb: files are not offered"
done <verbs
if grep -qx policy verbs; then
	offer policy ch
	grep -qx check offered || fail "policy check is not offered"
fi
