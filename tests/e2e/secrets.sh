# SPDX-License-Identifier: BSD-3-Clause
# No token in the arguments, the environment, the log, /metrics, the record of changes and the memory of a running gateway; no core
# file, and no look into its memory for another process of its user.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

for tool in curl gcore; do
	command -v "$tool" >/dev/null || skip "no $tool"
done
case $(nm "$WEIR") in
*__asan_init*) skip "nothing is confined under a sanitizer" ;;
esac
here=$PWD
head -c 24 /dev/urandom | base64 >token
one=$(cat token)
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >weir.yaml <<END
listen: "unix:$here/s.sock"
api: ["unix:$here/api.sock", "tcp:127.0.0.1:$port"]
token: token
state: state
access: {audit: audit.json}
resources: [{name: disk, back: "memory:8M"}]
tenants: [{name: db, match: {export: "*"}}]
END

# hasnt_token FILE: none of the tokens is in it, not even the first or last 12 characters of one, in any case
hasnt_token()
{
	grep -qaiF -e "$(echo "$one" | cut -c 1-12)" -e "$(echo "$named" | cut -c 6-18)" -e "$(echo "$one" | tail -c 13)" \
		-e "$(echo "$named" | tail -c 13)" "$1" && fail "$1 has a part of a token"
	return 0
}

ulimit -c unlimited
weir serve --log-level debug --pidfile gate.pid weir.yaml >gate.out 2>gate.log &
serve_child=$!
trap 'kill -KILL $serve_child 2>/dev/null' EXIT
serve_ready gate "weir serve"
pid=$(cat gate.pid)
weir token add ops --role operate --socket api.sock >named
named=$(cat named)
# A token that cannot be printed is removed again, and a list knows the time of the end only as such.
run 1 sh -c 'weir token add unseen --role admin --socket api.sock >/dev/full'
has stderr "the token 'unseen' cannot be printed (No space left on device): it is removed"
run 1 sh -c 'weir token add unseen --role admin --file state/tokens >&-'
has stderr "(Bad file descriptor)"
weir token list --socket api.sock >list
hasnt list unseen
hasnt list ended
for file in token named; do
	weir status --url "http://127.0.0.1:$port" --token-file $file >/dev/null
	weir set db.weight 5 --url "http://127.0.0.1:$port" --token-file $file >/dev/null
done
run 1 weir status --url "http://127.0.0.1:$port"
curl -sS -H "Authorization: Bearer $named" "http://127.0.0.1:$port/metrics" >metrics
curl -sS -H "Authorization: Bearer $one" "http://127.0.0.1:$port/v1/tokens" >tokens
curl -sS -H "Authorization: Bearer $one" "http://127.0.0.1:$port/v1/status?token=$named" >wrong
[ "$(grep -c '"who":"ops"' audit.json)" -eq 1 ] || fail "the record: $(cat audit.json)"
tr '\0' '\n' <"/proc/$pid/cmdline" >cmdline
tr '\0' '\n' <"/proc/$pid/environ" >environ
ps -ww -o args= -p "$pid" >ps
for file in cmdline environ ps gate.log metrics tokens audit.json state/tokens; do
	hasnt_token $file
done

# The memory, as root may see it, while clients that have sent their tokens are connected.
cat >look.py <<'END'
import http.client, subprocess, sys
held = []
for file in ("token", "named"):
    k = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
    k.request("GET", "/v1/bypass", headers={"Authorization": "Bearer " + open(file).read().strip()})
    reply = k.getresponse()
    reply.read()
    assert reply.status == 200 and not reply.will_close, reply.status
    held.append(k)
sys.exit(subprocess.run(["gcore", "-o", "core", sys.argv[2]]).returncode)
END
if python3 look.py "$port" "$pid" >gcore.log 2>&1; then
	[ -s "core.$pid" ] || fail "gcore: $(cat gcore.log)"
	grep -qaF "$here/api.sock" "core.$pid" || fail "the core has not even the API's address"
	hasnt_token "core.$pid"
	rm "core.$pid"
elif [ "$(id -u)" -eq 0 ]; then
	fail "gcore: $(cat gcore.log)"
fi

# A crash leaves no core file.
kill -ABRT "$pid"
wait $serve_child || :
for file in core core.*; do
	[ ! -e "$file" ] || fail "a core file: $file"
done

# Another process of the gateway's own user cannot look into it.
[ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null || exit 0
mkdir -m 777 own
chmod a+rx .
cp "$WEIR" own/weir
as() # COMMAND...
{
	setpriv --reuid=65533 --regid=65533 --clear-groups --inh-caps=-all --bounding-set=-all "$@"
}
for confined in "" --no-confine; do
	rm -f own/pid
	# shellcheck disable=SC2086 # none, or one word
	as own/weir serve --api none --listen "unix:$here/own/s.sock" --pidfile own/pid $confined memory:8M 2>own.log &
	serve_child=$!
	tries=0
	until [ -s own/pid ]; do
		tries=$((tries + 1))
		[ $tries -lt 500 ] || fail "it does not start: $(cat own.log)"
		sleep 0.02
	done
	got=0
	as head -c 1 "/proc/$(cat own/pid)/environ" >/dev/null 2>&1 || got=1
	[ "$got" = "$([ -n "$confined" ] && echo 0 || echo 1)" ] || fail "a look into the gateway's memory, $confined: $got"
	kill "$(cat own/pid)"
	wait $serve_child || fail "no orderly end: $(cat own.log)"
done
exit 0
