# SPDX-License-Identifier: BSD-3-Clause
# An upstream whose FLUSHes fail, and which then forgets unflushed data: see flush-fails.py.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

here=$PWD
cat >policy.yaml <<END
listen: unix:$here/s.sock
resources: [{name: up, back: "nbd+unix:///?socket=$here/up.sock"}]
exports: [{name: a, size: 512 KiB}, {name: b, offset: 512 KiB, size: 512 KiB}]
tenants: [{name: a, match: {export: a}}, {name: b, match: {export: b}}]
END
mkfifo go
PYTHONPATH=$WEIR_SOURCE/tests/e2e timeout 60 python3 "$WEIR_SOURCE/tests/e2e/flush-fails.py" "$here" <go >out 2>&1 &
py=$!
exec 9>go
tries=0
until [ -S up.sock ]; do
	tries=$((tries + 1))
	[ "$tries" -lt 500 ] || fail "no server: $(cat out)"
	sleep 0.02
done
serve gateway --api unix:$here/api.sock policy.yaml
echo >&9
wait $py || fail "$(cat out)"
cat out
has gateway.log upstream-flush-failed
has gateway.log "error flush-failed"
curl -s --unix-socket api.sock http://x/metrics >metrics
grep -q '^weir_resource_flush_errors_total{resource="up"} [1-9]' metrics || fail "not counted: $(grep flush metrics)"
kill "$(cat gateway.pid)"
