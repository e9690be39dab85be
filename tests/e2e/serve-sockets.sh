# SPDX-License-Identifier: BSD-3-Clause
# Unix sockets have the mode and the group of the policy or the command line from the moment they
# exist, and a process of that group can connect where others cannot.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"

here=$PWD
group=$(id -gn)
other=$(awk -F: '$3 != 0 {print $1; exit}' /etc/group)
[ "$(id -u)" -ne 0 ] || group=$other
is() # FILE MODE GROUP
{
	got=$(stat -c "%a %G" "$1")
	[ "$got" = "$2 $3" ] || fail "$1 is $got, not $2 $3"
}

cat >policy.yaml <<END
listen:
  - {unix: $here/a.sock, mode: 0660, group: $group}
  - {unix: $here/b.sock, mode: 0600}
  - unix:$here/c.sock
api: {unix: $here/api.sock, mode: 0640}
resources: [{name: disk, back: "memory:16M"}]
tenants: [{name: all, match: {export: "*"}}]
END
run 0 weir serve --check policy.yaml
weir serve --pidfile g.pid policy.yaml >g.out 2>g.log </dev/null &
serve_child=$!
serve_all=$serve_child
trap 'kill -KILL $serve_all 2>/dev/null' EXIT
serve_ready g "weir serve policy.yaml"
is a.sock 660 "$group"
is b.sock 600 "$(id -gn)"
is api.sock 640 "$(id -gn)"
has g.log "unix:$here/a.sock unix:$here/b.sock unix:$here/c.sock"
run 0 nbdinfo --size "nbd+unix:///?socket=$here/a.sock"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	chmod 755 .
	id=$(awk -F: -v g="$group" '$1 == g {print $3}' /etc/group)
	try() # GID SOCKET
	{
		setpriv --reuid 65534 --regid "$1" --clear-groups nbdinfo --size "nbd+unix:///?socket=$here/$2" 2>&1
	}
	try "$id" a.sock >out || fail "the group cannot connect: $(cat out)"
	try "$id" b.sock >out && fail "a stranger connects to b.sock"
	try 65534 a.sock >out && fail "another group connects to a.sock"
fi
serve_stop g
for s in a b c api; do
	[ ! -e $s.sock ] || fail "$s.sock is left behind"
done

# From the command line, and invalid arguments.
serve g --listen "unix:$here/d.sock?mode=0666&group=$group" memory:1M
is d.sock 666 "$group"
serve_stop g
run 2 weir serve --listen "unix:$here/e.sock?mode=999" memory:1M
has stderr "octal"
run 2 weir serve --check --listen "unix:@e?mode=0600" memory:1M
has stderr "has no mode"
for bad in "mode: 0888" "mode: 07777" "modus: 0600"; do
	sed "s|mode: 0600|$bad|" policy.yaml >bad.yaml
	run 2 weir serve --check bad.yaml
	has stderr "bad.yaml:3:"
done
sed "s|mode: 0600|group: no-such-group|" policy.yaml >bad.yaml
run 2 weir serve --check bad.yaml
has stderr "no such group: 'no-such-group'"
