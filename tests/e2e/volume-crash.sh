# SPDX-License-Identifier: BSD-3-Clause
# A gateway that is killed in the middle of a create, before each of its system calls on files in turn: after the restart there is
# the whole volume with its class, which rm deletes, or none, and no file.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-kept.sh"
. "$WEIR_SOURCE/tests/lib-volume.sh"

command -v cc >/dev/null || skip "no C compiler"
cc -O2 -shared -fPIC -o kill-shim.so "$WEIR_SOURCE/tests/e2e/kill-shim.c"

vm_policy

whole=0
none=0
for kill in $(seq 20); do
	rm -f armed
	KILL_SHIM="$here/armed $kill" LD_PRELOAD="$here/kill-shim.so" \
		serve gate --api "unix:$here/api.sock" --state "$here/state" weir.yaml
	: >armed
	failed=0
	weir volume create nvme0 vm-1 --size 1MiB --class gold >stdout 2>stderr || failed=$?
	pid=$(cat gate.pid)
	if [ "$failed" -eq 0 ]; then # there was no such call any more
		rm armed
		serve_stop gate
	else
		wait "$pid" || true
	fi
	serve gate --api "unix:$here/api.sock" --state "$here/state" weir.yaml
	weir volume list -o json >stdout
	if grep -q '"name": "vm-1"' stdout; then
		whole=$((whole + 1))
		has stdout '"class": "gold"'
		has stdout '"from": "api"'
		test "$(stat -c %s vm/1.raw)" = 1048576 || fail "kill $kill: a volume of another size"
		run 0 weir volume create nvme0 vm-1 --size 1MiB --class gold
		run 0 weir volume rm vm-1
	else
		none=$((none + 1))
		test -z "$(ls -A vm)" || fail "kill $kill: a file without its volume: $(ls -A vm)"
	fi
	test -z "$(ls -A vm)" || fail "kill $kill: rm left $(ls -A vm)"
	serve_stop gate
	[ "$failed" -ne 0 ] || break
done
echo "killed at $((kill - 1)) calls: $whole whole, $none none"
[ "$failed" -eq 0 ] || fail "no create has succeeded"
[ "$whole" -gt 1 ] && [ "$none" -gt 1 ] || fail "no kill before, or none after, the file has its name"
