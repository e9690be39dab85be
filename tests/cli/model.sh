# SPDX-License-Identifier: BSD-3-Clause
# The models of leases, generations and take-over hold in every state that they can reach, and fail with each defect that is put in on
# purpose. `make soak` (WEIR_MODEL=large) checks leases with longer holds, as far as five minutes go.
. "$WEIR_SOURCE/tests/lib.sh"
command -v spin >/dev/null || skip "no spin"

# model NAME STATUS OPTION...: check it. 0: no error in any state; 1: a property fails
model()
{
	name=$1 want=$2
	shift 2
	rm -f pan pan.*
	spin -a "$@" "$WEIR_SOURCE/tests/model/$name.pml" >spin.out 2>&1 || fail "spin: $(cat spin.out)"
	# shellcheck disable=SC2086
	cc -w -O2 -DSAFETY -DNOFAIR -DMEMLIM=1500 $pan -o pan pan.c
	./pan -m"${depth-20000}" -w22 ${limit-} >pan.out
	[ -n "${limit-}" ] || hasnt pan.out "max search depth too small"
	grep -q "errors: $want\$" pan.out || { cat pan.out >&2; fail "$name $*: not $want errors"; }
	echo "$name $*: $(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' pan.out) states, $want errors"
}

pan=-DHC4
model election 0
model election 1 -DANSWER_TIME
model election 1 -DNO_OFFSET
small="-DHOLD=1 -DLEAD=0"
for defect in NO_UNKNOWN NO_AGE NO_ORDER; do
	model leases 1 $small -D$defect
done
model leases 0 $small
[ "${WEIR_MODEL-}" = large ] || exit 0
pan=-DBITSTATE
depth=4000000 limit=-Q5
model leases 0
