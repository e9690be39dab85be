# SPDX-License-Identifier: BSD-3-Clause
# Controllers elect one of them in the cluster's store: it leads under a generation above all that servers obeyed, gives way when it
# ends or is killed, and goes on without the store; servers keep the generation on disk; a version reaches the controllers, too.
. "$WEIR_SOURCE/tests/lib.sh"
. "$WEIR_SOURCE/tests/lib-serve.sh"
. "$WEIR_SOURCE/tests/lib-cluster.sh"
. "$WEIR_SOURCE/tests/lib-etcd.sh"

etcd_start 1
run 0 weir cluster init --name test --store "etcd:$etcd_urls?timeout=1s"
printf -- '- {name: db, min: 150 iops, max: 300 iops, match: {export: "*"}}\n' >one.yaml
printf -- '- {name: db, min: 150 iops, max: 400 iops, match: {export: "*"}}\n' >two.yaml
run 0 weir policy apply --store test.token one.yaml

cluster_key key
head="cluster: {name: test, key: $PWD/key, controller: [\"unix:$PWD/c1.sock\", \"unix:$PWD/c2.sock\"], servers: [s1, s2, s3], period: 1s"
for c in 1 2; do
	printf '%s, listen: "unix:%s"}\napi: "unix:%s"\nstate: %s\n' "$head" "$PWD/c$c.sock" "$PWD/c$c.api" "$PWD/state-c$c" >c$c.yaml
done
for s in 1 2 3; do
	printf '%s}\nlisten: "unix:%s"\nstate: %s\nresources: [{name: s%s, back: "memory:16M", capacity: 250 iops, controller: pshift}]\n' \
		"$head" "$PWD/s$s.sock" "$PWD/state-s$s" $s >s$s.yaml
done
# A stand-in led under that generation before.
mkdir state-s3
echo '{"cluster": "test", "generations": {"s3": 5000}}' >state-s3/generations.json

run 2 weir control --join test.token c1.yaml
has stderr "--join and --local go together"
chief() { control c$1 --join test.token --local c$1.yaml --name c$1 --lease 2s; }
chief 1
for s in 1 2 3; do
	rm -f s$s.pid
	weir serve --join test.token --local s$s.yaml --api "unix:$PWD/s$s.api" --name s$s --pidfile s$s.pid >s$s.out 2>s$s.log </dev/null &
	serve_child=$!
	serve_all="${serve_all-} $!"
	trap 'kill -KILL $serve_all 2>/dev/null; serve_cleanup' EXIT
	serve_ready s$s "server $s"
done
await c1 'd["state"]' granting
generation() { cluster_state $1 'd["generation"]'; }
first=$(generation c1)
[ "$first" -gt 5000 ] || fail "generation $first is not above that of s3"
for s in 1 2 3; do
	has state-s$s/generations.json "\"s$s\": $first"
done

# Another one is a standby, until the first one ends.
chief 2
await c2 'd["election"]["leader"]' c1
[ "$(cluster_state c2 'd["state"]')" = standby ] || fail "two controllers lead"
run 0 weir cluster status --join test.token
has stdout "leader c1, generation $first"
serve_stop c1
await c2 'd["state"]' granting
second=$(generation c2)
[ "$second" -gt "$first" ] || fail "generation $second is not above $first"

# A version reaches all of them.
run 0 weir policy apply --store test.token -m "a higher max" two.yaml
await c2 'd["buckets"][0]["limit"]' 400
await c2 'd["election"]["version"]' 2

# Killed: its lease ends.
chief 1
await c1 'd["election"]["leader"]' c2
kill -KILL "$(cat c2.pid)"
await c1 'd["state"]' granting
third=$(generation c1)
[ "$third" -gt "$second" ] || fail "generation $third is not above $second"

# Without the store the leader goes on, and changes nothing.
etcd_kill 1
await c1 'd["election"]["trusted"]' False
[ "$(cluster_state c1 'd["state"]')" = granting ] || fail "the leader stopped without the store"
[ "$(cluster_state s1 'd["resources"][0]["pshift"]["state"]')" = leased ] || fail "s1 has no lease"
curl -s -X PUT --unix-socket c1.api -d '{}' http://localhost/v1/plan >answer
has answer "while the store does not confirm that this controller leads"
etcd_run 1
await c1 'd["election"]["trusted"]' True
[ "$(cluster_state c1 'd["state"]')" = granting ] || fail "the leader stopped with the store"
run 0 weir cluster status --join test.token
has stdout "leader c1, generation"
for x in s1 s2 s3 c1; do
	serve_stop $x
done
