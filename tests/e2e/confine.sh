# SPDX-License-Identifier: BSD-3-Clause
# The gateway and the controller confine all of their threads once they have started; --no-confine keeps them as they
# were.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-cluster.sh"

# modes PID: the modes of the filters of its threads, each once. 0: none, 2: a list of system calls
modes()
{
	sed -n 's/^Seccomp:[[:space:]]*//p' "/proc/$1"/task/*/status | sort -u | tr '\n' ' '
}

case $(nm "$WEIR") in
*__asan_init*) skip "nothing is confined under a sanitizer" ;;
esac
serve gate -t 2 -l unix:gate.sock memory:1M
[ "$(modes "$(cat gate.pid)")" = "2 " ] || fail "the gateway has filters $(modes "$(cat gate.pid)")"
grep -q '^Max core file size  *0  *0 ' "/proc/$(cat gate.pid)/limits" || fail "a core file may be written"
weir load -n 100 --reads 50% "nbd+unix:///?socket=$PWD/gate.sock" >/dev/null
serve_stop gate

serve free --no-confine -l unix:free.sock memory:1M
[ "$(modes "$(cat free.pid)")" = "0 " ] || fail "--no-confine: filters $(modes "$(cat free.pid)")"
serve_stop free

cluster_key key
cluster_files 1
control c control.yaml
[ "$(modes "$(cat c.pid)")" = "2 " ] || fail "the controller has filters $(modes "$(cat c.pid)")"
