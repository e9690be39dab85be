# SPDX-License-Identifier: BSD-3-Clause
# The completion script offers the words of the program's tables: verbs, options, subverbs, files.
. "$WEIR_SOURCE/tests/lib.sh"

command -v bash >/dev/null || skip "no bash"
weir --completion bash >weir.bash
bash -n weir.bash || fail "not a bash script"

offer() # WORD...: print the completions of the last word, one per line
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

# ---- the formats of traces: all are read, some written
offer trace convert --format ''
grep -qx auto offered || fail "trace --format auto is not offered"
formats=$(grep -vx auto offered)
[ "$(echo "$formats" | wc -l)" -ge 6 ] || fail "few formats are offered: $formats"
offer trace convert --to ''
cp offered written
: >none
for format in auto $formats; do
	case $(weir trace convert --to "$format" none - 2>&1) in
	*"can only be read"*|*"no format"*) grep -qx "$format" written && fail "--to $format is offered" ;;
	*) grep -qx "$format" written || fail "--to $format is not offered" ;;
	esac
done
offer replay -f mq
[ "$(cat offered)" = mqsim ] || fail "replay -f mqsim is not offered"

# ---- experiments, as the program lists them
mkdir -p experiments/one experiments/two
for id in one two; do
	printf 'id: %s\ntitle: t\nsource: ours\nruns: [{name: r, scenario: s}]\n' "$id" >experiments/$id/experiment.yaml
	printf 'claims: [{what: w, value: 1, band: [1, 1]}]\n' >>experiments/$id/experiment.yaml
done
offer experiment run ''
[ "$(sort offered | tr '\n' ' ')" = "all one two " ] || fail "experiments are not offered: $(cat offered)"
offer experiment run one tw
[ "$(cat offered)" = two ] || fail "a second experiment is not offered: $(cat offered)"
offer experiment r
[ "$(cat offered)" = run ] || fail "experiment run is not offered"
