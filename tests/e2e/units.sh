# SPDX-License-Identifier: BSD-3-Clause
# What a policy may ask for works under the restrictions of the units: a socket with a group, threads pinned to cores,
# files with rings and locks, the gateway's own list of system calls.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-cluster.sh"

command -v systemd-analyze >/dev/null || skip "no systemd-analyze"
case $(nm "$WEIR") in
*__asan_init*) skip "nothing is confined under a sanitizer" ;;
esac
program=$WEIR

# filters PID: how many lists of system calls its threads have, each number once
filters()
{
	sed -n 's/^Seccomp_filters:[[:space:]]*//p' "/proc/$1"/task/*/status | sort -u | tr '\n' ' '
}

# under UNIT: `weir` runs as a service of this unit from now on
under()
{
	mkdir -p bin
	cat >bin/weir <<-END
	#!/bin/sh
	exec python3 -B "$WEIR_SOURCE/tests/e2e/under-unit.py" "$WEIR_BUILD/packaging/$1" "$program" "\$@"
	END
	chmod +x bin/weir
	PATH=$PWD/bin:$PATH
}

truncate -s 16M disk.img
cat >weir.yaml <<END
listen: {unix: $PWD/gate.sock, mode: 0660, group: $(id -G | tr ' ' '\n' | tail -n 1)}
state: $PWD/state
resources: [{name: disk, back: "file:disk.img"}]
tenants: [{name: all, match: {export: "*"}}]
END
cluster_key key
cluster_files 1

under weir.service
serve gate --pin 0 weir.yaml
[ "$(stat -c %a gate.sock)" = 660 ] || fail "mode $(stat -c %a gate.sock)"
before=$(sed -n 's/^Seccomp_filters:[[:space:]]*//p' /proc/self/status)
[ "$(filters "$(cat gate.pid)")" = "$((before + 2)) " ] || fail "filters: $(filters "$(cat gate.pid)"), not 2 of its own"
"$program" load -n 100 --reads 50% "nbd+unix:///disk?socket=$PWD/gate.sock" >/dev/null
kill -HUP "$(cat gate.pid)"
for i in $(seq 100); do
	grep -q ' policy ' gate.log && break
	sleep 0.05
done
serve_stop gate
grep -E ' (warning|error) |not-confined' gate.log && fail "see above"

under weir-control.service
control c control.yaml
i=0
until [ "$(filters "$(cat c.pid)" 2>/dev/null)" = "$((before + 2)) " ]; do # it is confined after its pidfile is written
	i=$((i + 1))
	[ $i -lt 100 ] || fail "the controller's filters: $(filters "$(cat c.pid)")"
	sleep 0.05
done
grep -E 'not-confined' c.log && fail "see above"
exit 0
