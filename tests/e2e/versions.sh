# SPDX-License-Identifier: BSD-3-Clause
# Versions of a policy in a store, embedded and in etcd: history, differences, conflicts, rollback; etcd's members are killed, and
# none of the versions that were promised is lost.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-etcd.sh"

printf -- '- {name: db, weight: 3}\n- {name: web}\n' >one.yaml
printf -- '- {name: db, weight: 3, min: 1k iops}\n- {name: web}\n' >two.yaml
printf -- '- {name: db, wieght: 3}\n' >wrong.yaml
printf -- '- {name: db, weight: 5}\n- {name: web}\n' >three.yaml

versions() # STORE: the verbs
{
	export WEIR_STORE="$1"
	run 2 weir policy history
	has stderr "there is no policy in"
	case $1 in sqlite:*) [ ! -e state ] || fail "a question made a store" ;; esac
	run 2 weir policy apply wrong.yaml
	has stderr "wrong.yaml:1:14: [0]: unknown key 'wieght' (did you mean 'weight'?)"
	run 0 weir policy apply -m "the first" one.yaml
	has stdout "version 1 is stored"
	run 0 weir policy apply --dry-run two.yaml
	has stdout "db.min: none -> 1k iops"
	has stdout "nothing was changed"
	run 0 weir policy apply -m "a min for db" two.yaml
	has stdout "db.min: none -> 1k iops"
	has stdout "version 2 is stored"
	run 0 weir policy history
	has stdout "apply  a min for db"
	has stdout "apply  the first"
	run 0 weir policy diff 2 1
	has stdout "db.min: 1k iops -> none"
	run 1 weir policy apply --base 1 three.yaml
	has stderr "version 2 was stored meanwhile"
	has stderr "a min for db; nothing was changed"
	has stderr "from version 1 to 2:"
	has stderr "db.min: none -> 1k iops"
	run 0 weir policy rollback 1
	has stdout "version 3 is stored"
	run 0 weir policy export
	cmp stdout one.yaml || fail "the rollback is not the first version"
	run 0 weir policy export 2
	cmp stdout two.yaml || fail "version 2 has changed"
	run 2 weir policy diff 1 9
	has stderr "there is no version 9"
	run 0 weir policy history --json
	python3 -c '
import json, sys
v = json.load(open("stdout"))
assert [x["number"] for x in v] == [1, 2, 3], v
assert [x["kind"] for x in v] == ["apply", "apply", "rollback"], v' || fail "the history is wrong"
}

# Eight operators at once: each version is made by one of them, and the numbers have no gap.
at_once()
{
	before=$(weir policy history --json | grep -c '"number"')
	for i in 1 2 3 4 5 6 7 8; do
		printf -- "- {name: db, weight: $i}\n" >at-$i.yaml
		(weir policy apply -m "of $i" at-$i.yaml >at-$i.out 2>&1; echo $? >at-$i.rc) &
		at="${at-} $!"
	done
	wait $at
	at=
	made=$(cat at-*.rc | grep -c '^0$')
	[ "$made" -ge 1 ] || fail "no operator had success"
	for i in 1 2 3 4 5 6 7 8; do
		[ "$(cat at-$i.rc)" = 0 ] || has at-$i.out "was stored meanwhile"
	done
	after=$(weir policy history --json | grep -c '"number"')
	[ $((after - before)) -eq "$made" ] || fail "$made had success, and $((after - before)) versions were made"
}

versions "sqlite:$PWD/state"
at_once

# Tenants that name servers of a cluster, which only the members know.
printf -- '- {name: db, servers: [s1]}\n- {name: web}\n' >servers.yaml
run 0 weir policy apply servers.yaml
has stdout "db: has other servers"
number=$(sed -n 's/version \([0-9]*\) is stored/\1/p' stdout)
run 0 weir policy history
hasnt stdout "version $number:"
run 0 weir policy diff "$number" 1
has stdout "db.weight: 1 -> 3"
has stdout "db: has other servers"

# The store of a token has its cluster, and no other: not after it was made again at the same place.
token_refused() # TEXT: by every verb that opens a store by a token
{
	for verb in "apply two.yaml" "apply --dry-run two.yaml" "rollback 1" history "diff 1 1" "export 1"; do
		run 2 weir policy $verb --store old.token
		has stderr "$1"
	done
	run 2 weir cluster status --join old.token
	has stderr "$1"
}
run 0 weir cluster init --name twice --store "sqlite:$PWD/twice"
mv twice.token old.token
rm -r twice
token_refused "there is no cluster in"
[ ! -e twice ] || fail "a token made a store"
run 0 weir cluster init --name twice --store "sqlite:$PWD/twice"
run 0 weir policy apply --store twice.token one.yaml
token_refused "the store is that of another cluster (twice)"
run 0 weir policy history --store twice.token

# The password of a URL is in no message.
for name in "etcd:http://anna:se-cret@127.0.0.1:1" "etcd:http://a.invalid,http://anna:se-cret@127.0.0.1:1" \
	"etcd:anna:se-cret@127.0.0.1:1" "etcd:http://anna:x,se-cret@127.0.0.1:1" "etcd:http://anna:x?se-cret@127.0.0.1:1" \
	"etdc:http://anna:se-cret@127.0.0.1:1"; do
	case $name in *\?*) options= ;; *) options="?timeout=1s" ;; esac
	for verb in "policy history --store" "policy apply one.yaml --store" "cluster init --name p --store" "doctor --store"; do
		weir $verb "$name$options" >said 2>&1 && fail "there is a store at $name"
		grep -q "127.0.0.1:1" said || fail "$verb does not name the server: $(cat said)"
		hasnt said "se-cret"
	done
done

etcd_start 3
versions "etcd:$etcd_urls?prefix=prod"
at_once

# A follower, then the leader is killed: a version is stored all the same, and history is whole.
follower=$(($(etcd_leader) % 3 + 1))
etcd_kill "$follower"
run 0 weir policy apply -m "without a follower" two.yaml
etcd_run "$follower"
leader=$(etcd_leader)
etcd_kill "$leader"
run 0 weir policy apply -m "without the leader" three.yaml
run 0 weir policy history
has stdout "without a follower"
has stdout "without the leader"

# Without a majority nothing can be stored, and the history can still be read.
other=$((leader % 3 + 1))
last=$((other % 3 + 1))
etcd_kill "$other"
run 1 weir policy apply --store "etcd:$etcd_urls?prefix=prod&timeout=2s" -m lost one.yaml
has stderr "store not reached"
eval "client=\$etcd_client_$last"
run 0 weir policy history --store "etcd:$client?prefix=prod&timeout=2s"
has stdout "without the leader"
etcd_run "$leader"
etcd_run "$other"
etcd_wait
run 0 weir policy history
hasnt stdout "lost"
